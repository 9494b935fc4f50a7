import ClubStories
import LifelineTesting
import Testing

@Suite(.timeLimit(.minutes(5))) struct ClubTests {
    /// The club without planted bugs passes.
    @Test func staysInOrderOnABadDay() async throws {
        try await simulate(seeds: 1...6) { try await playClub(Cast(), in: $0) }
    }

    /// Finds each bug, and again with the same seed. Does not search for the fewest faults, which takes longer.
    @Test(arguments: PlantedBug.all) func findsPlantedBug(_ bug: PlantedBug) async throws {
        let (seed, failure) = try #require(await bug.find())
        let again = await bug.runner.play(seed, nil, isTracing: false).failure
        #expect(again == failure, "seed \(seed)")
    }

    /// The same programs over real connections.
    @Test func worksOverRealConnections() async throws {
        #expect(try await playClubOverLoopback(slowness: .zero, maximumPause: .milliseconds(20)) == nil)
    }
}

extension PlantedBug: CustomTestStringConvertible {
    var testDescription: String { name }
}
