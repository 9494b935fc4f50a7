internal import LifelineCore

/// Takes messages out of those that arrive on a connection, on its event loop, before they are handed on.
protocol MessageIntake<Message>: AnyObject, Sendable {
    associatedtype Message: Sendable
    /// A connection begins; the one before has ended.
    func connectionBegan()
    /// Whether this takes the message.
    func takes(_ message: Message) -> Bool
    /// No more messages come on this connection.
    func inputEnded(_ end: AnswersEnd)
    /// A connection, or an attempt to make it, is over, and takes no more messages.
    func connectionClosed(_ id: ConnectionManager.ConnectionID)
}
