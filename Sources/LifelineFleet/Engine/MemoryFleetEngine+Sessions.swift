internal import LifelineCore
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

/// The node of each session, and the states of sessions on their way.
struct MemorySessions: Sendable {
    private struct Record {
        var node: String
        var attempt: UInt64
        let proof: [UInt8]
        /// The parked state; nil when the node has the session.
        var state: [UInt8]?
        var deadline: MonotonicTime
    }

    private var records: [String: Record] = [:]
    /// The number of sessions at which expired ones are searched for.
    private var sweepCount = 1_024

    mutating func claim(_ session: FleetSession, for node: String, until deadline: MonotonicTime, now: MonotonicTime) {
        sweep(now: now)
        guard let record = record(of: session, now: now) else {
            let record = Record(node: node, attempt: session.attempt, proof: session.proof, deadline: deadline)
            return records[session.id] = record
        }
        guard record.node == node, record.state == nil else { return }
        records[session.id]?.attempt = max(record.attempt, session.attempt)
        records[session.id]?.deadline = deadline
    }

    mutating func park(
        _ state: [UInt8],
        of session: FleetSession,
        by node: String,
        until deadline: MonotonicTime,
        now: MonotonicTime
    ) {
        if let record = record(of: session, now: now), record.node != node || record.attempt > session.attempt {
            return
        }
        records[session.id] = Record(
            node: node,
            attempt: session.attempt,
            proof: session.proof,
            state: state,
            deadline: deadline
        )
    }

    mutating func take(_ session: FleetSession, for node: String, now: MonotonicTime) -> FleetTake {
        guard var record = record(of: session, now: now), record.proof == session.proof else { return .unknown }
        let asksAgain = record.node == node && record.attempt == session.attempt
        guard session.attempt > record.attempt || asksAgain else { return .stale }
        guard let state = record.state else { return .owned(by: record.node) }
        (record.node, record.attempt) = (node, session.attempt)
        records[session.id] = record
        return .state(state)
    }

    mutating func confirm(
        _ session: FleetSession,
        by node: String,
        until deadline: MonotonicTime,
        now: MonotonicTime
    ) -> FleetConfirmation {
        guard var record = record(of: session, now: now) else { return .unknown }
        guard record.node == node, record.attempt == session.attempt else { return .stale }
        (record.state, record.deadline) = (nil, deadline)
        records[session.id] = record
        return .confirmed
    }

    mutating func forget(_ session: FleetSession, by node: String) {
        guard let record = records[session.id], record.node == node, record.state == nil else { return }
        records[session.id] = nil
    }

    private func record(of session: FleetSession, now: MonotonicTime) -> Record? {
        records[session.id].flatMap { $0.deadline > now ? $0 : nil }
    }

    private mutating func sweep(now: MonotonicTime) {
        guard records.count > sweepCount else { return }
        records = records.filter { $0.value.deadline > now }
        sweepCount = max(2 * records.count, 1_024)
    }
}

extension MemoryFleetEngine {
    public func claim(_ sessions: [FleetSession], for node: String, lifetime: Duration) async throws {
        let now = clock.now
        self.sessions.withLockedValue { records in
            for session in sessions { records.claim(session, for: node, until: now + lifetime, now: now) }
        }
    }

    public func park(
        _ state: [UInt8],
        of session: FleetSession,
        by node: String,
        lifetime: Duration
    ) async throws {
        let now = clock.now
        sessions.withLockedValue { $0.park(state, of: session, by: node, until: now + lifetime, now: now) }
    }

    public func take(_ session: FleetSession, for node: String) async throws -> FleetTake {
        let now = clock.now
        return sessions.withLockedValue { $0.take(session, for: node, now: now) }
    }

    public func confirm(
        _ session: FleetSession,
        by node: String,
        lifetime: Duration
    ) async throws -> FleetConfirmation {
        let now = clock.now
        return sessions.withLockedValue { $0.confirm(session, by: node, until: now + lifetime, now: now) }
    }

    public func forget(_ session: FleetSession, by node: String) async throws {
        sessions.withLockedValue { $0.forget(session, by: node) }
    }
}
