import Lifeline
import LifelineClientTestSupport
import LifelineRuntime
import LifelineTestSupport
import LifelineWellKnownTypes
import Logging
import ServiceLifecycle
import Testing
import UnixSignals

/// Runs the code of docs/services.md.
@Suite(.timeLimit(.minutes(1))) struct ServicesArticleTests {
    @Test func aGroupRunsAServerAndAClient() async throws {
        typealias Example = ServicesArticle
        let received = Event()
        try await withServer(
            listeningOn: anyPort,
            receiving: Example.Request.self,
            sending: Example.Reply.self
        ) { connection in
            for try await _ in connection.messages { received.signal() }
        } _: { backend in
            let example = ServicesArticle(backend: try await backend.boundEndpoint)
            async let running: Void = example.run()
            let (server, group) = try await (example.server.wait(), example.group.wait())
            try await withConnection(
                to: server.boundEndpoint,
                receiving: Example.Reply.self,
                sending: Example.Request.self
            ) { connection in
                try await connection.send(Example.Request("Hello"))
                var replies = connection.messages.makeAsyncIterator()
                #expect(try await replies.next()?.value == 5)
                try await received.wait()
                await group.triggerGracefulShutdown()
                #expect(try await replies.next() == nil, "a regular end")
            }
            try await running
        }
    }
}

/// The document's code, with the parts that it leaves out.
struct ServicesArticle: Sendable {
    typealias Request = Google_Protobuf_StringValue
    typealias Reply = Google_Protobuf_UInt32Value

    let backend: Lifeline.Endpoint
    let server = Latch<Server>()
    let group = Latch<ServiceLifecycle.ServiceGroup>()
    private let logger = TestLog().logger

    init(backend: Lifeline.Endpoint) {
        self.backend = backend
    }

    /// Replaces the document's endpoints, which have to be valid, by those of the test.
    private func Endpoint(_ text: String) throws -> Lifeline.Endpoint {
        _ = try Lifeline.Endpoint(text)
        return text.contains("backend") ? backend : anyPort
    }

    /// Gives the group to the test, and leaves out its signals, which belong to the test process.
    private func ServiceGroup(
        services: [any Service],
        gracefulShutdownSignals: [UnixSignal],
        cancellationSignals: [UnixSignal],
        logger: Logger
    ) -> ServiceLifecycle.ServiceGroup {
        let group = ServiceLifecycle.ServiceGroup(services: services, logger: logger)
        self.group.open(with: group)
        for case let server as Server in services { self.server.open(with: server) }
        return group
    }

    @Sendable private func answer(to request: Request) -> Reply { Reply(UInt32(request.value.utf8.count)) }

    func run() async throws {
        // snippet.services
        let backend = try Client(
            to: Endpoint("tcp://backend.example.org:7000"),
            receiving: Reply.self,
            sending: Request.self
        )
        let server = try Server(
            listeningOn: Endpoint("tcp://0.0.0.0:7000"),
            receiving: Request.self,
            sending: Reply.self
        ) { connection in
            for try await request in connection.messages {
                try await backend.send(request)
                try await connection.send(answer(to: request))
            }
        }
        let group = ServiceGroup(
            services: [backend, server],  // ended in the reverse order
            gracefulShutdownSignals: [.sigterm],
            cancellationSignals: [.sigint],
            logger: logger
        )
        try await group.run()
        // snippet.end
    }
}
