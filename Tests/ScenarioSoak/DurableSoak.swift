internal import LifelineScenarios

/// Runs random stories of durable messages; `scripts/soak` calls it and explains the arguments.
enum DurableSoak {
    static func runAll(_ count: UInt64, progress: (String) -> Void) async -> Bool {
        let soak = Soak(none: DurableScenario.Totals()) {
            $0 += $1
        } story: { seed in
            let result = await DurableScenario(seed: seed).run()
            return (result.totals, result.failure)
        } failureMessage: {
            DurableScenario.failureMessage($0, $1)
        }
        return await soak.run(below: count, "durable", progress: progress) { totals in
            "\(totals.kills) kills, \(totals.connections) connections, \(totals.messages) messages, "
                + "\(totals.calls) of them calls, with \(totals.replies) replies and \(totals.lateReplies) late ones, "
                + "\(totals.refused) not stored, \(totals.expired) expired, "
                + "\(totals.commitsThatReturned) commits that had failed and were there, \(totals.processed) processed"
        }
    }

    static func replay(_ seed: UInt64) async -> Bool {
        let result = await DurableScenario(seed: seed, isTracing: true).run()
        for line in result.trace { print(line) }
        if let failure = result.failure { print(DurableScenario.failureMessage(seed, failure)) }
        return result.failure == nil
    }
}
