import LifelineCore
import LifelineFleet
import LifelineTesting

/// A random story of presence in one group at a few nodes. The engine fails, answers late, sends news late, twice, out
/// of order or never, and loses its data. Nodes die, come back, and lose their leases.
///
/// The guarantees: Watchers see a member join and leave alternately. In quiet stories, which have no failures, watchers
/// see a member soon, and a short absence is not reported as leaving. After all failures have ended, each watcher sees
/// all present members.
package struct PresenceScenario {
    /// The counts of stories.
    package struct Totals: Sendable {
        package var joins = 0
        package var events = 0
        package var snapshots = 0
        package var updates = 0
        package var failures = 0
        package var deaths = 0

        package init() {}

        package static func += (sum: inout Totals, part: Totals) {
            sum.joins += part.joins
            sum.events += part.events
            sum.snapshots += part.snapshots
            sum.updates += part.updates
            sum.failures += part.failures
            sum.deaths += part.deaths
        }
    }

    package struct Result: Sendable {
        package var totals = Totals()
        /// The first violation, if any.
        package var failure: String?
        /// The events; empty without tracing.
        package var trace: [String] = []
    }

    package static func failureMessage(_ seed: UInt64, _ what: String) -> String {
        "presence scenario \(seed) failed: \(what); replay: scripts/soak --presence-scenario \(seed)"
    }

    private let seed: UInt64
    private let isTracing: Bool

    package init(seed: UInt64, isTracing: Bool = false) { (self.seed, self.isTracing) = (seed, isTracing) }

    package func run() -> Result {
        let story = PresenceStory(seed: seed, isTracing: isTracing)
        story.run()
        return story.result
    }
}

/// A naive model of the engine.
private struct Engine {
    struct Entry {
        var version: UInt64
        var deadline: MonotonicTime
        var members: [String: GroupMember] = [:]
    }

    var entries: [String: Entry] = [:]
    var leases: [String: MonotonicTime] = [:]
    var watchers: Set<String> = []

    mutating func forgetOld(_ now: MonotonicTime) { entries = entries.filter { $0.value.deadline > now } }

    mutating func update(_ change: PresenceChange, until deadline: MonotonicTime) -> (version: UInt64, isTaken: Bool) {
        let known = entries[change.node]?.version ?? 0
        if let base = change.base {
            guard known == base, known > 0 else { return (known, false) }
        } else {
            guard change.version > known else { return (known, false) }
            entries[change.node] = nil
        }
        var entry = entries[change.node] ?? Entry(version: 0, deadline: deadline)
        (entry.version, entry.deadline) = (change.version, deadline)
        for member in change.present { entry.members[member.name] = member }
        for name in change.absent { entry.members[name] = nil }
        entries[change.node] = entry
        return (change.version, true)
    }

    func page(of node: String) -> PresencePage {
        let members = (entries[node]?.members ?? [:]).values.sorted { $0.name < $1.name }
        return PresencePage(version: entries[node]?.version ?? 0, members: members)
    }

    func live(_ now: MonotonicTime) -> Set<String> { Set(leases.filter { $0.value > now }.keys) }
}

private final class PresenceStory {
    private struct Watcher {
        var feed: PresenceFeed
        /// The members that it sees; nil before the first event.
        var view: Set<String>?
    }

    private struct Node {
        var name: String
        /// Nil while the node is dead.
        var machine: PresenceMachine?
        /// Whether the machine was in use.
        var isUsed = false
        /// Counts its lives.
        var life = 0
        /// The members of its sessions.
        var sessions: [String: GroupMember] = [:]
        var watchers: [Watcher] = []
        var nextRenewal = MonotonicTime(nanoseconds: 0)
        var nextComparison = MonotonicTime(nanoseconds: 0)
        /// The time of the last update to the engine, and whether the change was full.
        var lastUpdate: (time: MonotonicTime, isFull: Bool)?
    }

    private static let lease = Duration.seconds(3)
    private static let comparison = Duration.seconds(2)
    /// The longest allowed delay in a quiet story.
    private static let lag = Duration.milliseconds(500)

