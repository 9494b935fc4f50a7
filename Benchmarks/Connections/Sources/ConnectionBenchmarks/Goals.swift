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

    private func rates(_ case: String, _ workload: String, _ contender: String, over other: String) -> Double? {
        quotient(.rate, `case`, workload, contender, over: other)
    }

    private var streamGoals: [Goal] {
        let batches = "lifeline-batches"
        let netty = [("one-way", "one-way"), ("echo-64", "echo with 64 in flight")].map { name, words in
            Goal(
                "\(words), 32 B: client's rate over netty's",
                .atLeast(2),
                value: rates(name, "32 B", "\(batches) to c", over: "netty to c")
            )
        }
        return [
            Goal("one-way, 32 B: batches over C", .atLeast(0.5), value: rates("one-way", "32 B", batches, over: "c")),
            Goal(
                "echo with 64 in flight, 512 B: batches over C",
                .atLeast(0.7),
                value: rates("echo-64", "512 B", batches, over: "c")
            ),
            Goal(
                "one-way, chat: for try await over C",
                .atLeast(0.25),
                value: rates("one-way-chat", "chat", "lifeline-chat", over: "c")
            ),
            Goal(
                "echo with 64 in flight, 32 B: batches over gRPC",
                .atLeast(15),
                value: rates("echo-64", "32 B", batches, over: "grpc-stream")
            ),
        ] + netty
    }

    private var sessionGoals: [Goal] {
        [
            Goal(
                "requests, 64 in flight: over C's echoes",
                .atLeast(0.27),
                value: rates("requests", "64 in flight", "lifeline-requests", over: "c")
            ),
            Goal(
                "requests, 64 in flight: over unary gRPC",
                .atLeast(100),
                value: rates("requests", "64 in flight", "lifeline-requests", over: "grpc-unary")
            ),
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
        // Each against C's own growth would forgive ours where the kernel's grows: these are absolute.
        let messages = workloads(of: "growth-messages", .serverCPU, "lifeline-batches")
        let connections = workloads(of: "growth-connections", .serverCPU, server)
        return [
            Goal("idle server connection, KB", .atMost(5), value: kilobytes("idle")),
            Goal("idle server connection after 60 KB, KB", .atMost(6), value: kilobytes("after 60 KB")),
            Goal(
                "accept and first echo: server CPU over C",
                .atMost(2),
                value: quotient(.serverCPUPerConnection, "accept", "and a first echo", server, over: "c")
            ),
            Goal("growth of server CPU with messages", .atMost(1.2), value: messages.growth),
            Goal("growth of server CPU with connections", .atMost(1.2), value: connections.growth),
        ]
    }

    /// A contender's numbers of a case, in the order in which its workloads were measured.
    private func workloads(of case: String, _ metric: Metric, _ contender: String) -> [Double] {
        workloads.filter { $0.case == `case` }.compactMap { value(metric, `case`, $0.workload, contender) }
    }
}

extension [Double] {
    /// The largest one over the first.
    fileprivate var growth: Double? {
        guard count > 1, let first, let max = self.max() else { return nil }
        return max / first
    }
}
