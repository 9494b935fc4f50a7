import Testing

@testable import LifelineCore

@Suite struct MemoryLedgerTests {
    @Test func countsWhatAllHold() {
        var ledger = MemoryLedger(limit: 100)
        let (first, second) = (ledger.makeHolder(), ledger.makeHolder())
        #expect(ledger.changed(first, to: 60) == [])
        #expect(ledger.changed(second, to: 40) == [])
        #expect(ledger.byteCount == 100)
        #expect(ledger.changed(first, to: 0) == [])
        #expect(ledger.byteCount == 40)
    }

    @Test func theIdlestGiveUpUntilTheRestIsWithinTheLimit() {
        var ledger = MemoryLedger(limit: 100)
        let holders = (0..<4).map { _ in ledger.makeHolder() }
        for holder in holders { #expect(ledger.changed(holder, to: 25) == []) }
        #expect(ledger.changed(holders[0], to: 30) == [holders[1]])
        #expect(ledger.changed(holders[3], to: 75) == [holders[2], holders[0]])
        #expect(ledger.byteCount == 75)
        // A connection that was asked to close may still change: it counts until it has ended.
        #expect(ledger.changed(holders[1], to: 20) == [])
        #expect(ledger.changed(holders[1], to: 0) == [])
        #expect(ledger.byteCount == 75)
    }

    @Test func oneThatHoldsTooMuchGivesUpItself() {
        var ledger = MemoryLedger(limit: 100)
        let holder = ledger.makeHolder()
        #expect(ledger.changed(holder, to: 101) == [holder])
        #expect(ledger.byteCount == 0)
    }

    @Test func randomHoldersStayWithinTheLimit() {
        var ledger = MemoryLedger(limit: 100)
        let holders = (0..<10).map { _ in ledger.makeHolder() }
        for _ in 0..<1_000 {
            _ = ledger.changed(holders[Int.random(in: 0..<10)], to: Int.random(in: 0...40))
            #expect(0...100 ~= ledger.byteCount)
        }
    }
}

@Suite struct NewcomerLineTests {
    @Test func theOldestThatWaitsComesFirst() {
        var line = NewcomerLine<Int>()
        var waiting = Set(0..<5)
        for number in 0..<5 { line.append(number) { waiting.contains($0) } }
        waiting.subtract([0, 2])
        #expect(line.popFirst { waiting.contains($0) } == 1)
        #expect(line.popFirst { waiting.contains($0) } == 3)
        waiting = []
        #expect(!line.hasWaiting { waiting.contains($0) })
        #expect(line.popFirst { waiting.contains($0) } == nil)
        waiting = [7]
        line.append(7) { waiting.contains($0) }
        #expect(line.popFirst { waiting.contains($0) } == 7)
    }

    /// However many connections come and go, only a few are asked at a time.
    @Test func thoseThatHaveLeftAreTakenOut() {
        var line = NewcomerLine<Int>()
        var most = 0
        for number in 0..<10_000 {
            var asked = 0
            line.append(number) {
                asked += 1
                return $0 > number - 10
            }
            most = max(most, asked)
        }
        #expect(most <= 64)
        #expect(line.popFirst { $0 > 9_989 } == 9_990)
    }
}
