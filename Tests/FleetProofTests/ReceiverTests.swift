import FleetProofSupport
import Testing

struct GroupCheckTests {
    /// A message of the sender "a" at an offset.
    private func receive(_ number: Int, at offset: UInt64, followsGap: Bool = false, _ check: inout GroupCheck) {
        check.receive(number, of: "a", epoch: 1, offset: offset, followsGap: followsGap)
    }

    @Test func aGapThatIsToldIsNoLossOfAnySender() {
        var check = GroupCheck()
        receive(1, at: 1, &check)
        check.receive(1, of: "b", epoch: 1, offset: 2, followsGap: false)
        receive(4, at: 8, followsGap: true, &check)
        check.receive(3, of: "b", epoch: 1, offset: 9, followsGap: false)
        #expect(check.numbers(of: "a").lost(of: 4).isEmpty && check.numbers(of: "b").lost(of: 3).isEmpty)
        // Each sender has one gap behind it.
        check.receive(5, of: "b", epoch: 1, offset: 11, followsGap: false)
        #expect(check.numbers(of: "b").lost(of: 5) == [[4]])
    }

    @Test func aGapThatIsNotToldIsALoss() {
        var check = GroupCheck()
        receive(1, at: 1, followsGap: true, &check)
        receive(3, at: 3, &check)
        #expect(check.numbers(of: "a").lost(of: 3) == [[2]])
    }

    @Test func theEndOfASenderIsTold() {
        var check = GroupCheck()
        receive(1, at: 1, &check)
        #expect(!check.isEndTold(of: "a"))
        check.receive(1, of: "b", epoch: 2, offset: 1, followsGap: true)
        #expect(check.isEndTold(of: "a") && !check.isEndTold(of: "b"))
        #expect(!GroupCheck().isEndTold(of: "a"))
    }

    @Test func anotherOrderThanThatOfThePositionsIsFound() {
        var check = GroupCheck()
        receive(1, at: 2, &check)
        check.receive(1, of: "b", epoch: 1, offset: 1, followsGap: false)
        #expect(check.reordered == 1)
        // A new epoch begins anew.
        check.receive(2, of: "b", epoch: 2, offset: 1, followsGap: true)
        #expect(check.reordered == 1 && check.doubled == 0 && check.count == 3)
    }
}

struct DirectCheckTests {
    @Test func theNextSenderBeginsBehindTheOneBefore() {
        var check = DirectCheck()
        for (number, sender) in [(1, "a"), (2, "a"), (1, "b"), (2, "b")] { check.receive(number, of: sender) }
        #expect(check.count == 4 && check.doubled == 0 && check.reordered == 0)
        check.receive(3, of: "a")
        #expect(check.reordered == 1)
        check.receive(2, of: "b")
        #expect(check.doubled == 1 && check.reordered == 1)
    }
}

struct DeliveryPauseTests {
    @Test func theLongestOneIsMeasuredBetweenBeginningAndEnd() {
        var pause = DeliveryPause()
        pause.delivered(at: 0)
        pause.delivered(at: 900)
        #expect(pause.longest == 0)
        pause.begin(at: 950)
        pause.delivered(at: 1_000)
        pause.delivered(at: 1_300)
        pause.end(at: 1_400)
        pause.delivered(at: 9_000)
        #expect(pause.longest == 300)
    }

    @Test func oneThatDoesNotEndCounts() {
        var pause = DeliveryPause()
        pause.begin(at: 100)
        pause.end(at: 700)
        #expect(pause.longest == 600)
    }
}
