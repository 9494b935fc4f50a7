import Lifeline
import LifelineMessages
import LifelineWellKnownTypes
import TestServices
import Testing

/// Generated services beside their messages, with every shape of method and names that need care.
@Suite(.timeLimit(.minutes(1))) struct ShapesTests {
    @Test func everyShapeArrives() async throws {
        try await withSession(serving: Shapes()) { session in
            let shapes = Test_Services_ShapesClient(session)
            var pushes = shapes.serverPush.makeAsyncIterator()
            var emptyPushes = shapes.emptyServerPush.makeAsyncIterator()

            #expect(try await shapes.unary(.with { $0.text = "a" }).text == "a")
            #expect(try await shapes.stream(.with { $0.text = "abc" }).collected().map(\.number) == [0, 1, 2])
            try await shapes.clientPush(.with { $0.text = "b" })
            #expect(try await pushes.next()?.text == "b")
            _ = try await shapes.emptyUnary(.init())
            #expect(try await shapes.emptyStream(.init()).collected().count == 1)
            try await shapes.emptyClientPush(.init())
            #expect(try await emptyPushes.next() != nil)
            let joined = try await shapes.clientStream { stream in
                for text in ["a", "b", "c"] { try await stream.send(.with { $0.text = text }) }
            }
            #expect(joined.text == "abc")
            let lengths = try await shapes.bothWays { stream in
                for text in ["", "a", "bc"] { try await stream.send(.with { $0.text = text }) }
            } receive: { parts in
                try await parts.collected().map(\.number)
            }
            #expect(lengths == [0, 1, 2])
            let count = try await shapes.emptyBothWays { stream in
                for _ in 1...3 { try await stream.send(.init()) }
            } receive: { empties in
                try await empties.collected().count
            }
            #expect(count == 3)
        }
        let methods = [
            "Unary", "Stream", "ClientPush", "EmptyUnary", "EmptyStream", "EmptyClientPush", "ClientStream", "BothWays",
            "EmptyBothWays",
        ]
        #expect(Shapes().methods.map(\.name) == methods.map { "test.services.Shapes/\($0)" })
    }

    @Test func methodsWithEmptyAreCallsByAnOption() async throws {
        try await withSession(serving: Calls()) { session in
            let calls = Test_Services_CallsClient(session)
            let error = await #expect(throws: SessionError.self) { try await calls.upload { _ in } }
            #expect(error?.status?.code == .invalidArgument)
            _ = try await calls.upload { stream in try await stream.send(.with { $0.text = "a" }) }
            #expect(try await calls.watch(.init()).collected().map(\.text) == ["a"])
            _ = try await calls.emptyUpload { stream in try await stream.send(.init()) }
            try await calls.report(.init(), until: .processed)
            #expect(try await calls.unary(.with { $0.text = "b" }).text == "b")
            #expect(try await calls.stream(.with { $0.text = "c" }).collected().map(\.text) == ["c"])
            let last = try await calls.clientStream { stream in
                for text in ["d", "e"] { try await stream.send(.with { $0.text = text }) }
            }
            #expect(last.text == "e")
            let echoes = try await calls.bothWays { stream in
                for text in ["f", "g"] { try await stream.send(.with { $0.text = text }) }
            } receive: { answers in
                try await answers.collected().map(\.text)
            }
            #expect(echoes == ["f", "g"])
        }
    }

    @Test func anActorHandles() async throws {
        let hall = Hall()
        try await withSession(serving: hall) { session in
            let client = Test_Services_Names_HallServiceClient(session)
            _ = try await client.enter(.init())
            _ = try await client.enter(.init())
        }
        #expect(await hall.count == 2)
    }

    @Test func namesThatSwiftHasAUseForAreCalled() async throws {
        try await withSession(serving: Keywords()) { session in
            let client = Test_Services_Names_KeywordsClient(session)
            var pushes = client.import.makeAsyncIterator()
            _ = try await client.class(.init())
            try await client.default(.init())
            #expect(try await pushes.next() != nil)
            #expect(try await client.repeat(.init()).collected().count == 1)
            _ = try await client.switch { stream in try await stream.send(.init()) }
            let count = try await client.while { stream in
                try await stream.send(.init())
            } receive: { rooms in
                try await rooms.collected().count
            }
            #expect(count == 1)
        }
    }
}

extension AsyncSequence {
    /// All elements, when the sequence has ended.
    func collected() async throws -> [Element] {
        var all: [Element] = []
        for try await element in self { all.append(element) }
        return all
    }
}

private typealias Question = Test_Services_Question
private typealias Answer = Test_Services_Answer
private typealias Empty = Google_Protobuf_Empty

private struct Shapes: Test_Services_ShapesHandler {
    func unary(_ request: Question, context: SessionContext) async throws -> Answer { .with { $0.text = request.text } }

    func stream(_ request: Question, to stream: SessionStreamWriter<Answer.Part>, context: SessionContext) async throws
    {
        for number in request.text.indices.enumerated() {
            try await stream.send(.with { $0.number = UInt32(number.offset) })
        }
    }

    func clientPush(_ message: Question, context: SessionContext) async throws {
        try await Test_Services_ShapesPushes(context.session).serverPush(.with { $0.text = message.text })
    }

    func emptyUnary(_ request: Empty, context: SessionContext) async throws -> Empty { request }

