package import LifelineCore

/// The reason why a connection brings no more messages.
package enum InputEndReason: Sendable {
    /// The input ended in order, for this reason.
    case regular(ConnectionError)
    /// The connection failed.
    case failed(ConnectionError)
}

/// Takes messages out of those that arrive on a connection, on its event loop, before they are handed on.
package protocol MessageIntake<Message>: AnyObject, Sendable {
    associatedtype Message: Sendable
    /// A new connection begins; the previous one has ended.
    func connectionBegan()
    /// Consumes a message with its length on the wire. Returns false to pass it on.
    func consume(_ message: Message, byteCount: Int) -> Bool
    /// All messages of one read were offered to `consume`.
    func batchEnded()
    /// No more messages come on this connection.
    func inputEnded(_ end: InputEndReason)
    /// A connection, or an attempt to make it, is over, and takes no more messages.
    func connectionClosed(_ id: ClientMachine.ConnectionID)
}

// Defaults of the members that few intakes need.
extension MessageIntake {
    package func connectionBegan() {}
    package func batchEnded() {}
    package func inputEnded(_ end: InputEndReason) {}
    package func connectionClosed(_ id: ClientMachine.ConnectionID) {}
}
