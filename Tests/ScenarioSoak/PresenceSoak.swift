internal import LifelineScenarios

/// Runs random stories of presence; `scripts/soak` calls it and explains the arguments.
enum PresenceSoak {
    static func runAll(_ count: UInt64, progress: (String) -> Void) async -> Bool {
        let soak = Soak(none: PresenceScenario.Totals()) {
            $0 += $1
        } story: { seed in
            let result = PresenceScenario(seed: seed).run()
            return (result.totals, result.failure)
        } failureMessage: {
            PresenceScenario.failureMessage($0, $1)
        }
        return await soak.run(below: count, "presence", progress: progress) { totals in
            "\(totals.joins) joins, \(totals.events) events, \(totals.snapshots) snapshots, \(totals.updates) updates, "
                + "\(totals.failures) failures, \(totals.deaths) deaths"
        }
    }

    static func replay(_ seed: UInt64) -> Bool {
        let result = PresenceScenario(seed: seed, isTracing: true).run()
        for line in result.trace { print(line) }
        if let failure = result.failure { print(PresenceScenario.failureMessage(seed, failure)) }
        return result.failure == nil
    }
}
