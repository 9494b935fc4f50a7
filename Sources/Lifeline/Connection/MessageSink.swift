internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport

/// Receives the messages of a connection. Called on its event loop, one call at a time.
protocol MessageSink: Sendable {
    associatedtype Message: DelimitedMessage
    /// Takes messages out before `receive`; nil if nothing does.
    var intake: (any MessageIntake<Message>)? { get }
    /// Receives the messages of one read. Returns whether to read on.
    ///
    /// - Parameter cost: the size of the messages in the queue where they wait.
    func receive(_ messages: [Message], cost: Int) -> ReadDemand
    /// The cost of the messages that wait, in the units of the water marks.
    var waitingCost: Int { get }
    /// A ping is about to be sent.
    func pingWillBeSent(number: UInt64)
    /// Notes that no more messages come. The end was in order when `error` is nil.
    func finish(throwing error: ConnectionError?)
}

extension MessageSink {
    var intake: (any MessageIntake<Message>)? { nil }
    var waitingCost: Int { 0 }
    func pingWillBeSent(number: UInt64) {}
}

extension BatchQueue: MessageSink where Element: DelimitedMessage {
    var waitingCost: Int { cost }
}
