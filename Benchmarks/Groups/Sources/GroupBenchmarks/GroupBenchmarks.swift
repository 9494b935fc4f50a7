internal import Foundation
internal import Lifeline
internal import LifelineFleet
internal import LifelineMessages
internal import Logging
internal import Synchronization

/// The text of `Benchmarks/groups --help`.
@main
enum GroupBenchmarks {
    private static let payload = RawMessage(bytes: [UInt8](repeating: 7, count: 200))
    private static let method = SessionPushMethod<RawMessage>("g.G/Take")
    private static let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.count == 3, let count = Int(arguments[2]) {
            do {
                return try await runClients(arguments[0], of: try Endpoint(arguments[1]), count)
            } catch {
                try FileHandle.standardError.write(contentsOf: Data("A client has failed: \(error)\n".utf8))
                exit(1)
            }
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

    /// Measures `deliver`, which sends `messageCount` messages to all clients, and waits until they have arrived.
    private nonisolated(nonsending) static func measure(
        _ deliveryCount: Int,
        _ deliver: nonisolated(nonsending) () async throws -> Void
    ) async throws -> Result {
        let (started, used) = (ContinuousClock.now, processorTime())
        try await deliver()
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        return Result(
            rate: Double(deliveryCount) / seconds,
            processorTime: (processorTime() - used) * 1e9 / Double(deliveryCount)
        )
    }

    /// The processor time of this process in seconds.
    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func measureGroupPushes(_ clientCount: Int, _ messageCount: Int) async throws -> Result {
        let fleet = Fleet()
        let answers = Answers()
        var configuration = SessionServerConfiguration()
        configuration.maximumSessionCount = 2 * clientCount
        configuration.server.maximumConnections = 2 * clientCount
        configuration.server.shutdownGracePeriod = .zero
        return try await withSessionServer(
            listeningOn: anyPort,
            configuration: configuration,
            services: [fleet, answers],
            logger: quietLogger
        ) { server in
            let clients = try startClients("sessions", of: try await server.boundEndpoints[0], clientCount)
            defer { for process in clients { process.terminate() } }
            while server.sessions.count < clientCount { try await clients.wait() }
            let sessions = server.sessions
            for session in sessions { try await fleet.join("g", session) }
            try await push(10, to: clientCount, of: fleet, answers)
            return try await measure(clientCount * messageCount) {
                try await push(messageCount, to: clientCount, of: fleet, answers)
            }
        }
    }

    /// Counts the clients that have answered an empty message.
    private struct Answers: SessionService {
        static let method = "g.G/Answer"
        let count = Counter()

        var methods: [SessionMethod] {
            [.push(Self.method) { (_: RawMessage, _) in count.value.add(1, ordering: .relaxed) }]
        }
    }

    private final class Counter: Sendable { let value = Atomic(0) }

    /// Returns when all clients have answered the last, empty message.
    private nonisolated(nonsending) static func push(
        _ count: Int,
        to clientCount: Int,
        of fleet: Fleet,
        _ answers: Answers
    ) async throws {
        answers.count.value.store(0, ordering: .relaxed)
        for _ in 0..<count { try await fleet.push(method, payload, to: "g") }
        try await fleet.push(method, RawMessage(bytes: []), to: "g")
        while answers.count.value.load(ordering: .relaxed) < clientCount {
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    private static func measurePlainSends(_ clientCount: Int, _ messageCount: Int) async throws -> Result {
        let connected = Connected()
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
            connected.connections.withLock { $0.append(connection) }
            for try await _ in connection.messages { connected.answers.value.add(1, ordering: .relaxed) }
        } _: { server in
            let clients = try startClients("connections", of: try await server.boundEndpoint, clientCount)
            defer { for process in clients { process.terminate() } }
            while connected.connections.withLock({ $0.count }) < clientCount { try await clients.wait() }
            try await send(10, to: connected)
            return try await measure(clientCount * messageCount) { try await send(messageCount, to: connected) }
        }
    }

    private final class Connected: Sendable {
        let connections = Mutex<[Connection<RawMessage, RawMessage>]>([])
        let answers = Counter()
    }

    /// Returns when all clients have answered the last, empty message.
    private nonisolated(nonsending) static func send(_ count: Int, to connected: Connected) async throws {
        let connections = connected.connections.withLock { $0 }
        connected.answers.value.store(0, ordering: .relaxed)
        for _ in 0..<count {
            for connection in connections { try await connection.send(payload) }
        }
        for connection in connections { try await connection.send(RawMessage(bytes: [])) }
        while connected.answers.value.load(ordering: .relaxed) < connections.count {
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    private static var quietLogger: Logger { Logger(label: "groups") { _ in SwiftLogNoOpLogHandler() } }

    // MARK: The clients' side

    /// Starts a few processes with clients, which run until they are terminated. One process may open 20,000 files, and
    /// each client takes two.
    private static func startClients(_ kind: String, of endpoint: Endpoint, _ count: Int) throws -> [Process] {
        try stride(from: 0, to: count, by: 5_000).map { start in
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            process.arguments = [kind, "\(endpoint)", "\(min(5_000, count - start))"]
            try process.run()
            return process
        }
    }

    private static func runClients(_ kind: String, of endpoint: Endpoint, _ count: Int) async throws {
        try await withThrowingDiscardingTaskGroup { tasks in
            // A few clients connect at the same time.
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
                for try await batch in pushes.batches where batch.contains(where: \.bytes.isEmpty) {
                    try await client.push(Answers.method, RawMessage(bytes: []))
                }
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

extension [Process] {
    /// Waits for a moment.
    ///
    /// - Throws: when a process has ended.
    fileprivate nonisolated(nonsending) func wait() async throws {
        try await Task.sleep(for: .milliseconds(10))
        if !allSatisfy(\.isRunning) { throw CocoaError(.executableLoad) }
    }
}
