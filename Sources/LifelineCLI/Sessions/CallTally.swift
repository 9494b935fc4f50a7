/// Counts the outcomes of the calls of one method.
struct CallTally {
    private(set) var repliedCount = 0
    private(set) var inDoubtCount = 0
    /// The number of replies to durable calls of an earlier run, or after the timeout.
    private(set) var lateReplyCount = 0
    private var latencies = LatencyHistogram()

    mutating func replied(after latency: Duration) {
        repliedCount += 1
        latencies.add(latency)
    }

    mutating func repliedLate() { lateReplyCount += 1 }

    /// Notes that the session was lost, and it is unknown whether the server has handled a call.
    mutating func wasInDoubt() { inDoubtCount += 1 }

    /// Returns the result in words: `1000 calls in 0.51 s, 1960 a second; half within 0.98 ms, 99 % within 2.05 ms, all
    /// within 4.10 ms`.
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
        if lateReplyCount > 0 { text += "; \(lateReplyCount) late replies to earlier calls" }
        if inDoubtCount > 0 { text += "; \(inDoubtCount) in doubt when a session was lost" }
        return text
    }

    /// Returns the result for a program.
    ///
    /// - Parameter duration: of all calls together.
    func report(duration: Duration) -> CallReport {
        CallReport(
            calls: repliedCount,
            inDoubt: inDoubtCount,
            late: lateReplyCount,
            seconds: duration / .seconds(1),
            p50: latencies.percentile(0.5) / .seconds(1),
            p99: latencies.percentile(0.99) / .seconds(1),
            max: latencies.longest / .seconds(1)
        )
    }
}

/// The output of `call --count --json`: numbers of calls, and times in seconds. `late` are replies to earlier calls.
struct CallReport: Encodable {
    let calls: Int
    let inDoubt: Int
    let late: Int
    let seconds: Double
    let p50: Double
    let p99: Double
    let max: Double
}

private func milliseconds(_ duration: Duration) -> String { "\(decimal(duration / .milliseconds(1), places: 2)) ms" }
