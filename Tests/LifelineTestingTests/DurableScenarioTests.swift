import LifelineScenarios
import Testing

/// Random stories of durable messages, with kills at any step. `scripts/soak --durable-scenarios` runs more.
@Suite(.timeLimit(.minutes(10))) struct DurableScenarioTests {
    @Test(arguments: stride(from: 0, to: 200, by: 20).map { UInt64($0) })
    func everythingIsProcessedOnceAndInOrder(first: UInt64) async {
        var totals = DurableScenario.Totals()
        for seed in first..<first + 20 {
            let result = await DurableScenario(seed: seed).run()
            totals += result.totals
            if let failure = result.failure { Issue.record("\(DurableScenario.failureMessage(seed, failure))") }
        }
        // The stories have to reach the cases that they check.
        #expect(totals.kills > 5 && totals.connections > 20 && totals.refused > 10)
        #expect(totals.expired > 20 && totals.replies > 50 && totals.lateReplies > 20)
        #expect(totals.processed > totals.messages / 2)
    }

    @Test func oneSeedGivesOneTrace() async {
        let trace = await DurableScenario(seed: 1, isTracing: true).run().trace
        #expect(trace.count > 20)
        let isSame = await DurableScenario(seed: 1, isTracing: true).run().trace == trace
        #expect(isSame)
    }
}
