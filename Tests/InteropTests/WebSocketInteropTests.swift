import Foundation
import Lifeline
import LifelineCore
import LifelineTestSupport
import Testing

/// WebSocket with PyPI's `websockets` at the other end.
@Suite(.timeLimit(.minutes(2)), .serialized) struct WebSocketInteropTests {
    private let peer = Checkout.folder.appending(path: ".build-interop/bin/websockets-peer")
    private let messages: [WebSocketMessage] = [
        .text("Grüezi 🎉"), .text(""), .binary([]), .binary([0, 255]), .text(String(repeating: "x", count: 300_000)),
    ]

    // MARK: Our client

    @Test(arguments: Corpus.allCases) func ourClientSendsFramesToItsServer(corpus: Corpus) async throws {
        let stream = try [UInt8](corpus.reference)
        let echoed = try await withEchoServer { endpoint, configuration in
            try await withConnection(
                to: endpoint,
                configuration: configuration,
                receiving: ChatMessage.self,
                sending: ChatMessage.self
            ) { connection in
                #expect(connection.webSocket?.subprotocol == "chat.v1")
                let messages = try ChatMessage.all(in: stream)
                async let sending: Void = connection.send(contentsOf: messages)
                var count = 0
                for try await message in connection.messages {
                    #expect(message == messages[count])
                    count += 1
                    if count == messages.count { break }
                }
                try await sending
                return count
            }
        }
        #expect(echoed == corpus.count)
    }

    @Test func ourClientSendsTextsToItsServer() async throws {
        let messages = messages
        let echoed = try await withEchoServer { endpoint, configuration in
            try await withConnection(
                to: endpoint,
                configuration: configuration,
                receiving: WebSocketMessage.self,
                sending: WebSocketMessage.self
            ) { connection in
                for message in messages { try await connection.send(message) }
                var echoed: [WebSocketMessage] = []
                for try await message in connection.messages {
                    echoed.append(message)
                    if echoed.count == messages.count { break }
                }
                return echoed
            }
        }
        #expect(echoed == messages)
    }

    @Test func ourClientIsRefusedByItsServer() async throws {
        try await withEchoServer { endpoint, configuration in
            var wrong = configuration
            wrong.webSocket.credentials?.password = "wrong"
            let error = await #expect(throws: ConnectionError.self) {
                try await connect(to: endpoint, configuration: wrong)
            }
            #expect((error?.cause as? WebSocketRefusal)?.status == 401)
            // Its server serves one client.
            try await connect(to: endpoint, configuration: configuration)
        }
    }

    private func connect(to endpoint: Endpoint, configuration: ConnectionConfiguration) async throws {
        try await withConnection(
            to: endpoint,
            configuration: configuration,
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { _ in }
    }

    /// `configuration` has what the server asks for.
    private func withEchoServer<Result>(
        _ body: (_ endpoint: Endpoint, _ configuration: ConnectionConfiguration) async throws -> Result
    ) async throws -> Result {
        try await Program(peer, ["echo-server"]).run { port in
            var configuration = ConnectionConfiguration()
            configuration.webSocket.credentials = WebSocketCredentials(user: "ada", password: "secret")
            configuration.webSocket.subprotocols = ["chat.v1"]
            return try await body(Endpoint("ws://127.0.0.1:\(port)"), configuration)
        }
    }

    // MARK: Our server

    @Test(arguments: Corpus.allCases) func itsClientSendsFramesToOurServer(corpus: Corpus) async throws {
        try await withServer(
            listeningOn: Endpoint("ws://127.0.0.1:0"),
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: { server in
            _ = try await Program(peer, ["echo-client", "\(server.endpoint)", corpus.rawValue]).run()
        }
    }

    @Test func itsClientSendsTextsToOurServer() async throws {
        var configuration = ServerConfiguration()
        configuration.webSocket.subprotocols = ["chat.v2", "chat.v1"]
        try await withServer(
            listeningOn: Endpoint("ws://127.0.0.1:0"),
            configuration: configuration,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self
        ) { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: { server in
            _ = try await Program(peer, ["texts", "\(server.endpoint)"]).run()
        }
    }

    @Test func itsClientIsRefusedByOurServer() async throws {
        try await withServer(
            listeningOn: Endpoint("ws://127.0.0.1:0"),
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            for try await _ in connection.messages {}
        } _: { server in
            _ = try await Program(peer, ["refused", "\(server.endpoint)", "403"]).run()
            _ = try await Program(peer, ["refused", "\(server.endpoint)elsewhere", "404"]).run()
            _ = try await Program(peer, ["closed", "\(server.endpoint)", "1003"]).run()
        }
    }

    // MARK: The command

    @Test func theCommandSendsAndReceivesOverWebSocket() async throws {
        let reference = try Corpus.everyField.reference
        let received = try await receive(
            on: "ws://127.0.0.1:0/chat",
            count: Corpus.everyField.count,
            format: "delimited"
        ) { endpoint in
            #expect(endpoint.hasPrefix("ws://127.0.0.1:") && endpoint.hasSuffix("/chat"))
            let send = try Program.product("lifeline", ["send", "--to", endpoint, "--format", "delimited"])
            _ = try await send.run(input: reference)
        }
        #expect(received == reference)
    }
}

extension ChatMessage {
    fileprivate static func all(in stream: [UInt8]) throws -> [ChatMessage] {
        struct Collector: FrameSink {
            var messages: [ChatMessage] = []
            mutating func receive(frame: UnsafeRawBufferPointer) throws {
                messages.append(try ChatMessage(serializedBytes: frame))
            }
        }
        var collector = Collector()
        var assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: 4 << 20))
        try stream.withUnsafeBytes { try assembler.receive($0, into: &collector) }
        try assembler.finish()
        return collector.messages
    }
}
