import Lifeline
import LifelineScenarios
import LifelineTesting
import Testing

/// The closing of a client, and the messages that it then reports as undelivered.
@Suite struct ClosingStoryTests {
    /// The peer's end arrives before the acknowledgement of the last messages.
    @Test func acknowledgementsAfterBothEndsCount() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            server.closeConnections()
            client.send([UInt8](repeating: 1, count: 10_000))
            try await Task.sleep(for: .milliseconds(30))
            // Both sides have ended, and the last acknowledgement is on its way.
            #expect(client.undelivered == [])
            try await Task.sleep(for: .seconds(1))
            #expect(client.undelivered == [0])
        }
    }

    @Test func theLastAcknowledgementIsAwaitedForTheCloseTimeout() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            server.closeConnections()
            try await Task.sleep(for: .milliseconds(15))
            client.send([UInt8](repeating: 1, count: 10_000))
            try await Task.sleep(for: .milliseconds(10))
            client.machine.conditions.losesEverything = true
            try await Task.sleep(for: .milliseconds(4_900))
            #expect(client.undelivered == [])
            try await Task.sleep(for: .milliseconds(200))
            #expect(client.undelivered == [1])
        }
    }

    @Test func closingFailsIfThePeerNeverEnds() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            server.behavior.reads = false
            client.send([1])
            try await Task.sleep(for: .milliseconds(1))
            client.close()
            try await Task.sleep(for: .seconds(4))
            #expect(client.state == .draining)
            try await Task.sleep(for: .seconds(2))
            #expect(client.state == .closed)
            #expect(client.transitions.last?.reason.code == .connectionFailed)
            #expect(client.transitions.last?.reason.error?.code == .closedLocally)
        }
    }

    /// Makes the peer end its side and continue to read slowly.
    private func letThePeerEndAndReadSlowly(_ pair: ConnectedPair) async throws {
        let (client, server) = (pair.client, pair.server)
        client.machine.conditions.bytesPerSecond = 10_000
        client.send([UInt8](repeating: 1, count: 300_000))
        try await Task.sleep(for: .milliseconds(1))
        server.closeConnections()
        try await Task.sleep(for: .seconds(1))
        #expect(client.state != .ready)
        #expect(client.undelivered.isEmpty)
    }

    @Test func aPeerThatReadsForeverAfterItsEndIsCut() async throws {
        try await withConnectedPair { pair in
            let client = pair.client
            try await letThePeerEndAndReadSlowly(pair)
            try await Task.sleep(for: .seconds(3))
            #expect(client.undelivered.isEmpty)
            try await Task.sleep(for: .milliseconds(1_100))
            #expect(client.undelivered == [1])
            try await Task.sleep(for: .seconds(5))
            #expect(client.state == .ready)
        }
    }

    @Test(arguments: ["network", "cancel", "reconnect", "close"])
    func endingAClientCutsItsClosingConnections(what: String) async throws {
        try await withConnectedPair { pair in
            let client = pair.client
            try await letThePeerEndAndReadSlowly(pair)
            switch what {
            case "network": client.machine.setLink(up: false)
            case "cancel": client.cancel()
            case "reconnect": client.reconnect()
            default:
                client.close()
                try await Task.sleep(for: .milliseconds(1))
                #expect(client.undelivered.isEmpty)
                client.close()
            }
            try await Task.sleep(for: .milliseconds(110))
            #expect(client.undelivered == [1])
        }
    }

    @Test func aClosingClientThatDoesNotReadSeesThePeersEnd() async throws {
        try await withConnectedPair { pair in
            let (client, server) = (pair.client, pair.server)
            client.reads = false
            try server.broadcast([1])
            try await Task.sleep(for: .seconds(1))
            client.close()
            try await Task.sleep(for: .seconds(1))
            #expect(client.transitions.last?.reason.code == .drained)
        }
    }
}
