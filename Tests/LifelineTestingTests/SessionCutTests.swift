import LifelineScenarios
import Testing

/// Cuts a script with messages and calls of all kinds at every byte of each direction. `scripts/soak --session-cuts`
/// cuts it at every pair of bytes.
@Suite(.timeLimit(.minutes(10))) struct SessionCutTests {
    private let whole = SessionCuts.uncut()

    @Test func theUncutScriptHasItsResults() {
        let seen = whole.seen
        #expect(seen.delivered == [[21, 22, 25, 27, 55, 56], [1, 2, 5, 8]])
        #expect(seen.begun == [[23, 26, 28, 29], [3, 6, 7, 9, 10, 11, 12]] && seen.cancelled == [[], [6, 11]])
        let results = [3: "103", 6: "cancelled", 7: "107", 9: "109", 10: "110", 11: "cancelled", 12: "112"]
        #expect(seen.results == [results, [23: "123", 26: "126", 28: "128", 29: "129"]])
        // The end is 0; replaced parts are not delivered.
        #expect(seen.requestParts[0] == [28: [41, 42, 0], 29: [43, 0]])
        #expect(seen.requestParts[1] == [9: [31, 33, 0], 10: [34, 35, 0], 11: [36]])
        #expect(seen.responseParts == [[7: [271, 272], 10: [234, 235]], [26: [461, 462], 29: [243]]])
        #expect(seen.outcomes.map { $0.values.filter { $0 == "replaced" }.count } == [2, 1])
        #expect(seen.outcomes.map { $0.values.filter { $0 == "processed" }.count } == [13, 13])
        #expect(whole.isAtRest)
        #expect(whole.byteCounts.toClient > 400 && whole.byteCounts.toServer > 400)
    }

    @Test(arguments: SessionCuts.Death.allCases)
    func cuttingOneDirectionChangesNothing(death: SessionCuts.Death) async {
        for place in SessionCuts.alone(whole.byteCounts) {
            // Lets other tests run.
            await Task.yield()
            if let failure = SessionCuts.run(place, death, expecting: whole.seen) { Issue.record("\(failure)") }
        }
    }

    /// Delivers bytes one by one, so that both directions are busy at each cut.
    @Test(arguments: SessionCuts.Death.allCases)
    func cuttingBothDirectionsChangesNothing(death: SessionCuts.Death) async {
        let longest = max(whole.byteCounts.toClient, whole.byteCounts.toServer)
        for offset in 0...longest {
            await Task.yield()
            let behind = max(offset - 40, 0)
            // At the same offset, and with one direction as far behind as bytes may be in flight.
            for place in [
                SessionCuts.Place(toClient: offset, toServer: offset),
                SessionCuts.Place(toClient: offset, toServer: behind),
                SessionCuts.Place(toClient: behind, toServer: offset),
            ] {
                let failure = SessionCuts.run(place, death, piece: 1, expecting: whole.seen)
                if let failure { Issue.record("\(failure)") }
            }
        }
    }
}
