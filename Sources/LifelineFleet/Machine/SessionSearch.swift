package import Lifeline
package import LifelineCore

/// Looks for a session whose client has come to this node, and that may be at another one: what to ask next, and what
/// comes of it.
///
/// The engine is right in all cases. The node that has the session is asked to leave it there; its answer only says
/// whether, and when, it is worth asking the engine again.
package struct SessionSearch: Sendable {
    /// How long a node that does not listen may be about to connect to the engine again: half a second. Then it
    /// counts as dead.
    static var silencePatience: Duration { .milliseconds(500) }
    /// How long the search takes at most: 5 s, half as long as a client waits for its welcome.
    static var patience: Duration { .seconds(5) }
    /// How long a node takes to answer, mostly: it is asked again after this.
    static var answerPatience: Duration { .milliseconds(250) }
    static var retryDelay: Duration { .milliseconds(100) }
    /// After how many questions without an answer the node's lease is looked at: 4, which is a second. A process that
    /// hangs listens, as far as the engine knows.
    static var mostUnanswered: Int { 4 }

    package enum Step: Sendable, Equatable {
        /// Ask the engine for the session, and say `took` or `failed`.
        case take
        /// Ask this node to leave it in the engine, and say `told`.
        case ask(node: String)
        /// Ask the engine whether this node counts as alive, and say `lookedAtLease` or `failed`.
        case lookAtLease(node: String)
        /// Wait for an answer until then, and say `waited`.
        case wait(until: MonotonicTime)
        /// Confirm that it was taken, and say `confirmed` or `failed`.
        case confirm
        case end(SessionFinding)
    }

    private let deadline: MonotonicTime
    /// Since when the node that has it has not listened; nil: it has.
    private var silentSince: MonotonicTime?
    /// The node that has said that it does not have it.
    private var denier: String?
    private var owner: String?
    /// How often it has heard a question and not answered, since its lease was looked at.
    private var unansweredCount = 0
    /// The session that was taken, and is not confirmed yet.
    private var taken: SessionSnapshot?

    package init(now: MonotonicTime) { deadline = now + Self.patience }

    /// - Parameter snapshot: the state that was taken; nil: there is none, or this node cannot go on with it.
    package mutating func took(_ take: FleetTake, _ snapshot: SessionSnapshot? = nil, now: MonotonicTime) -> Step {
        switch take {
        case .unknown:
            return .end(.nothing)
        case .stale:
            return .end(.stale)
        case .state:
            // Another node may read a state that this one cannot.
            taken = snapshot
            return snapshot == nil ? .end(.nothing) : .confirm
        case .owned(let node):
            // It is over there, and the engine was not told.
            if node == denier { return .end(.nothing) }
            if now >= deadline { return .end(.notNow) }
            if node != owner { (silentSince, unansweredCount) = (nil, 0) }
            owner = node
            guard unansweredCount >= Self.mostUnanswered else { return .ask(node: node) }
            unansweredCount = 0
            return .lookAtLease(node: node)
        }
    }

    package func lookedAtLease(isAlive: Bool) -> Step {
        guard isAlive, let owner else { return .end(.nothing) }
        return .ask(node: owner)
    }

    /// - Parameters:
    ///   - isHeard: whether the node that was asked listens.
    ///   - silentNodes: those that this node, in all its searches, has found silent.
    package mutating func told(isHeard: Bool, _ silentNodes: inout SilentNodes, now: MonotonicTime) -> Step {
        guard let owner else { return .take }
        if isHeard {
            silentSince = nil
            unansweredCount += 1
            silentNodes.heard(owner)
            return .wait(until: min(now + Self.answerPatience, deadline))
        }
        let since = silentSince ?? now
        silentSince = since
        if now - since >= Self.silencePatience { silentNodes.foundSilent(owner, now: now) }
        return silentNodes.contains(owner, now: now) ? .end(.nothing) : .wait(until: now + Self.retryDelay)
    }

    /// - Parameter answer: nil where none has come.
    package mutating func waited(_ answer: SessionHandOver?, now: MonotonicTime) -> Step {
        if taken != nil { return .confirm }
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
        case .confirmed: .end(taken.map { .snapshot($0) } ?? .nothing)
        case .stale: .end(.stale)
        case .unknown: .end(.nothing)
        }
    }

    /// The engine has failed.
    package mutating func failed(now: MonotonicTime) -> Step {
        guard now < deadline else {
            // Whether the state is this node's is not known, so that nobody may use it yet.
            return .end(taken == nil ? .nothing : .notNow)
        }
        // Nodes come back to an engine one after the other.
        silentSince = nil
        return .wait(until: now + Self.retryDelay)
    }
}
