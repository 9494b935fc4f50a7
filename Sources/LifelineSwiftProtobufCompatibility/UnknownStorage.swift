public import FoundationEssentials

/// The encoded fields of a message that its type does not know.
public struct UnknownStorage: Hashable, Sendable {
    /// The fields with their tags, as they were in the input.
    public let data: Data

    /// No fields.
    public init() { self.init(data: Data()) }

    init(data: Data) { self.data = data }
}
