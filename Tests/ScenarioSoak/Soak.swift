/// Runs stories with many seeds, and adds up their totals.
struct Soak<Totals: Sendable>: Sendable {
    private struct Part: Sendable {
        var totals: Totals
        var failures: [(seed: UInt64, what: String)] = []
    }

    /// The totals of no story.
    let none: Totals
    /// Adds the second totals to the first.
    let add: @Sendable (inout Totals, Totals) -> Void
    /// Runs the story of a seed. The failure is nil if everything held.
    let story: @Sendable (UInt64) async -> (totals: Totals, failure: String?)
    let failureMessage: @Sendable (UInt64, String) -> String

    /// Runs the stories of the seeds below `count`, and prints failures. Stops after ten failures.
    ///
    /// - Parameters:
    ///   - progress: shows the progress.
    ///   - summary: describes the totals.
    /// - Returns: whether everything held.
    func run(
        below count: UInt64,
        _ kind: String,
        progress: (String) -> Void,
        summary: (Totals) -> String
    ) async -> Bool {
        let started = ContinuousClock.now
        var sum = Part(totals: none)
        var done: UInt64 = 0
        await Seeds.run(below: count, run) { part in
            add(&sum.totals, part.part.totals)
            sum.failures += part.part.failures
            done += part.count
            for (seed, what) in part.part.failures { print(failureMessage(seed, what)) }
            progress("\(done) of \(count) \(kind) scenarios")
            return sum.failures.count < 10
        }
        progress("")
        print(
            "\(done) \(kind) scenarios, \(summary(sum.totals)),",
            "in \(Int((ContinuousClock.now - started) / .seconds(1))) s:",
            sum.failures.isEmpty ? "everything held" : "\(sum.failures.count) FAILED"
        )
        return sum.failures.isEmpty
    }

    @Sendable private func run(_ seeds: Range<UInt64>) async -> (count: UInt64, part: Part) {
        var part = Part(totals: none)
        for seed in seeds {
            let result = await story(seed)
            add(&part.totals, result.totals)
            if let failure = result.failure { part.failures.append((seed, failure)) }
        }
        return (UInt64(seeds.count), part)
    }
}
