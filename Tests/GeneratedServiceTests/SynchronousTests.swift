import Lifeline
import LifelineWellKnownTypes
import Synchronization
import TestServices
import Testing

/// A generated service with handlers that are synchronous by an option.
@Suite(.timeLimit(.minutes(1))) struct SynchronousTests {
    @Test func synchronousHandlersRunWithoutATask() async throws {
        try await expectMessagesToArrive(runInTasks: false)
    }

    @Test func withInterceptorsTheyRunInTasks() async throws {
        try await expectMessagesToArrive(interceptors: [Transparent()], runInTasks: true)
    }

    @Test func onTheGlobalPoolTheyRunInTasks() async throws {
        var configuration = SessionServerConfiguration()
        configuration.server.handlerExecutor = .globalPool
        try await expectMessagesToArrive(configuration: configuration, runInTasks: true)
    }

    /// Calls every method, and compares where its handler ran.
    private func expectMessagesToArrive(
        configuration: SessionServerConfiguration = .init(),
        interceptors: [any SessionServerInterceptor] = [],
        runInTasks: Bool
    ) async throws {
        let service = Synchronous()
        try await withSession(serving: service, configuration: configuration, interceptors: interceptors) { session in
            let client = Test_Services_SynchronousClient(session)
            let reply = try await client.unary(.with { $0.text = "a" }, metadata: ["trace": "1"])
            #expect(reply.text == "a, by test.services.Synchronous/Unary with 1")
            let error = await #expect(throws: SessionError.self) { try await client.unary(.init()) }
            #expect(error?.status?.code == .invalidArgument)
            for text in ["b", "c", ""] {
                try await client.clientPush(.with { $0.text = text }, until: .processed)
            }
            _ = try await client.emptyUnary(.init())
            #expect(try await client.call(.with { $0.text = "d" }).text == "d")
            #expect(service.calls.withLock { $0.map(\.text) } == ["a", "", "b", "c", "", "empty", "d"])
            // If another thread still runs the effects of an earlier event, a handler gets a task after all.
            let ranInTasks = service.calls.withLock { $0.map(\.ranInTask) }
            #expect(runInTasks ? ranInTasks.allSatisfy { $0 } : ranInTasks.contains(false))

            #expect(try await client.waiting(.with { $0.text = "e" }).text == "e")
            #expect(try await client.stream(.with { $0.text = "f" }).collected().map(\.text) == ["f"])
            #expect(service.calls.withLock { $0.suffix(2).map(\.ranInTask) } == [true, true])
        }
    }
}

private typealias Question = Test_Services_Question
private typealias Answer = Test_Services_Answer
private typealias Empty = Google_Protobuf_Empty

/// Records the received messages, and whether a task handled them. Refuses messages without text.
private final class Synchronous: Test_Services_SynchronousHandler {
    let calls = Mutex<[(text: String, ranInTask: Bool)]>([])

    func unary(_ request: Question, context: SessionContext) throws -> Answer {
        try note(request)
        return .with { $0.text = "\(request.text), by \(context.method) with \(context.metadata["trace"] ?? "")" }
    }

    func clientPush(_ message: Question, context: SessionContext) throws { try note(message) }

    func emptyUnary(_ request: Empty, context: SessionContext) throws -> Empty {
        try note(.with { $0.text = "empty" })
        return request
    }

    func call(_ request: Question, context: SessionContext) throws -> Answer { try echo(request) }

    func waiting(_ request: Question, context: SessionContext) async throws -> Answer {
        await Task.yield()
        return try echo(request)
    }

    func stream(_ request: Question, to stream: SessionStreamWriter<Answer>, context: SessionContext) async throws {
        try await stream.send(echo(request))
    }

    private func echo(_ request: Question) throws -> Answer {
        try note(request)
        return .with { $0.text = request.text }
    }

    private func note(_ message: Question) throws {
        let ranInTask = withUnsafeCurrentTask { $0 != nil }
        calls.withLock { $0.append((message.text, ranInTask)) }
        if message.text.isEmpty { throw SessionStatus(.invalidArgument) }
    }
}

private struct Transparent: SessionServerInterceptor {
    func intercept(
        _ call: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply {
        try await next(call)
    }
}
