extension Trial {
    /// Everything, in groups that are drawn together.
    static func groups(_ scale: Scale) -> [(name: String, trials: [Trial])] {
        [
            ("Streams", streams),
            ("Round trips", roundTrips),
            ("Sessions", sessions),
            ("Connections", connections(scale)),
        ]
    }

    /// All contenders, Lifeline first: in this order they are shown, and the first one that takes part in a case is what the
    /// others are compared with.
    static let contenders = [
        "lifeline-batches", "lifeline-messages", "lifeline-chat", "lifeline-requests", "lifeline-pushes",
        "lifeline-batches to c", "c to lifeline-batches",
        "c", "nio", "c to nio", "netty to c", "netty-flush-each to c", "grpc-stream", "grpc-unary",
    ]

    private static let sizes = [32, 512, 65_536]

    /// Clients and servers, each of which the same frames reach.
    private static let pairs = [
        ("lifeline-batches", "lifeline-batches"), ("lifeline-messages", "lifeline-messages"),
        ("lifeline-batches", "c"), ("c", "lifeline-batches"),
        ("c", "c"), ("nio", "nio"), ("netty", "c"), ("netty-flush-each", "c"), ("grpc-stream", "grpc-stream"),
    ]

    private static var streams: [Trial] {
        let oneWay = sizes.flatMap { size in pairs.map { steady("one-way", size, $0, "sink", "one-way \(size)") } }
        let echoes = [64, 1024].flatMap { inFlight in
            sizes.flatMap { size in
                pairs.map { steady("echo-\(inFlight)", size, $0, "echo", "echo \(size) \(inFlight)") }
            }
        }
        let chat = ["lifeline-chat", "c"].map {
            Trial(
                case: "one-way-chat",
                workload: "chat",
                client: $0,
                server: $0,
                mode: "sink",
                kind: .steady(command: "one-way chat")
            )
        }
        return oneWay + echoes + chat
    }

    private static var roundTrips: [Trial] {
        sizes.flatMap { size in pairs.map { steady("round-trip", size, $0, "echo", "echo \(size) 1") } }
    }

    private static func steady(
        _ name: String,
        _ size: Int,
        _ pair: (client: String, server: String),
        _ mode: String,
        _ command: String
    ) -> Trial {
        let workload = size < 1024 ? "\(size) B" : "\(size / 1024) KiB"
        return Trial(
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
            ["lifeline-requests", "c", "grpc-unary"].map {
                Trial(
                    case: "requests",
                    workload: "\(inFlight) in flight",
                    client: $0,
                    server: $0,
                    mode: "echo",
                    kind: .steady(command: "echo 32 \(inFlight)")
                )
            }
        }
        let pushes = ["lifeline-pushes", "c", "grpc-stream"].map {
            steady("pushes", 32, ($0, $0), "sink", "one-way 32")
        }
        return requests + pushes
    }

    private static func connections(_ scale: Scale) -> [Trial] {
        let servers = ["lifeline-batches", "c", "nio"]
        func withCClient(_ name: String, _ workload: String, _ server: String, _ kind: Kind) -> Trial {
            Trial(case: name, workload: workload, client: "c", server: server, mode: "echo", kind: kind)
        }
        let paced = servers.map {
            withCClient("connections-1000", "10/s each", $0, .paced(perSecond: 10, count: 1_000))
        }
        let memory = [("lifeline-batches", "c"), ("c", "lifeline-batches"), ("c", "c"), ("c", "nio")].map {
            Trial(
                case: "idle-memory",
                workload: "idle",
                client: $0,
                server: $1,
                mode: "echo",
                kind: .memory(count: scale.idleConnections)
            )
        }
        let accepting = servers.map {
            withCClient("accept", "and echo", $0, .accept(count: scale.acceptedConnections))
        }
        let manyMessages = ["lifeline-batches", "c"].map {
            Trial(
                case: "growth-messages",
                workload: "",
                client: $0,
                server: $0,
                mode: "echo",
                kind: .manyMessages(part: scale.manyMessages / 10, parts: 10)
            )
        }
        let manyConnections = [1, 100, scale.idleConnections].flatMap { count in
            ["lifeline-batches", "c"].map {
                let kind = Kind.manyConnections(command: "echo 32 1", count: count)
                return withCClient("growth-connections", "\(count) open", $0, kind)
            }
        }
        return paced + memory + accepting + manyMessages + manyConnections
    }
}
