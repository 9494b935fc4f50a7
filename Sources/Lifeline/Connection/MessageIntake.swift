package import LifelineCore

/// How a connection came to bring no more messages.
package enum InputEndReason: Sendable {
    /// Its input ended in order, and why.
    case regular(ConnectionError)
    /// It failed.
    case failed(ConnectionError)
}

/// Takes messages out of those that arrive on a connection, on its event loop, before they are handed on.
package protocol MessageIntake<Message>: AnyObject, Sendable {
    associatedtype Message: Sendable
    /// A connection begins; the one before has ended.
    func connectionBegan()
    /// Consumes the message, which had so many bytes on the wire. Returns false to have it handed on.
    func consume(_ message: Message, byteCount: Int) -> Bool
    /// All messages that came together were offered to `consume`.
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
