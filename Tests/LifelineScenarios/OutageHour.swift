internal import LifelineCore
internal import LifelineTesting

/// An hour in which something fails every 20 seconds and is mended again.
package struct OutageHour {
    package private(set) var outageCount = 0
    package private(set) var transitionCount = 0
    package private(set) var deliveredCount = 0
    package private(set) var sentCount = 0

    /// Whether every outage was noticed and put right, and messages arrived in between: else nothing was measured.
    package var isPlausible: Bool {
        transitionCount >= outageCount * 2 && deliveredCount > sentCount / 2 && deliveredCount <= sentCount
    }

    package static func run(seed: UInt64) -> OutageHour {
        var hour = OutageHour()
        let simulation = Simulation(seed: seed)
        let network = SimulatedNetwork(simulation: simulation)
        let server = SimulatedServer(on: network.addHost("server"))
        var configuration = SimulatedClient.Configuration()
        configuration.backoff.maximumAttempts = nil
        let client = SimulatedClient(
            on: network.addHost("client"),
            connectingTo: server,
            configuration: configuration
        )
        client.start()
        for round in 0..<180 {
            hour.outageCount += 1
            switch round % 6 {
            case 0: client.host.setLink(up: false)
            case 1: server.kill()
            case 2: server.resetConnections()
            case 3: server.behavior = .refusing
            case 4: server.behavior = .stalling
            default: client.host.conditions.losesEverything = true
            }
            client.send([1, 2, 3])
            simulation.run(for: .seconds(5))
            client.host.setLink(up: true)
            client.host.conditions.losesEverything = false
            server.behavior = .accepting
            if !server.isRunning { server.restart() }
            for _ in 0..<15 {
                client.send([4, 5, 6])
                simulation.run(for: .seconds(1))
            }
        }
        simulation.cancelAllEvents()
        hour.transitionCount = client.transitions.count
        hour.sentCount = client.sendOutcomes.count
        hour.deliveredCount = server.receivedMessages.count
        return hour
    }
}
