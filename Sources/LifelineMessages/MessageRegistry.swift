internal import CLifelineMessages

/// Message types by their full names: those that a `google.protobuf.Any` may hold in JSON and text format.
///
///     let types = MessageRegistry([Sample_Chat_V1_ChatMessage.self, Sample_Chat_V1_User.self])
///     let json = try envelope.jsonString(options: JSONEncodingOptions(types: types))
public struct MessageRegistry: Sendable {
    // An object, so that C can be given a reference to it. It is never changed once it is shared.
    private final class Storage: Sendable {
        let types: [String: any Message.Type]

        init(_ types: [String: any Message.Type]) {
            self.types = types
        }
    }

    /// Nil while there are no types.
    private var storage: Storage?

    /// A registry without types.
    public init() {}

    /// - Parameter types: the types; of two with one name, the last counts.
    public init(_ types: [any Message.Type]) {
        storage = Storage(Dictionary(types.map { ($0.protoMessageName, $0) }, uniquingKeysWith: { $1 }))
    }

    /// The type of the message with this full name, such as `google.protobuf.Timestamp`.
    public subscript(name: String) -> (any Message.Type)? { storage?.types[name] }

    /// Adds the types of another registry. Of two with one name, the other's counts.
    public mutating func add(_ other: MessageRegistry) {
        guard let others = other.storage?.types else { return }
        storage = Storage((storage?.types ?? [:]).merging(others, uniquingKeysWith: { $1 }))
    }

    /// What C hands to ``findMessage``. Valid as long as the registry.
    var context: UnsafeMutableRawPointer? { storage.map { Unmanaged.passUnretained($0).toOpaque() } }

    /// The table of a type of the registry with this context.
    fileprivate static func table(
        named name: UnsafeRawBufferPointer,
        in context: UnsafeMutableRawPointer
    ) -> UnsafePointer<MessageTable>? {
        let storage = Unmanaged<Storage>.fromOpaque(context).takeUnretainedValue()
        // Strings that differ in their bytes may be equal.
        guard let type = storage.types[String(decoding: name, as: UTF8.self)],
            name.elementsEqual(type.protoMessageName.utf8)
        else { return nil }
        return type._table
    }
}

/// Finds the table of a type for C.
func findMessage(
    in context: UnsafeMutableRawPointer?,
    named name: UnsafePointer<CChar>,
    count: Int
) -> UnsafePointer<MessageTable>? {
    context.flatMap { MessageRegistry.table(named: UnsafeRawBufferPointer(start: name, count: count), in: $0) }
}
