internal import Lifeline
package import LifelineCore

/// Who is in a group, as one node knows: tells the engine of the members here, and follows those of the other nodes for
/// watchers.
///
/// **Telling.** A node's members are a set with a version. What has changed is told in batches, each based on the
/// version before. Where the engine may have another version than this node believes, it is told all members again.
///
/// **Watching.** The node keeps a copy of each other node's set. News that is based on the copy's version changes it;
/// other news has the set read again. A comparison finds what no news told of: other versions, new nodes, and nodes that
/// are not alive any more, whose members are gone. A member whom no node has any more is shown for a while yet, as it
/// may come back.
package struct PresenceMachine: Sendable {
    package struct Options: Sendable {
        /// How long a member may be away without an event.
        package var grace = Duration.seconds(3)
        /// The time between two changes that the engine is told, and two comparisons.
        package var batchInterval = Duration.milliseconds(100)
        /// When something is tried again that has failed.
        package var retryInterval = Duration.seconds(1)
        /// How many members one change has at most.
        package var maximumChangeCount = 1_000

        package init() {}
    }

    /// What the driver is to do.
    package struct Work: Sendable {
        /// What the engine is told: say `updated` or `updateFailed`.
        package var update: PresenceChange?
        /// Ask the engine for news: say `watchBegan` or `watchFailed`.
        package var beginsWatch = false
        /// Ask for no more news: say `watchEnded`.
        package var endsWatch = false
        /// Ask for the versions and the lives of nodes: say `compared` or `comparisonFailed`.
        package var compares = false
        /// Read the sets of these nodes: say `read` or `readFailed` for each.
        package var reads: [String] = []
        /// What watchers are told.
        package var events: [PresenceEvent] = []
        /// Whether it is known from now on who is present.
        package var isReady = false

        var isEmpty: Bool {
            update == nil && !beginsWatch && !endsWatch && !compares && reads.isEmpty && events.isEmpty && !isReady
        }
    }

    private struct Own: Sendable {
        var member: GroupMember
        var sessionCount: Int
    }

    /// What the engine has of this node's members.
    private enum Told: Sendable {
        case nothing
        case version(UInt64)
        /// A change may have come to it or not, or it has lost some.
        case unknown
    }

    private struct Copy: Sendable {
        var version: UInt64
        var members: [ExactName: GroupMember]
    }

    /// A member whom watchers see.
    private struct Shown: Sendable {
        var member: GroupMember
        /// How many nodes have it.
        var nodeCount: Int
        /// When it has left, where no node has it.
        var leavesAt: MonotonicTime?
    }

    private enum Watch: Sendable {
        case none, beginning, active, ending
    }

    private let node: String
    private let options: Options

    // Telling.
    private var own: [ExactName: Own] = [:]
    /// The members of sessions, by the sessions' ids.
    private var sessions: [String: ExactName] = [:]
    private var told = Told.nothing
    /// What the engine was told.
    private var toldMembers: [ExactName: GroupMember] = [:]
    /// Who may have changed since.
    private var dirty: Set<ExactName> = []
    private var lastVersion: UInt64
    /// The version that the engine is being told.
    private var updating: UInt64?
    private var nextUpdate: MonotonicTime
    /// Whether the engine was told something since the comparison began.
    private var toldInComparison = false

    // Watching.
    private var watcherCount = 0
    private var watch = Watch.none
    private var watchDue: MonotonicTime
    private var copies: [String: Copy] = [:]
    private var shown: [ExactName: Shown] = [:]
    /// Those who may leave, in the order of the times. Some have come back.
    private var leaving = FIFO<(name: ExactName, time: MonotonicTime)>()
    /// The nodes whose sets are being read, and the newest version of each that was heard of since.
    private var readings: [String: UInt64] = [:]
    /// The nodes whose sets are to be read.
    private var wantedReads: Set<String> = []
    private var isComparing = false
    /// Whether the comparison began after news came to watchers.
    private var comparesForWatchers = false
    private var comparisonDue: MonotonicTime?
    private var nextComparison: MonotonicTime
    /// Nodes of which there was news since the comparison began.
    private var heardInComparison: Set<String> = []
    /// Whether a comparison has found all nodes.
    private var isCompared = false
    /// Whether it is known who is present.
    private var isReady = false
    private var becameReady = false
    private var events: [PresenceEvent] = []

    /// - Parameter firstVersion: is greater than all that an earlier process of this node has told, as a rule.
    package init(node: String, firstVersion: UInt64, options: Options, now: MonotonicTime) {
        (self.node, self.options, lastVersion) = (node, options, min(firstVersion, Self.maximumVersion))
        (nextUpdate, watchDue, nextComparison) = (now, now, now)
    }

    /// Lua's numbers are exact up to this.
    private static var maximumVersion: UInt64 { 1 << 53 - 1 }

    /// Names in an order that does not change from run to run.
    private static func sorted(_ names: some Sequence<ExactName>) -> [ExactName] {
        names.sorted { $0.name < $1.name }
    }

    /// All who are present; nil: it is not known yet.
    package var present: [GroupMember]? { isReady ? shown.values.map(\.member) : nil }

    /// The members at this node.
    package var ownMembers: [GroupMember] { own.values.map(\.member) }

    /// Whether there is nothing to keep the machine for.
    package var isIdle: Bool {
        guard own.isEmpty, watcherCount == 0, watch == .none, updating == nil, !isComparing else { return false }
        switch told {
        case .nothing: return true
        case .version: return toldMembers.isEmpty
        case .unknown: return false
        }
    }

    /// When there may be work.
    package var nextDeadline: MonotonicTime? {
        var deadlines = [leaving.first?.time].compactMap { $0 }
        if updating == nil, hasUpdate { deadlines.append(nextUpdate) }
        if watch == .none, watcherCount > 0 { deadlines.append(watchDue) }
        if !isComparing, let comparisonDue { deadlines.append(comparisonDue) }
        return deadlines.min()
    }

    /// Returns what is to be done; nil where nothing is.
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
    /// Says as which member a session is present; nil: as none.
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

    /// The engine was told, and has this version now.
    package mutating func updated(to version: UInt64, now: MonotonicTime) {
        guard let expected = updating.take() else { return }
        toldInComparison = true
        if version == expected {
            told = .version(version)
        } else {
            // It has those of an earlier process of this node, or has lost some.
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

    /// A comparison has found that the engine has this version; nil: nothing.
    private mutating func compareOwn(_ version: UInt64?) {
        guard !toldInComparison, updating == nil else { return }
        switch told {
        case .version(let known) where version != known: told = own.isEmpty && version == nil ? .nothing : .unknown
        // It has those of an earlier process.
        case .nothing where version != nil: told = .unknown
        case .nothing, .version, .unknown: break
        }
    }
}

// Watchers, and news of other nodes.
extension PresenceMachine {
    /// There is one more watcher.
    package mutating func addWatcher() {
        watcherCount += 1
        guard watcherCount == 1 else { return }
        for (name, own) in own { arrived(own.member, name) }
    }

    /// There is one less.
    package mutating func removeWatcher() {
        watcherCount -= 1
        guard watcherCount == 0 else { return }
        (copies, shown, readings, wantedReads) = ([:], [:], [:], [])
        leaving = FIFO()
        (comparesForWatchers, isCompared, isReady, becameReady) = (false, false, false, false)
        events = []
    }

    /// News comes from now on.
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

    /// A node has told of a change. News may come late, twice, and in any order.
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

    /// The engine has answered with a node's members.
    package mutating func read(_ page: PresencePage, of other: String, now: MonotonicTime) {
        guard let heard = readings.removeValue(forKey: other) else { return }
        // News may have been faster.
        let isNewer = page.version >= copies[other]?.version ?? 0
        if isNewer || heard <= page.version { replaceCopy(of: other, page, now: now) }
        if heard > page.version { wantedReads.insert(other) }
        checkReadiness()
    }

    package mutating func readFailed(of other: String, now: MonotonicTime) {
        guard readings.removeValue(forKey: other) != nil else { return }
        // The next comparison has it read again.
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

    /// The engine has answered.
    ///
    /// - Parameters:
    ///   - versions: those of all nodes that have told of members, this one among them.
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
            // What was heard of it may be newer than the answer.
            if heardInComparison.contains(other) {
                compareSoon(now: now)
            } else {
                dropCopy(of: other, now: now)
                // Before its members leave, in case it is there again.
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

    // MARK: What watchers see

    /// One more node has a member.
    private mutating func arrived(_ member: GroupMember, _ name: ExactName) {
        if shown[name] == nil, isReady { events.append(.joined(member)) }
        shown[name, default: Shown(member: member, nodeCount: 0)].nodeCount += 1
        shown[name]?.member = member
        shown[name]?.leavesAt = nil
    }

    /// One node less has it.
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
