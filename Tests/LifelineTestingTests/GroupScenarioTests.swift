import LifelineScenarios
import Testing

/// Random stories of groups. `scripts/soak --group-scenarios` runs more.
@Suite(.timeLimit(.minutes(10))) struct GroupScenarioTests {
    @Test(arguments: stride(from: 0, to: 1_000, by: 100).map { UInt64($0) })
    func membersGetEverythingInOrderOrAreTold(first: UInt64) async {
        var totals = GroupScenario.Totals()
        for seed in first..<first + 100 {
            await Task.yield()
            let result = GroupScenario(seed: seed).run()
            totals += result.totals
            if let failure = result.failure { Issue.record("\(GroupScenario.failureMessage(seed, failure))") }
        }
        // The stories have to reach the cases that they check.
        #expect(totals.deliveries > 5_000)
        #expect(totals.gaps > 100)
        #expect(totals.members > 500)
        #expect(totals.lostHistories > 10)
        #expect(totals.moves > 50)
    }

    @Test func oneSeedGivesOneTrace() {
        let trace = GroupScenario(seed: 1, isTracing: true).run().trace
        #expect(trace.count > 20)
        let isSame = GroupScenario(seed: 1, isTracing: true).run().trace == trace
        #expect(isSame)
    }
}
