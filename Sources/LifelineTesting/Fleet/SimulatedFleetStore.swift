internal import LifelineCore
public import LifelineFleet

/// The shared store of a fleet in a world, as Redis is for a real fleet. It runs as a service on a host of its own, so
/// that faults reach it. Nodes that cannot reach it get no answers. When its process is killed, it forgets everything.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
public final class SimulatedFleetStore: @unchecked Sendable {
    private let host: WorldHost
    /// Its content, and the process that has it; nil before it was started.
    private var content: (engine: MemoryFleetEngine, process: WorldProcess)?
    private var members: [String: Member] = [:]
    /// The probability that a node's request or its answer is lost. Default: 1 in 1,000.
    public var lossProbability = 0.001
    /// The probability that news for a node is lost, and that it arrives twice. Default: 1 in 20.
    public var newsProbability = 0.05
    /// The time that a node waits for an answer. Default: 2 s.
    public var timeout = Duration.seconds(2)

    /// Starts the store on a host on which no other program runs.
    public init(on host: WorldHost) {
        self.host = host
        host.serve { [weak self] in
            await self?.start()
            try await Task.sleep(for: .seconds(1 << 30))
        }
    }

    /// The engine of a fleet. Make it, and the fleet, in a program of the fleet's host.
    public func engine() -> any FleetEngine {
        guard let process = host.world?.current else {
            preconditionFailure("Make a fleet's engine in a program of a host of the world: `host.run { … }`.")
        }
        return SimulatedFleetEngine(store: self, process: process)
    }

    /// A node and its subscriptions, which it makes again after the store was away.
    private struct Member {
        let node: FleetNode
        let process: WorldProcess
        var followed: Set<String> = []
        var watched: Set<String> = []
    }

    private func start() async {
        let engine = MemoryFleetEngine()
        content = (engine, host.process)
        for (name, member) in members.sorted(by: { $0.key < $1.key }) where !member.process.isKilled {
            engine.attach(member.node)
            for group in member.followed.sorted() { _ = try? await engine.follow(group, name) }
            for group in member.watched.sorted() { try? await engine.watchPresence(of: group, name) }
            member.node.receive(.interrupted)
        }
    }

    fileprivate func attach(_ node: FleetNode, _ process: WorldProcess) {
        let node = FleetNode(name: node.name) { [weak self, weak process] news in
            guard let process else { return }
            self?.deliver(news, to: node, process)
        }
        members[node.name] = Member(node: node, process: process)
        content?.engine.attach(node)
    }

    fileprivate func detach(_ name: String) {
        members[name] = nil
        content?.engine.detach(name)
    }

    /// News arrives in order, late, twice, or never.
    private func deliver(_ news: FleetNews, to node: FleetNode, _ process: WorldProcess) {
        var copies = 1
        if case .interrupted = news {
            // A node notices the cut of its connection by itself.
        } else if !reaches(process) || chance(newsProbability) {
            return
        } else if chance(newsProbability) {
            copies = 2
        }
        for _ in 0..<copies {
            process.receiveNews(after: delay()) { node.receive(news) }
        }
    }

    /// Sends a request to the store for a process.
    fileprivate func ask<Answer>(
        _ process: WorldProcess,
        _ operation: (MemoryFleetEngine) async throws -> Answer
    ) async throws -> Answer {
        try await Task.sleep(for: delay())
        guard let content, reaches(process), !chance(lossProbability) else { throw try await silence() }
        // The connections of a killed process are closed.
        for (name, member) in members where member.process.isKilled { detach(name) }
        let answer = try await operation(content.engine)
        try await Task.sleep(for: delay())
        guard reaches(process), !chance(lossProbability) else { throw try await silence() }
        return answer
    }

    fileprivate func setFollowed(_ group: String, _ name: String, _ isFollowed: Bool) {
        if isFollowed { members[name]?.followed.insert(group) } else { members[name]?.followed.remove(group) }
    }

    fileprivate func setWatched(_ group: String, _ name: String, _ isWatched: Bool) {
        if isWatched { members[name]?.watched.insert(group) } else { members[name]?.watched.remove(group) }
    }

    private func silence() async throws -> StoreIsSilent {
        try await Task.sleep(for: timeout)
        return StoreIsSilent()
    }

