import LifelineTesting
import Testing

/// How a client closes, and what it says then: as the real one does.
@Suite final class SimulatedClosingTests: ConnectedPair {
    private var lastStep: ConnectionTransition? { client.transitions.last }
    private var undelivered: [Int] { client.connectionReports.map(\.undeliveredMessageCount) }

    /// The peer's end is there before the acknowledgement of what was sent into it.
    @Test func whatArrivesAfterBothEndsCountsAsDelivered() {
        server.closeConnections()
        client.send([UInt8](repeating: 1, count: 10_000))
        simulation.run(for: .milliseconds(30))
        // Both sides have ended, and the last acknowledgement is on its way.
        #expect(undelivered == [])
        simulation.run(for: .seconds(1))
        #expect(undelivered == [0])
    }

    @Test func theLastAcknowledgementIsAwaitedForTheCloseTimeout() {
        server.closeConnections()
        simulation.run(for: .milliseconds(15))
        client.send([UInt8](repeating: 1, count: 10_000))
        simulation.run(for: .milliseconds(10))
        client.host.conditions.losesEverything = true
        simulation.run(for: .milliseconds(4_900))
        #expect(undelivered == [])
        simulation.run(for: .milliseconds(200))
        #expect(undelivered == [1])
    }

    @Test func aPeerThatNeverEndsLeavesOpenWhetherItHasReadAll() {
        server.behavior.reads = false
        client.send([1])
        client.close()
        simulation.run(for: .seconds(4))
        #expect(client.state == .draining)
        simulation.run(for: .seconds(2))
        #expect(client.state == .closed)
        #expect(lastStep?.reason.code == .connectionFailed)
        #expect(lastStep?.reason.error?.code == .closedLocally)
    }

    /// It goes on reading, a little at a time.
    private func letThePeerEndAndReadSlowly() {
        client.host.conditions.bytesPerSecond = 10_000
        client.send([UInt8](repeating: 1, count: 300_000))
        server.closeConnections()
        simulation.run(for: .seconds(1))
        #expect(client.state == .connecting)
        #expect(client.connectionReports.isEmpty)
    }

    @Test func whoReadsForEverAfterItsEndIsCut() {
        letThePeerEndAndReadSlowly()
        simulation.run(for: .seconds(3))
        #expect(client.connectionReports.isEmpty)
        simulation.run(for: .milliseconds(1_100))
        #expect(undelivered == [1])
        simulation.run(for: .seconds(5))
        #expect(client.state == .ready)
    }

    @Test(arguments: ["network", "cancel", "reconnect", "close"])
    func whatEndsAClientCutsWhatItStillCloses(what: String) {
        letThePeerEndAndReadSlowly()
        switch what {
        case "network": client.host.setLink(up: false)
        case "cancel": client.cancel()
        case "reconnect": client.reconnect()
        default:
            client.close()
            #expect(client.connectionReports.isEmpty)
            client.close()
        }
        simulation.run(for: .milliseconds(110))
        #expect(undelivered == [1])
    }

    @Test func whoDoesNotReadStillSeesThePeersEndWhenItCloses() throws {
        client.reads = false
        try server.broadcast([1])
        simulation.run(for: .seconds(1))
        client.close()
        simulation.run(for: .seconds(1))
        #expect(lastStep?.reason.code == .drained)
    }
}
