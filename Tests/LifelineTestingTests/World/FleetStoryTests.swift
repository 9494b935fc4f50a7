import LifelineScenarios
import LifelineTesting
import Testing

/// Fleets in a world.
@Suite(.timeLimit(.minutes(2))) struct FleetStoryTests {
    /// `scripts/soak --fleet-scenarios` runs more of them.
    @Test func aBadDay() async throws {
        try await simulate(seeds: 1...10) { try await FleetStory.tell(in: $0) }
    }
}
