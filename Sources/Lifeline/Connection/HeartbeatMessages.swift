public import LifelineMessages

/// The messages of a protocol that ask a peer for a sign of life, and those that answer.
///
/// Pings and answers are removed from the received messages, so the user never sees them. A ping from the peer is
/// answered at once, ahead of sends that wait for room. For example, with one message type that has a oneof with a
/// `ping` and a `pong`:
///
/// ```swift
/// let heartbeat = HeartbeatMessages<Frame, Frame>(
///     ping: { number in .with { $0.ping.number = number } },
///     answer: { frame in
///         guard case .ping(let ping)? = frame.body else { return nil }
///         return .with { $0.pong.number = ping.number }
///     },
///     isAnswer: { frame in
///         if case .pong? = frame.body { true } else { false }
///     }
/// )
/// ```
///
/// The closures run on the connection's event loop, the last two for every message, so they must not wait. A ping or an
/// answer that cannot be encoded, or is over the frame limit, fails the connection with `messageRefused`.
public struct HeartbeatMessages<Received: DelimitedMessage, Sent: DelimitedMessage>: Sendable {
    /// The message that asks the peer for a sign of life, with a number that its answer may carry: 1, 2, 3 ... on each
    /// connection. Nil when this side only answers: then heartbeat messages do not detect a silent peer.
    public var ping: (@Sendable (_ number: UInt64) -> Sent)?

    /// Returns the answer to a ping; nil for other messages.
    public var answer: @Sendable (_ message: Received) -> Sent?

    /// Whether a message is the answer to a ping. Called when `answer` has returned nil.
    public var isAnswer: @Sendable (_ message: Received) -> Bool

    /// Names the messages.
    public init(
        ping: (@Sendable (_ number: UInt64) -> Sent)?,
        answer: @escaping @Sendable (_ message: Received) -> Sent?,
        isAnswer: @escaping @Sendable (_ message: Received) -> Bool
    ) {
        self.ping = ping
        self.answer = answer
        self.isAnswer = isAnswer
    }
}
