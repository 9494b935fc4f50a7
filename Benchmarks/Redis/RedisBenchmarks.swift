internal import Foundation
internal import LifelineCore
internal import LifelineFleetRedis
internal import NIOCore

/// What `Benchmarks/redis --help` says.
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

    /// One way to run the script again and again.
    private enum Contender: CustomStringConvertible {
        case redisBenchmark(connections: Int, inFlight: Int)
        case client(tasks: Int)
        /// Tasks that run where the replies come in.
        case clientOnLoop(tasks: Int)

        var description: String {
            switch self {
            case .redisBenchmark(let connections, let inFlight): "redis-benchmark -c \(connections) -P \(inFlight)"
            case .client(let tasks): "client, one connection, \(tasks) tasks"
            case .clientOnLoop(let tasks): "client, one connection, \(tasks) tasks on its executor"
            }
        }
    }

    /// The contenders. Each is compared with the first of its group, which has as many in flight.
    private static let groups: [[Contender]] = [
        [
            .redisBenchmark(connections: 8, inFlight: 16), .redisBenchmark(connections: 1, inFlight: 128),
            .client(tasks: 8 * 16), .clientOnLoop(tasks: 8 * 16),
        ],
        [.redisBenchmark(connections: 1, inFlight: 16), .client(tasks: 16), .clientOnLoop(tasks: 16)],
        [.redisBenchmark(connections: 1, inFlight: 64), .client(tasks: 64), .clientOnLoop(tasks: 64)],
    ]

    static func main() async throws {
        let isQuick = CommandLine.arguments.contains("--quick")
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
        // A busy disk, on which the server waits for its log, is not to end the run.
        configuration.timeout = .seconds(60)
        configuration.heartbeat.timeout = .seconds(60)
        let client = try RedisClient(configuration)
        _ = try await client.send(RedisCommand("SCRIPT", "LOAD", .text(script.source)))

        for group in groups {
            var rates: [[Double]] = []
            for _ in 0..<rounds {
                var round: [Double] = []
                for contender in group {
                    round.append(try await rate(of: contender, client, port: port, count: count))
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
        port: String,
        count: Int
    ) async throws -> Double {
        switch contender {
        case .redisBenchmark(let connections, let inFlight):
            let options = ["-p", port, "-c", "\(connections)", "-P", "\(inFlight)", "-n", "\(count)", "--csv"]
            let command = ["EVALSHA", script.digest, "2", "counter", "stream", payload]
            let output = Pipe()
            _ = try start("redis-benchmark", options + command, output: output)
            let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            // The line under the titles: the test's name, then the rate.
            let fields = text.split(separator: "\n").last?.split(separator: ",") ?? []
            guard fields.count > 1, let rate = Double(fields[1].filter { $0 != "\"" }) else {
                throw BenchmarkFailure(description: "redis-benchmark printed no rate: \(text)")
            }
            return rate
        case .client(let tasks):
            return try await rate(client, tasks: tasks, executor: nil, count: count)
        case .clientOnLoop(let tasks):
            return try await rate(client, tasks: tasks, executor: client.executor, count: count)
        }
    }

    private static func rate(
        _ client: RedisClient,
        tasks: Int,
        executor: (any TaskExecutor)?,
        count: Int
    ) async throws -> Double {
        let payload = RedisArgument.bytes(ByteBuffer(string: payload))
        let started = ContinuousClock.now
        try await withThrowingDiscardingTaskGroup { group in
            for task in 0..<tasks {
                group.addTask(executorPreference: executor) {
                    for _ in stride(from: task, to: count, by: tasks) {
                        _ = try await client.run(script, keys: ["counter", "stream"], arguments: [payload])
                    }
                }
            }
        }
        return Double(count) / ((ContinuousClock.now - started) / .seconds(1))
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

private struct BenchmarkFailure: Error, CustomStringConvertible {
    let description: String
}
