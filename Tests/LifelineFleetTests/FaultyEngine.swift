import Lifeline
import LifelineFleet
import NIOConcurrencyHelpers

/// An engine that fails or waits at the steps that a test chooses.
final class FaultyEngine: FleetEngine {
    enum Step: Sendable, Hashable { case claim, park, take, confirm }

    private let base: MemoryFleetEngine
    /// Called before a step, or after it if only the answer is lost.
    private let before: @Sendable (Step) async throws -> Void
    private let after: @Sendable (Step) async throws -> Void

    init(
        _ base: MemoryFleetEngine = MemoryFleetEngine(),
        before: @escaping @Sendable (Step) async throws -> Void = { _ in },
        after: @escaping @Sendable (Step) async throws -> Void = { _ in }
    ) {
        (self.base, self.before, self.after) = (base, before, after)
    }

    private func perform<Result>(_ step: Step, _ body: () async throws -> Result) async throws -> Result {
        try await before(step)
        let result = try await body()
        try await after(step)
        return result
    }

    func claim(_ sessions: [FleetSession], for node: String, lifetime: Duration) async throws {
        try await perform(.claim) { try await base.claim(sessions, for: node, lifetime: lifetime) }
    }

    func park(_ state: [UInt8], of session: FleetSession, by node: String, lifetime: Duration) async throws {
        try await perform(.park) { try await base.park(state, of: session, by: node, lifetime: lifetime) }
    }

    func take(_ session: FleetSession, for node: String) async throws -> FleetTake {
        try await perform(.take) { try await base.take(session, for: node) }
    }

    func confirm(
        _ session: FleetSession,
        by node: String,
        lifetime: Duration
    ) async throws -> FleetConfirmation {
        try await perform(.confirm) { try await base.confirm(session, by: node, lifetime: lifetime) }
    }

    // MARK: As they are

    var isShared: Bool { base.isShared }
    func attach(_ node: FleetNode) { base.attach(node) }
    func detach(_ node: String) { base.detach(node) }
    func run(_ node: String) async throws { try await base.run(node) }

    func append(_ message: [UInt8], to group: String, keeping history: GroupHistory) async throws -> GroupPosition {
        try await base.append(message, to: group, keeping: history)
    }

    func follow(_ group: String, _ node: String) async throws -> GroupPage { try await base.follow(group, node) }
    func unfollow(_ group: String, _ node: String) async { await base.unfollow(group, node) }

    func read(_ group: String, after offset: UInt64) async throws -> GroupPage {
        try await base.read(group, after: offset)
    }

    func newest(of groups: [String]) async throws -> [GroupPosition] { try await base.newest(of: groups) }

    func renewLease(of node: String, for duration: Duration) async throws {
        try await base.renewLease(of: node, for: duration)
    }

    func endLease(of node: String) async { await base.endLease(of: node) }

    func liveNodes(among nodes: [String]) async throws -> Set<String> { try await base.liveNodes(among: nodes) }

    func forget(_ session: FleetSession, by node: String) async throws { try await base.forget(session, by: node) }

    func tell(_ message: [UInt8], to node: String) async throws -> Bool { try await base.tell(message, to: node) }

    func updatePresence(
        _ change: PresenceChange,
        of group: String,
        keepingFor lifetime: Duration
    ) async throws -> UInt64 {
        try await base.updatePresence(change, of: group, keepingFor: lifetime)
    }

    func watchPresence(of group: String, _ node: String) async throws {
        try await base.watchPresence(of: group, node)
    }

    func unwatchPresence(of group: String, _ node: String) async { await base.unwatchPresence(of: group, node) }

    func presenceVersions(
        of groups: [String],
        keeping node: String,
        for lifetime: Duration
    ) async throws -> [[String: UInt64]] {
        try await base.presenceVersions(of: groups, keeping: node, for: lifetime)
    }

    func presence(of group: String, at node: String) async throws -> PresencePage {
        try await base.presence(of: group, at: node)
    }
}
