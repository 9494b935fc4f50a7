internal import Lifeline
internal import LifelineCore
internal import LifelineTesting
internal import NIOConcurrencyHelpers

/// An hour with an outage every 20 seconds.
package struct OutageHour: Sendable {
    package private(set) var outageCount = 0
    package private(set) var transitionCount = 0
    package private(set) var deliveredCount = 0
    package private(set) var sentCount = 0

    /// Whether the client recovered from every outage, and messages arrived in between. If not, nothing was measured.
    package var isPlausible: Bool {
        transitionCount >= outageCount * 2 && deliveredCount > sentCount / 2 && deliveredCount <= sentCount
    }

    /// - Throws: the failure of the story.
    package static func run(seed: UInt64) async throws -> OutageHour {
        let hour = NIOLockedValueBox(OutageHour())
        var limits = SimulationLimits()
        limits.time = .seconds(2 * 3_600)
        let runner = StoryRunner(limits: limits) { world in
            let played = try await play(in: world)
            hour.withLockedValue { $0 = played }
        }
        if let failure = await runner.play(seed, nil, isTracing: false).failure { throw failure }
        return hour.withLockedValue { $0 }
    }

    private static func play(in world: World) async throws -> OutageHour {
        var hour = OutageHour()
        let server = SimulatedServer(on: world.host("server").machine)
        world.host("server").run(server)
        var configuration = ClientUser.Configuration()
        configuration.client.backoff.maximumAttempts = nil
        let user = try await ClientUser.make(
            on: world.host("client"),
            in: world,
            connectingTo: "server",
            configuration: configuration
        )
        let machine = user.host.machine
        user.start()
        for round in 0..<180 {
            hour.outageCount += 1
            switch round % 6 {
            case 0: machine.setLink(up: false)
            case 1: server.kill()
            case 2: server.resetConnections()
            case 3: server.behavior = .refusing
            case 4: server.behavior = .stalling
            default: machine.conditions.losesEverything = true
            }
            user.send([1, 2, 3])
            try await Task.sleep(for: .seconds(5))
            machine.setLink(up: true)
            machine.conditions.losesEverything = false
            server.behavior = .accepting
            if !server.isRunning { server.restart() }
            for _ in 0..<15 {
                user.send([4, 5, 6])
                try await Task.sleep(for: .seconds(1))
            }
        }
        hour.transitionCount = user.events.count
        hour.sentCount = user.sends.count
        hour.deliveredCount = server.receivedMessages.count
        return hour
    }
}
