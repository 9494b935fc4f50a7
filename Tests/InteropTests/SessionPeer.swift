import Dispatch
import Foundation
import Lifeline
import LifelineProtos
import LifelineTestSupport
import Testing

/// The Python peer with sessions: Peers/README.md lists its commands and methods.
enum SessionPeer {
    static let service = "interop.Peer/"

    /// Runs its server, and a client of it.
    static func withServer<Result>(
        _ options: [String] = [],
        configuration: SessionClientConfiguration = SessionClientConfiguration(),
        _ body: (SessionClient) async throws -> Result
    ) async throws -> Result {
        try await withServer(options) { port in
            try await withSessionClient(to: .tcp(host: "127.0.0.1", port: port), configuration: configuration) {
                try await body($0)
            }
        }
    }

    static func withServer<Result>(
        _ options: [String] = [],
        _ body: (_ port: UInt16) async throws -> Result
    ) async throws -> Result {
        let program = BackgroundProgram(command: [executable("session-peer").path, "server"] + options)
        return try await program.run(announcing: "port ") { port in
            try await body(try #require(UInt16(port)))
        }
    }

    /// Runs a scenario of its client, and requires success.
    static func runClient(_ scenario: String, port: UInt16, _ options: [String] = []) async throws {
        _ = try await Program(executable("session-peer"), ["client", "\(port)", scenario] + options).run()
    }

    // MARK: Broken rules

    /// The names of the rules that it can break.
    static func rules() async throws -> Set<String> {
        let output = try await Program(executable("hostile-peer"), ["rules"]).run()
        return Set(lines(output).compactMap { $0.split(separator: " ").last.map(String.init) })
    }

    /// The server's reaction to a client that breaks a rule, and the fate of the session.
    static func breakRule(_ rule: String, port: UInt16) async throws -> [String] {
        lines(try await Program(executable("hostile-peer"), ["\(port)", rule]).run())
    }

    /// Runs a server that breaks a rule, and `body` with its port. Returns the client's goodbye and its next action.
    /// `body` is cancelled when the server has ended.
    static func withHostileServer(
        _ rule: String,
        _ body: @escaping @Sendable (_ port: UInt16) async throws -> Void
    ) async throws -> [String] {
        let process = Process()
        let output = Pipe.make()
        process.executableURL = executable("hostile-peer")
        process.arguments = ["server", rule]
        process.standardOutput = output
        let ended = AsyncStream.makeStream(of: Never.self)
        process.terminationHandler = { _ in ended.continuation.finish() }
        try process.start()
        var said = lines(of: output).makeAsyncIterator()
        let announcement = await said.next()
        let port = try #require(announcement.flatMap { UInt16($0.dropFirst("port ".count)) })
        let client = Task { try await body(port) }
        var lines: [String] = []
        while let line = await said.next() { lines.append(line) }
        for await _ in ended.stream {}
        client.cancel()
        _ = await client.result
        try #require(process.terminationStatus == 0, "The server has failed after \(lines).")
        return lines
    }

    private static func lines(_ output: Data) -> [String] {
        String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// The lines of a running program, read on a thread that may block.
    private static func lines(of pipe: Pipe) -> AsyncStream<String> {
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        let file = pipe.fileHandleForReading
        DispatchQueue.global().async {
            var rest = Data()
            // Empty at the end only.
            while case let chunk = file.availableData, !chunk.isEmpty {
                rest += chunk
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    continuation.yield(String(decoding: rest[..<end], as: UTF8.self))
                    rest = Data(rest[(end + 1)...])
                }
            }
            continuation.finish()
        }
        return lines
    }

    private static func executable(_ name: String) -> URL {
        Checkout.folder.appending(path: ".build-peers/bin/\(name)")
    }
}

/// Runs `body`, which must throw a `SessionError`, and returns that.
func sessionError(_ body: () async throws -> some Any) async throws -> SessionError {
    do {
        let result = try await body()
        throw BackgroundProgram.Failure(description: "It did not fail: \(result)")
    } catch let error as SessionError {
        return error
    }
}

extension SessionClient {
    /// Calls a method of the peer.
    nonisolated(nonsending) func ask(
        _ method: String,
        id: Int = 0,
        text: String = "",
        timeout: Duration? = .seconds(60)
    ) async throws(SessionError) -> ChatMessage {
        try await call(
            SessionPeer.service + method,
            ChatMessage.chat(id, text),
            returning: ChatMessage.self,
            timeout: timeout
        )
    }

