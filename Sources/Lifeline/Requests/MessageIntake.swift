internal import LifelineCore
internal import LifelineTransport

/// Takes messages out of those that arrive on a connection, on its event loop, before they are handed on.
protocol MessageIntake<Message>: AnyObject, Sendable {
    associatedtype Message: Sendable
    /// Whether it is shown the heartbeat's messages, too.
    var seesHeartbeats: Bool { get }
    /// A connection begins; the one before has ended.
    func connectionBegan()
    /// Whether this takes the message, which had so many bytes on the wire.
    func takes(_ message: Message, byteCount: Int) -> Bool
    /// No more messages come on this connection.
    func inputEnded(_ end: AnswersEnd)
    /// A connection, or an attempt to make it, is over, and takes no more messages.
    func connectionClosed(_ id: ClientMachine.ConnectionID)
    /// Waits until a connection may be made.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first.
    func waitToConnect() async throws
    /// A connection stands, and was reported: it takes messages.
    func connectionReady(_ connection: any TransportConnection, as id: ClientMachine.ConnectionID)
    /// All messages that came together were offered to `takes`.
    func batchEnded()
}

// What not every intake needs.
extension MessageIntake {
    var seesHeartbeats: Bool { false }
    func waitToConnect() async throws {}
    func connectionReady(_ connection: any TransportConnection, as id: ClientMachine.ConnectionID) {}
    func batchEnded() {}
}
