import LifelineScenarios
import Testing

/// Random stories of sessions. `scripts/soak --session-scenarios` runs more.
@Suite(.timeLimit(.minutes(10))) struct SessionScenarioTests {
    /// In portions, which run in parallel.
    @Test(arguments: stride(from: 0, to: 200, by: 20).map { UInt64($0) })
    func everythingHolds(first: UInt64) async {
        for seed in first..<first + 20 {
            if let failure = await SessionScenario(seed: seed).run().failure {
                Issue.record("\(SessionScenario.failureMessage(seed, failure))")
            }
        }
    }

    /// The stories have to reach the cases that they check.
    @Test func scenariosReachEverything() async {
        var totals = SessionScenario.Totals()
        for seed in 0..<300 as Range<UInt64> {
            totals += await SessionScenario(seed: seed).run().totals
        }
        let counts = Mirror(reflecting: totals).children.compactMap { child in
            (child.value as? Int).map { (name: child.label ?? "", count: $0) }
        }
        #expect(counts.count >= 50)
        #expect(counts.filter { $0.count == 0 }.isEmpty)
        #expect(totals.resumes > 500 && totals.lostSessions > 50)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func oneSeedGivesOneTrace(seed: UInt64) async {
        let result = await SessionScenario(seed: seed, isTracing: true).run()
        #expect(result.trace.count > 20)
        #expect(await SessionScenario(seed: seed, isTracing: true).run().trace == result.trace)
        #expect(await SessionScenario(seed: seed + 1, isTracing: true).run().trace != result.trace)
        // Tracing changes nothing.
        #expect(await SessionScenario(seed: seed).run().totals == result.totals)
    }
}
