/// The expected steps of a client after a fault, until it is ready again.
package struct Reaction: Sendable {
    package enum Cause: Sendable {
        /// The client waits for the network, and connects when it is back.
        case network
        /// The same, but attempts may fail while the kernel looks for its neighbour.
        case carrier
        /// The client tries until the peer accepts again.
        case peer
        /// The same, but the peer's kernel accepts connections while the peer is silent.
        case silentPeer
    }

    /// The reason for the end of the connection.
    package let reason: String
    private let cause: Cause

    package init(_ reason: String, _ cause: Cause) {
        (self.reason, self.cause) = (reason, cause)
    }

    /// Whether the heartbeat notices the fault.
    var isToSilence: Bool { reason == "heartbeatTimeout" }

    /// Returns an error in the steps from a fault until the client is ready; nil if there is none.
    package func violation(in steps: [FaultEvent]) -> String? {
        guard let first = steps.first, let last = steps.last else { return "no steps" }
        guard losses.contains(first.step) else { return "begins with \(first.step)" }
        guard last.step == Reaction.connected else { return "ends with \(last.step)" }
        for (step, next) in zip(steps, steps.dropFirst()) {
            guard next.from == step.to, isPossible(next.step) else {
                return "\(next.step) after \(step.step)"
            }
        }
        return nil
    }

    private static let connected = "connecting → ready: connected"
    private static let retry = ["connecting → backingOff: connectFailed", "backingOff → connecting: retryDue"]

    /// The loss of a connection. After a stable one, the next attempt is not delayed.
    private var losses: [String] {
        switch cause {
        case .network, .carrier: ["ready → waitingForNetwork: \(reason)"]
        case .peer, .silentPeer: ["ready → backingOff: \(reason)", "ready → connecting: \(reason)"]
        }
    }

    private func isPossible(_ step: String) -> Bool {
        if step == Reaction.connected { return true }
        switch cause {
        case .network:
            return step == "waitingForNetwork → connecting: networkUp"
        case .carrier:
            return step == "waitingForNetwork → connecting: networkUp" || Reaction.retry.contains(step)
        case .peer:
            return Reaction.retry.contains(step)
        case .silentPeer:
            return step == "backingOff → connecting: retryDue" || losses.contains(step)
        }
    }
}

extension FaultEvent {
    /// The description of a transition.
    package var step: String { "\(from ?? "") → \(to ?? ""): \(reason ?? "")" }
}
