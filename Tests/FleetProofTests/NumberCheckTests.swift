import FleetProofSupport
import Testing

struct NumberCheckTests {
    private func check(_ numbers: Int...) -> NumberCheck {
        numbers.reduce(into: NumberCheck()) { $0.receive($1) }
    }

    @Test func nothingIsWrong() {
        let check = check(1, 2, 3)
        #expect(check.count == 3 && check.last == 3)
        #expect(check.lost(of: 3).isEmpty && check.doubled.isEmpty && check.reordered.isEmpty)
    }

    @Test func lossesAreFound() {
        let check = check(3, 4, 7)
        #expect(check.lost(of: 9) == [[1, 2], [5, 6], [8, 9]])
        #expect(check.count == 3 && check.doubled.isEmpty && check.reordered.isEmpty)
        #expect(NumberCheck().lost(of: 2) == [[1, 2]])
    }

    @Test func doublesAreFound() {
        let check = check(1, 2, 2, 3, 1)
        #expect(check.doubled == [2, 1])
        #expect(check.count == 3 && check.lost(of: 3).isEmpty && check.reordered.isEmpty)
    }

    @Test func swapsAreFound() {
        let check = check(1, 3, 2, 4)
        #expect(check.reordered == [2])
        #expect(check.count == 4 && check.lost(of: 4).isEmpty && check.doubled.isEmpty)
    }

    @Test func partsOfAGapComeLate() {
        let check = check(1, 6, 3, 3)
        #expect(check.reordered == [3] && check.doubled == [3])
        #expect(check.lost(of: 6) == [[2], [4, 5]])
    }

    @Test func toldGapsAreNoLoss() {
        var check = check(1, 2)
        check.receive(5, isGapTold: true)
        #expect(check.lost(of: 5).isEmpty)
        #expect(check.toldCount(of: 5, isEndTold: false) == 2)
        // Only once.
        check.receive(7)
        #expect(check.lost(of: 7) == [[6]])
        // A number that was reported lost arrives nevertheless.
        check.receive(4)
        #expect(check.reordered == [4] && check.toldCount(of: 7, isEndTold: false) == 1)
    }

    @Test func endsAreTold() {
        let check = check(1, 2)
        #expect(check.lost(of: 4, isEndTold: true).isEmpty)
        #expect(check.toldCount(of: 4, isEndTold: true) == 2 && check.toldCount(of: 4, isEndTold: false) == 0)
    }

    @Test func theSenderExcuses() {
        #expect(check(1, 4, 6).lost(of: 7, except: [2, 5, 7]) == [[3]])
    }
}
