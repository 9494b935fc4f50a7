import LifelineScenarios
import Testing

/// Random stories of presence. `scripts/soak --presence-scenarios` runs more.
@Suite(.timeLimit(.minutes(10))) struct PresenceScenarioTests {
    @Test(arguments: stride(from: 0, to: 500, by: 50).map { UInt64($0) })
    func watchersSeeWhoIsThere(first: UInt64) async {
        var totals = PresenceScenario.Totals()
        for seed in first..<first + 50 {
            await Task.yield()
            let result = PresenceScenario(seed: seed).run()
            totals += result.totals
            if let failure = result.failure { Issue.record("\(PresenceScenario.failureMessage(seed, failure))") }
        }
        // The stories have to reach the cases that they check.
        #expect(totals.joins > 4_000)
        #expect(totals.events > 1_000)
        #expect(totals.snapshots > 500)
        #expect(totals.updates > 3_000)
        #expect(totals.failures > 2_000)
        #expect(totals.deaths > 20)
    }

    @Test func oneSeedGivesOneTrace() {
        let trace = PresenceScenario(seed: 1, isTracing: true).run().trace
        #expect(trace.count > 20)
        let isSame = PresenceScenario(seed: 1, isTracing: true).run().trace == trace
        #expect(isSame)
    }
}
