import ClubStories
import Testing

@testable import LifelineTesting

@Suite(.timeLimit(.minutes(5))) struct ClubTests {
    /// The club as it is: nothing is found.
    @Test func staysInOrderOnABadDay() async throws {
        try await simulate(seeds: 1...6) { try await playClub(Cast(), in: $0) }
    }

    /// Each bug is found, and its seed shows it again. Without a search for the fewest faults, which takes longer.
    @Test(arguments: PlantedBug.all) func findsPlantedBug(_ bug: PlantedBug) async throws {
        let runner = StoryRunner { try await playClub(bug.cast, in: $0) }
        var found: (seed: UInt64, failure: WorldFailure)?
        for seed in 1...200 as ClosedRange<UInt64> where found == nil {
            found = await runner.play(seed, nil, isTracing: false).failure.map { (seed, $0) }
        }
        let (seed, failure) = try #require(found)
        let again = await runner.play(seed, nil, isTracing: false).failure
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
