/// A message that a session had accepted and of which it is not known that the peer has processed it.
public struct SessionMessageInDoubt: Sendable {
    /// `package.Service/Method`.
    public let method: String
    /// What was promised of it.
    public let delivery: SessionDelivery
    /// The encoded message.
    public let payload: [UInt8]
    /// `inDoubt`: it was sent, and the peer may have processed it. `unsent`: the session ended before it was sent.
    /// `refused`: it waited for the session, and the peer takes no frame of its length.
    public let outcome: SessionDeliveryOutcome
}
