public import LifelineMessages

/// A method whose messages are pushed, with their type. Generated code has one for each push method of a service.
public struct SessionPushMethod<Message: DelimitedMessage>: Sendable, Hashable {
    /// `package.Service/Method`.
    public let name: String

    /// Makes a method from its name, `package.Service/Method`.
    public init(_ name: String) { self.name = name }
}
