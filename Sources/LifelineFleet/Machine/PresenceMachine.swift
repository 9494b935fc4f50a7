internal import Lifeline
package import LifelineCore

/// One node's view of the members of a group: reports the members here to the engine, and follows those of the other
/// nodes for watchers.
///
/// **Reporting.** A node's members are a set with a version. Changes are reported in batches, each based on the version
/// before. If the engine may have another version than this node assumes, all members are reported again.
///
/// **Watching.** The node keeps a copy of each other node's set. News that is based on the copy's version changes the
/// copy; after other news the set is read again. A comparison finds changes without news: other versions, new nodes,
/// and nodes that are no longer alive, whose members are gone. A member that no node has any more stays visible for a
/// while, because it may come back.
package struct PresenceMachine: Sendable {
    package struct Options: Sendable {
        /// How long a member may be away without an event.
        package var grace = Duration.seconds(3)
        /// The time between two reports to the engine, and between two comparisons.
        package var batchInterval = Duration.milliseconds(100)
        /// The time after which a failed step is tried again.
        package var retryInterval = Duration.seconds(1)
        /// The most members of one change.
        package var maximumChangeCount = 1_000

        package init() {}
    }

    /// The work for the driver.
    package struct Work: Sendable {
        /// Report this change to the engine, and call `updated` or `updateFailed`.
        package var update: PresenceChange?
        /// Ask the engine for news, and call `watchBegan` or `watchFailed`.
        package var beginsWatch = false
        /// Stop asking for news, and call `watchEnded`.
        package var endsWatch = false
        /// Ask for the versions of nodes, and which are alive, and call `compared` or `comparisonFailed`.
        package var compares = false
        /// Read the sets of these nodes, and call `read` or `readFailed` for each.
        package var reads: [String] = []
        /// The events for watchers.
        package var events: [PresenceEvent] = []
        /// Whether the present members are known from now on.
        package var isReady = false

        var isEmpty: Bool {
            update == nil && !beginsWatch && !endsWatch && !compares && reads.isEmpty && events.isEmpty && !isReady
        }
    }

    private struct Own: Sendable {
        var member: GroupMember
        var sessionCount: Int
    }

    /// The engine's knowledge of this node's members.
    private enum Told: Sendable {
        case nothing
        case version(UInt64)
        /// A report may or may not have arrived, or the engine has lost some.
        case unknown
    }

    private struct Copy: Sendable {
        var version: UInt64
        var members: [ExactName: GroupMember]
    }

    /// A member that watchers see.
    private struct Shown: Sendable {
        var member: GroupMember
        /// The number of nodes that have the member.
        var nodeCount: Int
        /// The time at which it counts as left, if no node has it.
        var leavesAt: MonotonicTime?
    }

    private enum Watch: Sendable {
        case none, beginning, active, ending
    }

    private let node: String
    private let options: Options

    // Reporting.
    private var own: [ExactName: Own] = [:]
    /// The members of sessions, by the sessions' ids.
    private var sessions: [String: ExactName] = [:]
    private var told = Told.nothing
    /// The members that were reported to the engine.
    private var toldMembers: [ExactName: GroupMember] = [:]
    /// The members that may have changed since.
    private var dirty: Set<ExactName> = []
    private var lastVersion: UInt64
    /// The version that is being reported to the engine.
    private var updating: UInt64?
    private var nextUpdate: MonotonicTime
    /// Whether a report was sent to the engine since the comparison began.
    private var toldInComparison = false

    // Watching.
    private var watcherCount = 0
    private var watch = Watch.none
    private var watchDue: MonotonicTime
    private var copies: [String: Copy] = [:]
    private var shown: [ExactName: Shown] = [:]
    /// The members that may leave, in the order of the times. Some may have come back.
    private var leaving = FIFO<(name: ExactName, time: MonotonicTime)>()
    /// The nodes whose sets are being read, and the newest version of each in news since.
    private var readings: [String: UInt64] = [:]
    /// The nodes whose sets have to be read.
    private var wantedReads: Set<String> = []
    private var isComparing = false
    /// Whether the comparison began after news started to come for watchers.
    private var comparesForWatchers = false
    private var comparisonDue: MonotonicTime?
    private var nextComparison: MonotonicTime
    /// The nodes with news since the comparison began.
    private var heardInComparison: Set<String> = []
    /// Whether a comparison has found all nodes.
    private var isCompared = false
    /// Whether the present members are known.
    private var isReady = false
    private var becameReady = false
    private var events: [PresenceEvent] = []

    /// - Parameter firstVersion: usually greater than all versions of an earlier process of this node.
    package init(node: String, firstVersion: UInt64, options: Options, now: MonotonicTime) {
        (self.node, self.options, lastVersion) = (node, options, min(firstVersion, Self.maximumVersion))
        (nextUpdate, watchDue, nextComparison) = (now, now, now)
    }

    /// The greatest number that is exact in Lua.
    private static var maximumVersion: UInt64 { 1 << 53 - 1 }

    /// Returns names in a fixed order.
    private static func sorted(_ names: some Sequence<ExactName>) -> [ExactName] {
        names.sorted { $0.name < $1.name }
    }

    /// All present members; nil when they are not known yet.
    package var present: [GroupMember]? { isReady ? shown.values.map(\.member) : nil }

    /// The members at this node.
    package var ownMembers: [GroupMember] { own.values.map(\.member) }

    /// Whether the machine is no longer needed.
    package var isIdle: Bool {
        guard own.isEmpty, watcherCount == 0, watch == .none, updating == nil, !isComparing else { return false }
        switch told {
        case .nothing: return true
        case .version: return toldMembers.isEmpty
        case .unknown: return false
        }
    }

    /// The time at which there may be work.
    package var nextDeadline: MonotonicTime? {
        var deadlines = [leaving.first?.time].compactMap { $0 }
        if updating == nil, hasUpdate { deadlines.append(nextUpdate) }
        if watch == .none, watcherCount > 0 { deadlines.append(watchDue) }
        if !isComparing, let comparisonDue { deadlines.append(comparisonDue) }
        return deadlines.min()
    }

    /// Returns the work to do; nil when there is none.
    package mutating func takeWork(now: MonotonicTime) -> Work? {
        var work = Work()
        removeThoseWhoHaveLeft(now: now)
        if watch == .none, watcherCount > 0, watchDue <= now {
            watch = .beginning
            work.beginsWatch = true
        }
        if watch == .active, watcherCount == 0 {
            watch = .ending
            work.endsWatch = true
        }
        if let due = comparisonDue, due <= now, !isComparing {
            beginComparison(now: now)
            work.compares = true
        }
        work.reads = wantedReads.sorted()
        for other in wantedReads { readings[other] = 0 }
        wantedReads = []
        work.update = takeUpdate(now: now)
        (work.events, events) = (events, [])
        (work.isReady, becameReady) = (becameReady, false)
        return work.isEmpty ? nil : work
    }
}