    func emptyStream(_ request: Question, to stream: SessionStreamWriter<Empty>, context: SessionContext) async throws {
        try await stream.send(.init())
    }

    func emptyClientPush(_ message: Empty, context: SessionContext) async throws {
        try await Test_Services_ShapesPushes(context.session).emptyServerPush(message)
    }

    func clientStream(_ requests: SessionMessages<Question>, context: SessionContext) async throws -> Answer {
        var text = ""
        for try await request in requests { text += request.text }
        return .with { $0.text = text }
    }

    func bothWays(
        _ requests: SessionMessages<Question>,
        to stream: SessionStreamWriter<Answer.Part>,
        context: SessionContext
    ) async throws {
        for try await request in requests {
            try await stream.send(.with { $0.number = UInt32(request.text.count) })
        }
    }

    func emptyBothWays(
        _ requests: SessionMessages<Empty>,
        to stream: SessionStreamWriter<Empty>,
        context: SessionContext
    ) async throws {
        for try await request in requests { try await stream.send(request) }
    }
}

/// Keeps the last text that was uploaded.
private actor Calls: Test_Services_CallsHandler {
    private var uploaded = ""

    func upload(_ requests: SessionMessages<Question>, context: SessionContext) async throws -> Empty {
        uploaded = try await Self.last(of: requests)
        return .init()
    }

    func watch(_ request: Empty, to stream: SessionStreamWriter<Answer>, context: SessionContext) async throws {
        try await stream.send(.with { [uploaded] in $0.text = uploaded })
    }

    func emptyUpload(_ requests: SessionMessages<Empty>, context: SessionContext) async throws -> Empty {
        for try await _ in requests {}
        return .init()
    }

    func report(_ message: Question, context: SessionContext) {}

    func unary(_ request: Question, context: SessionContext) -> Answer { .with { $0.text = request.text } }

    func stream(_ request: Question, to stream: SessionStreamWriter<Answer>, context: SessionContext) async throws {
        try await stream.send(.with { $0.text = request.text })
    }

    func clientStream(_ requests: SessionMessages<Question>, context: SessionContext) async throws -> Answer {
        let text = try await Self.last(of: requests)
        return .with { $0.text = text }
    }

    func bothWays(
        _ requests: SessionMessages<Question>,
        to stream: SessionStreamWriter<Answer>,
        context: SessionContext
    ) async throws {
        for try await request in requests { try await stream.send(.with { $0.text = request.text }) }
    }

    private static func last(of requests: SessionMessages<Question>) async throws -> String {
        guard let last = try await requests.collected().last else { throw SessionStatus(.invalidArgument) }
        return last.text
    }
}

private actor Hall: Test_Services_Names_HallServiceHandler {
    private(set) var count = 0

    func enter(
        _ request: Test_Services_Names_Room,
        context: SessionContext
    ) async throws -> Test_Services_Names_HallClient {
        count += 1
        return .init()
    }
}

private typealias Room = Test_Services_Names_Room

/// Only what is called here does anything.
private struct Keywords: Test_Services_Names_KeywordsHandler {
    func `class`(_ request: Room, context: SessionContext) -> Room { request }
    func `default`(_ message: Room, context: SessionContext) async throws {
        try await Test_Services_Names_KeywordsPushes(context.session).import(message)
    }
    func `repeat`(_ request: Room, to stream: SessionStreamWriter<Room>, context: SessionContext) async throws {
        try await stream.send(request)
    }

    func any(_ request: Room, context: SessionContext) -> Room { request }
    func async(_ request: Room, context: SessionContext) -> Room { request }
    func await(_ request: Room, context: SessionContext) -> Room { request }
    func `deinit`(_ request: Room, context: SessionContext) -> Room { request }
    func `extension`(_ request: Room, context: SessionContext) -> Room { request }
    func `func`(_ request: Room, context: SessionContext) -> Room { request }
    func get(_ request: Room, context: SessionContext) -> Room { request }
    func `in`(_ request: Room, context: SessionContext) -> Room { request }
    func `is`(_ request: Room, context: SessionContext) -> Room { request }
    func left(_ request: Room, context: SessionContext) -> Room { request }
    func `nil`(_ request: Room, context: SessionContext) -> Room { request }
    func `protocol`(_ request: Room, context: SessionContext) -> Room { request }
    func set(_ request: Room, context: SessionContext) -> Room { request }
    func some(_ request: Room, context: SessionContext) -> Room { request }
    func `subscript`(_ request: Room, context: SessionContext) -> Room { request }
    func `super`(_ request: Room, context: SessionContext) -> Room { request }
    func `throws`(_ request: Room, context: SessionContext) -> Room { request }
    func `try`(_ request: Room, context: SessionContext) -> Room { request }
    func type(_ request: Room, context: SessionContext) -> Room { request }
    func yield(_ request: Room, context: SessionContext) -> Room { request }

    func `switch`(_ requests: SessionMessages<Room>, context: SessionContext) async throws -> Room {
        for try await request in requests { return request }
        return .init()
    }
    func `while`(
        _ requests: SessionMessages<Room>,
        to stream: SessionStreamWriter<Room>,
        context: SessionContext
    ) async throws {
        for try await request in requests { try await stream.send(request) }
    }
}
