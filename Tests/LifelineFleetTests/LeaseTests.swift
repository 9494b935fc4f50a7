import LifelineClientTestSupport
import LifelineCore
import LifelineFleet
import Logging
import Testing

@Suite(.timeLimit(.minutes(1))) struct LeaseTests {
    @Test func aFleetIsAliveWhileItRuns() async throws {
        let clock = ManualClock()
        let engine = MemoryFleetEngine(clock: clock)
        var configuration = FleetConfiguration()
        configuration.leaseDuration = .seconds(3)
        // Only the lease wakes the fleet.
        configuration.comparisonInterval = .seconds(3_600)
        let fleet = Fleet(
            engine: engine,
            nodeName: "node",
            configuration: configuration,
            logger: Logger(label: "test"),
            clock: clock
        )
        try await withThrowingTaskGroup { tasks in
            tasks.addTask { try await fleet.run() }
            for _ in 1...10 {
                // It has renewed its lease, and waits.
                try await until { clock.nextWakeUp == clock.now + .seconds(1) }
                clock.advance(by: .seconds(1))
                #expect(try await engine.liveNodes(among: ["node", "other"]) == ["node"])
            }
            tasks.cancelAll()
            _ = await tasks.nextResult()
            #expect(try await engine.liveNodes(among: ["node"]).isEmpty)
        }
    }

    @Test func aLeaseLastsAsLongAsItWasRenewedFor() async throws {
        let clock = ManualClock()
        let engine = MemoryFleetEngine(clock: clock)
        try await engine.renewLease(of: "node", for: .seconds(10))
        try await engine.renewLease(of: "node", for: .seconds(3))
        clock.advance(by: .milliseconds(2_999))
        #expect(try await engine.liveNodes(among: ["node"]) == ["node"])
        clock.advance(by: .milliseconds(1))
        #expect(try await engine.liveNodes(among: ["node"]).isEmpty)
    }
}
