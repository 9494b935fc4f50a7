public import LifelineMessages

/// A method whose messages are pushed, with their type. Generated code has one for each of a service's.
public struct SessionPushMethod<Message: DelimitedMessage>: Sendable, Hashable {
    /// `package.Service/Method`.
    public let name: String

    /// The method of a name, `package.Service/Method`.
    public init(_ name: String) { self.name = name }
}
