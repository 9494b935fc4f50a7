internal import Lifeline
internal import LifelineCore
internal import LifelineRuntime
internal import Logging
internal import NIOConcurrencyHelpers

/// This node's view of the members of groups: drives the machine of each group, which decides everything.
///
/// Tasks do the work of the machines, only a few for a group at a time. No work is done for a single watcher.
final class FleetPresence: Sendable {
    private struct Group {
        var machine: PresenceMachine
        var feeds: [UInt64: (feed: PresenceFeed, bell: Doorbell)] = [:]
        /// The time at which a task will look for work; nil when none will.
        var wakesAt: MonotonicTime?
    }

    private struct State {
        var groups: [ExactName: Group] = [:]
        var lastWatcher: UInt64 = 0
    }

    /// The work for a group.
    private struct Job {
        let name: ExactName
        var work = PresenceMachine.Work()
        var bells: [Doorbell] = []
        var wakesAt: MonotonicTime?
    }

    private let engine: any FleetEngine
    private let nodeName: String
    private let options: PresenceMachine.Options
    /// How long the engine keeps reported members without a comparison.
    private let lifetime: Duration
    private let clock: any ClientClock
    private let logger: Logger
    private let state = NIOLockedValueBox(State())

    init(
        engine: any FleetEngine,
        nodeName: String,
        _ configuration: FleetConfiguration,
        clock: any ClientClock,
        logger: Logger
    ) {
        (self.engine, self.nodeName, self.clock, self.logger) = (engine, nodeName, clock, logger)
        var options = PresenceMachine.Options()
        options.grace = configuration.presenceGrace.clamped(atLeast: .zero)
        self.options = options
        // One comparison may fail.
        lifetime = max(configuration.leaseDuration, configuration.comparisonInterval * 2.5)
            .clamped(atLeast: .milliseconds(250))
    }

    // MARK: Members

    /// Sets the member that a session appears as; nil for none.
    ///
    /// - Parameter isMember: returns whether it is a member; called under the lock.
    func set(_ member: GroupMember?, of session: String, in name: ExactName, isMember: () -> Bool) {
        change(name, creating: member != nil) { group, now in
            group.machine.set(isMember() ? member : nil, of: session, now: now)
        }
    }

    /// Removes a session's member, unless it has joined again.
    func remove(_ session: String, from name: ExactName, isMember: () -> Bool) {
        change(name) { group, now in
            if !isMember() { group.machine.set(nil, of: session, now: now) }
        }
    }

    /// Returns the members of a group.
    ///
    /// - Throws: what the engine throws.
    func members(of name: ExactName) async throws -> [GroupMember] {
        let (present, own) = state.withLockedValue { state in
            let machine = state.groups[name]?.machine
            return (machine?.present, machine?.ownMembers ?? [])
        }
        if let present { return present }
        let live = try await compare([name]).first?.live ?? []
        return try await withThrowingTaskGroup { tasks in
            for node in live {
                tasks.addTask { try await self.engine.presence(of: name.name, at: node).members }
            }
            var members = Dictionary(own.map { (ExactName($0.name), $0) }) { first, _ in first }
            for try await part in tasks { for member in part { members[ExactName(member.name)] = member } }
            return Array(members.values)
        }
    }

    // MARK: Watchers

    /// Adds a watcher. The bell rings when there may be an event for it.
    func addWatcher(of name: ExactName) -> (id: UInt64, bell: Doorbell) {
        let bell = Doorbell()
        let id = state.withLockedValue { state in
            state.lastWatcher += 1
            return state.lastWatcher
        }
        change(name, creating: true) { group, _ in
            group.feeds[id] = (PresenceFeed(), bell)
            group.machine.addWatcher()
        }
        return (id, bell)
    }

    func removeWatcher(_ id: UInt64, of name: ExactName) {
        change(name) { group, _ in
            if group.feeds.removeValue(forKey: id) != nil { group.machine.removeWatcher() }
        }
    }

    /// Returns the next event for a watcher; nil when there is none yet.
    func next(for id: UInt64, of name: ExactName) -> PresenceEvent? {
        state.withLockedValue { state in
            let machine = state.groups[name]?.machine
            return state.groups[name]?.feeds[id]?.feed.next(machine?.present)
        }
    }

    // MARK: News, and comparisons

    func received(_ news: PresenceChange, in name: ExactName) {
        change(name) { group, now in group.machine.received(news, now: now) }
    }

    /// Compares all groups with the engine.
    func compareAll() {
        let now = clock.now
        let jobs = state.withLockedValue { state in
            var jobs: [Job] = []
            for index in state.groups.values.indices {
                state.groups.values[index].machine.compare(now: now)
                jobs.append(takeJob(state.groups.keys[index], &state.groups.values[index], now))
            }
            return jobs
        }
        perform(jobs)
    }

