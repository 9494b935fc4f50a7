import Foundation
import Lifeline
import LifelineProtos
import LifelineTestSupport
import Testing

/// The peer in Python that has sessions: Peers/README.md lists its commands and methods.
enum SessionPeer {
    static let service = "interop.Peer/"

    /// Runs its server, and a client with that.
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

    /// Runs one of its client's scenarios, which must succeed.
    static func runClient(_ scenario: String, port: UInt16, _ options: [String] = []) async throws {
        _ = try await Program(executable("session-peer"), ["client", "\(port)", scenario] + options).run()
    }

    /// What a server says to a client that breaks a rule, and what then becomes of the session.
    static func breakRule(_ rule: String, port: UInt16) async throws -> [String] {
        let output = try await Program(executable("hostile-peer"), ["\(port)", rule]).run()
        return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
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
    /// Calls a method of the peer's.
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

    /// What the server's peer has recorded.
    nonisolated(nonsending) func report() async throws -> PeerReport { try PeerReport(try await ask("Report").text) }
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

/// What a peer's server has seen.
struct PeerReport {
    /// The notes that were pushed, in the order in which they were handled.
    let notes: [String]
    /// The echoes that were asked for.
    let requests: [String]
    /// The requests that hung until they were ended.
    let ended: [String]
    /// Connections that it has cut.
    let cutCount: Int
    /// Frames that came to it in this session and had come before.
    let doubledCount: Int

    init(_ text: String) throws {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        try #require(lines.count == 5)
        func words(_ line: String) -> [String] { line.split(separator: " ").map(String.init) }
        (notes, requests, ended) = (words(lines[0]), words(lines[1]), words(lines[2]))
        (cutCount, doubledCount) = (try #require(Int(lines[3])), try #require(Int(lines[4])))
    }
}
