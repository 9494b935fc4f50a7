/// A message that a session had accepted, and that the peer has not confirmed as processed.
public struct SessionMessageInDoubt: Sendable {
    /// `package.Service/Method`.
    public let method: String
    /// The delivery that the message was sent with.
    public let delivery: SessionDelivery
    /// The encoded message.
    public let payload: [UInt8]
    /// `inDoubt` when the message was sent and the peer may have processed it; `unsent` when the session ended before
    /// that; `refused` when it waited for the session, and the peer takes no frame of its length.
    public let outcome: SessionDeliveryOutcome
}
