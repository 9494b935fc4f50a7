internal import LifelineScenarios

/// Runs random stories of groups; `scripts/soak` calls it and explains the arguments.
enum GroupSoak {
    private struct Sum: Sendable {
        var totals = GroupScenario.Totals()
        var failures: [(seed: UInt64, what: String)] = []
    }

    static func runAll(_ count: UInt64, progress: (String) -> Void) async -> Bool {
        let started = ContinuousClock.now
        var sum = Sum()
        await Seeds.run(below: count, run) { part in
            sum.totals += part.totals
            sum.failures += part.failures
            for (seed, what) in part.failures { print(GroupScenario.failureMessage(seed, what)) }
            progress("\(sum.totals.scenarios) of \(count) group scenarios")
            return sum.failures.count < 10
        }
        progress("")
        let totals = sum.totals
        print(
            "\(totals.scenarios) group scenarios, \(totals.messages) messages, \(totals.members) members,",
            "\(totals.deliveries) deliveries, \(totals.gaps) of them behind a gap, \(totals.lostHistories) lost histories,",
            "in \(Int((ContinuousClock.now - started) / .seconds(1))) s:",
            sum.failures.isEmpty ? "everything held" : "\(sum.failures.count) FAILED"
        )
        return sum.failures.isEmpty
    }

    @Sendable private static func run(_ seeds: Range<UInt64>) -> Sum {
        var sum = Sum()
        for seed in seeds {
            let result = GroupScenario(seed: seed).run()
            sum.totals += result.totals
            if let failure = result.failure { sum.failures.append((seed, failure)) }
        }
        return sum
    }

    static func replay(_ seed: UInt64) -> Bool {
        let result = GroupScenario(seed: seed, isTracing: true).run()
        for line in result.trace { print(line) }
        if let failure = result.failure { print(GroupScenario.failureMessage(seed, failure)) }
        return result.failure == nil
    }
}
