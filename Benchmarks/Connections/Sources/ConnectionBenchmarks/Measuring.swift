internal import BenchmarkReport

/// What the trials of a run came to.
struct Measurements {
    private struct Key: Hashable {
        let `case`: String
        let workload: String
        let contender: String
        let metric: Metric
    }

    private var values: [Key: [Double]] = [:]
    /// In the order in which they were measured first.
    private(set) var workloads: [(case: String, workload: String)] = []

    mutating func add(_ samples: [Sample], of trial: Trial) {
        for sample in samples {
            let key = Key(
                case: trial.case,
                workload: sample.workload,
                contender: trial.contender,
                metric: sample.metric
            )
            values[key, default: []].append(sample.value)
            if !workloads.contains(where: { $0 == (trial.case, sample.workload) }) {
                workloads.append((trial.case, sample.workload))
            }
        }
    }

    /// The median of all rounds; nil where nothing was measured.
    func value(_ metric: Metric, _ case: String, _ workload: String, _ contender: String) -> Double? {
        values[Key(case: `case`, workload: workload, contender: contender, metric: metric)]?.median
    }

    /// The medians, those of one case and unit together.
    func results(of cases: Set<String>) -> Results {
        var results = Results()
        for metric in Metric.allCases {
            for (name, workload) in workloads where cases.contains(name) {
                let medians = Trial.contenders.compactMap { contender in
                    value(metric, name, workload, contender).map { (contender: contender, value: $0) }
                }
                results.add(medians, case: name, workload: workload, unit: metric.rawValue, isRate: metric.isRate)
            }
        }
        return results
    }
}

/// Runs trials in rounds, so that whatever else the machine does falls on all of them alike.
func measure(_ trials: [Trial], _ peers: Peers, _ scale: Scale) throws -> Measurements {
    try warmJavaUp(trials, peers, scale)
    var measurements = Measurements()
    for round in 1...scale.rounds {
        for trial in trials where round == 1 || trial.isRepeated {
            tell("round \(round) of \(scale.rounds): \(trial.case), \(trial.workload), \(trial.contender)")
            measurements.add(try trial.run(peers, scale), of: trial)
        }
    }
    return measurements
}

extension Trial {
    /// Memory does not change from round to round, and what takes all those connections takes seconds.
    fileprivate var isRepeated: Bool {
        switch kind {
        case .memory: false
        case .manyConnections(_, let count): count < 1_000
        default: true
        }
    }

    fileprivate var needsJava: Bool { client.hasPrefix("netty") }
}

/// Runs all of a Java client's trials until what they run is compiled.
private func warmJavaUp(_ trials: [Trial], _ peers: Peers, _ scale: Scale) throws {
    for (client, trials) in Dictionary(grouping: trials.filter(\.needsJava), by: \.client) {
        tell("warming \(client) up")
        var warming = scale
        warming.warmUp = 1
        warming.measured = max(1, scale.javaWarmUp / trials.count)
        for trial in trials { _ = try trial.run(peers, warming) }
    }
}
