import LifelineScenarios
import Testing

/// Random stories of sessions, which are checked after every step. `scripts/soak --session-scenarios` runs more.
@Suite(.timeLimit(.minutes(10))) struct SessionScenarioTests {
    /// In portions, which run in parallel, and let other tests run between stories.
    @Test(arguments: stride(from: 0, to: 2_000, by: 100).map { UInt64($0) })
    func everythingHoldsAfterEveryStep(first: UInt64) async {
        for seed in first..<first + 100 {
            await Task.yield()
            if let failure = SessionScenario(seed: seed).run().failure {
                Issue.record("\(SessionScenario.failureMessage(seed, failure))")
            }
        }
    }

    /// The stories have to reach the cases that they check.
    @Test func scenariosReachEverything() async {
        var totals = SessionScenario.Totals()
        for seed in 0..<300 as Range<UInt64> {
            await Task.yield()
            totals += SessionScenario(seed: seed).run().totals
        }
        let counts = Mirror(reflecting: totals).children.compactMap { child in
            (child.value as? Int).map { (name: child.label ?? "", count: $0) }
        }
        #expect(counts.count >= 50)
        #expect(counts.filter { $0.count == 0 }.isEmpty)
        #expect(totals.resumes > 500 && totals.lostSessions > 50)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func oneSeedGivesOneTrace(seed: UInt64) {
        let result = SessionScenario(seed: seed, isTracing: true).run()
        #expect(result.trace.count > 20)
        #expect(SessionScenario(seed: seed, isTracing: true).run().trace == result.trace)
        #expect(SessionScenario(seed: seed + 1, isTracing: true).run().trace != result.trace)
        // Tracing changes nothing.
        #expect(SessionScenario(seed: seed).run().totals == result.totals)
    }
}
