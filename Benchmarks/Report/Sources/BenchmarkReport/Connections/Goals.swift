extension Measurements {
    /// The goals of Lifeline, in numbers of this run.
    public var goals: [Goal] {
        frameGoals + streamGoals + requestGoals + pushGoals + sessionStreamGoals + roundTripGoals + connectionGoals
    }

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

    /// The rate if the busier side had its core for itself all the time.
    private func processorRate(_ case: String, _ workload: String, _ contender: String) -> Double? {
        processorTime(`case`, workload, contender).map { 1 / max($0.client, $0.server) }
    }

    /// The processor time of a message at each side, in nanoseconds.
    private func processorTime(
        _ case: String,
        _ workload: String,
        _ contender: String
    ) -> (client: Double, server: Double)? {
        guard
            let client = value(.clientCPU, `case`, workload, contender),
            let server = value(.serverCPU, `case`, workload, contender)
        else { return nil }
        return (client, server)
    }

    private var frameGoals: [Goal] {
        let limit = ContenderName.c
        let server = ContenderName.pair(limit, ContenderName.frames)
        return [(64, 32, 0.9), (64, 512, 0.9), (1024, 32, 0.85), (1024, 512, 0.85), (64, 65_536, 0.95)].map {
            let (inFlight, workload) = ($0.0, WorkloadName.messages(of: $0.1))
            let echo = CaseName.echo(inFlight: inFlight)
            return rate(
                "\(echo), \(workload): frames' server over C",
                atLeast: $0.2,
                echo,
                workload,
                server,
                over: limit
            )
        } + [
            rate(
                "one-way, 64 KiB: frames' server over C",
                atLeast: 0.95,
                CaseName.oneWay,
                WorkloadName.messages(of: 65_536),
                server,
                over: limit
            )
        ]
    }

    private var streamGoals: [Goal] {
        typealias Name = ContenderName
        let (small, medium) = (WorkloadName.messages(of: 32), WorkloadName.messages(of: 512))
        let (oneWay, echo, chat) = (CaseName.oneWay, CaseName.echo(inFlight: 64), CaseName.oneWayChat)
        let (both, client, netty) = (Name.batches, Name.pair(Name.batches, Name.c), Name.pair(Name.netty, Name.c))
        return [
            rate("one-way, 32 B: batches over C", atLeast: 0.5, oneWay, small, both, over: Name.c),
            rate("echo-64, 512 B: batches over C", atLeast: 0.7, echo, medium, both, over: Name.c),
            rate("one-way-chat: decoded over C", atLeast: 0.25, chat, WorkloadName.chat, Name.chat, over: Name.c),
            rate("echo-64, 32 B: batches over gRPC", atLeast: 15, echo, small, both, over: Name.grpcStream),
            rate("one-way, 32 B: client over Netty", atLeast: 2, oneWay, small, client, over: netty),
            rate("echo-64, 32 B: client over Netty", atLeast: 2, echo, small, client, over: netty),
        ]
    }

    private var requestGoals: [Goal] {
        typealias Name = ContenderName
        let (calls, alone) = (CaseName.requests, WorkloadName.calls(inFlight: 1))
        let (some, many) = (WorkloadName.calls(inFlight: 64), WorkloadName.calls(inFlight: 1024))
        func cost(_ words: String, atMost bound: Double, _ metric: Metric, _ contender: String) -> Goal {
            Goal("64 requests: \(words), CPU ns", .atMost(bound), value: value(metric, calls, some, contender))
        }
        return [
            rate("64 requests on the loop: over C", atLeast: 0.55, calls, some, Name.requestsOnLoop, over: Name.c),
            rate("64 requests: over C's echoes", atLeast: 0.30, calls, some, Name.requests, over: Name.c),
            rate("64 requests: over unary gRPC", atLeast: 60, calls, some, Name.requests, over: Name.grpcCalls),
            millions("1,024 requests on the loop", atLeast: 1.2, calls, many, Name.requestsOnLoop),
            cost("client on the loop", atMost: 900, .clientCPU, Name.requestsOnLoop),
            cost("client", atMost: 1_500, .clientCPU, Name.requests),
            cost("server", atMost: 900, .serverCPU, Name.requestsOnLoop),
            cost("server's synchronous handler", atMost: 500, .serverCPU, Name.requestsOnLoopSynchronous),
            Goal(
                "a request alone: over C's round trip",
                .atMost(1.6),
                value: quotient(.median, calls, alone, Name.requests, over: Name.c)
            ),
        ]
    }

    private var pushGoals: [Goal] {
        let (small, pushes) = (WorkloadName.messages(of: 32), ContenderName.pushes)
        func cost(_ side: String, atMost bound: Double, _ metric: Metric) -> Goal {
            let value = self.value(metric, CaseName.pushes, small, pushes)
            return Goal("pushes, 32 B: \(side), CPU ns", .atMost(bound), value: value)
        }
        return [
            millions("pushes, 32 B", atLeast: 5, CaseName.pushes, small, pushes),
            cost("client", atMost: 150, .clientCPU),
            cost("server", atMost: 180, .serverCPU),
        ] + [CaseName.pushes, CaseName.pushesFromServer].map { costOverPlainMessages($0, pushes) }
    }

    private var sessionStreamGoals: [Goal] {
        let (small, streams) = (WorkloadName.messages(of: 32), ContenderName.streams)
        let oneWay = [CaseName.serverStream, CaseName.clientStream]
        return oneWay.map { costOverPlainMessages($0, streams) }
            + (oneWay + [CaseName.bothWays]).map {
                rate("\($0), 32 B: over gRPC", atLeast: 15, $0, small, streams, over: ContenderName.grpcCalls)
            }
    }

    /// A goal for a rate in millions of messages a second.
    private func millions(
        _ words: String,
        atLeast bound: Double,
        _ case: String,
        _ workload: String,
        _ contender: String
    ) -> Goal {
        Goal(
            "\(words), millions/s",
            .atLeast(bound),
            value: value(.rate, `case`, workload, contender).map { $0 / 1e6 },
            // A message a nanosecond is 1,000 millions a second.
            byCPU: processorRate(`case`, workload, contender).map { $0 * 1e3 }
        )
    }

    /// A goal for the cost of a decoded session message for both sides, over that of a plain connection's message.
    private func costOverPlainMessages(_ case: String, _ contender: String) -> Goal {
        func cost(_ case: String, _ contender: String) -> Double? {
            processorTime(`case`, WorkloadName.chat, contender).map { $0.client + $0.server }
        }
        let plain = cost(CaseName.oneWayChat, ContenderName.chat)
        let quotient = cost(`case`, contender).flatMap { cost in plain.map { cost / $0 } }
        return Goal("\(`case`), chat: CPU over plain messages", .atMost(1.4), value: quotient)
    }

    private var roundTripGoals: [Goal] {
        typealias Name = ContenderName
        func goal(_ words: String, atMost bound: Double, _ contender: String, over other: String) -> Goal {
            let workload = WorkloadName.messages(of: 32)
            let value = quotient(.median, CaseName.roundTrip, workload, contender, over: other)
            return Goal("round trip: \(words)", .atMost(bound), value: value)
        }
        return [
            goal("client ours over C", atMost: 1.15, Name.pair(Name.batches, Name.c), over: Name.c),
            goal("server ours over C", atMost: 1.15, Name.pair(Name.c, Name.batches), over: Name.c),
            goal("both ours over C", atMost: 1.35, Name.batches, over: Name.c),
            goal("both ours over gRPC", atMost: 1.0 / 12, Name.batches, over: Name.grpcStream),
        ]
    }

    private var connectionGoals: [Goal] {
        let limit = ContenderName.c
        let server = ContenderName.pair(limit, ContenderName.batches)
        func kilobytes(_ workload: String) -> Double? {
            value(.serverMemory, CaseName.idleMemory, workload, server).map { $0 / 1000 }
        }
        // C's growth comes from the kernel and from caches.
        func growth(_ case: String, _ contender: String) -> Double? {
            guard
                let ours = serverCosts(of: `case`, contender).growth,
                let limit = serverCosts(of: `case`, limit).growth
            else { return nil }
            return ours / limit
        }
        return [
            Goal("idle server connection, KB", .atMost(5), value: kilobytes(WorkloadName.idle)),
            Goal("idle server connection after 60 KB, KB", .atMost(6), value: kilobytes(WorkloadName.afterBurst)),
            Goal(
                "accept and first echo: server CPU over C",
                .atMost(2),
                value: quotient(.serverCPUPerConnection, CaseName.accept, WorkloadName.firstEcho, server, over: limit)
            ),
            Goal(
                "growth of server CPU with messages, over C's",
                .atMost(1.2),
                value: growth(CaseName.growthWithMessages, ContenderName.batches)
            ),
            Goal(
                "growth of server CPU with connections, over C's",
                .atMost(1.2),
                value: growth(CaseName.growthWithConnections, server)
            ),
        ]
    }

    /// A contender's costs in a case, in the order in which its workloads were measured.
    private func serverCosts(of case: String, _ contender: String) -> [Double] {
        workloads.filter { $0.case == `case` }.compactMap { value(.serverCPU, `case`, $0.workload, contender) }
    }
}

extension [Double] {
    /// The last cost over the lowest earlier one.
    fileprivate var growth: Double? {
        guard let last, let least = dropLast().min() else { return nil }
        return last / least
    }
}
