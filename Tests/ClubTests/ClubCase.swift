import ClubStories
import LifelineTesting
import XCTest

// snippet.simulate-xctest
/// The same in XCTest.
final class ClubCase: XCTestCase {
    func testClubOnABadDay() async throws {
        try await simulate(seeds: 1...3) { world in try await playClub(Cast(), in: world) }
    }
}
// snippet.end
