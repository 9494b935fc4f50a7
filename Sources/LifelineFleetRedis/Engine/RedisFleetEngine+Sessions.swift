public import LifelineFleet
internal import NIOCore

// Sessions, and messages between nodes.
extension RedisFleetEngine {
    /// Always true.
    public var isShared: Bool { true }

    public func claim(_ sessions: [FleetSession], for node: String, lifetime: Duration) async throws {
        let byID = Dictionary(sessions.map { ($0.id, $0) }) { $1 }
        _ = try await each(of: Array(byID.keys)) { id in
            guard let session = byID[id] else { return }
            _ = try await self.run({ $0.claim }, session, node, lifetime)
        }
    }

    public func park(
        _ state: [UInt8],
        of session: FleetSession,
        by node: String,
        lifetime: Duration
    ) async throws {
        _ = try await run({ $0.park }, session, node, lifetime, [.bytes(ByteBuffer(bytes: state))])
    }

    public func take(_ session: FleetSession, for node: String) async throws -> FleetTake {
        let reply = try await run({ $0.take }, session, node, .zero).elements ?? []
        switch (reply.first?.text, reply.last) {
        case ("unknown"?, _): return .unknown
        case ("stale"?, _): return .stale
        case ("owned"?, let owner?): if let node = owner.text { return .owned(by: node) }
        case ("state"?, .bytes(let state)?): return .state([UInt8](state.readableBytesView))
        default: break
        }
        throw RedisError.badReply
    }

    public func confirm(
        _ session: FleetSession,
        by node: String,
        lifetime: Duration
    ) async throws -> FleetConfirmation {
        switch try await run({ $0.confirm }, session, node, lifetime) {
        case .integer(1): return .confirmed
        case .integer(0): return .stale
        case .integer(-1): return .unknown
        default: throw RedisError.badReply
        }
    }

    public func forget(_ session: FleetSession, by node: String) async throws {
        _ = try await run({ $0.forget }, session, node, .zero)
    }

    private func run(
        _ script: (SessionScripts) -> RedisScript,
        _ session: FleetSession,
        _ node: String,
        _ lifetime: Duration,
        _ rest: [RedisArgument] = []
    ) async throws -> RedisValue {
        try await run({ script($0.sessions) }, [names.session(session.id)]) {
            [
                .text(node), .text(session.attempt.twentyDigits), .bytes(ByteBuffer(bytes: session.proof)),
                .number(max(lifetime.milliseconds, 1)),
            ] + rest
        }
    }

    public func tell(_ message: [UInt8], to node: String) async throws -> Bool {
        let channel = RedisArgument.text(names.channel(ofNode: node))
        let reply = try await client.send(RedisCommand("PUBLISH", channel, .bytes(ByteBuffer(bytes: message))))
        guard case .integer(let listenerCount) = reply else { throw RedisError.badReply }
        return listenerCount > 0
    }
}

extension UInt64 {
    /// The number with 20 digits, so that texts have the order of numbers.
    fileprivate var twentyDigits: String {
        let digits = String(self)
        return String(repeating: "0", count: 20 - digits.count) + digits
    }
}
