internal import LifelineRuntime
internal import LifelineTransport

/// A request that this side has made, and the continuation of the task that awaits its response.
final class PendingCall: Sendable {
    typealias Outcome = Result<SessionReply, SessionError>

    typealias Continuation = QuickContinuation<Outcome>

    private enum Stage {
        /// Can go to: begun, cancelled.
        case new
        /// Can go to: no other stage. The machine knows whether the call has ended.
        case begun(UInt64, Continuation)
        /// The task was cancelled before the call could begin. Can go to: no other stage.
        case cancelled
    }

    let method: String
    let payload: [UInt8]
    /// The inbox for the parts of the response; nil when the response has none.
    let inbox: SessionInbox?
    /// The start for the sender of its parts; nil when the request has none.
    let start: CallStart?
    /// Whether the call is stored before it is sent.
    let isDurable: Bool
    // Changed only under the lock of the call's engine, so it needs no lock of its own. Code that reads it without the
    // lock has received the call under the lock, after the last change.
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

    /// Returns the call that an engine gave its machine, and that the machine gives back. An engine gives it no other
    /// objects.
    @inline(__always)
    static func of(_ asker: SessionMachine.Asker?) -> PendingCall? {
        asker.map { unsafeDowncast($0, to: PendingCall.self) }
    }

    /// Whether the task was cancelled before the call could begin. Use it and the next two under the engine's lock.
    var isCancelled: Bool { if case .cancelled = stage { true } else { false } }

    /// Notes that the machine has taken the call.
    ///
    /// - Parameter id: the id of the request; for a durable call, its number.
    func began(as id: UInt64, _ continuation: Continuation) {
        stage = .begun(id, continuation)
    }

    /// Notes that its task was cancelled. Returns the id of the begun call; nil if it has not begun, and will not.
    func cancelled() -> UInt64? {
        if case .begun(let id, _) = stage { return id }
        stage = .cancelled
        return nil
    }

    /// Ends the begun call. A call ends once.
    func resolve(with outcome: Outcome) {
        guard case .begun(_, let continuation) = stage else { preconditionFailure("The call has not begun.") }
        continuation.resume(returning: outcome)
    }

    /// Waits for the end of the call, whether or not the task is cancelled: cancellation ends the call, too.
    ///
    /// - Parameter begin: begins the call, or resumes the continuation with the reason why it cannot begin.
    nonisolated(nonsending) static func outcome(_ begin: (Continuation) -> Void) async -> Outcome {
        await withQuickContinuation(begin)
    }
}
