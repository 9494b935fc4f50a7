import LifelineScenarios
import Testing

/// Random stories of durable messages, with kills at any step. `scripts/soak --durable-scenarios` runs more.
@Suite(.timeLimit(.minutes(10))) struct DurableScenarioTests {
    @Test(arguments: stride(from: 0, to: 1_000, by: 100).map { UInt64($0) })
    func everythingIsProcessedOnceAndInOrder(first: UInt64) async {
        var totals = DurableScenario.Totals()
        for seed in first..<first + 100 {
            await Task.yield()
            let result = DurableScenario(seed: seed).run()
            totals += result.totals
            if let failure = result.failure { Issue.record("\(DurableScenario.failureMessage(seed, failure))") }
        }
        // The stories have to reach the cases that they check.
        #expect(totals.kills > 100 && totals.connections > 300 && totals.refused > 10)
        #expect(totals.expired > 100 && totals.commitsThatReturned > 0)
        #expect(totals.processed > totals.messages / 2)
    }

    @Test func oneSeedGivesOneTrace() {
        let trace = DurableScenario(seed: 1, isTracing: true).run().trace
        #expect(trace.count > 20)
        let isSame = DurableScenario(seed: 1, isTracing: true).run().trace == trace
        #expect(isSame)
    }
}
