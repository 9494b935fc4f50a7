import Lifeline
import LifelineProtos
import SampleServices
import Testing

/// Calls `body` with a client of a server with `service`, over TCP.
func withSession(
    serving service: any SessionService,
    configuration: SessionServerConfiguration = .init(),
    interceptors: [any SessionServerInterceptor] = [],
    _ body: (SessionClient) async throws -> Void
) async throws {
    try await withSessionServer(
        listeningOn: .tcp(host: "127.0.0.1", port: 0),
        configuration: configuration,
        services: [service],
        interceptors: interceptors
    ) { server in
        try await withSessionClient(to: server.boundEndpoints[0], body)
    }
}

/// A generated service in a separate module from its messages: calls reach the handler, and replies come back.
@Suite(.timeLimit(.minutes(1))) struct RoomTests {
    @Test func aUnaryMethodAnswers() async throws {
        try await withSession(serving: TestRoom()) { session in
            let room = Sample_Room_V1_RoomClient(session)
            let reply = try await room.echo(.with { $0.text = "Grüezi" }, metadata: ["trace": "1"])
            #expect(reply.text == "Grüezi, by sample.room.v1.Room/Echo with 1")
        }
    }

    @Test func statusesOfHandlersArrive() async throws {
        try await withSession(serving: TestRoom()) { session in
            let error = await #expect(throws: SessionError.self) {
                try await Sample_Room_V1_RoomClient(session).say(.init())
            }
            #expect(error?.status?.code == .permissionDenied)
        }
    }

    @Test func aStreamAnswersWithManyMessages() async throws {
        try await withSession(serving: TestRoom()) { session in
            var numbers: [UInt32] = []
            for try await tick in Sample_Room_V1_RoomClient(session).watch(.with { $0.count = 3 }) {
                numbers.append(tick.number)
            }
            #expect(numbers == [1, 2, 3])
        }
    }

    @Test func pushesReachTheServerAndTheClient() async throws {
        try await withSession(serving: TestRoom()) { session in
            let room = Sample_Room_V1_RoomClient(session)
            try await room.report(.with { $0.text = "well" })
            try await room.report(.with { $0.text = "better" }, delivery: .expiring(after: .seconds(60)))
            var news = room.news.makeAsyncIterator()
            #expect(try await news.next()?.text == "well")
            #expect(try await news.next()?.text == "better")
        }
    }

    @Test func aStreamOfMessagesIsAnsweredOnce() async throws {
        try await withSession(serving: TestRoom()) { session in
            let room = Sample_Room_V1_RoomClient(session)
            let reply = try await room.sayAll { stream in
                for text in ["one", "two", "three"] { try await stream.send(.with { $0.text = text }) }
            }
            #expect(reply.count == 3)
            #expect(try await room.sayAll(timeout: .seconds(10), metadata: ["a": "b"]) { _ in }.count == 0)

            let error = await #expect(throws: SessionError.self) {
                try await room.sayAll { stream in try await stream.send(.init()) }
            }
            #expect(error?.status?.code == .invalidArgument)
        }
    }

    @Test func anErrorOfTheSenderIsThrownAsItIs() async throws {
        try await withSession(serving: TestRoom()) { session in
            let room = Sample_Room_V1_RoomClient(session)
            await #expect(throws: Speechless()) { try await room.sayAll { _ in throw Speechless() } }
            await #expect(throws: Speechless()) {
                try await room.talk { _ in
                    throw Speechless()
                } receive: { items in
                    for try await _ in items {}
                }
            }
        }
    }

    /// Each message is sent when the one before it was answered.
    @Test func messagesGoBothWays() async throws {
        try await withSession(serving: TestRoom()) { session in
            let (answered, answer) = AsyncStream.makeStream(of: Void.self)
            let texts = try await Sample_Room_V1_RoomClient(session).talk { stream in
                var answers = answered.makeAsyncIterator()
                for text in ["Grüezi", "Adieu"] {
                    try await stream.send(.with { $0.text = text })
                    _ = await answers.next()
                }
            } receive: { items in
                var texts: [String] = []
                for try await item in items {
                    #expect(item.from == "sample.room.v1.Room/Talk")
                    texts.append(item.text)
                    answer.yield()
                }
                return texts
            }
            #expect(texts == ["Grüezi", "Adieu"])
        }
    }

    @Test func handlersListTheMethodsThatClientsCall() {
        let methods = ["Echo", "Watch", "Say", "Report", "SayAll", "Talk"]
        #expect(TestRoom().methods.map(\.name) == methods.map { "sample.room.v1.Room/\($0)" })
    }
}

private struct Speechless: Error, Equatable {}

private struct TestRoom: Sample_Room_V1_RoomHandler {
    func echo(_ request: Sample_Room_V1_EchoRequest, context: SessionContext) async throws -> Sample_Room_V1_EchoReply {
        .with { $0.text = "\(request.text), by \(context.method) with \(context.metadata["trace"] ?? "")" }
    }

    func watch(
        _ request: Sample_Room_V1_WatchRequest,
        to stream: SessionStreamWriter<Sample_Room_V1_Tick>,
        context: SessionContext
    ) async throws {
        for number in 0..<request.count { try await stream.send(.with { $0.number = number + 1 }) }
    }

    func say(_ request: Sample_Room_V1_SayRequest, context: SessionContext) async throws -> Sample_Room_V1_SayReply {
        throw SessionStatus(.permissionDenied)
    }

    func report(_ message: Sample_Room_V1_Status, context: SessionContext) async throws {
        try await Sample_Room_V1_RoomPushes(context.session).news(.with { $0.text = message.text })
    }

    func sayAll(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        context: SessionContext
    ) async throws -> Sample_Room_V1_SayAllReply {
        var reply = Sample_Room_V1_SayAllReply()
        for try await request in requests {
            if request.text.isEmpty { throw SessionStatus(.invalidArgument) }
            reply.count += 1
        }
        return reply
    }

    func talk(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        to stream: SessionStreamWriter<Sample_Room_V1_NewsItem>,
        context: SessionContext
    ) async throws {
        for try await request in requests {
            try await stream.send(.with { ($0.from, $0.text) = (context.method, request.text) })
        }
    }
}
