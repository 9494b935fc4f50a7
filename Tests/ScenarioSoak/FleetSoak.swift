import LifelineScenarios
import LifelineTesting
import NIOConcurrencyHelpers

/// Runs stories of whole fleets; `scripts/soak` calls it and explains the arguments.
enum FleetSoak {
    static func runAll(_ count: UInt64) async -> Bool {
        let started = ContinuousClock.now
        let totals = NIOLockedValueBox(FleetStory.Totals())
        do {
            try await simulate(seeds: 1...max(1, count), name: "aBadDay") { world in
                try await FleetStory.tell(in: world) { total in totals.withLockedValue { $0 += total } }
            }
            let seconds = (ContinuousClock.now - started) / .seconds(1)
            print("\(count) fleet stories in \(Int(seconds)) s, \(totals.withLockedValue { $0 }): everything held")
            return true
        } catch {
            print(error)
            return false
        }
    }
}