    var result = PresenceScenario.Result()
    private let isTracing: Bool
    private let isQuiet: Bool
    /// The time for which the engine keeps entries that are not compared. If it is long, nodes come back under another
    /// name, so that their entries end with their leases.
    private let lifetime: Duration
    private let options: PresenceMachine.Options
    private var random: SimulationRandom
    private var fails = true
    private var engine = Engine()
    private var nodes: [Node] = []
    private var lastSession = 0
    private var lastAttribute = 0
    private var now = MonotonicTime(nanoseconds: 1_000_000_000)
    /// Scheduled actions; the numbers order those of the same time.
    private var later: [(time: MonotonicTime, number: Int, action: () -> Void)] = []
    private var lastNumber = 0
    /// The time since which members are present.
    private var presentSince: [String: MonotonicTime] = [:]
    /// The time since which they are absent.
    private var absentSince: [String: MonotonicTime] = [:]
    /// The time since which they were last away, without regard to returns too short for others to see.
    private var awaySince: [String: MonotonicTime] = [:]

    init(seed: UInt64, isTracing: Bool) {
        self.isTracing = isTracing
        random = SimulationRandom(seed: seed)
        isQuiet = Int.random(in: 0..<3, using: &random) == 0
        lifetime = .seconds(Bool.random(using: &random) ? 5 : 60)
        var options = PresenceMachine.Options()
        options.grace = .seconds(1)
        options.batchInterval = .milliseconds(10)
        options.retryInterval = .milliseconds(100)
        options.maximumChangeCount = .random(in: 1...5, using: &random)
        self.options = options
    }

    private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private func note(_ text: @autoclosure () -> String) { if isTracing { result.trace.append("\(now): \(text())") } }

    private func fail(_ text: String) { if result.failure == nil { result.failure = "at \(now), \(text)" } }

    func run() {
        for index in 0..<Int.random(in: 2...3, using: &random) {
            nodes.append(Node(name: "node \(index)"))
            begin(index)
        }
        note("\(nodes.count) nodes, \(isQuiet ? "nothing" : "much") fails")
        for _ in 0..<500 where result.failure == nil {
            act()
            pass(.milliseconds(.random(in: 0...30, using: &random)))
        }
        if failsNow(50) { loseEverything() }
        note("all faults end")
        fails = false
        for index in nodes.indices where nodes[index].machine == nil && chance(50) {
            begin(index)
            if chance(50) { watch(index) }
        }
        let end =
            now + (lifetime < .seconds(60) ? lifetime : Self.lease) + Self.comparison + options.grace + Self.lag
        while now < end, result.failure == nil { pass(.milliseconds(20)) }
        if result.failure == nil { checkAll() }
        if result.failure == nil { leaveNothing() }
    }

    /// Advances the time.
    private func pass(_ duration: Duration) {
        let end = now + duration
        while result.failure == nil {
            let index = later.indices.min { (later[$0].time, later[$0].number) < (later[$1].time, later[$1].number) }
            guard let index, later[index].time <= end else { break }
            let next = later.remove(at: index)
            now = max(now, next.time)
            next.action()
        }
        now = end
        engine.forgetOld(now)
        for index in nodes.indices where nodes[index].machine != nil {
            if nodes[index].nextRenewal <= now { renewLease(index) }
            if nodes[index].nextComparison <= now {
                nodes[index].nextComparison = now + Self.comparison
                change(index) { $0.compare(now: $1) }
            }
            change(index) { _, _ in }
            if chance(fails ? 30 : 100) { readFeeds(index) }
        }
        if isQuiet, result.failure == nil { checkQuiet() }
    }

    private func after(_ delay: Duration, _ action: @escaping () -> Void) {
        lastNumber += 1
        later.append((now + delay, lastNumber, action))
    }

    /// Returns the delay of a command or an answer.
    private func delay() -> Duration {
        .milliseconds(.random(in: 0...(fails && !isQuiet && chance(20) ? 400 : 15), using: &random))
    }

    private func failsNow(_ percent: Int) -> Bool {
        guard fails, !isQuiet, chance(percent) else { return false }
        result.totals.failures += 1
        return true
    }

