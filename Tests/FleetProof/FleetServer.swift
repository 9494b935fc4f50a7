import ArgumentParser
import FaultSupport
import FleetProofSupport
import Lifeline
import LifelineFleet
import LifelineFleetRedis
import LifelineProtos
import LifelineRuntime
import Logging
import ServiceLifecycle
import UnixSignals

/// One server of the fleet. It records the messages that it processes and sends. SIGTERM drains it, as does the end of
/// its input.
///
/// Commands: `begin` and `stop` sending; `members` reports how many of its sessions are in the automatic group.
struct FleetServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "server", shouldDisplay: false)

    @Option(help: "The name of this process, different for each run of a server.") var name: String
    @Option(help: "The endpoint to listen on.") var on: String
    @Option(help: "The URL of Redis.") var redis: String
    @Option(help: "The file for the record.") var record: String
    @Option(help: "The interval of each sender's messages, in milliseconds.") var every: Int
    @Option(help: "The most sessions that may begin in a second.") var openingRate: Int?
    @Option(help: "The milliseconds over which clients are sent away at a shutdown.") var spread: Int
    @Flag(help: "Send from the beginning.") var begin = false
    @Option(help: "The error that it makes when it records one message.") var plant: Spoil?

    func run() async throws {
        let record = try LineRecord(at: record)
        let speaker = FleetSpeaker(name, every: .milliseconds(every), into: record)
        if begin { speaker.begin() }
        var groups = FleetConfiguration()
        groups.automaticGroups = { _ in [FleetGroups.automatic] }
        groups.mayJoin = { _, _ in }
        let fleet = Fleet(
            engine: try RedisFleetEngine(RedisConfiguration(url: redis), logger: .quiet),
            configuration: groups,
            logger: .quiet
        )
        let server = try SessionServer(
            listeningOn: try Endpoint(on),
            configuration: configuration(speaker, record),
            services: [fleet, ClientMessages(record: record, spoil: plant)],
            logger: .quiet
        )
        // The group shuts them down in reverse order.
        let group = ServiceGroup(
            services: [fleet, server, GroupSpeaker(speaker: speaker, fleet: fleet)],
            gracefulShutdownSignals: [.sigterm],
            logger: .quiet
        )
        Task {
            try await FaultEvent.listening(on: server.boundEndpoints[0].description).print()
            try await obey(speaker, fleet)
            await group.triggerGracefulShutdown()
        }
        try await group.run()
    }

    private func configuration(_ speaker: FleetSpeaker, _ record: LineRecord) -> SessionServerConfiguration {
        var configuration = SessionServerConfiguration()
        configuration.drainSpread = .milliseconds(spread)
        configuration.maximumOpeningRate = openingRate
        // All clients may connect to one server.
        configuration.maximumSessionCount = 20_000
        configuration.server.maximumConnections = 20_000
        configuration.server.shutdownGracePeriod = .seconds(5)
        configuration.whenOpened = { session, isResumed in
            speaker.speak(to: session)
            if !isResumed { record.write(.opened(server: name, time: MonotonicTime.now().nanoseconds)) }
        }
        configuration.whenEnded = { speaker.forget($0) }
        return configuration
    }

    private func obey(_ speaker: FleetSpeaker, _ fleet: Fleet) async throws {
        while let command = try await CommandLines.next() {
            var done = FaultEvent(.done)
            switch command {
            case ["begin"]: speaker.begin()
            case ["stop"]: speaker.stop()
            case ["members"]: done.count = fleet.memberCount(of: FleetGroups.automatic)
            default: throw FaultFailure("The server knows no command like \(command).")
            }
            done.print()
        }
    }
}

/// Records the messages of clients.
private struct ClientMessages: SessionService {
    let record: LineRecord
    let spoil: Spoil?

    var methods: [SessionMethod] {
        [
            .push(ClientMethod.note.name) { (message: FleetMessage, _) in processed(message, .note) },
            .unary(ClientMethod.ask.name) { (message: FleetMessage, _) in
                processed(message, .ask)
                return message
            },
        ]
    }

    private func processed(_ message: FleetMessage, _ method: ClientMethod) {
        guard let client = Int(message.from) else { return }
        var numbers = [message.number]
        if let spoil, client == 0, method == .note { numbers = spoil.numbers(for: message.number, spoiling: 5) }
        for number in numbers {
            let now = MonotonicTime.now().nanoseconds
            record.write(.processed(method, client: client, number: number, time: now))
        }
    }
}

extension LineRecord {
    /// Writes an entry. Ends the program if it cannot, because a proof without records proves nothing.
    func write(_ entry: ServerEntry) {
        do { try add(entry.line) } catch { fatalError("\(error)") }
    }
}
