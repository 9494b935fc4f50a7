/// The results of connection trials.
public struct Measurements: Sendable {
    private struct Key: Hashable {
        let `case`: String
        let workload: String
        let contender: String
        let metric: Metric
    }

    private var values: [Key: [Double]] = [:]
    /// In the order in which they were measured first.
    private(set) var workloads: [(case: String, workload: String)] = []

    public init() {}

    /// Adds the result of one round.
    ///
    /// - Parameter contender: one of `ContenderName.all`.
    public mutating func add(_ samples: [Sample], case: String, contender: String) {
        for sample in samples {
            let key = Key(case: `case`, workload: sample.workload, contender: contender, metric: sample.metric)
            values[key, default: []].append(sample.value)
            if !workloads.contains(where: { $0 == (`case`, sample.workload) }) {
                workloads.append((`case`, sample.workload))
            }
        }
    }

    /// The median of all rounds; nil if nothing was measured.
    func value(_ metric: Metric, _ case: String, _ workload: String, _ contender: String) -> Double? {
        values[Key(case: `case`, workload: workload, contender: contender, metric: metric)]?.median
    }

    /// The medians, those of one case and unit together.
    ///
    /// - Parameter cases: the cases; nil for all.
    public func results(of cases: Set<String>? = nil) -> Results {
        var results = Results()
        for metric in Metric.allCases {
            for (name, workload) in workloads where cases?.contains(name) ?? true {
                let medians = ContenderName.all.compactMap { contender in
                    value(metric, name, workload, contender).map { (contender: contender, value: $0) }
                }
                results.add(medians, case: name, workload: workload, unit: metric.rawValue, isRate: metric.isRate)
            }
        }
        return results
    }
}