    // MARK: Nodes

    private func begin(_ index: Int) {
        nodes[index].life += 1
        if lifetime == .seconds(60) { nodes[index].name = "node \(index) \(nodes[index].life)" }
        beginMachine(index)
        renewLease(index)
        nodes[index].nextComparison = now + Self.comparison * Double.random(in: 0...1, using: &random)
    }

    private func beginMachine(_ index: Int) {
        // The clock may be wrong.
        let version = failsNow(20) ? UInt64.random(in: 0...100, using: &random) : UInt64(now.nanoseconds / 1_000)
        note("\(nodes[index].name) begins with version \(version)")
        nodes[index].machine = PresenceMachine(
            node: nodes[index].name,
            firstVersion: version,
            options: options,
            now: now
        )
        (nodes[index].lastUpdate, nodes[index].isUsed) = (nil, false)
    }

    private func renewLease(_ index: Int) {
        nodes[index].nextRenewal = now + Self.lease / 3
        if !failsNow(20) { engine.leases[nodes[index].name] = now + Self.lease }
    }

    private func die(_ index: Int) {
        result.totals.deaths += 1
        note("\(nodes[index].name) dies")
        (nodes[index].machine, nodes[index].isUsed) = (nil, false)
        nodes[index].watchers = []
        engine.watchers.remove(nodes[index].name)
        if chance(30) { engine.leases[nodes[index].name] = nil }
        changeSessions { nodes[index].sessions = [:] }
    }

    /// Changes a node's machine, and performs the resulting work.
    private func change(_ index: Int, _ body: (inout PresenceMachine, MonotonicTime) -> Void) {
        guard nodes[index].machine != nil else { return }
        body(&nodes[index].machine!, now)
        let work = nodes[index].machine!.takeWork(now: now)
        if nodes[index].machine?.isIdle == false {
            nodes[index].isUsed = true
        } else if nodes[index].isUsed {
            beginMachine(index)
        }
        guard let work else {
            if let deadline = nodes[index].machine!.nextDeadline, deadline <= now {
                fail("\(nodes[index].name) has nothing to do at its deadline")
            }
            return
        }
        for event in work.events { note("\(nodes[index].name) tells: \(event)") }
        if isQuiet { for case .left(let member) in work.events { checkLeave(member.name) } }
        for watcher in nodes[index].watchers.indices { nodes[index].watchers[watcher].feed.add(work.events) }
        if let change = work.update { update(index, change) }
        if work.beginsWatch { beginWatch(index) }
        if work.endsWatch { endWatch(index) }
        if work.compares { compare(index) }
        for other in work.reads { read(index, other) }
    }

    /// Calls back only in the same life of a node.
    private func answer(_ index: Int, _ body: @escaping (inout PresenceMachine, MonotonicTime) -> Void) {
        let life = nodes[index].life
        after(delay()) { [self] in if nodes[index].life == life { change(index, body) } }
    }

    private func update(_ index: Int, _ change: PresenceChange) {
        result.totals.updates += 1
        note("\(change.node) tells \(change.base.map { "\($0)" } ?? "all") → \(change.version)")
        let count = change.present.count + change.absent.count
        if count > options.maximumChangeCount { fail("\(count) members are told at once") }
        if let last = nodes[index].lastUpdate, !last.isFull, now - last.time < options.batchInterval {
            fail("\(change.node) tells again after \(now - last.time)")
        }
        nodes[index].lastUpdate = (now, count == options.maximumChangeCount)
        let life = nodes[index].life
        if failsNow(15) {
            // The change reaches the engine late, or never.
            if chance(60) { after(delay()) { [self] in apply(change) } }
            return answer(index) { $0.updateFailed(now: $1) }
        }
        after(delay()) { [self] in
            let version = apply(change)
            guard nodes[index].life == life else { return }
            answer(index) { $0.updated(to: version, now: $1) }
        }
    }

