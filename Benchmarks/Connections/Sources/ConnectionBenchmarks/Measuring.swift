internal import BenchmarkReport

/// Runs trials in rounds, so that other work on the machine disturbs all of them equally.
func measure(_ trials: [Trial], _ peers: Peers, _ scale: Scale) throws -> Measurements {
    try warmJavaUp(trials, peers, scale)
    var measurements = Measurements()
    for round in 1...scale.rounds {
        for trial in trials where round == 1 || trial.isRepeated {
            tell("round \(round) of \(scale.rounds): \(trial.case), \(trial.workload), \(trial.contender)")
            measurements.add(try trial.run(peers, scale), case: trial.case, contender: trial.contender)
        }
    }
    return measurements
}

extension Trial {
    /// Memory does not change from round to round, and trials with all those connections take seconds.
    fileprivate var isRepeated: Bool {
        switch kind {
        case .memory: false
        case .manyConnections(_, let count): count < 1_000
        default: true
        }
    }

    fileprivate var needsJava: Bool { client.hasPrefix(ContenderName.netty) }
}

/// Runs all of a Java client's trials until their code is compiled.
private func warmJavaUp(_ trials: [Trial], _ peers: Peers, _ scale: Scale) throws {
    for (client, trials) in Dictionary(grouping: trials.filter(\.needsJava), by: \.client) {
        tell("warming \(client) up")
        var warming = scale
        warming.warmUp = 1
        warming.measured = max(1, scale.javaWarmUp / trials.count)
        for trial in trials { _ = try trial.run(peers, warming) }
    }
}
