/// A bound, and whether a run kept it.
public struct Goal: Sendable {
    /// The compared quantities.
    public let name: String
    /// The lower or upper bound.
    public let bound: Bound
    /// The measured value; nil if it was not measured.
    public let value: Double?
    /// The value by processor time, which other work on the machine disturbs less; nil if that is meaningless.
    public let valueByCPU: Double?

    public enum Bound: Sendable {
        case atLeast(Double)
        case atMost(Double)
    }

    public init(_ name: String, _ bound: Bound, value: Double?, byCPU valueByCPU: Double? = nil) {
        self.name = name
        self.bound = bound
        // A ratio that could not be divided counts as not measured.
        self.value = value.flatMap { $0.isFinite ? $0 : nil }
        self.valueByCPU = valueByCPU.flatMap { $0.isFinite ? $0 : nil }
    }

    /// Nil if it was not measured.
    public var verdict: Verdict? {
        guard let value else { return nil }
        switch (bound.holds(for: value), valueByCPU.map(bound.holds)) {
        case (true, nil), (true, true): return .met
        case (false, nil), (false, false): return .missed
        case (true, false): return .missedByCPU
        case (false, true): return .metByCPU
        }
    }

    public enum Verdict: String, Sendable {
        case met
        case missed = "MISSED"
        case metByCPU = "met by CPU only"
        case missedByCPU = "missed by CPU only"
    }
}

extension Goal.Bound {
    fileprivate func holds(for value: Double) -> Bool {
        switch self {
        case .atLeast(let bound): value >= bound
        case .atMost(let bound): value <= bound
        }
    }
}

extension [Goal] {
    /// A line for each goal.
    public var table: String {
        let lines = map { goal in
            [
                goal.name, "\(goal.bound)", goal.value?.inThreeDigits ?? "", goal.valueByCPU?.inThreeDigits ?? "",
                goal.verdict?.rawValue ?? "not measured",
            ]
        }
        return lines.isEmpty ? "" : alignedTable([["Goal", "wanted", "measured", "by CPU time", ""]] + lines)
    }
}

extension Goal.Bound: CustomStringConvertible {
    public var description: String {
        switch self {
        case .atLeast(let bound): ">= \(bound.inThreeDigits)"
        case .atMost(let bound): "<= \(bound.inThreeDigits)"
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