    @discardableResult
    private func apply(_ change: PresenceChange) -> UInt64 {
        engine.forgetOld(now)
        let (version, isTaken) = engine.update(change, until: now + lifetime)
        guard isTaken else { return version }
        for index in nodes.indices where engine.watchers.contains(nodes[index].name) {
            if failsNow(15) { continue }
            for _ in 0...(failsNow(5) ? 1 : 0) { answer(index) { $0.received(change, now: $1) } }
        }
        return version
    }

    private func beginWatch(_ index: Int) {
        if failsNow(15) { return answer(index) { $0.watchFailed(now: $1) } }
        engine.watchers.insert(nodes[index].name)
        answer(index) { $0.watchBegan(now: $1) }
    }

    private func endWatch(_ index: Int) {
        engine.watchers.remove(nodes[index].name)
        answer(index) { machine, _ in machine.watchEnded() }
    }

    private func compare(_ index: Int) {
        if failsNow(15) { return answer(index) { $0.comparisonFailed(now: $1) } }
        let life = nodes[index].life
        after(delay()) { [self] in
            guard nodes[index].life == life else { return }
            engine.forgetOld(now)
            if engine.entries[nodes[index].name] != nil {
                engine.entries[nodes[index].name]?.deadline = now + lifetime
            }
            let versions = engine.entries.mapValues(\.version)
            after(delay()) { [self] in
                guard nodes[index].life == life else { return }
                let live = engine.live(now)
                answer(index) { $0.compared(versions, live: live, now: $1) }
            }
        }
    }

    private func read(_ index: Int, _ other: String) {
        if failsNow(15) { return answer(index) { $0.readFailed(of: other, now: $1) } }
        let life = nodes[index].life
        after(delay()) { [self] in
            guard nodes[index].life == life else { return }
            engine.forgetOld(now)
            let page = engine.page(of: other)
            answer(index) { $0.read(page, of: other, now: $1) }
        }
    }

    // MARK: Random events

