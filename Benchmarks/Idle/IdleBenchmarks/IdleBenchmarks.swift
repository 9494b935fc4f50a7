internal import CHeap
internal import Foundation
internal import Lifeline
internal import LifelineMessages
internal import LifelineProtos
internal import Logging
internal import NIOCore
internal import NIOPosix

/// The program of `Benchmarks/idle`; its `--help` explains it.
@main
enum IdleBenchmarks {
    private typealias Message = Sample_Chat_V1_ChatMessage

    /// The server that holds idle clients.
    private enum Contender: String, CaseIterable {
        case channel, connection, session, asynchronous

        var title: String {
            switch self {
            case .channel: "a channel of SwiftNIO with one handler"
            case .connection: "a connection of Lifeline's Server"
            case .session: "a session, synchronous handler"
            case .asynchronous: "a session, asynchronous handler"
            }
        }
    }

    private struct Memory {
        var heap: Int
        var resident: Int
    }

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "--serve", let contender = arguments.last.flatMap(Contender.init) {
            return try await serve(contender)
        }
        let count = arguments.contains("--quick") ? 20 : 2_000
        print("User memory of the server for each of \(count) clients that have got one answer:\n")
        print("                                        heap, bytes  resident, bytes")
        for contender in Contender.allCases {
            let memory = try await measure(contender, count)
            let title = contender.title.padding(toLength: 39, withPad: " ", startingAt: 0)
            print(title, padded("\(memory.heap)", 11), padded("\(memory.resident)", 16))
        }
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    // MARK: The side of clients

    /// Returns what each client takes, after the first ones, with which the server's own memory grows.
    private static func measure(_ contender: Contender, _ count: Int) async throws -> Memory {
        let server = try IdleServer(contender.rawValue)
        let endpoint = try Endpoint("tcp://127.0.0.1:\(try server.readNumber())")
        let firstCount = min(count, 200)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            let (answered, answers) = AsyncStream.makeStream(of: Void.self)
            func add(_ number: Int) async throws {
                var iterator = answered.makeAsyncIterator()
                // Few at once, as a server's queue of new connections is short.
                for first in stride(from: 0, to: number, by: 50) {
                    let few = min(50, number - first)
                    for _ in 0..<few {
                        group.addTask { try await stay(contender, at: endpoint) { answers.yield() } }
                    }
                    for _ in 0..<few { await iterator.next() }
                }
            }
            defer { group.cancelAll() }
            try await add(firstCount)
            let before = try await server.memory()
            try await add(count)
            let after = try await server.memory()
            return Memory(
                heap: (after.heap - before.heap) / count,
                resident: (after.resident - before.resident) / count
            )
        }
    }

    /// Asks once, and stays until it is cancelled.
    private static func stay(_ contender: Contender, at endpoint: Endpoint, _ answered: () -> Void) async throws {
        let message = Message.with { $0.text = "Hello" }
        let quiet = Logger(label: "idle") { _ in SwiftLogNoOpLogHandler() }
        switch contender {
        case .channel, .connection:
            try await withClient(to: endpoint, receiving: Message.self, sending: Message.self, logger: quiet) {
                client in
                try await client.send(message)
                for try await _ in client.messages { answered() }
            }
        case .session, .asynchronous:
            try await withSessionClient(to: endpoint, logger: quiet) { session in
                _ = try await session.call("Idle/Echo", message, returning: Message.self, timeout: .seconds(60))
                answered()
                try await Task.sleep(for: .seconds(3_600))
            }
        }
    }

    // MARK: The side of the server

    /// Prints its port, and how much memory it takes for each line of its input.
    private static func serve(_ contender: Contender) async throws {
        let endpoint = try Endpoint("tcp://127.0.0.1:0")
        let quiet = Logger(label: "idle") { _ in SwiftLogNoOpLogHandler() }
        switch contender {
        case .channel:
            let group = MultiThreadedEventLoopGroup.singleton
            let channel = try await ServerBootstrap(group: group).serverChannelOption(.backlog, value: 256)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            try await answer(channel.localAddress?.port ?? 0)
            try await channel.close()
        case .connection:
            try await withServer(
                listeningOn: endpoint,
                logger: quiet,
                receiving: Message.self,
                sending: Message.self
            ) { connection in
                for try await message in connection.messages { try await connection.send(message) }
            } _: { server in
                try await answer(port(of: server.boundEndpoint))
            }
        case .session, .asynchronous:
            let echo =
                contender == .session
                ? SessionMethod.unary("Idle/Echo") { (message: Message, _) in message }
                : SessionMethod.unary("Idle/Echo") { (message: Message, _) async throws in
                    try await Task.sleep(for: .milliseconds(1))
                    return message
                }
            try await withSessionServer(listeningOn: endpoint, services: [Service(methods: [echo])], logger: quiet) {
                try await answer(port(of: $0.boundEndpoints[0]))
            }
        }
    }

    private struct Service: SessionService {
        let methods: [SessionMethod]
    }

    private final class Echo: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.write(data, promise: nil) }
        func channelReadComplete(context: ChannelHandlerContext) { context.flush() }
    }

    private static func port(of endpoint: Endpoint) -> Int {
        endpoint.description.split(separator: ":").last.flatMap { Int($0) } ?? 0
    }

    private static func answer(_ port: Int) async throws {
        try write("\(port)")
        // In a thread of its own, as it blocks.
        let lines = AsyncStream<Void> { lines in
            Thread.detachNewThread {
                while readLine() != nil { lines.yield() }
                lines.finish()
            }
        }
        for await _ in lines {
            let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
            let resident = status.split(separator: "\n").first { $0.hasPrefix("RssAnon") }
            try write("\(heap_size()) \(resident?.split(separator: " ").dropFirst().first ?? "0")")
        }
    }

    private static func write(_ line: String) throws {
        try FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8))
    }
}

/// A process of this program that serves.
private final class IdleServer {
    private let process = Process()
    private let (input, output) = (Pipe(), Pipe())

    init(_ contender: String) throws {
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--serve", contender]
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
    }

    deinit { process.terminate() }

    private func readLine() throws -> String {
        var line: [UInt8] = []
        while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") {
            line.append(byte)
        }
        return String(decoding: line, as: UTF8.self)
    }

    func readNumber() throws -> Int {
        guard let number = Int(try readLine()) else { throw CocoaError(.fileReadUnknown) }
        return number
    }

    /// The memory of the process once it is idle. Sessions give memory back after 10 s.
    func memory() async throws -> (heap: Int, resident: Int) {
        try await Task.sleep(for: .seconds(12))
        try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
        let numbers = try readLine().split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 2 else { throw CocoaError(.fileReadUnknown) }
        return (numbers[0], numbers[1] << 10)
    }
}
