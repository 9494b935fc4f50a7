import LifelineScenarios
import Testing

/// A script of more than 20 frames of all kinds, cut at every byte of each direction. `scripts/soak --session-cuts` cuts it at
/// every pair of them.
@Suite(.timeLimit(.minutes(10))) struct SessionCutTests {
    private let whole = SessionCuts.uncut()

    @Test func theScriptDoesWhatItSays() {
        let seen = whole.seen
        #expect(seen.delivered == [[21, 22, 25, 27, 55], [1, 2, 5, 8]])
        #expect(seen.begun == [[23, 26], [3, 6, 7]] && seen.cancelled == [[], [2]])
        #expect(seen.results == [[3: "103", 6: "cancelled", 7: "107"], [23: "123", 26: "126"]])
        #expect(seen.parts == [[7: [1, 2]], [26: [1, 2]]])
        #expect(seen.outcomes.map { $0.values.filter { $0 == "replaced" }.count } == [1, 1])
        #expect(whole.isAtRest)
        #expect(whole.byteCounts.toClient > 250 && whole.byteCounts.toServer > 250)
    }

    @Test(arguments: SessionCuts.Death.allCases)
    func aDirectionThatDiesAtAnyByteChangesNothing(death: SessionCuts.Death) async {
        for place in SessionCuts.alone(whole.byteCounts) {
            // Other tests wait for their turn.
            await Task.yield()
            if let failure = SessionCuts.run(place, death, expecting: whole.seen) { Issue.record("\(failure)") }
        }
    }

    /// With what comes at a time byte by byte, so that each direction is in the midst of something.
    @Test(arguments: SessionCuts.Death.allCases)
    func bothDirectionsThatDieAtAnyByteChangeNothing(death: SessionCuts.Death) async {
        let longest = max(whole.byteCounts.toClient, whole.byteCounts.toServer)
        for offset in 0...longest {
            await Task.yield()
            let behind = max(offset - 40, 0)
            // Together, and one as far behind the other as bytes may be under way.
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
