import Lifeline
import LifelineClientTestSupport
import LifelineOlderFramings
import LifelineTestSupport
import NIOConcurrencyHelpers
import Testing

/// Runs the code of the article about older framings.
@Suite(.timeLimit(.minutes(1))) struct ArticleTests {
    @Test func requestsAndPushes() async throws {
        try await withTemporaryPath { path in
            let example = ArticleExample(path: path)
            try await withThrowingTaskGroup { group in
                group.addTask { try await example.server() }
                // The socket's file exists before the server listens.
                try await untilAsync { (try? await RawSocket.connect(toPath: path)) != nil }
                group.addTask { try await example.client() }
                try await until { example.lines.count == 1 }
                #expect(example.lines == ["0 7 [0]"])
                group.cancelAll()
            }
        }
    }
}

/// The article's code, with the parts that it leaves out: the question, and the server's endpoint.
private struct ArticleExample: Sendable {
    private let path: String
    private let question: [UInt8] = [1, 2, 3]
    private let printed = NIOLockedValueBox<[String]>([])

    init(path: String) {
        self.path = path
    }

    /// The client's output.
    var lines: [String] { printed.withLockedValue { $0 } }

    /// Replaces the article's endpoint, which has to be valid, by a socket of the test.
    private func Endpoint(_ text: String) throws -> Lifeline.Endpoint {
        _ = try Lifeline.Endpoint(text)
        return .unix(path: path)
    }

    private func print(_ items: Any...) {
        printed.withLockedValue { $0.append(items.map { "\($0)" }.joined(separator: " ")) }
    }

    func client() async throws {
        // snippet.client
        try await withFixedHeaderClient(to: Endpoint("tls://device.example.org:7000")) { client in
            let reply = try await client.request(url: 0x500, content: question, timeout: .seconds(5))
            try await client.notify(9)  // expects no answer
            for try await push in client.pushes { print(reply.status, push.url, push.content) }
        }
        // snippet.end
    }

    func server() async throws {
        // snippet.server
        try await withServer(
            listeningOn: Endpoint("tcp://0.0.0.0:7000"),
            receiving: FixedHeaderRequest.self,
            sending: FixedHeaderResponse.self,
            heartbeat: .fixedHeader
        ) { connection in
            try await connection.send(.push(7, content: [0]))
            for try await request in connection.messages where !request.isNotification {
                try await connection.send(request.response(status: 0, content: request.content))
            }
        } _: { server in
            try await server.waitUntilShutDown()
        }
        // snippet.end
    }
}
