internal import LifelineScenarios

/// Runs random stories of durable messages; `scripts/soak` calls it and explains the arguments.
enum DurableSoak {
    private struct Sum: Sendable {
        var totals = DurableScenario.Totals()
        var failures: [(seed: UInt64, what: String)] = []
    }

    static func runAll(_ count: UInt64, progress: (String) -> Void) async -> Bool {
        let started = ContinuousClock.now
        var sum = Sum()
        await Seeds.run(below: count, run) { part in
            sum.totals += part.totals
            sum.failures += part.failures
            for (seed, what) in part.failures { print(DurableScenario.failureMessage(seed, what)) }
            progress("\(sum.totals.scenarios) of \(count) durable scenarios")
            return sum.failures.count < 10
        }
        progress("")
        let totals = sum.totals
        print(
            "\(totals.scenarios) durable scenarios, \(totals.kills) kills, \(totals.connections) connections,",
            "\(totals.messages) messages, \(totals.calls) of them calls, with \(totals.replies) replies and",
            "\(totals.lateReplies) late ones, \(totals.refused) not stored, \(totals.expired) expired,",
            "\(totals.commitsThatReturned) commits that had failed and were there, \(totals.processed) processed,",
            "in \(Int((ContinuousClock.now - started) / .seconds(1))) s:",
            sum.failures.isEmpty ? "everything held" : "\(sum.failures.count) FAILED"
        )
        return sum.failures.isEmpty
    }

    @Sendable private static func run(_ seeds: Range<UInt64>) -> Sum {
        var sum = Sum()
        for seed in seeds {
            let result = DurableScenario(seed: seed).run()
            sum.totals += result.totals
            if let failure = result.failure { sum.failures.append((seed, failure)) }
        }
        return sum
    }

    static func replay(_ seed: UInt64) -> Bool {
        let result = DurableScenario(seed: seed, isTracing: true).run()
        for line in result.trace { print(line) }
        if let failure = result.failure { print(DurableScenario.failureMessage(seed, failure)) }
        return result.failure == nil
    }
}
