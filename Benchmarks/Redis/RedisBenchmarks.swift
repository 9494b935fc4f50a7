internal import Foundation
internal import Lifeline
internal import LifelineCore
internal import LifelineFleet
internal import LifelineFleetRedis
internal import LifelineMessages
internal import NIOCore

/// The text of `Benchmarks/redis --help`.
@main
enum RedisBenchmarks {
    private static let script = RedisScript(
        """
        local number = redis.call('INCR', KEYS[1])
        redis.call('XADD', KEYS[2], 'MAXLEN', '~', 100, '*', 'd', ARGV[1])
        redis.call('PUBLISH', KEYS[2], ARGV[1])
        return number
        """
    )
    private static let payload = String(repeating: "x", count: 200)

    /// A way to run a script repeatedly.
    private enum Contender: CustomStringConvertible {
        case redisBenchmark(connections: Int, inFlight: Int)
        case client(tasks: Int)
        /// Tasks that run on the loop that receives the replies.
        case clientOnLoop(tasks: Int)
        /// The command with which the engine of a fleet publishes.
        case redisBenchmarkPublishing(connections: Int, inFlight: Int)
        case engine(tasks: Int)
        case fleet(tasks: Int)

        var description: String {
            switch self {
            case .redisBenchmark(let connections, let inFlight): "redis-benchmark -c \(connections) -P \(inFlight)"
            case .redisBenchmarkPublishing(let connections, let inFlight):
                "redis-benchmark -c \(connections) -P \(inFlight), the engine's command"
            case .engine(let tasks): "RedisFleetEngine.append, \(tasks) tasks"
            case .fleet(let tasks): "Fleet.push, \(tasks) tasks"
            case .client(let tasks): "client, one connection, \(tasks) tasks"
            case .clientOnLoop(let tasks): "client, one connection, \(tasks) tasks on its executor"
            }
        }
    }

    /// The contenders. Each is compared with the first of its group, which has as many in flight.
    private static let commands: [[Contender]] = [
        [
            .redisBenchmark(connections: 8, inFlight: 16), .redisBenchmark(connections: 1, inFlight: 128),
            .client(tasks: 8 * 16), .clientOnLoop(tasks: 8 * 16),
        ],
        [.redisBenchmark(connections: 1, inFlight: 16), .client(tasks: 16), .clientOnLoop(tasks: 16)],
        [.redisBenchmark(connections: 1, inFlight: 64), .client(tasks: 64), .clientOnLoop(tasks: 64)],
    ]
    private static let publishing: [[Contender]] = [
        [.redisBenchmarkPublishing(connections: 1, inFlight: 16), .engine(tasks: 16), .fleet(tasks: 16)],
        [.redisBenchmarkPublishing(connections: 8, inFlight: 16), .engine(tasks: 8 * 16), .fleet(tasks: 8 * 16)],
    ]

