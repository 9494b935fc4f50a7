/// What became of the calls of one method.
struct CallTally {
    private(set) var repliedCount = 0
    private(set) var inDoubtCount = 0
    private var latencies = LatencyHistogram()

    mutating func replied(after latency: Duration) {
        repliedCount += 1
        latencies.add(latency)
    }

    /// The session was lost, and nobody knows whether the server has handled a call.
    mutating func wasInDoubt() { inDoubtCount += 1 }

    /// In words: `1000 calls in 0.51 s, 1960 a second; half within 0.98 ms, 99 % within 2.05 ms, all within 4.10 ms`.
    ///
    /// - Parameter duration: of all calls together.
    func summary(duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        var text = repliedCount == 1 ? "1 call" : "\(repliedCount) calls"
        text += " in \(decimal(seconds, places: 2)) s"
        if repliedCount > 0 {
            text += ", \(Int(Double(repliedCount) / max(seconds, 1e-9))) a second"
            text += "; half within \(milliseconds(latencies.percentile(0.5)))"
            text += ", 99 % within \(milliseconds(latencies.percentile(0.99)))"
            text += ", all within \(milliseconds(latencies.longest))"
        }
        if inDoubtCount > 0 { text += "; \(inDoubtCount) in doubt when a session was lost" }
        return text
    }

    /// As a JSON object in a line: numbers of calls, and times in seconds.
    func json(duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        let times = [
            ("p50", latencies.percentile(0.5)), ("p99", latencies.percentile(0.99)), ("max", latencies.longest),
        ]
        let fields = times.map { "\"\($0.0)\":\($0.1 / .seconds(1))" }.joined(separator: ",")
        return #"{"calls":\#(repliedCount),"inDoubt":\#(inDoubtCount),"seconds":\#(seconds),"# + fields + "}"
    }
}

private func milliseconds(_ duration: Duration) -> String { "\(decimal(duration / .milliseconds(1), places: 2)) ms" }

/// A number with so many digits behind the point.
private func decimal(_ number: Double, places: Int) -> String {
    let scale = places == 0 ? 1 : (1...places).reduce(1) { scale, _ in scale * 10 }
    let scaled = Int((number * Double(scale)).rounded())
    return "\(scaled / scale).\(padded(scaled % scale, to: places))"
}
