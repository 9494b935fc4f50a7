package import LifelineCore

/// Looks for a session whose client has come to this node, and that may be at another one: what to ask next, and what
/// comes of it.
///
/// What the engine has counts. The node that has the session is asked to leave it there; its answer only says when it is
/// worth looking again, or that it is not.
package struct SessionSearch: Sendable {
    /// How long a node that does not listen may be about to connect to the engine again: half a second. Then it counts as
    /// dead.
    static var silencePatience: Duration { .milliseconds(500) }
    /// How long the search takes at most: 5 s, half as long as a client waits for its welcome.
    static var patience: Duration { .seconds(5) }
    /// How long a node takes to answer, mostly: it is asked again after this.
    static var answerPatience: Duration { .milliseconds(250) }
    static var retryDelay: Duration { .milliseconds(100) }

    package enum Step: Sendable, Equatable {
        /// Ask the engine for the session, and say `took` or `failed`.
        case take
        /// Ask this node to leave it in the engine, and say `told`.
        case ask(node: String)
        /// Wait for an answer until then, and say `waited`.
        case wait(until: MonotonicTime)
        /// Confirm that it was taken, and say `confirmed` or `failed`.
        case confirm
        case end(Finding)
    }

    package enum Finding: Sendable, Equatable {
        case nothing
        case stale
        case notNow
        /// The state that was taken is this node's.
        case taken
    }

    /// The answer of a node that was asked.
    package enum Answer: Sendable, Equatable {
        case parked, unknown, stale, busy
    }

    private let deadline: MonotonicTime
    /// Since when the node that has it has not listened; nil: it has.
    private var silentSince: MonotonicTime?
    /// The node that has said that it does not have it.
    private var denier: String?
    private var owner: String?
    private var hasTaken = false

    package init(now: MonotonicTime) { deadline = now + Self.patience }

    /// - Parameter isReadable: of a state: whether this node can go on with it.
    package mutating func took(_ take: FleetTake, isReadable: Bool = true, now: MonotonicTime) -> Step {
        switch take {
        case .unknown:
            return .end(.nothing)
        case .stale:
            return .end(.stale)
        case .state:
            // What this node cannot read another one may.
            guard isReadable else { return .end(.nothing) }
            hasTaken = true
            return .confirm
        case .owned(let node):
            // It is over there, and the engine was not told.
            if node == denier { return .end(.nothing) }
            if now >= deadline { return .end(.notNow) }
            if node != owner { silentSince = nil }
            owner = node
            return .ask(node: node)
        }
    }

    package mutating func told(isHeard: Bool, now: MonotonicTime) -> Step {
        if isHeard {
            silentSince = nil
            return .wait(until: min(now + Self.answerPatience, deadline))
        }
        let since = silentSince ?? now
        silentSince = since
        return now - since >= Self.silencePatience ? .end(.nothing) : .wait(until: now + Self.retryDelay)
    }

    /// - Parameter answer: nil where none has come.
    package mutating func waited(_ answer: Answer?, now: MonotonicTime) -> Step {
        if hasTaken { return .confirm }
        switch answer {
        case .stale?: return .end(.stale)
        case .busy?: return .end(.notNow)
        case .unknown?: denier = owner
        case .parked?, nil: break
        }
        return .take
    }

    package func confirmed(_ confirmation: FleetConfirmation) -> Step {
        switch confirmation {
        case .confirmed: .end(.taken)
        case .stale: .end(.stale)
        case .unknown: .end(.nothing)
        }
    }

    /// The engine has failed.
    package mutating func failed(now: MonotonicTime) -> Step {
        guard now < deadline else {
            // Whether the state is this node's is not known, so that nobody may use it yet.
            return .end(hasTaken ? .notNow : .nothing)
        }
        return .wait(until: now + Self.retryDelay)
    }
}
