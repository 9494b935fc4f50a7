internal import Lifeline
internal import LifelineCore
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

/// The members of groups, as nodes have reported them.
struct MemoryPresence: Sendable {
    private struct Entry {
        var version: UInt64
        var deadline: MonotonicTime
        var members: [ExactName: GroupMember] = [:]
    }

    private struct Group {
        /// The entries by the names of the nodes.
        var entries: [String: Entry] = [:]
        /// The names of the nodes that watch the group.
        var watchers: Set<String> = []

        mutating func forgetOld(now: MonotonicTime) { entries = entries.filter { $0.value.deadline > now } }
    }

    private var groups: [ExactName: Group] = [:]
    /// The number of groups at which empty ones are searched for.
    private var sweepCount = 1_024

    private mutating func withGroup<Result>(
        _ name: String,
        now: MonotonicTime,
        _ body: (inout Group) -> Result
    ) -> Result {
        if groups.count > sweepCount {
            for name in groups.keys { groups[name]?.forgetOld(now: now) }
            groups = groups.filter { !$0.value.entries.isEmpty || !$0.value.watchers.isEmpty }
            sweepCount = max(2 * groups.count, 1_024)
        }
        let name = ExactName(name)
        groups[name]?.forgetOld(now: now)
        let result = body(&groups[name, default: Group()])
        if groups[name]?.entries.isEmpty == true, groups[name]?.watchers.isEmpty == true { groups[name] = nil }
        return result
    }

    /// Returns the version afterwards, and the nodes to notify.
    mutating func update(
        _ change: PresenceChange,
        of group: String,
        deadline: MonotonicTime,
        now: MonotonicTime
    ) -> (version: UInt64, watchers: Set<String>) {
        withGroup(group, now: now) { group in
            let known = group.entries[change.node]?.version ?? 0
            var entry: Entry
            if let base = change.base {
                guard base == known, let present = group.entries[change.node] else { return (known, []) }
                entry = present
                entry.version = change.version
            } else {
                guard change.version > known else { return (known, []) }
                entry = Entry(version: change.version, deadline: deadline)
            }
            entry.deadline = deadline
            for member in change.present { entry.members[ExactName(member.name)] = member }
            for name in change.absent { entry.members[ExactName(name)] = nil }
            group.entries[change.node] = entry
            return (change.version, group.watchers)
        }
    }

    mutating func watch(_ group: String, _ node: String, now: MonotonicTime) {
        withGroup(group, now: now) { _ = $0.watchers.insert(node) }
    }

    mutating func unwatch(_ group: String, _ node: String, now: MonotonicTime) {
        withGroup(group, now: now) { _ = $0.watchers.remove(node) }
    }

    mutating func unwatchAll(_ node: String) {
        for group in groups.keys { groups[group]?.watchers.remove(node) }
    }

    mutating func versions(
        of group: String,
        keeping node: String,
        until deadline: MonotonicTime,
        now: MonotonicTime
    ) -> [String: UInt64] {
        withGroup(group, now: now) { group in
            group.entries[node]?.deadline = deadline
            return group.entries.mapValues(\.version)
        }
    }

    mutating func page(of group: String, at node: String, now: MonotonicTime) -> PresencePage {
        withGroup(group, now: now) { group in
            let entry = group.entries[node]
            return PresencePage(version: entry?.version ?? 0, members: entry.map { Array($0.members.values) } ?? [])
        }
    }
}

extension MemoryFleetEngine {
    public func updatePresence(
        _ change: PresenceChange,
        of group: String,
        keepingFor lifetime: Duration
    ) async throws -> UInt64 {
        let now = clock.now
        return presences.withLockedValue { presences in
            let (version, watchers) = presences.update(change, of: group, deadline: now + lifetime, now: now)
            // Under the lock, so that news comes in the order of the versions.
            for name in watchers { node(name)?.receive(.presence(change, in: group)) }
            return version
        }
    }

    public func watchPresence(of group: String, _ node: String) async throws {
        let now = clock.now
        presences.withLockedValue { $0.watch(group, node, now: now) }
    }

    public func unwatchPresence(of group: String, _ node: String) async {
        let now = clock.now
        presences.withLockedValue { $0.unwatch(group, node, now: now) }
    }

    public func presenceVersions(
        of groups: [String],
        keeping node: String,
        for lifetime: Duration
    ) async throws -> [[String: UInt64]] {
        let now = clock.now
        return presences.withLockedValue { presences in
            groups.map { presences.versions(of: $0, keeping: node, until: now + lifetime, now: now) }
        }
    }

    public func presence(of group: String, at node: String) async throws -> PresencePage {
        let now = clock.now
        return presences.withLockedValue { $0.page(of: group, at: node, now: now) }
    }
}