// The members at this node.
extension PresenceMachine {
    /// Sets the member that a session appears as; nil for none.
    package mutating func set(_ member: GroupMember?, of session: String, now: MonotonicTime) {
        let (old, new) = (sessions[session], member.map { ExactName($0.name) })
        sessions[session] = new
        if let new, let member {
            let isNew = own[new] == nil
            own[new, default: Own(member: member, sessionCount: 0)].member = member
            if old != new { own[new]?.sessionCount += 1 }
            dirty.insert(new)
            if watcherCount > 0 { if isNew { arrived(member, new) } else { shown[new]?.member = member } }
        }
        guard let old, old != new, let present = own[old] else { return }
        if present.sessionCount > 1 {
            own[old]?.sessionCount -= 1
        } else {
            own[old] = nil
            dirty.insert(old)
            if watcherCount > 0 { departed(old, now: now) }
        }
    }

    private var hasUpdate: Bool {
        switch told {
        case .nothing: !own.isEmpty
        case .version: !dirty.isEmpty
        case .unknown: true
        }
    }

    private mutating func takeUpdate(now: MonotonicTime) -> PresenceChange? {
        guard updating == nil, hasUpdate, nextUpdate <= now else { return nil }
        var base: UInt64?
        if case .version(let version) = told {
            base = version
        } else {
            toldMembers = [:]
            dirty = Set(own.keys)
        }
        var (present, absent): ([GroupMember], [String]) = ([], [])
        for name in Self.sorted(dirty) {
            if present.count + absent.count >= options.maximumChangeCount { break }
            dirty.remove(name)
            let member = own[name]?.member
            if member == toldMembers[name] { continue }
            toldMembers[name] = member
            if let member { present.append(member) } else { absent.append(name.name) }
        }
        if base != nil, present.isEmpty, absent.isEmpty { return nil }
        lastVersion = min(lastVersion + 1, Self.maximumVersion)
        updating = lastVersion
        // The rest follows at once.
        if dirty.isEmpty { nextUpdate = now + options.batchInterval }
        return PresenceChange(node: node, version: lastVersion, base: base, present: present, absent: absent)
    }

