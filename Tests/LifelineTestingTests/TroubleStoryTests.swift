import Lifeline
import LifelineScenarios
import LifelineTesting
import Testing

/// The reactions of a client to faults of the network and of its peers.
@Suite struct TroubleStoryTests {
    @Test func messagesArriveBothWays() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            #expect(client.state == .ready)
            client.send([[1, 2], [3]])
            try server.broadcast([4])
            try await Task.sleep(for: .seconds(1))
            #expect(server.receivedMessages.map(\.payload) == [[1, 2], [3]])
            #expect(client.received == [[4]])
            #expect(client.sends.map(\.end) == [.accepted(connection: 1), .accepted(connection: 1)])
        }
    }

    /// 30 s of silence, and 10 s for the answer to each of three pings.
    @Test func aBlackHoleIsNoticedWithinAMinute() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            client.machine.conditions.losesEverything = true
            client.send([1])
            try await Task.sleep(for: .seconds(58))
            #expect(client.state == .ready)
            try await Task.sleep(for: .milliseconds(1_500))
            #expect(client.transitions.last?.reason.code == .heartbeatTimeout)
            #expect(client.undelivered == [1])
            #expect(server.receivedMessages.isEmpty)
        }
    }

    @Test func reconnectsAtOnceWhenTheNetworkReturns() async throws {
        try await withConnectedPair { pair in
            let client = pair.client
            client.machine.setLink(up: false)
            try await Task.sleep(for: .seconds(600))
            #expect(client.state == .waitingForNetwork)
            client.machine.setLink(up: true)
            // 100 ms until the report, 40 ms for a round trip, and the steps of the programs.
            try await Task.sleep(for: .milliseconds(100 + 41))
            #expect(client.state == .ready)
            #expect(client.transitions.map(\.to) == [.connecting, .ready, .waitingForNetwork, .connecting, .ready])
        }
    }

    @Test func aRejectedCertificateIsNotTriedAgain() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            server.behavior = .rejectingTLS
            client.reconnect()
            try await Task.sleep(for: .seconds(600))
            #expect(client.state == .gaveUp)
            #expect(client.transitions.last?.reason.code == .tlsRejected)
        }
    }

    @Test func aServerThatDropsConnectionsIsNotHammered() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            server.behavior = .dropping
            server.resetConnections()
            try await Task.sleep(for: .seconds(600))
            #expect(client.state == .gaveUp)
            // Four attempts, including the first connection, which was too short to count as stable.
            #expect(server.connectionCount == 4)
        }
    }

    @Test func aPeerThatDoesNotReadMakesSendsWait() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            server.behavior.reads = false
            for _ in 0..<50 { client.send([UInt8](repeating: 0, count: 10_000)) }
            try await Task.sleep(for: .seconds(5))
            #expect(client.waitingSendCount > 0)
            #expect(client.state == .ready)
            server.behavior.reads = true
            try await Task.sleep(for: .seconds(5))
            #expect(client.waitingSendCount == 0)
            #expect(server.receivedMessages.map(\.number).sorted() == Array(1...50))
        }
    }

    @Test func aWakingMachinePingsBeforeItGivesUp() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            client.machine.sleep(for: .seconds(3_600))
            try await Task.sleep(for: .seconds(3_601))
            // The server has given the connection up meanwhile, which the ping finds out.
            #expect(client.transitions.map(\.reason.code) == [.started, .connected, .closedByPeer, .connected])
            #expect(server.connectionCount == 2)
        }
    }

    /// Three pings of up to 10 s each, beginning when the machine wakes.
    @Test func aPeerLostDuringSleepIsNoticedAfterWaking() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            server.host.conditions.losesEverything = true
            client.machine.sleep(for: .seconds(3_600))
            try await Task.sleep(for: .seconds(3_629))
            #expect(client.state == .ready)
            try await Task.sleep(for: .seconds(2))
            #expect(client.transitions.first { $0.from == .ready }?.reason.code == .heartbeatTimeout)
        }
    }

    @Test func aClientThatDoesNotReadDoesNotGiveUpThePeer() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            client.reads = false
            // More than the client's buffers for its user.
            try server.broadcast([UInt8](repeating: 1, count: 1_000_000))
            try await Task.sleep(for: .seconds(1))
            server.host.conditions.losesEverything = true
            try await Task.sleep(for: .seconds(600))
            #expect(client.state == .ready)
            client.reads = true
            try await Task.sleep(for: .seconds(59))
            #expect(client.state == .ready)
            try await Task.sleep(for: .seconds(2))
            #expect(client.transitions.first { $0.from == .ready }?.reason.code == .heartbeatTimeout)
        }
    }

    /// The peer takes no bytes, sends nothing, or does not answer.
    @Test(arguments: [ConnectionError.Code.writeTimeout, .idleTimeout, .tooManyUnansweredBytes])
    func configuredTimeoutsApply(code: ConnectionError.Code) async throws {
        let configure = { (configuration: inout ClientUser.Configuration) in
            configuration.client.connection.heartbeat.interval = .seconds(70)
            switch code {
            case .writeTimeout: configuration.client.connection.writeTimeout = .seconds(20)
            case .idleTimeout: configuration.client.connection.idleTimeout = .seconds(20)
            default: configuration.client.connection.unansweredByteLimit = 200_000
            }
        }
        try await withConnectedPair(configure: configure) { pair in
            let (client, server) = (pair.client, pair.server)
            server.behavior.reads = false
            client.send([UInt8](repeating: 1, count: 300_000))
            try await Task.sleep(for: .seconds(9))
            #expect(client.state == .ready)
            try await Task.sleep(for: .seconds(20))
            let ended = client.transitions.first { $0.from == .ready }
            #expect(ended?.reason.error?.code == code)
        }
    }

    @Test func aGracefulCloseLosesNothing() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            for _ in 0..<20 { client.send([UInt8](repeating: 5, count: 5_000)) }
            try await Task.sleep(for: .milliseconds(1))
            client.close()
            try await Task.sleep(for: .seconds(5))
            #expect(client.state == .closed)
            #expect(client.transitions.last?.reason.code == .drained)
            #expect(server.receivedMessages.count == 20)
            #expect(client.undelivered == [0])
            client.send([6])
            try await Task.sleep(for: .milliseconds(1))
            #expect(client.sends.last?.end == .failed(.closedLocally))
        }
    }
}
