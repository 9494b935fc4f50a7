import Foundation
import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import LifelineWellKnownTypes
import NIOConcurrencyHelpers
import Testing

/// The README's section on connections: its code, as it stands there, runs.
@Suite(.timeLimit(.minutes(1))) struct ReadmeExampleTests {
    @Test(arguments: [ReadmeExample.Part.connection, .client]) func runsAgainstTheServer(part: ReadmeExample.Part)
        async throws
    {
        try await withTemporaryPath { path in
            let example = ReadmeExample(path: path)
            try await withThrowingTaskGroup { group in
                group.addTask { try await example.server() }
                try await example.isListening.wait()
                switch part {
                case .connection:
                    try await example.connection()
                    #expect(example.requests == ["Grüezi"])
                case .client:
                    // This one stays until it is cancelled.
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
            let example = ReadmeExample(path: path)
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

    @Test func theReadmeHasTheSame() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let root = folder.deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let own = try [
            "LifelineTests/ReadmeExampleTests.swift", "LifelineOlderFramingsTests/RequestsReadmeExampleTests.swift",
        ].map { name in
            code(of: try String(contentsOf: folder.appending(path: name), encoding: .utf8))
        }
        let section = try #require(readme.components(separatedBy: "\n## Connections\n").dropFirst().first)
            .components(separatedBy: "\n## ")[0]
        let blocks = section.components(separatedBy: "```swift\n").dropFirst().map {
            $0.components(separatedBy: "```")[0]
        }
        // What needs files and names of the user's is in LayerReadmeExampleTests.
        .filter { !$0.contains("configuration.") }
        #expect(blocks.count == 6)
        for block in blocks {
            let example = code(of: block.replacing(/import Lifeline\w*\n/, with: ""))
            #expect(own.contains { $0.contains(example) }, "\(block)")
        }
    }
}

/// Returns code without comments and blanks, which the formatter has its own mind about.
func code(of text: String) -> String {
    text.split(separator: "\n")
        .map { $0.components(separatedBy: "  //")[0].filter { !$0.isWhitespace } }
        .joined()
}

/// The README's code with what it leaves out: messages, what the server answers, and where it listens.
struct ReadmeExample: Sendable {
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

    /// What the server has answered.
    var requests: [String] { answered.withLockedValue { $0 } }

    /// In place of the README's endpoint, which has to be one, a socket of the test's own.
    private func Endpoint(_ text: String) throws -> Lifeline.Endpoint {
        _ = try Lifeline.Endpoint(text)
        return .unix(path: path)
    }

    @Sendable private func answer(to request: Request) -> Reply {
        answered.withLockedValue { $0.append(request.value) }
        return Reply(UInt32(request.value.utf8.count))
    }

    /// Where the server says that it listens.
    private func print(_ item: Any) {
        if item is String { isListening.signal() }
    }

    func connection() async throws {
        try await withConnection(
            to: Endpoint("tcp://127.0.0.1:7000"),
            receiving: Reply.self,
            sending: Request.self
        ) { connection in
            try await connection.send(request)
            try await connection.finishSending()
            for try await reply in connection.messages { print(reply) }
        }
    }

    func server() async throws {
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
    }

    func frames() async throws {
        final class Echo: FrameHandler {
            func received(_ frames: FrameRun, _ replies: inout FrameWriter) throws {
                for payload in frames { try replies.write(payload) }
            }
        }

        try await withFrameServer(listeningOn: Endpoint("tcp://0.0.0.0:7000")) { connection in
            Echo()
        } _: { server in
            try await print("listening on \(server.boundEndpoint)")
            try await server.waitUntilShutDown()
        }
    }

    func client() async throws {
        try await withClient(
            to: Endpoint("tcp://chat.example.org:7000"),
            receiving: Reply.self,
            sending: Request.self
        ) { client in
            async let _: Void = { for await event in client.events { print(event) } }()
            try await client.send(request)
            try await client.send(position, policy: .drop(after: .seconds(2)))
            for try await reply in client.messages { print(reply) }
        }
    }
}