    /// Notes that the engine has accepted a report, and has this version now.
    package mutating func updated(to version: UInt64, now: MonotonicTime) {
        guard let expected = updating.take() else { return }
        toldInComparison = true
        if version == expected {
            told = .version(version)
        } else {
            // It has members of an earlier process of this node, or has lost some.
            told = .unknown
            lastVersion = min(max(lastVersion, version), Self.maximumVersion)
            nextUpdate = now + options.batchInterval
        }
    }

    package mutating func updateFailed(now: MonotonicTime) {
        guard updating.take() != nil else { return }
        toldInComparison = true
        told = .unknown
        nextUpdate = now + options.retryInterval
    }

    /// Compares with the version that the engine has; nil for none.
    private mutating func compareOwn(_ version: UInt64?) {
        guard !toldInComparison, updating == nil else { return }
        switch told {
        case .version(let known) where version != known: told = own.isEmpty && version == nil ? .nothing : .unknown
        // It has members of an earlier process.
        case .nothing where version != nil: told = .unknown
        case .nothing, .version, .unknown: break
        }
    }
}

// Watchers, and news of other nodes.
extension PresenceMachine {
    /// Adds a watcher.
    package mutating func addWatcher() {
        watcherCount += 1
        guard watcherCount == 1 else { return }
        for (name, own) in own { arrived(own.member, name) }
    }

    /// Removes a watcher.
    package mutating func removeWatcher() {
        watcherCount -= 1
        guard watcherCount == 0 else { return }
        (copies, shown, readings, wantedReads) = ([:], [:], [:], [])
        leaving = FIFO()
        (comparesForWatchers, isCompared, isReady, becameReady) = (false, false, false, false)
        events = []
    }

    /// Notes that news comes from now on.
    package mutating func watchBegan(now: MonotonicTime) {
        guard watch == .beginning else { return }
        watch = .active
        if watcherCount > 0 { compareSoon(now: now) }
    }

    package mutating func watchFailed(now: MonotonicTime) {
        guard watch == .beginning else { return }
        watch = .none
        watchDue = now + options.retryInterval
    }

    package mutating func watchEnded() { if watch == .ending { watch = .none } }

    /// Receives news of a change. News may come late, twice, and in any order.
    package mutating func received(_ change: PresenceChange, now: MonotonicTime) {
        let other = change.node
        guard watch == .active, watcherCount > 0, other != node else { return }
        heardInComparison.insert(other)
        if let heard = readings[other] { readings[other] = max(heard, change.version) }
        guard let copy = copies[other] else {
            // It is not known whether the node is alive.
            if readings[other] == nil { compareSoon(now: now) }
            return
        }
        guard change.version > copy.version else { return }
        guard change.base == copy.version else {
            if readings[other] == nil { wantedReads.insert(other) }
            return
        }
        copies[other]?.version = change.version
        for member in change.present {
            let name = ExactName(member.name)
            let isNew = copies[other]?.members.updateValue(member, forKey: name) == nil
            if isNew { arrived(member, name) } else { shown[name]?.member = member }
        }
        for name in change.absent.lazy.map({ ExactName($0) }) {
            if copies[other]?.members.removeValue(forKey: name) != nil { departed(name, now: now) }
        }
    }

    /// Receives a node's members from the engine.
    package mutating func read(_ page: PresencePage, of other: String, now: MonotonicTime) {
        guard let heard = readings.removeValue(forKey: other) else { return }
        // News may have been faster than the answer.
        let isNewer = page.version >= copies[other]?.version ?? 0
        if isNewer || heard <= page.version { replaceCopy(of: other, page, now: now) }
        if heard > page.version { wantedReads.insert(other) }
        checkReadiness()
    }

    package mutating func readFailed(of other: String, now: MonotonicTime) {
        guard readings.removeValue(forKey: other) != nil else { return }
        // The next comparison makes it be read again.
        if !isReady { comparisonFailed(now: now) }
    }

