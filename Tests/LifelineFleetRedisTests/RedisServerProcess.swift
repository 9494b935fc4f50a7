import Foundation
import LifelineCore
import LifelineFleetRedis
import LifelineTestSupport
import NIOConcurrencyHelpers
import Testing

/// Debian's redis-server, with its own configuration and folder.
final class RedisServerProcess: Sendable {
    let port: UInt16
    /// Its TLS port, if it has one.
    let tlsPort: UInt16?
    private let folder: String
    private let process = NIOLockedValueBox<(Process, ended: AsyncStream<Never>)?>(nil)

    init(folder: String, settings: [String], identity: TestCertificate?) throws {
        self.folder = folder
        port = try TestPort.next()
        tlsPort = try identity.map { _ in try TestPort.next() }
        var lines = ["port \(port)", "bind 127.0.0.1 -::1", "dir \(folder)", "save \"\""] + settings
        if let identity, let tlsPort {
            let (certificate, key) = ("\(folder)/certificate.pem", "\(folder)/key.pem")
            writeFile(try identity.pem, to: certificate)
            writeFile(identity.keyPEM, to: key)
            lines += [
                "tls-port \(tlsPort)", "tls-auth-clients no", "tls-cert-file \(certificate)", "tls-key-file \(key)",
            ]
        }
        writeFile(Array(lines.joined(separator: "\n").utf8), to: "\(folder)/redis.conf")
    }

    var configuration: RedisConfiguration { get throws { try configuration(url: "redis://127.0.0.1:\(port)") } }

    /// The configuration of a client that reconnects quickly.
    func configuration(url: String) throws -> RedisConfiguration {
        var configuration = try RedisConfiguration(url: url)
        configuration.backoff.initialDelay = .milliseconds(10)
        configuration.backoff.cap = .milliseconds(50)
        return configuration
    }

    /// Starts it. Returns when it accepts connections.
    func start() async throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/redis-server")
        process.arguments = ["\(folder)/redis.conf"]
        let output = Pipe.make()
        process.standardOutput = output
        let ended = AsyncStream.makeStream(of: Never.self)
        process.terminationHandler = { _ in ended.continuation.finish() }
        try process.start()
        self.process.withLockedValue { $0 = (process, ended.stream) }
        try await withCheckedThrowingContinuation { continuation in
            // Uses a separate thread: dispatch adds threads to its queues only slowly when all of them wait.
            Thread.detachNewThread {
                continuation.resume(with: Result { try waitUntilReady(output.fileHandleForReading) })
                // The rest is read, too. Otherwise the process would wait for room in the pipe.
                _ = try? output.fileHandleForReading.readToEnd()
            }
        }
    }

    /// Ends it like a crash, and returns when it has ended. Other signals have no effect: it inherits the blocked
    /// signals of the task threads that start it.
    func kill() async {
        guard let (process, ended) = process.withLockedValue({ $0.take() }) else { return }
        Foundation.kill(process.processIdentifier, SIGKILL)
        for await _ in ended {}
    }

    func restart() async throws {
        await kill()
        try await start()
    }
}

private func waitUntilReady(_ output: FileHandle) throws {
    var text = ""
    while !text.contains("Ready to accept connections") {
        let bytes = output.availableData
        guard !bytes.isEmpty else { throw RedisServerFailure(output: text) }
        text += String(decoding: bytes, as: UTF8.self)
    }
}

private struct RedisServerFailure: Error, CustomStringConvertible {
    let output: String
    var description: String { "redis-server did not start; run scripts/install-dependencies test. It says: \(output)" }
}

/// Runs `body` with a new Redis server.
///
/// - Parameters:
///   - settings: lines of its configuration.
///   - identity: its certificate; nil without TLS.
func withRedisServer<Result>(
    _ settings: [String] = [],
    identity: TestCertificate? = nil,
    _ body: nonisolated(nonsending) (RedisServerProcess) async throws -> Result
) async throws -> Result {
    // Redis makes a folder in this one for its log of changes.
    let folder = FileManager.default.temporaryDirectory.appending(path: "redis-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let server = try RedisServerProcess(folder: folder.path, settings: settings, identity: identity)
    return try await ending(server.kill) {
        try await server.start()
        return try await body(server)
    }
}

/// Runs `body` with a client, and then closes the client.
func withRedisClient<Result>(
    _ configuration: RedisConfiguration,
    handleMessages: @escaping @Sendable (RedisSubscriptionEvent) -> Void = { _ in },
    _ body: nonisolated(nonsending) (RedisClient) async throws -> Result
) async throws -> Result {
    let client = try RedisClient(configuration, handleMessages: handleMessages)
    return try await ending(client.close) { try await body(client) }
}

private func ending<Result>(
    _ end: nonisolated(nonsending) () async -> Void,
    _ body: nonisolated(nonsending) () async throws -> Result
) async throws -> Result {
    do {
        let result = try await body()
        await end()
        return result
    } catch {
        await end()
        throw error
    }
}

/// The error of `body`; nil if there is none.
func redisError(_ body: nonisolated(nonsending) () async throws -> Void) async -> RedisError? {
    do {
        try await body()
        return nil
    } catch let error as RedisError {
        return error
    } catch {
        Issue.record(error)
        return nil
    }
}
