import LifelineFleet
import LifelineTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct FleetEngineTests {
    @Test(arguments: FleetEngineChecks.all) func theEngineInMemoryKeepsTheRules(_ check: FleetEngineCheck) async throws
    {
        let engine = MemoryFleetEngine()
        try await check.run { [engine, engine] }
    }
}