    private mutating func replaceCopy(of other: String, _ page: PresencePage, now: MonotonicTime) {
        let old = copies[other]?.members ?? [:]
        let new = Dictionary(page.members.map { (ExactName($0.name), $0) }) { $1 }
        copies[other] = page.version == 0 ? nil : Copy(version: page.version, members: new)
        for name in Self.sorted(new.keys) {
            guard let member = new[name] else { continue }
            if old[name] == nil { arrived(member, name) } else { shown[name]?.member = member }
        }
        for name in Self.sorted(old.keys) where new[name] == nil { departed(name, now: now) }
    }

    private mutating func dropCopy(of other: String, now: MonotonicTime) {
        readings[other] = nil
        wantedReads.remove(other)
        replaceCopy(of: other, PresencePage(version: 0, members: []), now: now)
    }

    // MARK: Comparisons

    /// Compares with the engine: at regular times, and when news may have been lost.
    package mutating func compare(now: MonotonicTime) {
        if case .nothing = told, watch != .active { return }
        compareSoon(now: now)
    }

    private mutating func compareSoon(now: MonotonicTime) { compare(at: max(now, nextComparison)) }

    private mutating func compare(at time: MonotonicTime) { comparisonDue = min(comparisonDue ?? time, time) }

    private mutating func beginComparison(now: MonotonicTime) {
        comparisonDue = nil
        isComparing = true
        nextComparison = now + options.batchInterval
        (heardInComparison, toldInComparison) = ([], updating != nil)
        comparesForWatchers = watch == .active && watcherCount > 0
    }

    /// Receives the engine's answer to a comparison.
    ///
    /// - Parameters:
    ///   - versions: those of all nodes that have reported members, including this one.
    ///   - live: the other nodes that are alive.
    package mutating func compared(_ versions: [String: UInt64], live: Set<String>, now: MonotonicTime) {
        guard isComparing else { return }
        isComparing = false
        compareOwn(versions[node])
        guard comparesForWatchers else { return }
        for (other, version) in versions where other != node && live.contains(other) {
            if readings[other] == nil, copies[other]?.version != version { wantedReads.insert(other) }
        }
        for other in copies.keys.sorted() + readings.keys.sorted()
        where versions[other] == nil || !live.contains(other) {
            // News of it may be newer than the answer.
            if heardInComparison.contains(other) {
                compareSoon(now: now)
            } else {
                dropCopy(of: other, now: now)
                // Compare before its members leave, in case the node is back.
                compare(at: now + options.grace * 0.6)
            }
        }
        isCompared = true
        checkReadiness()
    }

    package mutating func comparisonFailed(now: MonotonicTime) {
        isComparing = false
        guard !isReady, comparesForWatchers else { return }
        isCompared = false
        compare(at: now + options.retryInterval)
    }

    private mutating func checkReadiness() {
        guard !isReady, isCompared, readings.isEmpty, wantedReads.isEmpty else { return }
        (isReady, becameReady) = (true, true)
    }

    // MARK: Reports to watchers

    /// Notes that one more node has a member.
    private mutating func arrived(_ member: GroupMember, _ name: ExactName) {
        if shown[name] == nil, isReady { events.append(.joined(member)) }
        shown[name, default: Shown(member: member, nodeCount: 0)].nodeCount += 1
        shown[name]?.member = member
        shown[name]?.leavesAt = nil
    }

    /// Notes that one node fewer has a member.
    private mutating func departed(_ name: ExactName, now: MonotonicTime) {
        shown[name]?.nodeCount -= 1
        guard shown[name]?.nodeCount == 0 else {
            let others = copies.filter { $0.value.members[name] != nil }.min { $0.key < $1.key }
            if let member = own[name]?.member ?? others?.value.members[name] { shown[name]?.member = member }
            return
        }
        guard isReady else {
            shown[name] = nil
            return
        }
        let time = now + options.grace
        shown[name]?.leavesAt = time
        leaving.append((name, time))
    }

    private mutating func removeThoseWhoHaveLeft(now: MonotonicTime) {
        while let first = leaving.first, first.time <= now {
            leaving.removeFirst()
            guard let member = shown[first.name], member.leavesAt == first.time else { continue }
            shown[first.name] = nil
            events.append(.left(member.member))
        }
    }
}
