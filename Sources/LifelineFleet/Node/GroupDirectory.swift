internal import Lifeline
internal import LifelineRuntime

/// The groups at this node, and the sessions that are their members. Each membership takes one step at a time.
///
/// It decides, and never waits: a caller that has to wait gets a latch, and begins again when it opens.
struct GroupDirectory: Sendable {
    typealias Loaded = Latch<Result<Void, FleetError>>

    private enum Group {
        /// The group is being loaded from the engine. Has the newest message in news meanwhile.
        case loading(Loaded, news: GroupPosition?)
        /// The group is loaded, with the number of sessions that are members, or about to be.
        case ready(GroupNode, userCount: Int)
        /// The engine is being told that this node no longer follows it.
        case unloading(Latch<Void>)
    }

    private enum Stage {
        /// The session is joining. `isWanted` is false when it has to leave again at once.
        case joining(isWanted: Bool)
        /// The session is a member since the message with this position.
        case member(began: GroupPosition)
        /// The session is leaving, and may still get messages.
        case leaving
    }

    private struct Membership {
        var stage = Stage.joining(isWanted: true)
        /// Opens with the next stage, or the end.
        var changed = Latch<Void>()
    }

    private var groups: [ExactName: Group] = [:]
    /// The memberships by the sessions' ids.
    private var memberships: [String: [ExactName: Membership]] = [:]

    var isEmpty: Bool { groups.isEmpty }

    var nodes: [GroupNode] { groups.values.compactMap { if case .ready(let node, _) = $0 { node } else { nil } } }

    func node(of group: ExactName) -> GroupNode? {
        if case .ready(let node, _)? = groups[group] { node } else { nil }
    }

    // MARK: Members

    func groups(of session: String) -> [String] {
        (memberships[session] ?? [:]).compactMap { group, membership in
            if case .member = membership.stage { group.name } else { nil }
        }
    }

    func isMember(_ session: String, of group: ExactName) -> Bool {
        if case .member? = memberships[session]?[group]?.stage { true } else { false }
    }

    enum Join {
        case begin
        case tooMany
        /// It is already a member. If the node no longer has it, wait.
        case member(GroupNode, began: GroupPosition, Latch<Void>)
        case wait(Latch<Void>)
        /// It is about to leave: remove it, and wait.
        case endFirst(GroupNode, Latch<Void>)
    }

    /// Begins to join a session to a group. After `begin` call `joined` or `joinFailed`.
    mutating func beginJoin(_ group: ExactName, _ session: String, limit: Int) -> Join {
        switch memberships[session]?[group] {
        case nil:
            if let present = memberships[session], present.count >= limit {
                // Leaving members count until they are gone, because they take up memory.
                for membership in present.values {
                    if case .leaving = membership.stage { return .wait(membership.changed) }
                }
                return .tooMany
            }
            memberships[session, default: [:]][group] = Membership()
            return .begin
        case let membership?:
            guard let node = node(of: group) else { return .wait(membership.changed) }
            switch membership.stage {
            case .joining: return .wait(membership.changed)
            case .member(let began): return .member(node, began: began, membership.changed)
            case .leaving: return .endFirst(node, membership.changed)
            }
        }
    }

    /// Notes that a session has joined. Returns whether it should still be a member (if not, remove it), and the latch
    /// to open.
    mutating func joined(
        _ group: ExactName,
        _ session: String,
        at began: GroupPosition,
        isWanted: Bool
    ) -> (isWanted: Bool, Latch<Void>?) {
        guard var membership = memberships[session]?[group], case .joining(let isStillWanted) = membership.stage else {
            return (false, nil)
        }
        let changed = membership.changed
        let isMember = isWanted && isStillWanted
        (membership.stage, membership.changed) = (isMember ? .member(began: began) : .leaving, Latch())
        memberships[session]?[group] = membership
        return (isMember, changed)
    }

    /// Notes that joining failed. Returns the latch to open.
    mutating func joinFailed(_ group: ExactName, _ session: String) -> Latch<Void>? {
        endMembership(session, group)
    }

    /// Lets a session leave a group. Returns the node that has it.
    mutating func leave(_ group: ExactName, _ session: String) -> GroupNode? {
        switch memberships[session]?[group]?.stage {
        case .joining?:
            memberships[session]?[group]?.stage = .joining(isWanted: false)
            return nil
        case .member?:
            memberships[session]?[group]?.stage = .leaving
            return node(of: group)
        case .leaving?, nil:
            return nil
        }
    }

    /// Lets a session that is over leave all groups. Returns the nodes that have it.
    mutating func leaveAll(_ session: String) -> [GroupNode] {
        let groups = (memberships[session] ?? [:]).keys
        for group in groups { _ = leave(group, session) }
        return groups.compactMap { node(of: $0) }
    }

    /// Notes that a session is no longer a member. Returns the latch to open. If the group is not used any more, also
    /// returns a latch for the end of unloading: tell the engine, and call `unloaded`.
    mutating func isGone(_ session: String, from group: ExactName) -> (Latch<Void>?, unloaded: Latch<Void>?) {
        (endMembership(session, group), release(group))
    }

    private mutating func endMembership(_ session: String, _ group: ExactName) -> Latch<Void>? {
        let membership = memberships[session]?.removeValue(forKey: group)
        if memberships[session]?.isEmpty == true { memberships[session] = nil }
        return membership?.changed
    }

    // MARK: Groups

    enum Retained {
        case ready(GroupNode)
        /// Wait, and begin again.
        case loading(Loaded)
        /// Wait, and begin again.
        case unloading(Latch<Void>)
        /// Load it from the engine, call `loaded` or `loadFailed`, and open this.
        case load(Loaded)
    }

    /// Counts one more user of a group.
    mutating func retain(_ group: ExactName) -> Retained {
        switch groups[group] {
        case .ready(let node, let count)?:
            groups[group] = .ready(node, userCount: count + 1)
            return .ready(node)
        case .loading(let loaded, _)?:
            return .loading(loaded)
        case .unloading(let unloaded)?:
            return .unloading(unloaded)
        case nil:
            let loaded = Loaded()
            groups[group] = .loading(loaded, news: nil)
            return .load(loaded)
        }
    }

    /// Notes that a group is loaded, with one user. Returns the newest message in news meanwhile.
    mutating func loaded(_ group: ExactName, _ node: GroupNode) -> GroupPosition? {
        defer { groups[group] = .ready(node, userCount: 1) }
        if case .loading(_, let news)? = groups[group] { return news }
        return nil
    }

    mutating func loadFailed(_ group: ExactName) { groups[group] = nil }

    private mutating func release(_ group: ExactName) -> Latch<Void>? {
        guard case .ready(let node, let count)? = groups[group] else { return nil }
        guard count <= 1 else {
            groups[group] = .ready(node, userCount: count - 1)
            return nil
        }
        let unloaded = Latch<Void>()
        groups[group] = .unloading(unloaded)
        return unloaded
    }

    mutating func unloaded(_ group: ExactName) { groups[group] = nil }

    /// Receives news of a message. Returns the node to inform.
    mutating func received(_ position: GroupPosition, in group: ExactName) -> GroupNode? {
        switch groups[group] {
        case .ready(let node, _)?:
            return node
        case .loading(let loaded, _)?:
            // The engine's answer may be older than the news. Keeping the newest position is enough to read from there.
            groups[group] = .loading(loaded, news: position)
            return nil
        case .unloading?, nil:
            return nil
        }
    }
}