    static func main() async throws {
        let isQuick = CommandLine.arguments.contains("--quick")
        let groups = CommandLine.arguments.contains("--publishing") ? publishing : commands + publishing
        let (rounds, count) = isQuick ? (1, 5_000) : (5, 200_000)
        let folder = FileManager.default.temporaryDirectory.appending(path: "redis-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let port = "\(Int.random(in: 20_000..<30_000))"
        let server = try start(
            "redis-server",
            ["--port", port, "--dir", folder.path, "--save", "", "--appendonly", "yes"],
            output: FileHandle.nullDevice
        )
        // It blocks other signals where a task's thread has started it.
        defer { kill(server.processIdentifier, SIGKILL) }
        var configuration = try RedisConfiguration(url: "redis://127.0.0.1:\(port)")
        // A busy disk, which delays the server's log, must not end the run.
        configuration.timeout = .seconds(60)
        configuration.heartbeat.timeout = .seconds(60)
        let client = try RedisClient(configuration)
        _ = try await client.send(RedisCommand("SCRIPT", "LOAD", .text(script.source)))
        let engine = try RedisFleetEngine(configuration)
        let publisher = Publisher(
            fleet: Fleet(engine: engine),
            command: try await publishCommand(of: engine, client)
        )

        for group in groups {
            var rates: [[Double]] = []
            for _ in 0..<rounds {
                var round: [Double] = []
                for contender in group {
                    round.append(try await rate(of: contender, client, publisher, port: port, count: count))
                }
                rates.append(round)
            }
            for (index, contender) in group.enumerated() {
                // The machine may be busier in one round than in another.
                let ratio = median(rates.map { 100 * $0[index] / $0[0] })
                print("\(contender): \(median(rates.map { $0[index] })) a second, \(ratio) %")
            }
            print()
        }
        await client.close()
    }

    private static func rate(
        of contender: Contender,
        _ client: RedisClient,
        _ publisher: Publisher,
        port: String,
        count: Int
    ) async throws -> Double {
        switch contender {
        case .redisBenchmark(let connections, let inFlight):
            let options = ["-p", port, "-c", "\(connections)", "-P", "\(inFlight)", "-n", "\(count)"]
            return try redisBenchmark(options + ["EVALSHA", script.digest, "2", "counter", "stream", payload])
        case .redisBenchmarkPublishing(let connections, let inFlight):
            let options = ["-p", port, "-c", "\(connections)", "-P", "\(inFlight)", "-n", "\(count)"]
            return try redisBenchmark(options + publisher.command)
        case .client(let tasks):
            return try await clientRate(client, tasks: tasks, executor: nil, count: count)
        case .clientOnLoop(let tasks):
            return try await clientRate(client, tasks: tasks, executor: client.executor, count: count)
        case .engine(let tasks):
            let message = Array(payload.utf8)
            let (engine, history) = (publisher.fleet.engine, GroupHistory())
            return try await rate(tasks: tasks, count: count) {
                _ = try await engine.append(message, to: "rooms/7", keeping: history)
            }
        case .fleet(let tasks):
            let method = SessionPushMethod<RawMessage>("benchmark.Rooms/News")
            // 200 bytes including its surroundings.
            let message = RawMessage(bytes: Array(payload.utf8.dropLast(25)))
            return try await rate(tasks: tasks, count: count) {
                _ = try await publisher.fleet.push(method, message, to: "rooms/7")
            }
        }
    }

    private static func redisBenchmark(_ arguments: [String]) throws -> Double {
        let output = Pipe()
        _ = try start("redis-benchmark", ["--csv"] + arguments, output: output)
        let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        // The line under the titles: the test's name, then the rate.
        let fields = text.split(separator: "\n").last?.split(separator: ",") ?? []
        guard fields.count > 1, let rate = Double(fields[1].filter { $0 != "\"" }) else {
            throw BenchmarkFailure(description: "redis-benchmark printed no rate: \(text)")
        }
        return rate
    }

    private static func clientRate(
        _ client: RedisClient,
        tasks: Int,
        executor: (any TaskExecutor)?,
        count: Int
    ) async throws -> Double {
        let payload = RedisArgument.bytes(ByteBuffer(string: payload))
        return try await rate(tasks: tasks, executor: executor, count: count) {
            _ = try await client.run(script, keys: ["counter", "stream"], arguments: [payload])
        }
    }

    private static func rate(
        tasks: Int,
        executor: (any TaskExecutor)? = nil,
        count: Int,
        _ body: @Sendable @escaping () async throws -> Void
    ) async throws -> Double {
        let started = ContinuousClock.now
        try await withThrowingDiscardingTaskGroup { group in
            for task in 0..<tasks {
                group.addTask(executorPreference: executor) {
                    for _ in stride(from: task, to: count, by: tasks) { try await body() }
                }
            }
        }
        return Double(count) / ((ContinuousClock.now - started) / .seconds(1))
    }

    /// The command with which the engine publishes, with all of its arguments, from Redis's log.
    private static func publishCommand(of engine: RedisFleetEngine, _ client: RedisClient) async throws -> [String] {
        let threshold = ["CONFIG", "SET", "slowlog-log-slower-than"]
        func send(_ words: [String]) async throws -> RedisValue {
            try await client.send(RedisCommand(words[0], words.dropFirst().map { .text($0) }))
        }
        _ = try await send(threshold + ["0"])
        // The first one loads the script.
        for _ in 0..<2 { _ = try await engine.append([0x78], to: "rooms/8", keeping: GroupHistory()) }
        guard case .array(let entries) = try await send(["SLOWLOG", "GET"]) else { return [] }
        _ = try await send(threshold + ["-1"])
        for case .array(let entry) in entries {
            guard entry.count > 3, case .array(let values) = entry[3] else { continue }
            var words = values.map { value in
                if case .bytes(let bytes) = value { String(buffer: bytes) } else { "" }
            }
            guard words.first == "EVALSHA", let place = words.firstIndex(of: "x") else { continue }
            words[place] = payload
            return words
        }
        throw BenchmarkFailure(description: "Redis has not logged how the engine publishes.")
    }

    private static func median(_ values: [Double]) -> Int { Int(values.sorted()[values.count / 2].rounded()) }

    private static func start(_ program: String, _ arguments: [String], output: Any) throws -> Process {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.standardOutput = output
        try process.run()
        return process
    }
}

/// A way to publish to a group.
private struct Publisher: Sendable {
    let fleet: Fleet
    /// The engine's command, for redis-benchmark.
    let command: [String]
}

private struct BenchmarkFailure: Error, CustomStringConvertible {
    let description: String
}
