internal import Glibc
internal import LifelineScenarios

/// Runs random scenarios on simulated time; `scripts/soak` calls it and explains the arguments.
@main
enum ScenarioSoak {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch (arguments.first, arguments.dropFirst().first.flatMap { UInt64($0) }) {
        case ("--scenarios", let count?): exit(await runAll(count) ? 0 : 1)
        case ("--scenario", let seed?): exit(await replay(seed) ? 0 : 1)
        case ("--session-scenarios", let count?): exit(await SessionSoak.runAll(count, progress: progress) ? 0 : 1)
        case ("--session-scenario", let seed?): exit(await SessionSoak.replay(seed) ? 0 : 1)
        case ("--durable-scenarios", let count?): exit(await DurableSoak.runAll(count, progress: progress) ? 0 : 1)
        case ("--durable-scenario", let seed?): exit(await DurableSoak.replay(seed) ? 0 : 1)
        case ("--group-scenarios", let count?): exit(await GroupSoak.runAll(count, progress: progress) ? 0 : 1)
        case ("--group-scenario", let seed?): exit(GroupSoak.replay(seed) ? 0 : 1)
        case ("--presence-scenarios", let count?): exit(await PresenceSoak.runAll(count, progress: progress) ? 0 : 1)
        case ("--presence-scenario", let seed?): exit(PresenceSoak.replay(seed) ? 0 : 1)
        case ("--fleet-scenarios", let count?): exit(await FleetSoak.runAll(count) ? 0 : 1)
        case ("--club-scenarios", let count?): exit(await ClubSoak.runAll(count, progress: progress) ? 0 : 1)
        case ("--club-replays", let count?): exit(await ClubSoak.replay(count) ? 0 : 1)
        case ("--club-bugs", _): exit(await ClubSoak.findBugs() ? 0 : 1)
        case ("--club-over-loopback", _): exit(await ClubSoak.playOverLoopback() ? 0 : 1)
        case ("--session-cuts", _): exit(await SessionSoak.cutEverywhere(progress: progress) ? 0 : 1)
        case ("--hour", _): exit(await runHour() ? 0 : 1)
        default:
            print(
                "Usage: ScenarioSoak --scenarios COUNT | --scenario SEED | --session-scenarios COUNT |",
                "--session-scenario SEED | --durable-scenarios COUNT | --durable-scenario SEED |",
                "--group-scenarios COUNT | --group-scenario SEED | --presence-scenarios COUNT |",
                "--presence-scenario SEED | --fleet-scenarios COUNT | --club-scenarios COUNT |",
                "--club-replays COUNT | --club-bugs | --club-over-loopback | --session-cuts | --hour"
            )
            exit(64)
        }
    }

    private struct Total {
        var scenarioCount: UInt64 = 0
        var eventCount = 0
        var simulatedTime = Duration.zero
        var failures: [(seed: UInt64, what: String)] = []

        mutating func add(_ other: Total) {
            scenarioCount += other.scenarioCount
            eventCount += other.eventCount
            simulatedTime += other.simulatedTime
            failures += other.failures
        }
    }

    private static func runAll(_ count: UInt64) async -> Bool {
        let started = ContinuousClock.now
        var total = Total()
        await Seeds.run(below: count, run) { part in
            total.add(part)
            for (seed, what) in part.failures { print(Scenario.failureMessage(seed, what)) }
            progress("\(total.scenarioCount) of \(count) scenarios")
            return total.failures.count < 10
        }
        progress("")
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        let days = total.simulatedTime / .seconds(86_400)
        print(
            "\(total.scenarioCount) scenarios, \(total.eventCount) events, \(Int(days)) simulated days",
            "in \(Int(seconds)) s (\(Int(Double(total.scenarioCount) / seconds)) scenarios a second):",
            total.failures.isEmpty ? "everything held" : "\(total.failures.count) FAILED"
        )
        return total.failures.isEmpty
    }

    @Sendable private static func run(_ seeds: Range<UInt64>) async -> Total {
        var total = Total()
        for seed in seeds {
            let result = await Scenario(seed: seed, isTracing: false).run()
            total.scenarioCount += 1
            total.eventCount += result.eventCount
            total.simulatedTime += result.simulatedTime
            if let failure = result.failure { total.failures.append((seed, failure)) }
        }
        return total
    }

    private static func replay(_ seed: UInt64) async -> Bool {
        let result = await Scenario(seed: seed, isTracing: true).run()
        for line in result.trace { print(line) }
        if let failure = result.failure { print(Scenario.failureMessage(seed, failure)) }
        return result.failure == nil
    }

    /// The promised 100 ms of processor time, which does not depend on other programs.
    private static let hourLimit = Duration.milliseconds(100)

    private static func runHour() async -> Bool {
        var fastest = Duration.seconds(3_600)
        var hour: OutageHour?
        // The first run also loads code and warms caches.
        for _ in 0..<5 {
            let started = processorTime
            do { hour = try await OutageHour.run(seed: 1) } catch { print("FAILED: \(error)") }
            fastest = min(fastest, processorTime - started)
        }
        guard let hour else { return false }
        let milliseconds = Double(Int(fastest / .microseconds(10))) / 100
        print(
            "one simulated hour: \(hour.outageCount) outages, \(hour.transitionCount) steps,",
            "\(hour.deliveredCount) messages delivered,",
            "in \(milliseconds) ms of processor time (fastest of 5)"
        )
        if fastest > hourLimit { print("FAILED: it takes more than \(hourLimit)") }
        if !hour.isPlausible { print("FAILED: so many steps and messages do not come of these outages") }
        return fastest <= hourLimit && hour.isPlausible
    }

    static var processorTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Replaces the line of progress, on a terminal only.
    @Sendable private static func progress(_ text: String) {
        guard isatty(2) == 1 else { return }
        let line = "\r\u{1B}[K\(text)"
        _ = line.utf8.withContiguousStorageIfAvailable { write(2, $0.baseAddress, $0.count) }
    }
}
