internal import BenchmarkReport

extension Trial {
    /// All trials, in groups that share a drawing.
    static func groups(_ scale: Scale) -> [(name: String, trials: [Trial])] {
        [
            ("Streams", streams),
            ("Round trips", roundTrips),
            ("Sessions", sessions),
            ("Connections", connections(scale)),
        ]
    }

    private typealias Name = ContenderName

    private static let sizes = [32, 512, 65_536]

    /// Clients and servers that all get the same frames.
    private static let pairs = [
        (Name.batches, Name.batches), (Name.messages, Name.messages), (Name.batches, Name.c), (Name.c, Name.batches),
        (Name.c, Name.frames), (Name.c, Name.c), (Name.nio, Name.nio), (Name.netty, Name.c),
        (Name.nettyFlushEach, Name.c),
        (Name.grpcStream, Name.grpcStream),
    ]

    private static var streams: [Trial] {
        let oneWay = sizes.flatMap { size in pairs.map { steady(CaseName.oneWay, size, $0, "sink", "one-way \(size)") }
        }
        let echoes = [64, 1024].flatMap { inFlight in
            sizes.flatMap { size in
                pairs.map { steady(CaseName.echo(inFlight: inFlight), size, $0, "echo", "echo \(size) \(inFlight)") }
            }
        }
        let chat = [Name.chat, Name.c].map {
            steady(CaseName.oneWayChat, WorkloadName.chat, ($0, $0), "sink", "one-way chat")
        }
        return oneWay + echoes + chat
    }

    private static var roundTrips: [Trial] {
        sizes.flatMap { size in pairs.map { steady(CaseName.roundTrip, size, $0, "echo", "echo \(size) 1") } }
    }

    private static func steady(
        _ name: String,
        _ size: Int,
        _ pair: (client: String, server: String),
        _ mode: String,
        _ command: String
    ) -> Trial {
        steady(name, WorkloadName.messages(of: size), pair, mode, command)
    }

    private static func steady(
        _ name: String,
        _ workload: String,
        _ pair: (client: String, server: String),
        _ mode: String,
        _ command: String
    ) -> Trial {
        Trial(
            case: name,
            workload: workload,
            client: pair.client,
            server: pair.server,
            mode: mode,
            kind: .steady(command: command)
        )
    }

    private static var sessions: [Trial] {
        let requests = [1, 64, 1024].flatMap { inFlight in
            [
                Name.requests, Name.requestsOnLoop, Name.requestsSynchronous, Name.requestsOnLoopSynchronous,
                Name.c, Name.grpcCalls,
            ].map {
                let workload = WorkloadName.calls(inFlight: inFlight)
                return steady(CaseName.requests, workload, ($0, $0), "echo", "echo 32 \(inFlight)")
            }
        }
        let (pushes, streams, grpc) = ([Name.pushes], [Name.streams], [Name.grpcCalls])
        return requests
            + carried(CaseName.pushes, "sink", "one-way", pushes + [Name.pushesSynchronous], [Name.c])
            + carried(CaseName.pushesFromServer, "sink", "from-server", pushes + [Name.pushesBatches])
            + carried(CaseName.serverStream, "sink", "from-server", streams + [Name.streamsBatches], grpc)
            + carried(CaseName.clientStream, "sink", "one-way", streams, grpc)
            + carried(CaseName.bothWays, "echo", "both-ways", streams, grpc)
    }

    /// Trials with messages of 32 bytes, and with chat messages for those contenders of ours.
    private static func carried(
        _ name: String,
        _ mode: String,
        _ command: String,
        _ ours: [String],
        _ others: [String] = []
    ) -> [Trial] {
        let small = (ours + others).map { steady(name, 32, ($0, $0), mode, "\(command) 32") }
        return small + ours.map { steady(name, WorkloadName.chat, ($0, $0), mode, "\(command) chat") }
    }

    private static func connections(_ scale: Scale) -> [Trial] {
        let servers = [Name.batches, Name.c, Name.nio]
        func withCClient(_ name: String, _ workload: String, _ server: String, _ kind: Kind) -> Trial {
            Trial(case: name, workload: workload, client: Name.c, server: server, mode: "echo", kind: kind)
        }
        let paced = servers.map {
            let kind = Kind.paced(perSecond: 10, count: 1_000)
            return withCClient(CaseName.thousandConnections, WorkloadName.tenPerSecond, $0, kind)
        }
        let memory = [
            (Name.batches, Name.c), (Name.c, Name.batches), (Name.c, Name.c), (Name.c, Name.nio),
        ].map {
            Trial(
                case: CaseName.idleMemory,
                workload: WorkloadName.idle,
                client: $0,
                server: $1,
                mode: "echo",
                kind: .memory(count: scale.idleConnections)
            )
        }
        let accepting = servers.map {
            withCClient(CaseName.accept, WorkloadName.firstEcho, $0, .accept(count: scale.acceptedConnections))
        }
        let manyMessages = [Name.batches, Name.c].map {
            Trial(
                case: CaseName.growthWithMessages,
                workload: "",
                client: $0,
                server: $0,
                mode: "echo",
                kind: .manyMessages(part: scale.manyMessages / 10, parts: 10)
            )
        }
        let manyConnections = [1, 100, scale.idleConnections].flatMap { count in
            [Name.batches, Name.c].map {
                let kind = Kind.manyConnections(command: "echo 32 1", count: count)
                return withCClient(CaseName.growthWithConnections, WorkloadName.connections(count), $0, kind)
            }
        }
        return paced + memory + accepting + manyMessages + manyConnections
    }
}
