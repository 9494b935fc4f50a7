import LifelineTesting
import Testing

/// What hosts, links and kernels do, as far as programs can tell.
@Suite final class SimulatedNetworkTests {
    let simulation = Simulation(seed: 1)
    let network: SimulatedNetwork
    let server: SimulatedServer

    init() {
        network = SimulatedNetwork(simulation: simulation)
        server = SimulatedServer(on: network.addHost("server"))
    }

    deinit {
        simulation.cancelAllEvents()
    }

    private func makeClient(_ change: (inout SimulatedClient.Configuration) -> Void = { _ in }) -> SimulatedClient {
        var configuration = SimulatedClient.Configuration()
        change(&configuration)
        let client = SimulatedClient(on: network.addHost("client"), connectingTo: server, configuration: configuration)
        client.start()
        return client
    }

    // MARK: Links

    @Test func aReportThatComesLateDoesNotHideTheLinksReturn() {
        let client = makeClient()
        simulation.run(for: .seconds(1))
        client.host.statusDelay = .seconds(10)
        client.host.setLink(up: false)
        client.host.statusDelay = .zero
        client.host.setLink(up: true)
        simulation.run(for: .seconds(60))
        #expect(client.state == .ready)
    }

    @Test func reportsWhileTheMachineSleepsTellHowThingsStand() {
        let client = makeClient()
        simulation.run(for: .seconds(1))
        client.host.setLink(up: false)
        simulation.run(for: .milliseconds(50))
        client.host.sleep(for: .seconds(5))
        simulation.run(for: .milliseconds(4_920))
        // Reported as soon as it wakes up, at the same time as what came before.
        client.host.setLink(up: true)
        simulation.run(for: .seconds(20))
        #expect(client.state == .ready)
        #expect(client.transitions.map(\.to) == [.connecting, .ready])
    }

    @Test func aFlapThatIsShorterThanTheDelayIsNotReported() {
        let client = makeClient()
        simulation.run(for: .seconds(1))
        client.host.setLink(up: false)
        simulation.run(for: .milliseconds(50))
        client.host.setLink(up: true)
        simulation.run(for: .seconds(10))
        #expect(client.transitions.map(\.to) == [.connecting, .ready])
    }

    // MARK: Kernels

    /// After 1, 2 and 4 s: so what comes up after 2.5 s is found after 3 s.
    @Test func aHandshakeIsTriedAgainAsLinuxDoes() {
        server.behavior = .unreachable
        let client = makeClient()
        simulation.run(for: .milliseconds(2_500))
        server.behavior = .accepting
        simulation.run(for: .milliseconds(450))
        #expect(client.state == .connecting)
        simulation.run(for: .milliseconds(150))
        #expect(client.state == .ready)
    }

    /// Six times, the last of them after 63 s, and then 64 s more.
    @Test func aKernelGivesAHandshakeUp() {
        server.behavior = .unreachable
        let client = makeClient { $0.connectTimeout = .seconds(1_000) }
        simulation.run(for: .seconds(126))
        #expect(client.state == .connecting)
        simulation.run(for: .seconds(2))
        #expect(client.state == .backingOff)
        #expect(client.transitions.last?.reason.code == .connectFailed)
    }

    /// 200 ms, 400 ms and so on, up to 120 s, fifteen times: 15 minutes, whatever else was lost meanwhile.
    @Test(arguments: [false, true]) func aKernelGivesUpAfterFifteenRetransmissions(losesAcknowledgement: Bool) {
        let client = makeClient { $0.heartbeat = nil }
        simulation.run(for: .seconds(1))
        client.send([1])
        // It arrives after 20 ms.
        simulation.run(for: .milliseconds(losesAcknowledgement ? 30 : 0))
        client.host.conditions.losesEverything = true
        client.send([2])
        #expect(client.state == .ready)
        simulation.run(for: .seconds(800))
        #expect(client.state == .ready)
        simulation.run(for: .seconds(200))
        #expect(client.transitions.first { $0.from == .ready }?.reason.code == .connectionFailed)
        #expect(server.receivedMessages.count == (losesAcknowledgement ? 1 : 0))
    }

    /// A window that is closed is asked about; who does not answer is gone.
    @Test func aClosedWindowDoesNotHideThatThePeerIsGone() {
        let client = makeClient { $0.heartbeat = nil }
        server.behavior.reads = false
        simulation.run(for: .seconds(1))
        client.send([UInt8](repeating: 1, count: 200_000))
        simulation.run(for: .seconds(1_800))
        // As long as it answers, it may take its time.
        #expect(client.state == .ready)
        server.host.conditions.losesEverything = true
        simulation.run(for: .seconds(2_500))
        #expect(client.transitions.first { $0.from == .ready }?.reason.code == .connectionFailed)
    }

    @Test func newsOfRoomIsLostAsAnythingElse() {
        let client = makeClient { $0.heartbeat = nil }
        server.behavior.reads = false
        simulation.run(for: .seconds(1))
        // A little more than a kernel keeps.
        client.send([UInt8](repeating: 1, count: 70_000))
        simulation.run(for: .seconds(10))
        client.host.conditions.losesEverything = true
        server.behavior.reads = true
        simulation.run(for: .milliseconds(30))
        client.host.conditions.losesEverything = false
        simulation.run(for: .milliseconds(200))
        #expect(server.receivedMessages.isEmpty)
        // When the sender asks the next time.
        simulation.run(for: .seconds(30))
        #expect(server.receivedMessages.count == 1)
    }

    // MARK: Servers

    @Test func aServerThatEndsAfterSoManyMessagesDoesSoThoughTheyHaveComeBefore() {
        let client = makeClient()
        simulation.run(for: .seconds(1))
        for number in 0..<5 as Range<UInt8> { client.send([number]) }
        simulation.run(for: .seconds(1))
        server.behavior.endsAfterMessages = 3
        client.send([9])
        simulation.run(for: .seconds(1))
        #expect(client.transitions.first { $0.from == .ready }?.reason.code == .closedByPeer)
    }

    @Test func whatIsTooLongIsNotBroadcast() {
        let error = #expect(throws: FramingError.self) {
            try server.broadcast([UInt8](repeating: 0, count: 4 << 20))
        }
        #expect(error?.code == .payloadTooLarge)
    }
}
