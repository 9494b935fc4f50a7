package import Lifeline
package import LifelineCore

/// The search for a session whose client has come to this node, and that may be at another one. Decides the next
/// question, and the result.
///
/// The engine decides in all cases. The node that has the session is asked to park it in the engine; its answer only
/// shows whether, and when, it is worth asking the engine again.
package struct SessionSearch: Sendable {
    /// How long a node that does not listen may take to connect to the engine again: half a second. After that it
    /// counts as dead.
    static var silencePatience: Duration { .milliseconds(500) }
    /// How long the search takes at most: 5 s, half as long as a client waits for its welcome.
    static var patience: Duration { .seconds(5) }
    /// The usual time for a node's answer. After it the node is asked again.
    static var answerPatience: Duration { .milliseconds(250) }
    static var retryDelay: Duration { .milliseconds(100) }
    /// The number of unanswered questions after which the node's lease is checked: 4, which takes a second. For the
    /// engine, a process that hangs still listens.
    static var mostUnanswered: Int { 4 }

    package enum Step: Sendable, Equatable {
        /// Ask the engine for the session, and call `took` or `failed`.
        case take
        /// Ask this node to park it in the engine, and call `told`.
        case ask(node: String)
        /// Ask the engine whether this node counts as alive, and call `lookedAtLease` or `failed`.
        case lookAtLease(node: String)
        /// Wait for an answer until then, and call `waited`.
        case wait(until: MonotonicTime)
        /// Confirm that it was taken, and call `confirmed` or `failed`.
        case confirm
        case end(SessionFinding)
    }

    private let deadline: MonotonicTime
    /// The time since which the session's node has not listened; nil when it listens.
    private var silentSince: MonotonicTime?
    /// The node that has answered that it does not have the session.
    private var denier: String?
    private var owner: String?
    /// The number of questions that the node has received and not answered since its lease was checked.
    private var unansweredCount = 0
    /// The session that was taken and is not confirmed yet.
    private var taken: SessionSnapshot?

    package init(now: MonotonicTime) { deadline = now + Self.patience }

    /// - Parameter snapshot: the state that was taken; nil if there is none, or this node cannot continue it.
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
            // The session is over there, and the engine does not know it.
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
    ///   - silentNodes: the nodes that this node has found silent in any search.
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

    /// - Parameter answer: nil when none has come.
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

    /// Notes that the engine has failed.
    package mutating func failed(now: MonotonicTime) -> Step {
        guard now < deadline else {
            // It is unknown whether the state belongs to this node, so no node may use it yet.
            return .end(taken == nil ? .nothing : .notNow)
        }
        // Nodes come back to an engine one after the other.
        silentSince = nil
        return .wait(until: now + Self.retryDelay)
    }
}
