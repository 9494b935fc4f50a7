internal import BenchmarkReport

extension Measurements {
    /// What Lifeline has to reach, in numbers of this run.
    var goals: [Goal] { streamGoals + sessionGoals + roundTripGoals + connectionGoals }

    /// One contender's number over another's.
    private func quotient(
        _ metric: Metric,
        _ case: String,
        _ workload: String,
        _ contender: String,
        over other: String
    ) -> Double? {
        guard
            let value = value(metric, `case`, workload, contender),
            let other = self.value(metric, `case`, workload, other)
        else { return nil }
        return value / other
    }

    /// A goal for one contender's rate over another's.
    private func rate(
        _ words: String,
        atLeast bound: Double,
        _ case: String,
        _ workload: String,
        _ contender: String,
        over other: String
    ) -> Goal {
        let byCPU = processorRate(`case`, workload, contender).flatMap { rate in
            processorRate(`case`, workload, other).map { rate / $0 }
        }
        return Goal(
            words,
            .atLeast(bound),
            value: quotient(.rate, `case`, workload, contender, over: other),
            byCPU: byCPU
        )
    }

    /// The rate at which the busier side would have its core to itself all the time.
    private func processorRate(_ case: String, _ workload: String, _ contender: String) -> Double? {
        guard
            let client = value(.clientCPU, `case`, workload, contender),
            let server = value(.serverCPU, `case`, workload, contender)
        else { return nil }
        return 1 / max(client, server)
    }

    private var streamGoals: [Goal] {
        let both = "lifeline-batches"
        let client = "lifeline-batches to c"
        let netty = "netty to c"
        return [
            rate("one-way, 32 B: batches over C", atLeast: 0.5, "one-way", "32 B", both, over: "c"),
            rate("echo-64, 512 B: batches over C", atLeast: 0.7, "echo-64", "512 B", both, over: "c"),
            rate("one-way-chat: decoded over C", atLeast: 0.25, "one-way-chat", "chat", "lifeline-chat", over: "c"),
            rate("echo-64, 32 B: batches over gRPC", atLeast: 15, "echo-64", "32 B", both, over: "grpc-stream"),
            rate("one-way, 32 B: client over Netty", atLeast: 2, "one-way", "32 B", client, over: netty),
            rate("echo-64, 32 B: client over Netty", atLeast: 2, "echo-64", "32 B", client, over: netty),
        ]
    }

    private var sessionGoals: [Goal] {
        let (workload, ours) = ("64 in flight", "lifeline-requests")
        return [
            rate("64 requests: over C's echoes", atLeast: 0.27, "requests", workload, ours, over: "c"),
            rate("64 requests: over unary gRPC", atLeast: 100, "requests", workload, ours, over: "grpc-unary"),
        ]
    }

    private var roundTripGoals: [Goal] {
        func median(_ contender: String, over other: String) -> Double? {
            quotient(.median, "round-trip", "32 B", contender, over: other)
        }
        return [
            Goal("round trip: client ours over C", .atMost(1.15), value: median("lifeline-batches to c", over: "c")),
            Goal("round trip: server ours over C", .atMost(1.15), value: median("c to lifeline-batches", over: "c")),
            Goal("round trip: both ours over C", .atMost(1.35), value: median("lifeline-batches", over: "c")),
            Goal(
                "round trip: both ours over gRPC",
                .atMost(1.0 / 12),
                value: median("lifeline-batches", over: "grpc-stream")
            ),
        ]
    }

    private var connectionGoals: [Goal] {
        let server = "c to lifeline-batches"
        func kilobytes(_ workload: String) -> Double? {
            value(.serverMemory, "idle-memory", workload, server).map { $0 / 1000 }
        }
        // C's own growth is the kernel's, and that of what caches hold.
        func growth(_ case: String, _ contender: String) -> Double? {
            guard
                let ours = serverCosts(of: `case`, contender).growth,
                let limit = serverCosts(of: `case`, "c").growth
            else { return nil }
            return ours / limit
        }
        return [
            Goal("idle server connection, KB", .atMost(5), value: kilobytes("idle")),
            Goal("idle server connection after 60 KB, KB", .atMost(6), value: kilobytes("after 60 KB")),
            Goal(
                "accept and first echo: server CPU over C",
                .atMost(2),
                value: quotient(.serverCPUPerConnection, "accept", "and echo", server, over: "c")
            ),
            Goal(
                "growth of server CPU with messages, over C's",
                .atMost(1.2),
                value: growth("growth-messages", "lifeline-batches")
            ),
            Goal(
                "growth of server CPU with connections, over C's",
                .atMost(1.2),
                value: growth("growth-connections", server)
            ),
        ]
    }

    /// A contender's costs in a case, in the order in which its workloads were measured.
    private func serverCosts(of case: String, _ contender: String) -> [Double] {
        workloads.filter { $0.case == `case` }.compactMap { value(.serverCPU, `case`, $0.workload, contender) }
    }
}

extension [Double] {
    /// The last one over the least of those before.
    fileprivate var growth: Double? {
        guard let last, let least = dropLast().min() else { return nil }
        return last / least
    }
}
