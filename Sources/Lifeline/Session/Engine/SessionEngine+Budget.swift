internal import LifelineCore
internal import NIOConcurrencyHelpers

/// The memory and the handlers that all sessions of a server share, and the pause of a client that is sent away for want of
/// them.
final class SharedSessionBudget: Sendable {
    private let budget: NIOLockedValueBox<SessionBudget>
    private let pauseLimit: Duration

    /// - Parameter pauseLimit: pauses are random, up to this, so that clients do not come back together.
    init(limit: SessionAllowance, pauseLimit: Duration) {
        budget = NIOLockedValueBox(SessionBudget(limit: limit))
        self.pauseLimit = pauseLimit.clamped(atLeast: .zero)
    }

    /// The sum of all allowances that sessions hold.
    var held: SessionAllowance { budget.withLockedValue { $0.held } }

    fileprivate func take(_ byteCount: Int, handlerCount: Int, for allowance: inout SessionAllowance) {
        budget.withLockedValue { budget in
            budget.take(upTo: byteCount, for: &allowance)
            budget.takeHandlers(upTo: handlerCount, for: &allowance)
        }
        guard allowance.byteCount < byteCount else { return }
        allowance.pause = .nanoseconds(Int64.random(in: 0...max(pauseLimit.saturatedNanoseconds, 0)))
    }

    func giveBack(_ allowance: inout SessionAllowance, for byteCount: Int, handlerCount: Int, isOver: Bool) {
        budget.withLockedValue {
            $0.giveBack(&allowance, for: byteCount, handlerCount: handlerCount, isOver: isOver)
        }
    }
}

// The session's share of what all sessions of its server keep.
extension SessionEngine {
    /// A frame is about to come in.
    func allow(_ frame: SessionFrame<SessionPayload>, in state: inout State) {
        guard budget != nil, case .message(_, _, let message) = frame else { return }
        switch message.kind {
        // Until it is acknowledged it counts as come and as running.
        case .request: allow(2 * message.byteCount, handlerCount: 1, in: &state)
        case .push: allow(message.byteCount, in: &state)
        case .response, .cancel, .blank: break
        }
    }

    /// The user is about to send something.
    func allow(_ payload: OutgoingPayload, in state: inout State) {
        if budget != nil { allow(SessionPayload.messageOverhead + payload.byteCount, in: &state) }
    }

    /// A request is about to be refused.
    func allow(_ refusal: RequestRefusal, in state: inout State) {
        if budget != nil {
            allow(SessionPayload.messageOverhead + SessionPayload.refusal(refusal).byteCount, in: &state)
        }
    }

    /// Sees that the machine may keep so many bytes more, and process so many requests more, if the server has them
    /// left.
    private func allow(_ byteCount: Int, handlerCount: Int = 0, in state: inout State) {
        let keptByteCount = state.machine.keptByteCount + byteCount
        let runningCount = state.machine.runningCount + handlerCount
        let allowance = state.machine.allowance
        guard keptByteCount > allowance.byteCount || runningCount > allowance.handlerCount else { return }
        budget?.take(keptByteCount, handlerCount: runningCount, for: &state.machine.allowance)
    }

    /// Gives back what the session holds without need.
    func giveBackExcess(_ state: inout State) {
        guard let budget else { return }
        let (byteCount, runningCount) = (state.machine.keptByteCount, state.machine.runningCount)
        let allowance = state.machine.allowance
        let isOver = state.outlet == nil
        let holdsMore = allowance.byteCount > byteCount || allowance.handlerCount > runningCount
        guard
            isOver ? holdsMore : SessionBudget.isExcessive(allowance, for: byteCount, handlerCount: runningCount)
        else { return }
        budget.giveBack(&state.machine.allowance, for: byteCount, handlerCount: runningCount, isOver: isOver)
    }
}

extension SessionStatus {
    /// The status of a request that is refused.
    package init(_ refusal: RequestRefusal) {
        switch refusal {
        case .closing: self.init(.unavailable, "The server is about to end the session.")
        case .tooManyEntries:
            self.init(
                .invalidArgument,
                "A request has \(SessionPayload.maximumEntryCount) entries of metadata at most, which count for "
                    + "\(SessionPayload.maximumMetadataByteCount) bytes at most."
            )
        case .tooManyRunning:
            self.init(.resourceExhausted, "As many requests of the session run as may, or as large ones.")
        case .serverHandlers: self.init(.resourceExhausted, "As many handlers run in the whole server as may.")
        case .serverMemory:
            self.init(.resourceExhausted, "All sessions of the server keep as much as they may together.")
        case .responseTooLarge: self.init(.internal, "The response is larger than what the peer takes.")
        case .tooManyResponses: self.init(.resourceExhausted, "Too many responses wait for the client to take them.")
        }
    }
}

extension SessionError {
    static var serverExhausted: SessionError {
        SessionError(
            code: .serverExhausted,
            message:
                "All sessions of the server together keep as much as SessionServerConfiguration.maximumKeptByteCount allows. "
                + "Send it later, or raise the limit."
        )
    }
}
