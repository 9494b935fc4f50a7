import Lifeline
import LifelineProtos
import Logging
import NIOConcurrencyHelpers
import SampleServices
import Testing

/// Runs the code of the README and of the articles about sessions.
@Suite(.timeLimit(.minutes(1))) struct ArticleTests {
    @Test func readme() async throws {
        #expect(try await Shown(room: ArticleRoom()).readme() == "Hello")
    }

    @Test func streams() async throws {
        try await withSession(serving: ArticleRoom()) { session in
            let (reply, heard) = try await Shown(room: ArticleRoom()).streams(Sample_Room_V1_RoomClient(session))
            #expect(reply.count == 2 && heard == ["Hello"])
        }
    }

    @Test func aCallIsAnswered() async throws {
        try await withSession(serving: ArticleRoom()) { session in
            let room = Sample_Room_V1_RoomClient(session)
            let printed = try await Shown(room: ArticleRoom()).say(room)
            #expect(printed == "1")
            let error = await #expect(throws: SessionError.self) { try await room.say(.init()) }
            #expect(error?.status?.message == "Say something.")
        }
    }
}

/// The documents' code, with the parts that they leave out.
private struct Shown {
    let room: ArticleRoom

    /// Replaces the articles' endpoints by a free port.
    private func Endpoint(_ text: String) throws -> Lifeline.Endpoint {
        _ = try Lifeline.Endpoint(text)
        return .tcp(host: "127.0.0.1", port: 0)
    }

    /// Returns the text that it would print.
    func readme() async throws -> String? {
        let printed = NIOLockedValueBox<String?>(nil)
        func print(_ text: String) { printed.withLockedValue { $0 = text } }
        // snippet.session
        try await withSessionServer(listeningOn: Endpoint("tcp://127.0.0.1:7000"), services: [room]) { server in
            try await withSessionClient(to: server.boundEndpoints[0]) { session in
                let room = Sample_Room_V1_RoomClient(session)
                let reply = try await room.echo(.with { $0.text = "Hello" }, timeout: .seconds(5))
                try await room.report(.with { $0.text = reply.text })
                for try await item in room.news { return print(item.text) }
            }
        }
        // snippet.end
        return printed.withLockedValue { $0 }
    }

    func streams(_ room: Sample_Room_V1_RoomClient) async throws -> (Sample_Room_V1_SayAllReply, [String]) {
        // snippet.streams
        let reply = try await room.sayAll { stream in
            for text in ["one", "two"] { try await stream.send(.with { $0.text = text }) }
        }  // `stream` ends here, and the reply comes
        let heard = try await room.talk { stream in
            try await stream.send(.with { $0.text = "Hello" })  // runs beside `receive`
        } receive: { news in
            var texts: [String] = []
            for try await item in news { texts.append(item.text) }
            return texts  // what `talk` returns
        }
        // snippet.end
        return (reply, heard)
    }

    func callsAndPushes() async throws {
        // snippet.calls-and-pushes
        try await withSessionClient(to: Endpoint("tls://rooms.example.org:7443")) { session in
            let room = Sample_Room_V1_RoomClient(session)
            let reply = try await room.say(.with { $0.text = "Hello" }, timeout: .seconds(5))
            print("heard by \(reply.listenerCount)")
            try await room.report(.with { $0.text = "typing" }, delivery: .replaceable(key: "status"))
            for try await item in room.news { print(item.from, item.text) }
        }
        // snippet.end
    }

    /// Returns the text that it would print.
    func say(_ room: Sample_Room_V1_RoomClient) async throws -> String {
        var printed = ""
        func print(_ text: Any) { printed = "\(text)" }
        // snippet.status-of-a-call
        do {
            let reply = try await room.say(.with { $0.text = "Hello" }, timeout: .seconds(5))
            print(reply.listenerCount)
        } catch {
            guard error.status?.code == .invalidArgument else { throw error }
            print(error.status?.message ?? "")
        }
        // snippet.end
        return printed
    }

    private func user(of token: String?) async -> String? { token == "ada's" ? "ada" : nil }

    func server(_ item: Sample_Room_V1_NewsItem, log: @escaping @Sendable (String, [SessionMessageInDoubt]) -> Void)
        async throws
    {
        // snippet.server
        var configuration = SessionServerConfiguration()
        configuration.authenticate = { candidate in
            guard let user = await user(of: candidate.metadata["token"]) else {
                throw SessionStatus(.unauthenticated, "Sign in first.")
            }
            return SessionIdentity(user)  // in every handler's `context.identity`, and the session's name
        }
        configuration.whenInDoubt = { session, messages in log(session.name, messages) }
        try await withSessionServer(
            listeningOn: Endpoint("tls://0.0.0.0:7443"),
            configuration: configuration,
            services: [room]
        ) { server in
            if let ada = server.session(named: "ada") { try await Sample_Room_V1_RoomPushes(ada).news(item) }
            try await server.waitUntilShutDown()
        }
        // snippet.end
    }

    func observing(_ configuration: SessionServerConfiguration, _ logger: Logger) async throws {
        // snippet.interceptors
        let interceptors: [any SessionServerInterceptor] = [
            SessionLoggingInterceptor(logger: logger), SessionMetricsInterceptor(), SessionTracingInterceptor(),
        ]
        try await withSessionServer(
            listeningOn: Endpoint("tls://0.0.0.0:7443"),
            configuration: configuration,
            services: [room],
            interceptors: interceptors
        ) { server in
            try await server.waitUntilShutDown()
        }
        // snippet.end
    }
}

private struct ArticleRoom: Sample_Room_V1_RoomHandler {
    func echo(_ request: Sample_Room_V1_EchoRequest, context: SessionContext) async throws -> Sample_Room_V1_EchoReply {
        .with { $0.text = request.text }
    }

    func watch(
        _ request: Sample_Room_V1_WatchRequest,
        to stream: SessionStreamWriter<Sample_Room_V1_Tick>,
        context: SessionContext
    ) async throws {}

    // snippet.handler
    func say(_ request: Sample_Room_V1_SayRequest, context: SessionContext) async throws -> Sample_Room_V1_SayReply {
        guard !request.text.isEmpty else { throw SessionStatus(.invalidArgument, "Say something.") }
        return .with { $0.listenerCount = 1 }
    }
    // snippet.end

    func report(_ message: Sample_Room_V1_Status, context: SessionContext) async throws {
        try await Sample_Room_V1_RoomPushes(context.session).news(.with { $0.text = message.text })
    }

    func sayAll(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        context: SessionContext
    ) async throws -> Sample_Room_V1_SayAllReply {
        var reply = Sample_Room_V1_SayAllReply()
        for try await _ in requests { reply.count += 1 }
        return reply
    }

    func talk(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        to stream: SessionStreamWriter<Sample_Room_V1_NewsItem>,
        context: SessionContext
    ) async throws {
        for try await request in requests { try await stream.send(.with { $0.text = request.text }) }
    }
}
