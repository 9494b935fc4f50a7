/// Durations and their percentiles.
package struct Durations: Sendable {
    private let sorted: [Duration]

    /// `durations` are in any order, and at least one.
    package init(_ durations: [Duration]) {
        precondition(!durations.isEmpty, "There is no percentile of nothing.")
        self.sorted = durations.sorted()
    }

    /// The percentile by nearest rank: the smallest duration that is not exceeded by a percentage of all.
    package func percentile(_ percent: Int) -> Duration {
        precondition((1...100).contains(percent), "Percentiles go from 1 to 100.")
        return sorted[(sorted.count * percent + 99) / 100 - 1]
    }

    package var maximum: Duration { percentile(100) }
}

extension Duration {
    /// The same as a number of milliseconds.
    package var milliseconds: Double { self / .milliseconds(1) }
}
