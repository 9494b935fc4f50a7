internal import Foundation

/// A bound that is to be kept, and whether a run kept it.
public struct Goal: Sendable {
    /// What is compared with what.
    public let name: String
    /// How much it is to be at least, or at most.
    public let bound: Bound
    /// How much it was; nil where it was not measured.
    public let value: Double?

    public enum Bound: Sendable {
        case atLeast(Double)
        case atMost(Double)
    }

    public init(_ name: String, _ bound: Bound, value: Double?) {
        self.name = name
        self.bound = bound
        // What could not be divided was not measured.
        self.value = value.flatMap { $0.isFinite ? $0 : nil }
    }

    /// Nil where it was not measured.
    public var isMet: Bool? {
        value.map { value in
            switch bound {
            case .atLeast(let bound): value >= bound
            case .atMost(let bound): value <= bound
            }
        }
    }
}

extension [Goal] {
    /// A line for each goal that was measured.
    public var table: String {
        let lines = compactMap { goal -> [String]? in
            guard let value = goal.value, let isMet = goal.isMet else { return nil }
            return [goal.name, "\(goal.bound)", String(format: "%.2f", value), isMet ? "met" : "MISSED"]
        }
        return alignedTable([["Goal", "wanted", "measured", ""]] + lines)
    }
}

extension Goal.Bound: CustomStringConvertible {
    public var description: String {
        switch self {
        case .atLeast(let bound): String(format: ">= %.2f", bound)
        case .atMost(let bound): String(format: "<= %.2f", bound)
        }
    }
}

extension Collection<Double> {
    /// The middle value; of an even number, the mean of the two. Nil when there are none.
    public var median: Double? {
        let sorted = self.sorted()
        guard !sorted.isEmpty else { return nil }
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }
}
