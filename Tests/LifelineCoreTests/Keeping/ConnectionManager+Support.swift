import LifelineCore

/// A point of time, in seconds.
func at(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: Int64((seconds * 1e9).rounded()))
}

extension ConnectionError {
    static let refused = ConnectionError(code: .connectFailed, message: "refused")
    static let badCertificate = ConnectionError(code: .tlsRejected, message: "expired")
}

extension TransitionReason {
    static let closedByPeer = TransitionReason(.closedByPeer)
    static let heartbeatTimeout = TransitionReason(.heartbeatTimeout)
}

extension ConnectionManager {
    /// The defaults (1 s × 2, four attempts) without jitter, so that tests can name times.
    init(attempts: Int? = 4, hasNetwork: Bool = true) {
        var backoff = BackoffConfiguration()
        backoff.jitter = 0
        backoff.maximumAttempts = attempts
        self.init(backoff: backoff, seed: 1, hasNetwork: hasNetwork)
    }
}

/// Actions as a line that fits a table: `→ connecting networkUp (1), abort 1, connect 2`.
func line(_ actions: [ConnectionManager.Action]) -> String {
    actions.map { action in
        switch action {
        case .transition(let step):
            "→ \(step.to) \(step.reason.code)" + (step.attempt > 0 ? " (\(step.attempt))" : "")
                + (step.nextAttempt.map { " in \($0 - step.time)" } ?? "")
        case .abort(let id, let reason): "abort \(id) \(reason.code)"
        case .connect(let id): "connect \(id)"
        case .drain(let id): "drain \(id)"
        case .probe(let id): "probe \(id)"
        }
    }.joined(separator: ", ")
}
