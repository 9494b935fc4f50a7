internal import Lifeline
internal import LifelineRuntime

/// Which groups there are at this node, and which sessions are their members: one step of each membership at a time.
///
/// It decides, and waits for nothing: those who have to wait get a latch, and begin again when that opens.
struct GroupDirectory: Sendable {
    typealias Loaded = Latch<Result<Void, FleetError>>

    private enum Group {
        /// The engine is asked for it. The newest message that it has told of meanwhile.
        case loading(Loaded, news: GroupPosition?)
        /// So many sessions are members, or about to be.
        case ready(GroupNode, userCount: Int)
        /// The engine is told that nobody here follows it.
        case unloading(Latch<Void>)
    }

    private enum Stage {
        /// Whether it is to leave again at once.
        case joining(isWanted: Bool)
        /// Since the message of this position.
        case member(began: GroupPosition)
        /// It may get messages yet.
        case leaving
    }

    private struct Membership {
        var stage = Stage.joining(isWanted: true)
        /// Opens with the next stage, or the end.
        var changed = Latch<Void>()
    }

    private var groups: [ExactName: Group] = [:]
    /// By the sessions' ids.
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
        /// It is one already. Where the node has it no more, wait.
        case member(GroupNode, began: GroupPosition, Latch<Void>)
        case wait(Latch<Void>)
        /// It is about to leave: have it removed, and wait.
        case endFirst(GroupNode, Latch<Void>)
    }

    /// A session is to join a group. After `begin` say `joined` or `joinFailed`.
    mutating func beginJoin(_ group: ExactName, _ session: String, limit: Int) -> Join {
        switch memberships[session]?[group] {
        case nil:
            if let present = memberships[session], present.count >= limit {
                // Those that leave count until they are gone, as they take up memory.
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

    /// Returns whether the session is still to be a member, which is to be removed else, and what to open.
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

    /// Returns what to open.
    mutating func joinFailed(_ group: ExactName, _ session: String) -> Latch<Void>? {
        endMembership(session, group)
    }

    /// A session is to leave a group. Returns the node that has it.
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

    /// A session is over. Returns the nodes that have it.
    mutating func leaveAll(_ session: String) -> [GroupNode] {
        let groups = (memberships[session] ?? [:]).keys
        for group in groups { _ = leave(group, session) }
        return groups.compactMap { node(of: $0) }
    }

    /// A session is no member any more. Returns what to open, and where nobody uses the group any more what opens when
    /// the engine knows: tell it, and say `unloaded`.
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
        /// Ask the engine for it, say `loaded` or `loadFailed`, and open this.
        case load(Loaded)
    }

    /// One more uses a group.
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

    /// A group is there, and used by who has loaded it. Returns the newest message that the engine has told of meanwhile.
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

    /// The engine has told of a message. Returns the node that is to know.
    mutating func received(_ position: GroupPosition, in group: ExactName) -> GroupNode? {
        switch groups[group] {
        case .ready(let node, _)?:
            return node
        case .loading(let loaded, _)?:
            // The answer of the engine may be older. The last one will do: it is read from there.
            groups[group] = .loading(loaded, news: position)
            return nil
        case .unloading?, nil:
            return nil
        }
    }
}