    private func act() {
        let index = Int.random(in: nodes.indices, using: &random)
        guard nodes[index].machine != nil else {
            if chance(10) { begin(index) }
            return
        }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<20: join(index, "member \(Int.random(in: 0..<10, using: &random))")
        case 20..<45: if let name = leave(index), chance(30) { comeBack(name) }
        case 45..<50: changeAttributes(index)
        case 50..<54: watch(index)
        case 54..<56: unwatch(index)
        case 56 where !isQuiet && chance(30): die(index)
        case 57 where failsNow(20): loseEverything()
        case 58 where failsNow(50):
            note("\(nodes[index].name) is told that news may be lost")
            change(index) { $0.compare(now: $1) }
        case 59 where failsNow(30):
            note("the lease of \(nodes[index].name) is lost")
            engine.leases[nodes[index].name] = nil
        default: break
        }
    }

    private func loseEverything() {
        note("the engine loses everything")
        (engine.entries, engine.leases) = ([:], [:])
    }

    private func member(_ name: String) -> GroupMember {
        lastAttribute += 1
        return GroupMember(name, attributes: ["number": "\(lastAttribute)"])
    }

    private func join(_ index: Int, _ name: String) {
        guard nodes[index].machine != nil else { return }
        lastSession += 1
        result.totals.joins += 1
        let (session, member) = ("\(lastSession)", member(name))
        note("\(name) joins at \(nodes[index].name)")
        changeSessions { nodes[index].sessions[session] = member }
        change(index) { $0.set(member, of: session, now: $1) }
    }

    private func leave(_ index: Int) -> String? {
        guard let session = nodes[index].sessions.keys.sorted().randomElement(using: &random) else { return nil }
        var name: String?
        changeSessions { name = nodes[index].sessions.removeValue(forKey: session)?.name }
        note("\(name ?? "") leaves \(nodes[index].name)")
        change(index) { $0.set(nil, of: session, now: $1) }
        return name
    }

    private func comeBack(_ name: String) {
        let index = Int.random(in: nodes.indices, using: &random)
        after(.milliseconds(.random(in: 0...400, using: &random))) { [self] in join(index, name) }
    }

    private func changeAttributes(_ index: Int) {
        guard let session = nodes[index].sessions.keys.sorted().randomElement(using: &random),
            let name = nodes[index].sessions[session]?.name
        else { return }
        let member = member(name)
        nodes[index].sessions[session] = member
        change(index) { $0.set(member, of: session, now: $1) }
    }

    private func watch(_ index: Int) {
        note("\(nodes[index].name) has a watcher more")
        nodes[index].watchers.append(Watcher(feed: PresenceFeed(limit: .random(in: 1...10, using: &random))))
        change(index) { machine, _ in machine.addWatcher() }
    }

    private func unwatch(_ index: Int) {
        guard !nodes[index].watchers.isEmpty else { return }
        note("\(nodes[index].name) has a watcher less")
        nodes[index].watchers.removeFirst()
        change(index) { machine, _ in machine.removeWatcher() }
    }

    // MARK: Checks

    private var present: Set<String> { Set(nodes.lazy.flatMap(\.sessions.values).map(\.name)) }

    private func changeSessions(_ body: () -> Void) {
        let before = present
        body()
        for name in present.subtracting(before) { (presentSince[name], absentSince[name]) = (now, nil) }
        for name in before.subtracting(present) {
            let isMoment = presentSince[name].map { now - $0 <= Self.lag } ?? false
            (presentSince[name], absentSince[name]) = (nil, now)
            if !isMoment || awaySince[name] == nil { awaySince[name] = now }
        }
    }

    private func readFeeds(_ index: Int) {
        for watcher in nodes[index].watchers.indices {
            let known = nodes[index].machine?.present
            while let event = nodes[index].watchers[watcher].feed.next(known) {
                take(event, &nodes[index].watchers[watcher].view)
            }
        }
    }

    private func take(_ event: PresenceEvent, _ view: inout Set<String>?) {
        switch event {
        case .present(let members):
            result.totals.snapshots += 1
            view = Set(members.map(\.name))
            if view?.count != members.count { fail("a member is present twice") }
        case .joined(let member):
            result.totals.events += 1
            if view?.insert(member.name).inserted != true { fail("\(member.name) joins twice") }
        case .left(let member):
            result.totals.events += 1
            if view?.remove(member.name) == nil { fail("\(member.name) leaves twice") }
        }
    }

    /// Checks the news that a member has left.
    private func checkLeave(_ name: String) {
        if let since = presentSince[name], now - since > Self.lag { fail("\(name) is told to have left, and is there") }
        if let since = awaySince[name], absentSince[name] != nil, now - since < options.grace {
            fail("\(name) has left after \(now - since)")
        }
    }

    /// Checks the members that a machine shows in a quiet story.
    private func checkQuiet() {
        for node in nodes {
            guard let shown = node.machine?.present else { continue }
            let names = Set(shown.map(\.name))
            for (name, since) in presentSince where now - since > Self.lag && !names.contains(name) {
                return fail("\(node.name) does not know after \(now - since) that \(name) is there")
            }
            for (name, since) in absentSince where now - since > options.grace + Self.lag && names.contains(name) {
                return fail("\(node.name) does not know after \(now - since) that \(name) is not there")
            }
        }
    }

    /// Checks that every watcher sees the present members after all failures have ended.
    private func checkAll() {
        let told = Set(nodes.lazy.compactMap(\.machine).flatMap(\.ownMembers))
        for (index, node) in nodes.enumerated() where node.machine != nil {
            readFeeds(index)
            for watcher in nodes[index].watchers where watcher.view != present {
                return fail("a watcher at \(node.name) sees \(watcher.view?.sorted() ?? []), not \(present.sorted())")
            }
            guard let shown = node.machine?.present else { continue }
            for member in shown where !told.contains(member) { fail("\(node.name) shows \(member), which is old") }
        }
    }

    /// Checks that nothing remains after all watchers and members have left.
    private func leaveNothing() {
        for index in nodes.indices {
            while !nodes[index].watchers.isEmpty { unwatch(index) }
            while leave(index) != nil {}
        }
        let end = now + Self.comparison + Self.lag
        while now < end, result.failure == nil { pass(.milliseconds(20)) }
        for node in nodes where node.isUsed { fail("\(node.name) goes on for nobody") }
    }
}
