import Lifeline
import LifelineFleet
import LifelineFleetRedis
import LifelineProtos
import Logging
import SampleServices
import ServiceLifecycle
import UnixSignals

// The code of the README and docs/groups.md for fleets on Redis. It is only compiled, because the host does not exist.

private func readme(_ context: SessionContext, _ item: Sample_Room_V1_NewsItem) async throws {
    // snippet.fleet
    let fleet = Fleet(engine: try RedisFleetEngine(RedisConfiguration(url: "redis://:password@cache.example.org")))

    // In a handler, or wherever the server has news:
    try await fleet.join("rooms/7", context.session)
    try await fleet.push(Sample_Room_V1_RoomPushes.news, item, to: "rooms/7")
    // snippet.end
}

private func severalServers(_ endpoint: Endpoint, _ room: any SessionService, _ logger: Logger) async throws {
    // snippet.several-servers
    let engine = try RedisFleetEngine(RedisConfiguration(url: "redis://:password@cache.example.org"))
    let fleet = Fleet(engine: engine)
    let server = try SessionServer(listeningOn: endpoint, services: [room, fleet])
    let group = ServiceGroup(services: [fleet, server], gracefulShutdownSignals: [.sigterm], logger: logger)
    try await group.run()
    // snippet.end
}
