internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import LifelineFleet
internal import LifelineFleetRedis
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals

/// One of the servers of a chat. Those with one Redis have the same rooms.
@main struct ChatFleetServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ChatFleetServer",
        abstract: "Chat rooms for browsers, on one server or on several that share a Redis.",
        discussion: """
            The service is example.chat.v1.Chat, over sessions on WebSocket. Without --redis the rooms are in the memory \
            of this server. Runs until it is interrupted.

            Example:
              ChatFleetServer --on ws://127.0.0.1:8081/chat --redis redis://127.0.0.1:6379
              ChatFleetServer --on ws://127.0.0.1:8082/chat --redis redis://127.0.0.1:6379
            """
    )

    @Option(help: ArgumentHelp("Where browsers connect: ws://. Port 0 takes a free one.", valueName: "url"))
    var on = "ws://127.0.0.1:8081/chat"

    @Option(help: ArgumentHelp("The Redis that the servers share.", valueName: "url"))
    var redis: String?

    /// Any page in a browser may open a WebSocket to any server, even to one on the user's own machine.
    @Option(help: "An origin whose page may connect; may be given several times.")
    var origin = ["http://127.0.0.1:8000", "http://localhost:8000"]

    func run() async throws {
        let fleet = Fleet(engine: try engine, configuration: fleetConfiguration)
        let server = try SessionServer(
            listeningOn: Endpoint(on),
            configuration: serverConfiguration,
            services: [ChatRooms(fleet: fleet), fleet]
        )
        let group = ServiceGroup(
            services: [fleet, server],
            gracefulShutdownSignals: [.sigint, .sigterm],
            logger: Logger(label: "chat-fleet")
        )
        try await withThrowingTaskGroup { tasks in
            tasks.addTask { try await group.run() }
            tasks.addTask {
                try await print("listening on \(server.boundEndpoints[0])")
                // Unbuffered.
                fflush(nil)
            }
            try await tasks.waitForAll()
        }
    }

    private var engine: any FleetEngine {
        get throws {
            guard let redis else { return MemoryFleetEngine() }
            return try RedisFleetEngine(RedisConfiguration(url: redis), prefix: "chat")
        }
    }

    private var fleetConfiguration: FleetConfiguration {
        var configuration = FleetConfiguration()
        configuration.mayJoin = { group, _ in try ChatRooms.check(group: group) }
        // A page has one room, and may change it.
        configuration.maximumGroupCountPerSession = 4
        // Members that join late, or were away, get these messages.
        configuration.history.maximumCount = 500
        configuration.history.maximumAge = .seconds(86_400)
        return configuration
    }

    private var serverConfiguration: SessionServerConfiguration {
        var configuration = SessionServerConfiguration()
        configuration.server.webSocket.origins = .only(Set(origin))
        // A room needs no longer grace period.
        configuration.server.shutdownGracePeriod = .seconds(2)
        configuration.drainSpread = .seconds(1)
        return configuration
    }
}
