internal import Foundation
internal import Lifeline
internal import LifelineFleet
internal import LifelineMessages
internal import Logging
internal import Synchronization

/// What `Benchmarks/groups --help` says.
@main
enum GroupBenchmarks {
    private static let payload = RawMessage(bytes: [UInt8](repeating: 7, count: 200))
    private static let method = SessionPushMethod<RawMessage>("g.G/Take")
    private static let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.count == 3, let count = Int(arguments[2]) {
            return try await runClients(arguments[0], of: try Endpoint(arguments[1]), count)
        }
        let isQuick = arguments.contains("--quick")
        let (clientCount, messageCount) = isQuick ? (100, 20) : (10_000, 200)
        let sends = try await measurePlainSends(clientCount, messageCount)
        let pushes = try await measureGroupPushes(clientCount, messageCount)
        print("\(clientCount) clients, \(messageCount) messages of 200 B to each")
        for (name, result) in [("plain messages, a send for each", sends), ("pushes to a group", pushes)] {
            print(
                "\(name): \(Int(result.rate)) deliveries a second, "
                    + "\(Int(result.processorTime)) ns of the server's processor time each, "
                    + "\(Int(1e9 / result.processorTime)) a second and core"
            )
        }
    }

    // MARK: The server's side

    private struct Result {
        /// Deliveries a second.
        let rate: Double
        /// Nanoseconds of this process's processor time for each.
        let processorTime: Double
    }

    /// Measures what `deliver` takes, which sends `messageCount` messages to all, and waits until they are there.
    private static func measure(
        _ deliveryCount: Int,
        _ deliver: () async throws -> Void
    ) async throws -> Result {
        let (started, used) = (ContinuousClock.now, processorTime())
        try await deliver()
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        return Result(
            rate: Double(deliveryCount) / seconds,
            processorTime: (processorTime() - used) * 1e9 / Double(deliveryCount)
        )
    }

    /// Seconds that this process has computed for.
    private static func processorTime() -> Double {
        var usage = rusage()
        getrusage(RUSAGE_SELF, &usage)
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }

    private static func measureGroupPushes(_ clientCount: Int, _ messageCount: Int) async throws -> Result {
        let fleet = Fleet()
        var configuration = SessionServerConfiguration()
        configuration.maximumSessionCount = 2 * clientCount
        configuration.server.maximumConnections = 2 * clientCount
        configuration.server.shutdownGracePeriod = .zero
        return try await withSessionServer(
            listeningOn: anyPort,
            configuration: configuration,
            services: [fleet],
            logger: quietLogger
        ) { server in
            let clients = try startClients("sessions", of: try await server.boundEndpoints[0], clientCount)
            defer { clients.terminate() }
            while server.sessions.count < clientCount { try await Task.sleep(for: .milliseconds(10)) }
            let sessions = server.sessions
            for session in sessions { try await fleet.join("g", session) }
            func push(_ count: Int) async throws {
                for _ in 0..<count { try await fleet.push(method, payload, to: "g") }
                for session in sessions {
                    while session.statistics.keptMessageCount > 0 { try await Task.sleep(for: .milliseconds(1)) }
                }
            }
            try await push(10)
            return try await measure(clientCount * messageCount) { try await push(messageCount) }
        }
    }

    private static func measurePlainSends(_ clientCount: Int, _ messageCount: Int) async throws -> Result {
        let connections = Mutex<[Connection<RawMessage, RawMessage>]>([])
        let answerCount = Atomic(0)
        var configuration = ServerConfiguration()
        configuration.maximumConnections = 2 * clientCount
        configuration.shutdownGracePeriod = .zero
        return try await withServer(
            listeningOn: anyPort,
            configuration: configuration,
            logger: quietLogger,
            receiving: RawMessage.self,
            sending: RawMessage.self
        ) { connection in
            connections.withLock { $0.append(connection) }
            for try await _ in connection.messages { answerCount.add(1, ordering: .relaxed) }
        } _: { server in
            let clients = try startClients("connections", of: try await server.boundEndpoint, clientCount)
            defer { clients.terminate() }
            while connections.withLock({ $0.count }) < clientCount { try await Task.sleep(for: .milliseconds(10)) }
            let all = connections.withLock { $0 }
            /// Clients answer an empty message.
            func send(_ count: Int) async throws {
                answerCount.store(0, ordering: .relaxed)
                for _ in 0..<count {
                    for connection in all { try await connection.send(payload) }
                }
                for connection in all { try await connection.send(RawMessage(bytes: [])) }
                while answerCount.load(ordering: .relaxed) < clientCount { try await Task.sleep(for: .milliseconds(1)) }
            }
            try await send(10)
            return try await measure(clientCount * messageCount) { try await send(messageCount) }
        }
    }

    private static var quietLogger: Logger { Logger(label: "groups") { _ in SwiftLogNoOpLogHandler() } }

    // MARK: The clients' side

    /// Starts a process with clients, which ends when it is terminated.
    private static func startClients(_ kind: String, of endpoint: Endpoint, _ count: Int) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = [kind, "\(endpoint)", "\(count)"]
        try process.run()
        return process
    }

    private static func runClients(_ kind: String, of endpoint: Endpoint, _ count: Int) async throws {
        try await withThrowingDiscardingTaskGroup { tasks in
            // A few at once connect.
            let slots = AsyncStream.makeStream(of: Void.self)
            for _ in 0..<64 { slots.continuation.yield() }
            var slot = slots.stream.makeAsyncIterator()
            for _ in 0..<count {
                await slot.next()
                tasks.addTask {
                    if kind == "sessions" {
                        try await runSession(of: endpoint) { slots.continuation.yield() }
                    } else {
                        try await runConnection(to: endpoint) { slots.continuation.yield() }
                    }
                }
            }
        }
    }

    private static func runSession(of endpoint: Endpoint, _ whenConnected: @Sendable () -> Void) async throws {
        try await withSessionClient(to: endpoint, logger: quietLogger) { client in
            let pushes = client.pushes(method.name, of: RawMessage.self)
            for await event in client.sessionEvents {
                if case .opened = event.kind { break }
            }
            whenConnected()
            try await withTaskExecutorPreference(client.executor) {
                for try await _ in pushes.batches {}
            }
        }
    }

    private static func runConnection(to endpoint: Endpoint, _ whenConnected: @Sendable () -> Void) async throws {
        try await withConnection(to: endpoint, receiving: RawMessage.self, sending: RawMessage.self) { connection in
            whenConnected()
            try await withTaskExecutorPreference(connection.executor) {
                for try await batch in connection.messages.batches {
                    for message in batch where message.bytes.isEmpty { try await connection.send(message) }
                }
            }
        }
    }
}