    private func reaches(_ process: WorldProcess) -> Bool {
        guard let content, !content.process.isKilled else { return false }
        return host.machine.passesPackets && process.host.machine.passesPackets
    }

    private func delay() -> Duration { host.machine.randomLatency + .microseconds(1) }

    private func chance(_ probability: Double) -> Bool {
        Double.random(in: 0..<1, using: &host.simulation.random) < probability
    }

    private struct StoreIsSilent: Error, CustomStringConvertible {
        let description = "The fleet's store did not answer in time."
    }
}

/// The connection of a node to the store.
private struct SimulatedFleetEngine: FleetEngine {
    let store: SimulatedFleetStore
    let process: WorldProcess

    private func ask<Answer>(_ operation: (MemoryFleetEngine) async throws -> Answer) async throws -> Answer {
        try await store.ask(process, operation)
    }

    private func tell(_ operation: (MemoryFleetEngine) async throws -> Void) async { try? await ask(operation) }

    var isShared: Bool { true }

    func attach(_ node: FleetNode) { store.attach(node, process) }
    func detach(_ node: String) { store.detach(node) }
    func run(_ node: String) async throws { try await Task.sleep(for: .seconds(1 << 30)) }

    func append(_ message: [UInt8], to group: String, keeping history: GroupHistory) async throws -> GroupPosition {
        try await ask { try await $0.append(message, to: group, keeping: history) }
    }

    func follow(_ group: String, _ node: String) async throws -> GroupPage {
        store.setFollowed(group, node, true)
        return try await ask { try await $0.follow(group, node) }
    }

    func unfollow(_ group: String, _ node: String) async {
        store.setFollowed(group, node, false)
        await tell { await $0.unfollow(group, node) }
    }

    func read(_ group: String, after offset: UInt64) async throws -> GroupPage {
        try await ask { try await $0.read(group, after: offset) }
    }

    func newest(of groups: [String]) async throws -> [GroupPosition] {
        try await ask { try await $0.newest(of: groups) }
    }

    func renewLease(of node: String, for duration: Duration) async throws {
        try await ask { try await $0.renewLease(of: node, for: duration) }
    }

    func endLease(of node: String) async { await tell { await $0.endLease(of: node) } }

    func liveNodes(among nodes: [String]) async throws -> Set<String> {
        try await ask { try await $0.liveNodes(among: nodes) }
    }

    func claim(_ sessions: [FleetSession], for node: String, lifetime: Duration) async throws {
        try await ask { try await $0.claim(sessions, for: node, lifetime: lifetime) }
    }

    func park(_ state: [UInt8], of session: FleetSession, by node: String, lifetime: Duration) async throws {
        try await ask { try await $0.park(state, of: session, by: node, lifetime: lifetime) }
    }

    func take(_ session: FleetSession, for node: String) async throws -> FleetTake {
        try await ask { try await $0.take(session, for: node) }
    }

    func confirm(
        _ session: FleetSession,
        by node: String,
        lifetime: Duration
    ) async throws -> FleetConfirmation {
        try await ask { try await $0.confirm(session, by: node, lifetime: lifetime) }
    }

    func forget(_ session: FleetSession, by node: String) async throws {
        try await ask { try await $0.forget(session, by: node) }
    }

    func tell(_ message: [UInt8], to node: String) async throws -> Bool {
        try await ask { try await $0.tell(message, to: node) }
    }

    func updatePresence(
        _ change: PresenceChange,
        of group: String,
        keepingFor lifetime: Duration
    ) async throws -> UInt64 {
        try await ask { try await $0.updatePresence(change, of: group, keepingFor: lifetime) }
    }

    func watchPresence(of group: String, _ node: String) async throws {
        store.setWatched(group, node, true)
        try await ask { try await $0.watchPresence(of: group, node) }
    }

    func unwatchPresence(of group: String, _ node: String) async {
        store.setWatched(group, node, false)
        await tell { await $0.unwatchPresence(of: group, node) }
    }

    func presenceVersions(
        of groups: [String],
        keeping node: String,
        for lifetime: Duration
    ) async throws -> [[String: UInt64]] {
        try await ask { try await $0.presenceVersions(of: groups, keeping: node, for: lifetime) }
    }

    func presence(of group: String, at node: String) async throws -> PresencePage {
        try await ask { try await $0.presence(of: group, at: node) }
    }
}
