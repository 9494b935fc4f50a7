import LifelineTesting
import Testing

/// What a client does about each kind of trouble that the network and its peers can make.
@Suite final class SimulatedClientTests: ConnectedPair {
    private var lastReason: TransitionReason.Code? { client.transitions.last?.reason.code }

    @Test func messagesArriveBothWays() throws {
        #expect(client.state == .ready)
        client.send([1, 2])
        client.send([3])
        try server.broadcast([4])
        simulation.run(for: .seconds(1))
        #expect(server.receivedMessages.map(\.payload) == [[1, 2], [3]])
        #expect(client.receivedMessages == [[4]])
        #expect(client.sendOutcomes == [.accepted, .accepted])
    }

    /// 30 s of silence, and 10 s for the answer to each of three pings.
    @Test func aBlackHoleIsNoticedWithinAMinute() {
        client.host.conditions.losesEverything = true
        client.send([1])
        simulation.run(for: .seconds(58))
        #expect(client.state == .ready)
        simulation.run(for: .milliseconds(1_500))
        #expect(lastReason == .heartbeatTimeout)
        #expect(client.connectionReports.map(\.undeliveredMessageCount) == [1])
        #expect(server.receivedMessages.isEmpty)
    }

    @Test func theNetworksReturnIsUsedAtOnce() {
        client.host.setLink(up: false)
        simulation.run(for: .seconds(600))
        #expect(client.state == .waitingForNetwork)
        client.host.setLink(up: true)
        // Until it is known, and a round trip.
        simulation.run(for: .milliseconds(100 + 40))
        #expect(client.state == .ready)
        #expect(client.transitions.map(\.to) == [.connecting, .ready, .waitingForNetwork, .connecting, .ready])
    }

    @Test func aRejectedCertificateIsNotTriedAgain() {
        server.behavior = .rejectingTLS
        client.reconnect()
        simulation.run(for: .seconds(600))
        #expect(client.state == .gaveUp)
        #expect(lastReason == .tlsRejected)
    }

    @Test func whoAcceptsAndDropsIsNotHammered() {
        server.behavior = .dropping
        server.resetConnections()
        simulation.run(for: .seconds(600))
        #expect(client.state == .gaveUp)
        // Four attempts; the one that stood before was too short to count as stable, so that it is one of them.
        #expect(server.connectionCount == 4)
    }

    @Test func aPeerThatDoesNotReadMakesSendsWait() {
        server.behavior.reads = false
        for _ in 0..<50 { client.send([UInt8](repeating: 0, count: 10_000)) }
        simulation.run(for: .seconds(5))
        #expect(client.waitingSendCount > 0)
        #expect(client.state == .ready)
        server.behavior.reads = true
        simulation.run(for: .seconds(5))
        #expect(client.waitingSendCount == 0)
        #expect(server.receivedMessages.map(\.number) == Array(1...50))
    }

    @Test func aMachineThatSleepsAsksBeforeItGivesTheConnectionUp() {
        client.host.sleep(for: .seconds(3_600))
        simulation.run(for: .seconds(3_601))
        // The server has given it up meanwhile, and says so when it is asked.
        #expect(client.transitions.map(\.reason.code) == [.started, .connected, .closedByPeer, .connected])
        #expect(server.connectionCount == 2)
    }

    /// Three pings, each of which may take 10 s: as soon as it is awake.
    @Test func aPeerThatWentWhileTheMachineSleptIsNoticedFromThen() {
        server.host.conditions.losesEverything = true
        client.host.sleep(for: .seconds(3_600))
        simulation.run(for: .seconds(3_629))
        #expect(client.state == .ready)
        simulation.run(for: .seconds(2))
        #expect(client.transitions.first { $0.from == .ready }?.reason.code == .heartbeatTimeout)
    }

    @Test func whoDoesNotReadHoldsNothingAgainstThePeer() {
        client.reads = false
        server.host.conditions.losesEverything = true
        simulation.run(for: .seconds(600))
        #expect(client.state == .ready)
        client.reads = true
        simulation.run(for: .seconds(59))
        #expect(client.state == .ready)
        simulation.run(for: .seconds(2))
        #expect(client.transitions.first { $0.from == .ready }?.reason.code == .heartbeatTimeout)
    }

    /// What the peer does, and why it is given up: it takes no bytes, says nothing, or does not answer.
    @Test(arguments: [ConnectionError.Code.writeTimeout, .idleTimeout, .tooManyUnansweredBytes])
    func timeOutsAreThoseOfTheConfiguration(code: ConnectionError.Code) {
        var configuration = SimulatedClient.Configuration()
        configuration.heartbeat?.interval = .seconds(70)
        switch code {
        case .writeTimeout: configuration.writeTimeout = .seconds(20)
        case .idleTimeout: configuration.idleTimeout = .seconds(20)
        default: configuration.unansweredByteLimit = 200_000
        }
        let network = SimulatedNetwork(simulation: simulation)
        let client = SimulatedClient(on: network.addHost("other"), connectingTo: server, configuration: configuration)
        client.start()
        simulation.run(for: .seconds(1))
        server.behavior.reads = false
        client.send([UInt8](repeating: 1, count: 300_000))
        simulation.run(for: .seconds(9))
        #expect(client.state == .ready)
        simulation.run(for: .seconds(20))
        let ended = client.transitions.first { $0.from == .ready }
        #expect(ended?.reason.error?.code == code)
    }

    @Test func aGracefulCloseLosesNothing() {
        for _ in 0..<20 { client.send([UInt8](repeating: 5, count: 5_000)) }
        client.close()
        simulation.run(for: .seconds(5))
        #expect(client.state == .closed)
        #expect(lastReason == .drained)
        #expect(server.receivedMessages.count == 20)
        #expect(client.connectionReports.map(\.undeliveredMessageCount) == [0])
        client.send([6])
        #expect(client.sendOutcomes.last == .failed(.closedLocally))
    }
}
