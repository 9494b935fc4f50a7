import ClubStories
internal import Glibc
import LifelineTesting
import NIOConcurrencyHelpers

/// Runs stories of the example club; `scripts/soak` calls it and explains the arguments.
enum ClubSoak {
    private struct Totals {
        var stories: UInt64 = 0
        var simulatedTime = Duration.zero
    }

    /// - Parameter progress: shows the number of played stories.
    static func runAll(_ count: UInt64, progress: @escaping @Sendable (String) -> Void) async -> Bool {
        let started = ContinuousClock.now
        let totals = NIOLockedValueBox(Totals())
        do {
            try await simulate(seeds: 1...max(1, count), name: "staysInOrderOnABadDay") { world in
                try await playClub(Cast(), in: world)
                let played = totals.withLockedValue { totals in
                    totals.stories += 1
                    totals.simulatedTime += world.now
                    return totals.stories
                }
                if played.isMultiple(of: 100) { progress("\(played) of \(count) club stories") }
            }
        } catch {
            progress("")
            print(error)
            return false
        }
        progress("")
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        let (stories, simulated) = totals.withLockedValue { ($0.stories, $0.simulatedTime / .seconds(1)) }
        print(
            "\(stories) club stories, \(Int(simulated)) simulated seconds in \(Int(seconds)) s",
            "(\(Int(Double(stories) / seconds)) stories and \(Int(simulated / seconds)) simulated seconds a second):",
            "everything held"
        )
        return true
    }

    /// The seed of a story with faults.
    private static let replayedSeed: UInt64 = 1

    /// Plays one story `count` times, more at once than there are processors, and compares the traces.
    static func replay(_ count: UInt64) async -> Bool {
        let runner = StoryRunner { try await playClub(Cast(), in: $0) }
        let first = await runner.play(replayedSeed, nil, isTracing: true)
        // Equal in all processes, because LifelineTesting makes hashing deterministic.
        var fingerprint = Hasher()
        fingerprint.combine(first.trace)
        let others = await withTaskGroup(of: [String].self) { group in
            var (next, others) = (UInt64(1), [[String]]())
            func begin() {
                guard next < count else { return }
                next += 1
                group.addTask { await runner.play(replayedSeed, nil, isTracing: true).trace }
            }
            for _ in 0..<4 * sysconf(Int32(_SC_NPROCESSORS_ONLN)) { begin() }
            for await trace in group {
                if trace != first.trace { others.append(trace) }
                begin()
            }
            return others
        }
        for other in others.prefix(3) {
            let differing = zip(first.trace, other).first { $0 != $1 }
            print("Seed \(replayedSeed) once:  \(differing?.0 ?? "\(first.trace.count) lines")")
            print("and then again: \(differing?.1 ?? "\(other.count) lines")")
        }
        print(
            "seed \(replayedSeed) of the club, \(count) times, \(first.trace.count) lines each,",
            "fingerprint \(String(UInt(bitPattern: fingerprint.finalize()), radix: 16)):",
            others.isEmpty ? "always the same" : "\(others.count) FAILED"
        )
        return others.isEmpty
    }

    /// Plays the members' part over real connections, and prints how long that takes.
    static func playOverLoopback() async -> Bool {
        let started = ContinuousClock.now
        do {
            let complaint = try await playClubOverLoopback(slowness: .seconds(1), maximumPause: .milliseconds(400))
            let seconds = (ContinuousClock.now - started) / .seconds(1)
            print(
                "the club over loopback, in \(Int(seconds)) s:",
                complaint.map { "FAILED: \($0)" } ?? "everything held"
            )
            return complaint == nil
        } catch {
            print("FAILED: \(error)")
            return false
        }
    }

    /// Finds each planted bug, and prints the rows of the table in docs/simulation.md.
    static func findBugs() async -> Bool {
        var isEachFound = true
        for bug in PlantedBug.all {
            let started = ScenarioSoak.processorTime
            guard let (seed, failure) = await bug.find() else {
                print("| \(bug.name) | NOT FOUND |")
                isEachFound = false
                continue
            }
            let milliseconds = Int((ScenarioSoak.processorTime - started) / .milliseconds(1))
            let report = await bug.runner.report(failure, seed, nil, name: "findsPlantedBug")
            print(
                "| \(bug.name) | \(seed) | \(milliseconds) | \(report.faults.count)",
                "| \(report.failure.description.prefix { $0 != "\n" }) |"
            )
            fflush(nil)
        }
        return isEachFound
    }
}
