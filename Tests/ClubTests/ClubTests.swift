import Club
import ClubProtos
import Lifeline
import LifelineClientTestSupport
import Logging
import Testing

@testable import LifelineTesting

@Suite(.timeLimit(.minutes(5))) struct ClubTests {
    /// The club as it is: nothing is found.
    @Test func staysInOrderOnABadDay() async throws {
        try await simulate(seeds: 1...6) { try await playClub(Cast(), in: $0) }
    }

    /// Each bug is found, and its seed shows it again. Without a search for the fewest faults, which takes longer.
    @Test(arguments: PlantedBug.all) func findsPlantedBug(_ bug: PlantedBug) async throws {
        let runner = StoryRunner(limits: SimulationLimits()) { try await playClub(bug.cast, in: $0) }
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
        let book = Book(maximumLatency: .zero) { Issue.record("This held no more: \($0)") }
        let staff = Staff(book.database)
        let services = staff.services(Cast())
        let logger = Logger(label: "club") { _ in SwiftLogNoOpLogHandler() }
        let phones = book.phones(Cast(), slowness: .zero, maximumPause: .milliseconds(20))
        try await withSessionServer(listeningOn: Endpoint("tcp://127.0.0.1:0"), services: services) { server in
            let endpoint = try await server.boundEndpoints[0]
            try await withThrowingTaskGroup { group in
                for phone in phones { group.addTask { try await phone.run(at: endpoint, logger: logger) } }
                try await until { book.haveAllDoneEverything(phones) }
                book.isOver = true
                try await group.waitForAll()
            }
        }
        #expect(book.isMoneyThere)
        #expect(book.isRoomInOrder)
        #expect(book.complaint(about: phones) == nil)
    }
}

extension PlantedBug: CustomTestStringConvertible {
    var testDescription: String { name }
}
