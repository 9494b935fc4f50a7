import Lifeline
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// The README's client and server, as they stand there but for the endpoint and the message types.
@Suite(.timeLimit(.minutes(1))) struct ReadmeExampleTests {
    typealias Request = Google_Protobuf_StringValue
    typealias Reply = Google_Protobuf_UInt32Value

    @Sendable private func answer(to request: Request) -> Reply { Reply(UInt32(request.value.utf8.count)) }

    @Test func clientAndServer() async throws {
        try await withTemporaryPath { path in
            let replies = try await withServer(
                listeningOn: Endpoint("unix://\(path)"),
                receiving: Request.self,
                sending: Reply.self
            ) { connection in
                for try await request in connection.messages { try await connection.send(answer(to: request)) }
            } _: { server in
                try await client(of: server.endpoint, sending: ["a", "Grüezi", ""].map(Request.init))
            }
            #expect(replies == [1, 7, 0].map(Reply.init))
        }
    }

    private func client(of endpoint: Endpoint, sending requests: [Request]) async throws -> [Reply] {
        try await withConnection(to: endpoint, receiving: Reply.self, sending: Request.self) { connection in
            for request in requests { try await connection.send(request) }
            try await connection.finishSending()
            var replies: [Reply] = []
            for try await reply in connection.messages { replies.append(reply) }
            return replies
        }
    }

    @Sendable private func isKnown(_ user: String, _ password: String) async -> Bool { user == password }

    @Test func webSocketServer() async throws {
        var configuration = ServerConfiguration()
        configuration.webSocket.subprotocols = ["chat.v1"]
        configuration.webSocket.origins = .only(["https://chat.example.org"])
        configuration.webSocket.authorize = { await isKnown($0.user, $0.password) }
        let reply: WebSocketMessage? = try await withServer(
            listeningOn: Endpoint("ws://127.0.0.1:0/chat"),
            configuration: configuration,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self
        ) { connection in
            #expect(connection.webSocket?.subprotocol ?? "none" == "chat.v1")
            for try await case .text(let text) in connection.messages {
                try await connection.send(.text(text.uppercased()))
            }
        } _: { server in
            var client = ConnectionConfiguration()
            client.webSocket.subprotocols = ["chat.v1"]
            client.webSocket.origin = "https://chat.example.org"
            client.webSocket.credentials = WebSocketCredentials(user: "ada", password: "ada")
            return try await withConnection(
                to: server.endpoint,
                configuration: client,
                receiving: WebSocketMessage.self,
                sending: WebSocketMessage.self
            ) { connection in
                try await connection.send(.text("hello"))
                for try await reply in connection.messages { return reply }
                return nil
            }
        }
        #expect(reply == .text("HELLO"))
    }
}
