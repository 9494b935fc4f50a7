import Lifeline
import LifelineProtos
import SampleServices
import Testing

/// Calls `body` with a client of a server with `service`, over TCP.
func withSession(serving service: any SessionService, _ body: (SessionClient) async throws -> Void) async throws {
    let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)
    try await withSessionServer(listeningOn: anyPort, services: [service]) { server in
        try await withSessionClient(to: server.boundEndpoints[0], body)
    }
}

/// A generated service in a module apart from its messages: what a client calls arrives at the handler, and back.
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

    @Test func handlersListWhatClientsCall() {
        #expect(
            TestRoom().methods.map(\.name) == ["Echo", "Watch", "Say", "Report"].map { "sample.room.v1.Room/\($0)" }
        )
    }
}

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
}
