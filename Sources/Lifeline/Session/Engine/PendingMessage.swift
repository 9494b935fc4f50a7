internal import LifelineRuntime

/// A push or a part whose sender waits until it is accepted, or until it is processed.
///
/// It belongs to an engine, under whose lock it changes.
final class PendingMessage: Sendable {
    typealias Continuation = QuickContinuation<SessionError?>

    private enum Stage {
        /// The sender does not wait yet.
        case new
        case waiting(Continuation)
        /// The sender's waiting is over, with an error if it was in vain.
        case ended(SessionError?)
    }

    /// Whether the sender waits until the message is processed.
    let isObserved: Bool
    /// Whether the message belongs to a request, and is useless once that has ended.
    let isPart: Bool

    // All of these change only under the lock of the engine, and an ended stage never changes. So they need no lock of
    // their own.
    @exclusivity(unchecked) nonisolated(unsafe) var isAccepted: Bool
    /// Whether the sender was cancelled, and still waits to learn whether the message was stored.
    @exclusivity(unchecked) nonisolated(unsafe) var isCancelled = false
    @exclusivity(unchecked) private nonisolated(unsafe) var stage = Stage.new

    init(isAccepted: Bool, isObserved: Bool, isPart: Bool) {
        (self.isAccepted, self.isObserved, self.isPart) = (isAccepted, isObserved, isPart)
    }

    /// Whether the sender was already told.
    var hasEnded: Bool { if case .ended = stage { true } else { false } }

    /// Keeps the sender's continuation. Returns false when the outcome is known: then resume it with `error`.
    func park(_ continuation: Continuation) -> Bool {
        if hasEnded { return false }
        stage = .waiting(continuation)
        return true
    }

    /// The error that the sender was told, if any.
    var error: SessionError? { if case .ended(let error) = stage { error } else { nil } }

    /// Ends the sender's waiting; only the first call counts. Returns the continuation to resume; nil when the sender
    /// is not waiting.
    func end(_ error: SessionError?) -> Continuation? {
        if hasEnded { return nil }
        defer { stage = .ended(error) }
        return if case .waiting(let continuation) = stage { continuation } else { nil }
    }
}
