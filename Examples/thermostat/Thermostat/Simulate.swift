internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import LifelineOlderFramings

/// Stands for the device. It serves any number of connections, answers heartbeats, and forgets its target when it is
/// killed, as a device does that is switched off.
struct Simulate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Simulates the thermostat, until it is killed.")

    @Option(help: ArgumentHelp("Where to listen. Port 0 takes a free one.", valueName: "url"))
    var on = "tcp://127.0.0.1:7000"

    func run() async throws {
        let room = Room()
        var configuration = ServerConfiguration()
        // A small device has no room for more, and closes connections on which it hears no heartbeat.
        configuration.connection.maximumFrameLength = 64
        configuration.connection.idleTimeout = .seconds(60)
        try await withServer(
            listeningOn: Endpoint(on),
            configuration: configuration,
            receiving: FixedHeaderRequest.self,
            sending: FixedHeaderResponse.self,
            heartbeat: .fixedHeader
        ) { connection in
            for try await request in connection.messages where !request.isNotification {
                for response in try await room.responses(to: request) { try await connection.send(response) }
            }
        } _: { server in
            try await print("listening on \(server.boundEndpoint)")
            // Not held back until the buffer is full.
            fflush(nil)
            try await server.waitUntilShutDown()
        }
    }
}

/// The room that is heated. It is half a degree warmer, or colder, each time that its temperature is read.
actor Room {
    private static let step: Int32 = 50
    private static let targets: ClosedRange<Int32> = 500...3000

    private var temperature = Temperature(hundredths: 1800)
    private var target: Temperature?

    /// Returns the answer, and the push that is due with it.
    func responses(to request: FixedHeaderRequest) throws -> [FixedHeaderResponse] {
        switch request.url {
        case Manual.temperature:
            let reachesTarget = approachTarget()
            let status = target == nil ? Manual.Status.noTarget : Manual.Status.ok
            let answer = request.response(status: status, content: temperature.content)
            return try [answer] + (reachesTarget ? [.push(Manual.targetReached, content: temperature.content)] : [])
        case Manual.setTarget:
            guard let wanted = Temperature(request.content), Room.targets.contains(wanted.hundredths) else {
                return [request.response(status: Manual.Status.outOfRange)]
            }
            target = wanted
            return [request.response(status: Manual.Status.ok)]
        default:
            return [request.response(status: Manual.Status.unknownRequest)]
        }
    }

    /// Returns whether the target is reached with this step.
    private func approachTarget() -> Bool {
        guard let target, temperature != target else { return false }
        let missing = target.hundredths - temperature.hundredths
        temperature.hundredths += min(max(missing, -Room.step), Room.step)
        return temperature == target
    }
}
