internal import LifelineRuntime
internal import LifelineTransport

/// A request that this side has made, and the continuation of the task that awaits its response.
final class PendingCall: Sendable {
    typealias Outcome = Result<SessionReply, SessionError>

    typealias Continuation = QuickContinuation<Outcome>

    private enum Stage {
        /// Can go to: begun, cancelled.
        case new
        /// Can go to: nothing. The machine knows whether it has ended.
        case begun(UInt64, Continuation)
        /// Its task was cancelled before it could begin. Can go to: nothing.
        case cancelled
    }

    let method: String
    let payload: [UInt8]
    /// Where the parts of its response go; nil when it is to have none.
    let inbox: SessionInbox?
    /// For who sends its parts. Nil: it has none.
    let start: CallStart?
    /// Whether it is stored before it is sent.
    let isDurable: Bool
    // Changed only under the lock of the engine that it is a call of, and so needs none of its own; what reads it
    // without the lock has been handed the call under it, after the last change.
    @exclusivity(unchecked) private nonisolated(unsafe) var stage = Stage.new

    init(
        _ method: String,
        payload: [UInt8],
        inbox: SessionInbox?,
        start: CallStart?,
        isDurable: Bool = false
    ) {
        self.method = method
        self.payload = payload
        self.inbox = inbox
        self.start = start
        self.isDurable = isDurable
    }

    /// The call that an engine has given its machine, which gives it back. An engine gives it nothing else.
    @inline(__always)
    static func of(_ asker: SessionMachine.Asker?) -> PendingCall? {
        asker.map { unsafeDowncast($0, to: PendingCall.self) }
    }

    /// Whether its task was cancelled before it could begin. Call it under the engine's lock, as the next two.
    var isCancelled: Bool { if case .cancelled = stage { true } else { false } }

    /// The machine has taken it.
    ///
    /// - Parameter id: that of the request; of a durable call, its number.
    func began(as id: UInt64, _ continuation: Continuation) {
        stage = .begun(id, continuation)
    }

    /// Its task was cancelled. Returns what it began as; nil where it has not begun, and will not.
    func cancelled() -> UInt64? {
        if case .begun(let id, _) = stage { return id }
        stage = .cancelled
        return nil
    }

    /// It was begun, and has ended, which it does once.
    func resolve(with outcome: Outcome) {
        guard case .begun(_, let continuation) = stage else { preconditionFailure("A call ends that has not begun.") }
        continuation.resume(returning: outcome)
    }

    /// Waits for its end, whether or not the task is cancelled: that ends it, too.
    ///
    /// - Parameter begin: has it begun, or resumes the continuation with the reason why it is not.
    nonisolated(nonsending) static func outcome(_ begin: (Continuation) -> Void) async -> Outcome {
        await withQuickContinuation(begin)
    }
}
