internal import LifelineFleet

extension RedisFleetEngine {
    /// How long a shutdown waits for an unreachable Redis.
    private static let endTimeout = Duration.seconds(1)

    public func renewLease(of node: String, for duration: Duration) async throws {
        let milliseconds = RedisArgument.number(max(duration.milliseconds, 1))
        let command = RedisCommand("SET", names.lease(of: node), "1", "PX", milliseconds)
        // This usually leaves time for another attempt.
        _ = try await client.send(command, timeout: max(duration / 3, .seconds(1)))
    }

    public func endLease(of node: String) async {
        // In another task, because the one that ends the lease is cancelled.
        let command = RedisCommand("DEL", names.lease(of: node))
        await Task { [client] in _ = try? await client.send(command, timeout: Self.endTimeout) }.value
    }

    public func liveNodes(among nodes: [String]) async throws -> Set<String> {
        let isLive = try await each(of: nodes) { node in
            try await self.client.send(RedisCommand("EXISTS", self.names.lease(of: node))) == .integer(1)
        }
        return Set(zip(nodes, isLive).filter(\.1).map(\.0))
    }
}
