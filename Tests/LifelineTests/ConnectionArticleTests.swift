import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import LifelineWellKnownTypes
import NIOConcurrencyHelpers
import Testing

/// Runs the code of the README and of the articles about connections.
@Suite(.timeLimit(.minutes(1))) struct ConnectionArticleTests {
    @Test(arguments: [ConnectionArticle.Part.connection, .client]) func runsAgainstTheServer(
        part: ConnectionArticle.Part
    )
        async throws
    {
        try await withTemporaryPath { path in
            let example = ConnectionArticle(path: path)
            try await withThrowingTaskGroup { group in
                group.addTask { try await example.server() }
                try await example.isListening.wait()
                switch part {
                case .connection:
                    try await example.connection()
                    #expect(example.requests == ["Grüezi"])
                case .client:
                    // This client runs until it is cancelled.
                    group.addTask { try await example.client() }
                    try await until { example.requests.count == 2 }
                    #expect(example.requests == ["Grüezi", "47.4 N"])
                }
                group.cancelAll()
            }
        }
    }

    @Test func framesAreEchoed() async throws {
        try await withTemporaryPath { path in
            let example = ConnectionArticle(path: path)
            try await withThrowingTaskGroup { group in
                group.addTask { try await example.frames() }
                try await example.isListening.wait()
                try await withTestConnection(to: .unix(path: path)) { connection in
                    let reply = try await roundTrip(TestMessage(number: 3), on: connection)
                    #expect(reply?.number == 3)
                }
                group.cancelAll()
            }
        }
    }

    @Test func theReadmesClientAsksItsServer() async throws {
        try await withTemporaryPath { path in
            let example = ConnectionArticle(path: path)
            try await example.readme()
            #expect(example.requests == ["Grüezi"])
        }
    }

    @Test func aDelegateIsTold() async throws {
        try await withTemporaryPath { path in
            let example = ConnectionArticle(path: path)
            try await withThrowingTaskGroup { group in
                group.addTask { try await example.server() }
                try await example.isListening.wait()
                try await example.delegate()
                #expect(example.requests == ["Grüezi"])
                group.cancelAll()
            }
        }
    }

    @Test func configurations() {
        let client = ConnectionArticle.clientThatTriesForEver()
        #expect(client.backoff.maximumAttempts == nil && client.backoff.cap == .seconds(60))
        let server = ConnectionArticle.serverWithLimits()
        #expect(server.connection.maximumFrameLength == 65_536 && server.maximumConnections == 500)
    }
}

/// The articles' code, with the parts that they leave out: messages, the server's answers, and its endpoint.
struct ConnectionArticle: Sendable {
    enum Part {
        case connection, client
    }

    typealias Request = Google_Protobuf_StringValue
    typealias Reply = Google_Protobuf_UInt32Value

    let isListening = Event()
    private let path: String
    private let request = Request("Grüezi")
    private let position = Request("47.4 N")
    private let answered = NIOLockedValueBox<[String]>([])

    init(path: String) {
        self.path = path
    }

    /// The server's answer.
    var requests: [String] { answered.withLockedValue { $0 } }

    /// Replaces the articles' endpoints, which have to be valid, by a socket of the test.
    private func Endpoint(_ text: String) throws -> Lifeline.Endpoint {
        _ = try Lifeline.Endpoint(text)
        return .unix(path: path)
    }

    @Sendable private func answer(to request: Request) -> Reply {
        answered.withLockedValue { $0.append(request.value) }
        return Reply(UInt32(request.value.utf8.count))
    }

    /// Replaces the printing of the server's endpoint.
    private func print(_ item: Any) {
        if item is String { isListening.signal() }
    }

