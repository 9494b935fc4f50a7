import FaultSupport
import Testing

/// What is reckoned from what programs say.
@Suite struct ReckoningTests {
    @Test(arguments: [(1, 1), (50, 50), (99, 99), (100, 100)]) func percentilesOfAHundred(percent: Int, rank: Int) {
        let durations = Durations((1...100).shuffled().map { .milliseconds($0) })
        #expect(durations.percentile(percent) == .milliseconds(rank))
    }

    @Test func percentilesOfAFew() {
        let durations = Durations([.seconds(3), .seconds(1), .seconds(2)])
        #expect(durations.percentile(50) == .seconds(2))
        #expect(durations.percentile(99) == .seconds(3))
        #expect(Durations([.seconds(7)]).percentile(1) == .seconds(7))
    }

    @Test func messagesAreCounted() {
        let count = MessageCount(
            client: [.messages(.sent, 1...10), .refused(11, "why"), .messages(.sent, 12...20), .lost(3)],
            peer: [.messages(.received, 1...4), .messages(.received, 4...15), .messages(.received, 19...20)]
        )
        #expect(count == MessageCount(sent: 19, lost: 3, reported: 3, doubled: 1))
    }
}
