import Lifeline
import LifelineScenarios
import LifelineTesting
import Testing

/// The behavior of hosts, links and kernels that programs can see.
@Suite struct SimulatedNetworkTests {
    // MARK: Links

    @Test func aLateReportDoesNotHideTheLinksReturn() async throws {
        try await withConnectedPair { pair in
            let client = pair.client
            client.machine.statusDelay = .seconds(10)
            client.machine.setLink(up: false)
            client.machine.statusDelay = .zero
            client.machine.setLink(up: true)
            try await Task.sleep(for: .seconds(60))
            #expect(client.state == .ready)
        }
    }

    @Test func reportsDuringSleepTellTheFinalState() async throws {
        try await withConnectedPair { pair in
            let client = pair.client
            client.machine.setLink(up: false)
            try await Task.sleep(for: .milliseconds(50))
            client.machine.sleep(for: .seconds(5))
            try await Task.sleep(for: .milliseconds(4_920))
            // Reported when the machine wakes, together with the earlier report.
            client.machine.setLink(up: true)
            try await Task.sleep(for: .seconds(20))
            #expect(client.state == .ready)
            #expect(client.transitions.map(\.to) == [.connecting, .ready])
        }
    }

    @Test func aFlapThatIsShorterThanTheDelayIsNotReported() async throws {
        try await withConnectedPair { pair in
            let client = pair.client
            client.machine.setLink(up: false)
            try await Task.sleep(for: .milliseconds(50))
            client.machine.setLink(up: true)
            try await Task.sleep(for: .seconds(10))
            #expect(client.transitions.map(\.to) == [.connecting, .ready])
        }
    }

    // MARK: Kernels

    /// Retries after 1, 2 and 4 s, so a server that appears after 2.5 s is found after 3 s.
    @Test func handshakesAreRetriedAsByLinux() async throws {
        try await withConnectedPair(behavior: .unreachable) { pair in
            let (client, server) = (pair.client, pair.server)
            try await Task.sleep(for: .milliseconds(2_500))
            server.behavior = .accepting
            try await Task.sleep(for: .milliseconds(450))
            #expect(client.state == .connecting)
            try await Task.sleep(for: .milliseconds(150))
            #expect(client.state == .ready)
        }
    }

    /// Six retries, the last after 63 s, and then 64 s more.
    @Test func aKernelGivesUpAHandshake() async throws {
        let configure = { (configuration: inout ClientUser.Configuration) in
            configuration.client.connection.connectTimeout = .seconds(1_000)
        }
        try await withConnectedPair(behavior: .unreachable, configure: configure) { pair in
            let client = pair.client
            try await Task.sleep(for: .seconds(126))
            #expect(client.state == .connecting)
            try await Task.sleep(for: .seconds(2))
            #expect(client.state == .backingOff)
            #expect(client.transitions.last?.reason.code == .connectFailed)
        }
    }

    /// After 200 ms, 400 ms and so on, up to 120 s, fifteen times: 15 minutes, whatever else was lost meanwhile.
    @Test(arguments: [false, true])
    func aKernelGivesUpAfterFifteenRetransmissions(losesAcknowledgement: Bool) async throws {
        try await withConnectedPair(configure: { $0.asks = false }) { pair in
            let (client, server) = (pair.client, pair.server)
            client.send([1])
            // It arrives after 20 ms.
            try await Task.sleep(for: .milliseconds(losesAcknowledgement ? 30 : 0))
            client.machine.conditions.losesEverything = true
            client.send([2])
            #expect(client.state == .ready)
            try await Task.sleep(for: .seconds(800))
            #expect(client.state == .ready)
            try await Task.sleep(for: .seconds(200))
            #expect(client.transitions.first { $0.from == .ready }?.reason.code == .connectionFailed)
            #expect(server.receivedMessages.count == (losesAcknowledgement ? 1 : 0))
        }
    }

    /// The kernel probes a closed window, and takes a peer that does not answer for lost.
    @Test func aClosedWindowDoesNotHideThatThePeerIsGone() async throws {
        try await withConnectedPair(configure: { $0.asks = false }) { pair in
            let (client, server) = (pair.client, pair.server)
            server.behavior.reads = false
            client.send([UInt8](repeating: 1, count: 200_000))
            try await Task.sleep(for: .seconds(1_800))
            // The peer may keep its window closed while it answers probes.
            #expect(client.state == .ready)
            server.host.conditions.losesEverything = true
            try await Task.sleep(for: .seconds(2_500))
            #expect(client.transitions.first { $0.from == .ready }?.reason.code == .connectionFailed)
        }
    }

    @Test func windowUpdatesCanBeLost() async throws {
        try await withConnectedPair(configure: { $0.asks = false }) { pair in
            let (client, server) = (pair.client, pair.server)
            server.behavior.reads = false
            // A little more than a kernel's buffer.
            client.send([UInt8](repeating: 1, count: 70_000))
            try await Task.sleep(for: .seconds(10))
            client.machine.conditions.losesEverything = true
            server.behavior.reads = true
            try await Task.sleep(for: .milliseconds(30))
            client.machine.conditions.losesEverything = false
            try await Task.sleep(for: .milliseconds(200))
            #expect(server.receivedMessages.isEmpty)
            // The sender's next probe finds the window open.
            try await Task.sleep(for: .seconds(30))
            #expect(server.receivedMessages.count == 1)
        }
    }

    // MARK: Servers

    @Test func endsAfterMessagesCountsEarlierMessages() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            for number in 0..<5 as Range<UInt8> { client.send([number]) }
            try await Task.sleep(for: .seconds(1))
            server.behavior.endsAfterMessages = 3
            client.send([9])
            try await Task.sleep(for: .seconds(1))
            #expect(client.transitions.first { $0.from == .ready }?.reason.code == .closedByPeer)
        }
    }

    @Test func aTooLongMessageIsNotBroadcast() async throws {
        try await withConnectedPair { pair in
            let server = pair.server
            let error = #expect(throws: FramingError.self) {
                try server.broadcast([UInt8](repeating: 0, count: 4 << 20))
            }
            #expect(error?.code == .payloadTooLarge)
        }
    }
}