    /// Asks for the versions of groups, and for the other live nodes.
    private func compare(_ names: [ExactName]) async throws -> [(versions: [String: UInt64], live: Set<String>)] {
        let versions = try await engine.presenceVersions(of: names.map(\.name), keeping: nodeName, for: lifetime)
        let others = Set(versions.lazy.flatMap(\.keys)).subtracting([nodeName])
        let live = others.isEmpty ? [] : try await engine.liveNodes(among: others.sorted())
        return versions.map { ($0, live.intersection($0.keys)) }
    }

    // MARK: Work

    /// Changes the machine of a group, and starts the resulting work.
    ///
    /// - Parameter creating: whether to make a new machine if there is none.
    private func change(
        _ name: ExactName,
        creating: Bool = false,
        _ body: (inout Group, MonotonicTime) -> Void
    ) {
        let now = clock.now
        let job = state.withLockedValue { state -> Job? in
            // Removed from the table, so that it is not copied.
            guard var group = state.groups.removeValue(forKey: name) ?? (creating ? newGroup(now: now) : nil) else {
                return nil
            }
            body(&group, now)
            let job = takeJob(name, &group, now)
            if !group.machine.isIdle { state.groups[name] = group }
            return job
        }
        if let job { perform([job]) }
    }

    private func newGroup(now: MonotonicTime) -> Group {
        // Microseconds, so that a restarted process continues after its earlier versions.
        let firstVersion = UInt64(max(clock.date, 0)) * 1_000
        return Group(
            machine: PresenceMachine(node: nodeName, firstVersion: firstVersion, options: options, now: now)
        )
    }

    private func takeJob(_ name: ExactName, _ group: inout Group, _ now: MonotonicTime) -> Job {
        var job = Job(name: name)
        if let work = group.machine.takeWork(now: now) {
            job.work = work
            if !work.events.isEmpty || work.isReady {
                for id in group.feeds.keys { group.feeds[id]?.feed.add(work.events) }
                job.bells = group.feeds.values.map(\.bell)
            }
        }
        if let deadline = group.machine.nextDeadline, group.wakesAt.map({ deadline < $0 }) ?? true {
            group.wakesAt = deadline
            job.wakesAt = deadline
        }
        return job
    }

    private func perform(_ jobs: [Job]) {
        for job in jobs {
            for bell in job.bells { bell.ring() }
            if let time = job.wakesAt { wake(job.name, at: time) }
            if let change = job.work.update { update(job.name, change) }
            if job.work.beginsWatch { beginWatch(job.name) }
            if job.work.endsWatch { endWatch(job.name) }
            for node in job.work.reads { read(job.name, node) }
        }
        let compared = jobs.filter(\.work.compares).map(\.name)
        if !compared.isEmpty { beginComparison(compared) }
    }

    private func wake(_ name: ExactName, at time: MonotonicTime) {
        Task.detached { [weak self, clock] in
            try? await clock.sleep(until: time)
            self?.change(name) { group, _ in
                if group.wakesAt == time { group.wakesAt = nil }
            }
        }
    }

    private func update(_ name: ExactName, _ update: PresenceChange) {
        Task.detached { [self] in
            do {
                let version = try await engine.updatePresence(update, of: name.name, keepingFor: lifetime)
                change(name) { group, now in group.machine.updated(to: version, now: now) }
            } catch {
                failed("Members of a group cannot be told to the engine", name, error)
                change(name) { group, now in group.machine.updateFailed(now: now) }
            }
        }
    }

    private func beginWatch(_ name: ExactName) {
        Task.detached { [self] in
            do {
                try await engine.watchPresence(of: name.name, nodeName)
                change(name) { group, now in group.machine.watchBegan(now: now) }
            } catch {
                failed("A group cannot be watched", name, error)
                change(name) { group, now in group.machine.watchFailed(now: now) }
            }
        }
    }

    private func endWatch(_ name: ExactName) {
        Task.detached { [self] in
            await engine.unwatchPresence(of: name.name, nodeName)
            change(name) { group, _ in group.machine.watchEnded() }
        }
    }

    private func read(_ name: ExactName, _ node: String) {
        Task.detached { [self] in
            do {
                let page = try await engine.presence(of: name.name, at: node)
                change(name) { group, now in group.machine.read(page, of: node, now: now) }
            } catch {
                failed("Members of a group cannot be read", name, error)
                change(name) { group, now in group.machine.readFailed(of: node, now: now) }
            }
        }
    }

    private func beginComparison(_ names: [ExactName]) {
        Task.detached { [self] in
            do {
                for (name, answer) in zip(names, try await compare(names)) {
                    change(name) { group, now in
                        group.machine.compared(answer.versions, live: answer.live, now: now)
                    }
                }
            } catch {
                logger.warning("Members of groups cannot be compared", metadata: ["error": "\(error)"])
                for name in names { change(name) { group, now in group.machine.comparisonFailed(now: now) } }
            }
        }
    }

    private func failed(_ what: Logger.Message, _ name: ExactName, _ error: any Error) {
        logger.warning(what, metadata: ["group": "\(name.name.escaped(limit: 100))", "error": "\(error)"])
    }
}