    nonisolated(nonsending) func note(_ id: Int, text: String = "") async throws(SessionError) {
        try await push(SessionPeer.service + "Note", ChatMessage.chat(id, text))
    }

    /// Calls a method that collects messages. Its reply has their count as id, and the checksum of their ids as text.
    nonisolated(nonsending) func collect(_ count: Int, by method: String = "Collect") async throws -> ChatMessage {
        try await clientStream(
            SessionPeer.service + method,
            of: ChatMessage.self,
            returning: ChatMessage.self
        ) { writer in
            for number in 0..<count { try await writer.send(.chat(number, ChatMessage.padding(for: number))) }
        }
    }

    /// Sends a number of messages, and takes the replies meanwhile. Returns their ids.
    nonisolated(nonsending) func converse(_ count: Int) async throws -> [String] {
        try await converse { writer in
            for number in 0..<count { try await writer.send(.chat(number, ChatMessage.padding(for: number))) }
        } receive: { parts in
            var ids: [String] = []
            for try await part in parts { ids.append(part.id) }
            return ids
        }
    }

    /// Calls a method of the peer with messages in both directions.
    nonisolated(nonsending) func converse<Result>(
        by method: String = "Converse",
        timeout: Duration? = nil,
        _ send: @escaping @Sendable (SessionStreamWriter<ChatMessage>) async throws -> Void,
        receive: nonisolated(nonsending) (SessionMessages<ChatMessage>) async throws -> Result
    ) async throws -> Result {
        try await bothWays(
            SessionPeer.service + method,
            sending: ChatMessage.self,
            receiving: ChatMessage.self,
            timeout: timeout,
            send,
            receive: receive
        )
    }

    func pushes(of method: String) -> SessionPushes<ChatMessage> {
        pushes(SessionPeer.service + method, of: ChatMessage.self)
    }

    /// The messages with which the peer's `Count` answers.
    func counting(_ count: Int) -> SessionStream<ChatMessage> {
        stream(SessionPeer.service + "Count", ChatMessage.chat(count), of: ChatMessage.self)
    }

    /// The records of the peer's server.
    nonisolated(nonsending) func report() async throws -> PeerReport { try PeerReport(try await ask("Report").text) }

    /// The counts of the peer's server in this session.
    nonisolated(nonsending) func counts() async throws -> [String: Int] {
        var counts: [String: Int] = [:]
        for line in try await ask("Counts").text.split(separator: "\n") {
            let words = line.split(separator: " ")
            counts[String(words[0])] = Int(words[1])
        }
        return counts
    }
}

extension ChatMessage {
    static func chat(_ id: Int, _ text: String = "") -> ChatMessage {
        .with {
            $0.id = "\(id)"
            $0.text = text
        }
    }

    /// So that messages have different sizes.
    static func padding(for number: Int) -> String { String(repeating: "Grüezi ", count: number % 50 * 3) }
}

/// The ids of a number of messages.
func chatIDs(_ count: Int) -> [String] { (0..<count).map(String.init) }

/// Returns whether all ids arrived, once and in order.
func checksum(of ids: [String]) -> String {
    "\(ids.reduce(0) { sum, id in (sum * 31 + (Int(id) ?? 0) + 1) % 1_000_000_007 })"
}

/// The observations of a peer's server.
struct PeerReport {
    /// The notes that were pushed, in the order in which they were handled.
    let notes: [String]
    /// The requested echoes.
    let requests: [String]
    /// The requests that were ended before they were answered.
    let ended: [String]
    /// Connections that it has cut.
    let cutCount: Int
    /// The number of frames of this session that it has dropped, so that they are sent again.
    let droppedCount: Int

    init(_ text: String) throws {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        try #require(lines.count == 5)
        func words(_ line: String) -> [String] { line.split(separator: " ").map(String.init) }
        (notes, requests, ended) = (words(lines[0]), words(lines[1]), words(lines[2]))
        (cutCount, droppedCount) = (try #require(Int(lines[3])), try #require(Int(lines[4])))
    }
}
