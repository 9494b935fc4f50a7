internal import Glibc
internal import LifelineScenarios

/// Runs random stories of sessions; `scripts/soak` calls it and explains the arguments.
enum SessionSoak {
    private struct Sum: Sendable {
        var totals = SessionScenario.Totals()
        var simulatedTime = Duration.zero
        var failures: [(seed: UInt64, what: String)] = []
    }

    static func runAll(_ count: UInt64, progress: (String) -> Void) async -> Bool {
        let started = ContinuousClock.now
        var sum = Sum()
        await Seeds.run(below: count, run) { part in
            sum.totals += part.totals
            sum.simulatedTime += part.simulatedTime
            sum.failures += part.failures
            for (seed, what) in part.failures { print(SessionScenario.failureMessage(seed, what)) }
            progress("\(sum.totals.scenarios) of \(count) session scenarios")
            return sum.failures.count < 10
        }
        progress("")
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        let totals = sum.totals
        print(
            "\(totals.scenarios) session scenarios, \(totals.connections) connections,",
            "\(totals.cutFrames) of them cut within a frame, \(totals.resumes) resumes,",
            "\(totals.overtakenHellos) overtaken hellos, \(totals.lostSessions) lost sessions,",
            "\(totals.messages) pushes, \(totals.requests) requests,",
            "\(totals.requestParts + totals.responseParts) parts (\(totals.doubtfulMessages) in doubt),",
            "\(totals.waits) waits, \(totals.resentFrames) frames sent again, \(totals.bytes) bytes,",
            "\(Int(sum.simulatedTime / .seconds(3_600))) simulated hours in \(Int(seconds)) s",
            "(\(Int(Double(totals.scenarios) / seconds)) scenarios a second):",
            sum.failures.isEmpty ? "everything held" : "\(sum.failures.count) FAILED"
        )
        return sum.failures.isEmpty
    }

    @Sendable private static func run(_ seeds: Range<UInt64>) async -> Sum {
        var sum = Sum()
        for seed in seeds {
            let result = await SessionScenario(seed: seed).run()
            sum.totals += result.totals
            sum.simulatedTime += result.simulatedTime
            if let failure = result.failure { sum.failures.append((seed, failure)) }
        }
        return sum
    }

    /// Cuts one script at every pair of bytes.
    static func cutEverywhere(progress: (String) -> Void) async -> Bool {
        let started = ContinuousClock.now
        let whole = SessionCuts.uncut()
        var (cutCount, failures) = (0, [String]())
        await withTaskGroup(of: (Int, [String]).self) { group in
            var next = 0
            func begin() {
                guard next <= whole.byteCounts.toClient, failures.count < 10 else { return }
                let places =
                    SessionCuts.together(toClient: next, whole.byteCounts)
                    + (next == 0 ? SessionCuts.alone(whole.byteCounts) : [])
                next += 1
                group.addTask { cut(places, expecting: whole.seen) }
            }
            begin()
            begin()
            for await (count, failed) in group {
                cutCount += count
                failures += failed
                for failure in failed { print(failure) }
                progress("\(next) of \(whole.byteCounts.toClient) bytes to the client")
                begin()
            }
        }
        progress("")
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        print(
            "\(cutCount) cuts of a script at every byte, \(whole.byteCounts.toClient) to the client,",
            "\(whole.byteCounts.toServer) to the server, in \(Int(seconds)) s:",
            failures.isEmpty ? "it always ended the same" : "\(failures.count) FAILED"
        )
        return failures.isEmpty
    }

    private static func cut(_ places: [SessionCuts.Place], expecting seen: SessionCutRun.Seen) -> (Int, [String]) {
        var (count, failures) = (0, [String]())
        for place in places {
            for death in SessionCuts.Death.allCases {
                count += 1
                if let failure = SessionCuts.run(place, death, expecting: seen) { failures.append(failure) }
            }
        }
        return (count, failures)
    }

    static func replay(_ seed: UInt64) async -> Bool {
        let result = await SessionScenario(seed: seed, isTracing: true).run()
        for line in result.trace { print(line) }
        if let failure = result.failure { print(SessionScenario.failureMessage(seed, failure)) }
        return result.failure == nil
    }
}
