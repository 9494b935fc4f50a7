import InMemoryTracing
import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import Logging
import MetricsTestKit
import Testing
import Tracing

/// Interceptors between callers, sessions and handlers.
@Suite(.timeLimit(.minutes(1))) struct SessionInterceptorTests {
    private func withScene(
        client interceptors: [any SessionClientInterceptor] = [],
        server serverInterceptors: [any SessionServerInterceptor] = [],
        _ body: (SessionClient) async throws -> Void
    ) async throws {
        let service = TestService(
            .unary("t.T/Echo") { (message: TestMessage, _) in message },
            .unary("t.T/Fail") { (_: TestMessage, _) -> TestMessage in throw SessionStatus(.notFound, "gone") },
            .unary("t.T/Span") { (_: TestMessage, _) in TestMessage((ServiceContext.current?.traceID ?? "none").utf8) },
            .stream("t.T/Two") { (message: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
                for _ in 0..<2 { try await stream.send(message) }
            },
            .clientStream("t.T/Up") { (messages: SessionMessages<TestMessage>, _) in
                var count = 0
                for try await _ in messages { count += 1 }
                return TestMessage(number: count)
            },
            .bothWays("t.T/Both") {
                (messages: SessionMessages<TestMessage>, stream: SessionStreamWriter<TestMessage>, _) in
                for try await message in messages { try await stream.send(message) }
            },
            .push("t.T/Push") { (_: TestMessage, _) in }
        )
        try await withSessionServer(
            listeningOn: anyPort,
            services: [service],
            interceptors: serverInterceptors,
            logger: TestLog().logger
        ) { server in
            try await withSessionClient(
                to: server.boundEndpoints[0],
                interceptors: interceptors,
                logger: TestLog().logger
            ) {
                try await body($0)
            }
        }
    }

    /// One call of each kind.
    private func callAll(_ client: SessionClient) async throws {
        _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
        let error = await sessionError {
            try await client.call("t.T/Fail", TestMessage(number: 1), returning: TestMessage.self)
        }
        #expect(error?.status?.code == .notFound)
        for try await _ in client.stream("t.T/Two", TestMessage(number: 1), of: TestMessage.self) {}
        let reply = try await client.clientStream("t.T/Up", returning: TestMessage.self) { writer in
            for number in 1...2 { try await writer.send(TestMessage(number: number)) }
        }
        #expect(reply.number == 2)
        let echoed = try await client.bothWays("t.T/Both", receiving: TestMessage.self) { writer in
            for number in 1...2 { try await writer.send(TestMessage(number: number)) }
        } receive: { messages in
            var numbers: [Int?] = []
            for try await message in messages { numbers.append(message.number) }
            return numbers
        }
        #expect(echoed == [1, 2])
        try await client.push("t.T/Push", TestMessage(number: 1))
    }

    /// Answers a call itself, or makes it twice.
    private struct Answering: SessionClientInterceptor {
        func intercept(
            _ call: SessionCall,
            next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
        ) async throws(SessionError) -> SessionReply {
            if call.method == "t.T/Cached" { return SessionReply(payload: call.payload) }
            _ = try await next(call)
            return try await next(call)
        }
    }

    @Test func anInterceptorAnswersByItself() async throws {
        try await withScene(client: [Answering()]) { client in
            let reply = try await client.call("t.T/Cached", TestMessage(number: 5), returning: TestMessage.self)
            #expect(reply.number == 5)
        }
    }

    @Test func aStreamIsNotMadeAgain() async throws {
        try await withScene(client: [Answering()]) { client in
            var count = 0
            let error = await sessionError {
                for try await _ in client.stream("t.T/Two", TestMessage(number: 1), of: TestMessage.self) { count += 1 }
            }
            #expect(error?.code == .messageRefused)
            #expect(count == 2)
        }
    }

    @Test func interceptorsSeeCallsWithoutAHandler() async throws {
        let notes = Notes<String>()
        try await withScene(server: [Noting(name: "a", notes: notes)]) { client in
            let error = await sessionError {
                try await client.call(
                    "t.T/Nothing",
                    TestMessage(number: 1),
                    returning: TestMessage.self,
                    metadata: ["way": "x"]
                )
            }
            #expect(error?.status?.code == .unimplemented)
            #expect(notes.all == ["a x"])
        }
    }

    /// Records the calls that it sees, with their metadata.
    private struct Noting: SessionClientInterceptor, SessionServerInterceptor {
        let name: String
        let notes: Notes<String>

        func intercept(
            _ call: SessionCall,
            next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
        ) async throws(SessionError) -> SessionReply {
            var call = call
            call.metadata["way", default: ""] += name
            notes.add("\(name) \(call.method)")
            defer { notes.add("\(name) ends") }
            return try await next(call)
        }

        func intercept(
            _ call: SessionCall,
            session: SessionServerEnd,
            next: @escaping @Sendable (SessionCall) async throws -> SessionReply
        ) async throws -> SessionReply {
            notes.add("\(name) \(call.metadata["way"] ?? "")")
            if call.method == "t.T/Echo" { throw SessionStatus(.permissionDenied, "no") }
            var reply = try await next(call)
            reply.metadata["way"] = name
            return reply
        }
    }

    @Test func theFirstIsTheOutermost() async throws {
        let (notes, served) = (Notes<String>(), Notes<String>())
        try await withScene(
            client: [Noting(name: "a", notes: notes), Noting(name: "b", notes: notes)],
            server: [Noting(name: "c", notes: served)]
        ) { client in
            let error = await sessionError {
                try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            }
            #expect(error?.status == SessionStatus(.permissionDenied, "no"))
            #expect(notes.all == ["a t.T/Echo", "b t.T/Echo", "b ends", "a ends"])
            for try await _ in client.stream("t.T/Two", TestMessage(number: 1), of: TestMessage.self) {}
            try await until { notes.count == 8 }
        }
        #expect(served.all == ["c ab", "c ab"])
    }

    /// Replies itself, after two calls of the handler.
    private struct Retrying: SessionClientInterceptor {
        let count: Notes<Void>

        func intercept(
            _ call: SessionCall,
            next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
        ) async throws(SessionError) -> SessionReply {
            do throws(SessionError) {
                count.add(())
                return try await next(call)
            } catch {
                count.add(())
                return try await next(call)
            }
        }
    }

    @Test func oneMayAskAgain() async throws {
        let count = Notes<Void>()
        try await withScene(client: [Retrying(count: count)]) { client in
            _ = await sessionError {
                try await client.call("t.T/Fail", TestMessage(number: 1), returning: TestMessage.self)
            }
            #expect(count.count == 2)
        }
    }

    @Test func logging() async throws {
        let (log, served) = (TestLog(), TestLog())
        try await withScene(
            client: [SessionLoggingInterceptor(logger: log.logger)],
            server: [SessionLoggingInterceptor(logger: served.logger, level: .trace)]
        ) { try await callAll($0) }
        for (log, level) in [(log, Logger.Level.debug), (served, .trace)] {
            #expect(log.entries.count == 6)
            #expect(log.entries.filter { $0.level == level && $0.text.contains("succeeded") }.count == 5)
            let failed = log.entries.filter { $0.level == .info }
            #expect(failed.count == 1)
            #expect(failed.first?.text.contains("t.T/Fail") == true)
            #expect(failed.first?.text.contains("notFound") == true)
        }
    }

    @Test func metrics() async throws {
        let metrics = TestMetrics()
        let interceptor = SessionMetricsInterceptor(factory: metrics)
        try await withScene(client: [interceptor], server: [interceptor]) { try await callAll($0) }
        for role in ["client", "server"] {
            for (method, status) in [
                ("Echo", "ok"), ("Fail", "notFound"), ("Two", "ok"), ("Up", "ok"), ("Both", "ok"), ("Push", "ok"),
            ] {
                let dimensions = [("role", role), ("method", "t.T/\(method)")]
                let calls = try metrics.expectCounter("lifeline.session.calls", dimensions + [("status", status)])
                #expect(calls.totalValue == 1)
                let timer = try metrics.expectTimer("lifeline.session.call.duration", dimensions)
                #expect(timer.values.count == 1)
            }
        }
    }

    /// Otherwise, names that clients make up would fill the metrics system.
    @Test func methodsThatThereAreNotCountAsOne() async throws {
        let metrics = TestMetrics()
        try await withScene(server: [SessionMetricsInterceptor(factory: metrics)]) { client in
            for name in ["t.T/One", "t.T/Two"] {
                let error = await sessionError {
                    try await client.call(name + "More", TestMessage(number: 1), returning: TestMessage.self)
                }
                #expect(error?.status?.code == .unimplemented)
            }
        }
        let dimensions = [("role", "server"), ("method", "(unimplemented)"), ("status", "unimplemented")]
        #expect(try metrics.expectCounter("lifeline.session.calls", dimensions).totalValue == 2)
        #expect(metrics.counters.count == 1)
    }

    @Test func aTraceGoesOnAtTheServer() async throws {
        let tracer = InMemoryTracer()
        let interceptor = SessionTracingInterceptor(tracer: tracer)
        try await withScene(client: [interceptor], server: [interceptor]) { client in
            let reply = try await client.call("t.T/Span", TestMessage(number: 1), returning: TestMessage.self)
            let spans = tracer.popFinishedSpans()
            let client = try #require(spans.first { $0.kind == .client })
            let server = try #require(spans.first { $0.kind == .server })
            #expect(spans.count == 2)
            #expect(client.operationName == "t.T/Span")
            #expect(server.operationName == "t.T/Span")
            #expect(server.traceID == client.traceID)
            #expect(server.parentSpanID == client.spanID)
            #expect(reply.payload == Array(client.traceID.utf8))
        }
    }

    @Test func aSpanOfACallThatFails() async throws {
        let tracer = InMemoryTracer()
        let interceptor = SessionTracingInterceptor(tracer: tracer)
        try await withScene(client: [interceptor], server: [interceptor]) { client in
            _ = await sessionError {
                try await client.call("t.T/Fail", TestMessage(number: 1), returning: TestMessage.self)
            }
            let spans = tracer.popFinishedSpans()
            #expect(spans.map { $0.status?.code } == [.error, .error])
            #expect(spans.map(\.errors.count) == [1, 1])
        }
    }
}

extension ServiceContext {
    /// The trace id of the in-memory tracer.
    fileprivate var traceID: String? { inMemorySpanContext?.traceID }
}
