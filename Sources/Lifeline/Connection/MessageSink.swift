internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport

/// Where the messages of a connection go. Called on its event loop, one call at a time.
protocol MessageSink: Sendable {
    associatedtype Message: DelimitedMessage
    /// Takes messages out before `receive`; nil: nobody does.
    var intake: (any MessageIntake<Message>)? { get }
    /// Messages have come together. Tells whether to read on.
    ///
    /// - Parameter cost: what they count for in the queue where they wait.
    func receive(_ messages: [Message], cost: Int) -> ReadDemand
    /// The cost of the messages that wait, in the units of the water marks.
    var waitingCost: Int { get }
    /// A ping is about to be sent.
    func pingWillBeSent(number: UInt64)
    /// No more messages come: in order when `error` is nil.
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
