internal import LifelineRuntime

/// A push or a part of this side's whose sender waits: until it is accepted, or until it is processed.
///
/// It belongs to an engine, under whose lock it changes.
final class PendingMessage: Sendable {
    typealias Continuation = QuickContinuation<SessionError?>

    private enum Stage {
        /// Its sender does not wait yet.
        case new
        case waiting(Continuation)
        /// Its sender need not wait any more, or is told why it waits in vain.
        case ended(SessionError?)
    }

    /// Whether its sender waits until it is processed.
    let isObserved: Bool
    /// Whether it belongs to a request, and means nothing once that has ended.
    let isPart: Bool

    // All are changed under the lock of the engine only, and an ended stage changes no more. So they need no lock of
    // their own.
    @exclusivity(unchecked) nonisolated(unsafe) var isAccepted: Bool
    /// Whether its sender was cancelled, and still waits to hear whether it was stored.
    @exclusivity(unchecked) nonisolated(unsafe) var isCancelled = false
    @exclusivity(unchecked) private nonisolated(unsafe) var stage = Stage.new

    init(isAccepted: Bool, isObserved: Bool, isPart: Bool) {
        (self.isAccepted, self.isObserved, self.isPart) = (isAccepted, isObserved, isPart)
    }

    /// Whether its sender is told already.
    var hasEnded: Bool { if case .ended = stage { true } else { false } }

    /// Keeps the sender's continuation. Returns false where the outcome is known: resume it with `error`.
    func park(_ continuation: Continuation) -> Bool {
        if hasEnded { return false }
        stage = .waiting(continuation)
        return true
    }

    /// The error that its sender was told; nil: none.
    var error: SessionError? { if case .ended(let error) = stage { error } else { nil } }

    /// Tells its sender; only the first time counts. Returns the continuation to resume; nil where the sender does not
    /// wait yet, or any more.
    func end(_ error: SessionError?) -> Continuation? {
        if hasEnded { return nil }
        defer { stage = .ended(error) }
        return if case .waiting(let continuation) = stage { continuation } else { nil }
    }
}