    func readme() async throws {
        // snippet.client-and-server
        try await withServer(
            listeningOn: Endpoint("tcp://127.0.0.1:7000"),
            receiving: Request.self,
            sending: Reply.self
        ) { connection in
            for try await request in connection.messages { try await connection.send(answer(to: request)) }
        } _: { server in
            try await withClient(to: server.boundEndpoint, receiving: Reply.self, sending: Request.self) { client in
                try await client.send(request)
                for try await reply in client.messages { return print(reply) }
            }
        }
        // snippet.end
    }

    func connection() async throws {
        // snippet.connection
        try await withConnection(
            to: Endpoint("tcp://127.0.0.1:7000"),
            receiving: Reply.self,
            sending: Request.self
        ) { connection in
            try await connection.send(request)  // accepted: written before a graceful close
            try await connection.finishSending()  // half-close; replies still arrive
            for try await reply in connection.messages { print(reply) }
        }
        // snippet.end
    }

    func server() async throws {
        // snippet.server
        try await withServer(
            listeningOn: Endpoint("unix:///run/chat.sock"),
            receiving: Request.self,
            sending: Reply.self
        ) { connection in
            for try await request in connection.messages { try await connection.send(answer(to: request)) }
        } _: { server in
            try await print("listening on \(server.boundEndpoint)")
            try await server.waitUntilShutDown()
        }
        // snippet.end
    }

    func frames() async throws {
        // snippet.frames
        final class Echo: FrameHandler {
            func received(_ frames: FrameRun, _ replies: inout FrameWriter) throws {
                for payload in frames { try replies.write(payload) }  // payload: borrowed bytes; or a message
            }
        }

        try await withFrameServer(listeningOn: Endpoint("tcp://0.0.0.0:7000")) { connection in
            Echo()  // one for each connection
        } _: { server in
            try await print("listening on \(server.boundEndpoint)")
            try await server.waitUntilShutDown()
        }
        // snippet.end
    }

    func client() async throws {
        // snippet.client
        try await withClient(
            to: Endpoint("tcp://chat.example.org:7000"),
            receiving: Reply.self,
            sending: Request.self
        ) { client in
            async let _: Void = { for await event in client.events { print(event) } }()
            try await client.send(request)  // waits up to 30 s for a connection
            try await client.send(position, policy: .drop(after: .seconds(2)))  // worth nothing later
            for try await reply in client.messages { print(reply) }  // over all connections
        }
        // snippet.end
    }

    func delegate() async throws {
        let endpoint = try Endpoint("tcp://chat.example.org:7000")
        // snippet.delegate
        let client = Client(to: endpoint, receiving: Reply.self, sending: Request.self)
        let conversation = Conversation()
        async let running: Void = client.run(delegate: conversation)
        try await client.send(request)
        await client.close()
        try await running
        // snippet.end
        // The client closes directly after its message, so it may not get the reply.
        #expect(await ["7"].starts(with: conversation.texts))
    }

    static func clientThatTriesForEver() -> ClientConfiguration {
        // snippet.tries-for-ever
        var configuration = ClientConfiguration()
        configuration.backoff.maximumAttempts = nil
        configuration.backoff.cap = .seconds(60)
        // snippet.end
        return configuration
    }

    static func serverWithLimits() -> ServerConfiguration {
        // snippet.limits
        var configuration = ServerConfiguration()
        configuration.connection.maximumFrameLength = 64 << 10
        configuration.connection.decodingOptions.memoryLimit = 1 << 20
        configuration.maximumConnections = 500
        configuration.memoryBudget = 64 << 20
        // snippet.end
        return configuration
    }
}

// snippet.delegate-type
actor Conversation: ClientDelegate {
    private(set) var texts: [String] = []

    func didConnect() { print("connected") }
    func didReceive(_ message: Google_Protobuf_UInt32Value) { texts.append("\(message.value)") }
    func didDisconnect(_ disconnection: ClientDisconnection) { print("disconnected: \(disconnection.reason)") }
    func didGiveUp(_ reason: TransitionReason) { print("gave up: \(reason)") }
}
// snippet.end
