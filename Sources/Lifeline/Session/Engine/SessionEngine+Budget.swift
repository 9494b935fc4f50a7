internal import LifelineCore
internal import NIOConcurrencyHelpers

/// The memory and the handlers that all sessions of a server share. It also chooses the pause of a client that is sent
/// away because they are used up.
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

    fileprivate func take(_ need: SessionNeed, for allowance: inout SessionAllowance) {
        budget.withLockedValue { $0.take(need, pause: randomPause, for: &allowance) }
    }

    private var randomPause: Duration { .nanoseconds(Int64.random(in: 0...max(pauseLimit.saturatedNanoseconds, 0))) }

    fileprivate func takeBackExcess(of machine: inout SessionMachine) {
        budget.withLockedValue { machine.giveBackExcess(to: &$0) }
    }

    func takeBackAll(of machine: inout SessionMachine) {
        budget.withLockedValue { machine.giveBackAll(to: &$0) }
    }
}

// The session's share of the server's budget.
extension SessionEngine {
    /// Takes from the server's budget what the machine lacks, if enough is left.
    func take(_ need: SessionNeed?, in state: inout State) {
        if let need { budget?.take(need, for: &state.machine.allowance) }
    }

    /// Gives back the part of the allowance that the session does not need.
    func giveBackExcess(_ state: inout State) {
        if state.machine.holdsExcess { budget?.takeBackExcess(of: &state.machine) }
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
                "A request may have at most \(InboundMessage.maximumMetadataCount) entries of metadata, and at most "
                    + "\(InboundMessage.maximumMetadataByteCount) bytes of it."
            )
        case .tooManyRunning:
            self.init(.resourceExhausted, "The session's requests have reached the limit of their number or size.")
        case .serverHandlers: self.init(.resourceExhausted, "The server runs as many handlers as its limit allows.")
        case .serverMemory:
            self.init(.resourceExhausted, SessionMachine.noMemoryMessage)
        case .responseTooLarge: self.init(.internal, "The response is larger than the client accepts.")
        case .tooManyResponses: self.init(.resourceExhausted, "Too many responses wait for the client to read them.")
        }
    }
}
