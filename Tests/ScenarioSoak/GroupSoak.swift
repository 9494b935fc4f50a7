internal import LifelineScenarios

/// Runs random stories of groups; `scripts/soak` calls it and explains the arguments.
enum GroupSoak {
    static func runAll(_ count: UInt64, progress: (String) -> Void) async -> Bool {
        let soak = Soak(none: GroupScenario.Totals()) {
            $0 += $1
        } story: { seed in
            let result = GroupScenario(seed: seed).run()
            return (result.totals, result.failure)
        } failureMessage: {
            GroupScenario.failureMessage($0, $1)
        }
        return await soak.run(below: count, "group", progress: progress) { totals in
            "\(totals.messages) messages, \(totals.members) members, \(totals.deliveries) deliveries, "
                + "\(totals.gaps) of them behind a gap, \(totals.lostHistories) lost histories, "
                + "\(totals.moves) moves"
        }
    }

    static func replay(_ seed: UInt64) -> Bool {
        let result = GroupScenario(seed: seed, isTracing: true).run()
        for line in result.trace { print(line) }
        if let failure = result.failure { print(GroupScenario.failureMessage(seed, failure)) }
        return result.failure == nil
    }
}
