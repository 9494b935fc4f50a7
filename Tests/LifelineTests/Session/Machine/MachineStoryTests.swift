import Lifeline
import Testing

struct MachineStoryTests {
    @Test func storiesHold() {
        for seed in 0..<400 as Range<UInt64> {
            if let failure = MachineStory(seed: seed).play() { Issue.record("\(failure)") }
        }
    }

    @Test func storiesOfSessionsThatMoveHold() {
        var moveCount = 0
        for seed in 20_000..<20_400 as Range<UInt64> {
            let story = MachineStory(seed: seed, movesSessions: true)
            if let failure = story.play() { Issue.record("\(failure)") }
            moveCount += story.pair.moveCount
        }
        #expect(moveCount > 400)
    }

    /// The short way of sending gives the same results, and a message that cannot take it changes nothing.
    @Test func bothWaysOfSendingAreAlike() {
        var plainCount = 0
        for seed in 5_000..<5_400 as Range<UInt64> {
            let (difference, count) = MachineStory.compareWays(seed: seed)
            if let difference { Issue.record("\(difference)") }
            plainCount += count
        }
        #expect(plainCount > 2_000)
    }

    /// The stories have to reach each case, or they would not check it.
    @Test func storiesReachEverything() {
        var (resumptions, losses, waits, calls, deliveries) = (0, 0, 0, 0, 0)
        var (idleOffers, leftOvers) = (0, 0)
        var outcomes: [SessionDeliveryOutcome: Int] = [:]
        for seed in 1_000..<1_200 as Range<UInt64> {
            let story = MachineStory(seed: seed)
            _ = story.play()
            resumptions += story.pair.resumptionCount
            losses += story.totals.losses
            waits += story.totals.waits
            idleOffers += story.pair.idleOfferCount
            for end in story.pair.ends + story.pair.oldServers {
                calls += end.endedCallCount
                deliveries += end.received.values.reduce(0) { $0 + $1.count }
                for message in end.sent.values {
                    if let outcome = message.outcome { outcomes[outcome, default: 0] += 1 }
                    if message.isObserved, message.isLeftOver { leftOvers += 1 }
                }
            }
        }
        #expect(resumptions > 200)
        #expect(losses > 20)
        #expect(waits > 10)
        #expect(calls > 1_000)
        #expect(deliveries > 3_000)
        #expect(idleOffers > 1_000)
        #expect(leftOvers > 10)
        for outcome in [.processed, .sent, .expired, .replaced, .dropped, .inDoubt] as [SessionDeliveryOutcome] {
            #expect(outcomes[outcome, default: 0] > 10, "\(outcome)")
        }
    }
}
