internal import Lifeline

/// The server of requests and pushes.
func runSessionServer() async throws {
    try await withSessionServer(listeningOn: Endpoint("tcp://127.0.0.1:0"), services: [EchoService()]) { server in
        try await sayPort(of: server.boundEndpoints[0])
        try await server.waitUntilShutDown()
    }
}

private struct EchoService: SessionService {
    static let requestMethod = "benchmark.Echo/Request"
    static let pushMethod = "benchmark.Echo/Push"

    var methods: [SessionMethod] {
        [
            .unary(Self.requestMethod) { (request: RawMessage, _) in request },
            .push(Self.pushMethod) { (_: RawMessage, _) in },
        ]
    }
}

/// Has messages echoed by requests, each of its own task: on the threads that Swift has for tasks, or on the loop of the
/// connection.
final class SessionRequestClient: PeerClient {
    private let session = HeldSession()
    private let isOnLoop: Bool

    init(isOnLoop: Bool = false) {
        self.isOnLoop = isOnLoop
    }

    var executor: (any TaskExecutor)? { isOnLoop ? try? session.client.executor : nil }

    func open(port: Int, connectionCount: Int) async throws {
        try await session.open(port: port, connectionCount: connectionCount)
    }

    func close() async throws { try await session.close() }

    func echo(_ payload: [UInt8], inFlight: Int, _ limit: SendLimit) async throws -> Outcome {
        let session = try session.client
        let message = RawMessage(bytes: payload)
        return try await concurrentCalls(inFlight: inFlight, limit) {
            let echo: RawMessage = try await session.call(EchoService.requestMethod, message)
            guard echo == message else { throw WrongEcho() }
        }
    }
}

/// Pushes messages to the server.
final class SessionPushClient: PeerClient {
    private let session = HeldSession()

    func open(port: Int, connectionCount: Int) async throws {
        try await session.open(port: port, connectionCount: connectionCount)
    }

    func close() async throws { try await session.close() }

    func oneWay(_ payload: [UInt8], _ limit: SendLimit) async throws -> Outcome {
        let session = try session.client
        let message = RawMessage(bytes: payload)
        var outcome = Outcome()
        let begin = now()
        while outcome.messages % 64 != 0 || !limit.isReached(since: begin, sent: outcome.messages) {
            try await session.push(EchoService.pushMethod, message)
            outcome.messages += 1
        }
        // Pushes of one method are processed in order.
        try await session.push(EchoService.pushMethod, message, until: .processed)
        outcome.nanoseconds = now() - begin
        return outcome
    }
}

private final class HeldSession {
    private var held: Held<SessionClient>?

    var client: SessionClient {
        get throws {
            guard let held else { throw ConnectionEnded() }
            return held.value
        }
    }

    func open(port: Int, connectionCount: Int) async throws {
        guard connectionCount == 1 else { throw Unsupported() }
        let endpoint = try Endpoint("tcp://127.0.0.1:\(port)")
        held = try await Held { hold in
            try await withSessionClient(to: endpoint) { await hold($0) }
        }
    }

    func close() async throws {
        try await held?.release()
        held = nil
    }
}
