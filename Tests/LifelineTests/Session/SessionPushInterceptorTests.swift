import InMemoryTracing
import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import Logging
import MetricsTestKit
import Testing
import Tracing

/// Interceptors between a server's pushes and the loops that take them.
@Suite(.timeLimit(.minutes(1))) struct SessionPushInterceptorTests {
    private static let news = "t.T/News"

    /// A connected client, and its session at the server.
    private func withScene(
        client interceptors: [any SessionClientInterceptor] = [],
        server serverInterceptors: [any SessionServerInterceptor] = [],
        log: TestLog = TestLog(),
        _ body: (SessionClient, SessionServerEnd) async throws -> Void
    ) async throws {
        let service = TestService(
            .unary("t.T/Echo") { (message: TestMessage, _) in message },
            .push("t.T/Push") { (_: TestMessage, _) in }
        )
        try await withSessionServer(
            listeningOn: .tcp(host: "127.0.0.1", port: 0),
            services: [service],
            interceptors: serverInterceptors,
            logger: TestLog().logger
        ) { server in
            try await withSessionClient(
                to: server.boundEndpoints[0],
                interceptors: interceptors,
                logger: log.logger
            ) { client in
                _ = try await client.call("t.T/Echo", TestMessage(number: 0), returning: TestMessage.self)
                try await body(client, try #require(server.sessions.first))
            }
        }
    }

    private func news(of client: SessionClient) -> SessionPushes<TestMessage>.AsyncIterator {
        client.pushes(Self.news, of: TestMessage.self).makeAsyncIterator()
    }

    /// An interceptor of pushes that a test scripts.
    private struct AtClient: SessionClientInterceptor {
        typealias Next = @Sendable (SessionCall) async throws -> Void
        let work: @Sendable (SessionCall, Next) async throws -> Void

        func intercept(
            _ call: SessionCall,
            next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
        ) async throws(SessionError) -> SessionReply {
            try await next(call)
        }

        func interceptServerPush(_ push: SessionCall, next: @escaping Next) async throws {
            try await work(push, next)
        }
    }

    private struct AtServer: SessionServerInterceptor {
        typealias Next = @Sendable (SessionCall) async throws(SessionError) -> Void
        let work: @Sendable (SessionCall, SessionServerEnd, Next) async throws(SessionError) -> Void

        func intercept(
            _ call: SessionCall,
            session: SessionServerEnd,
            next: @escaping @Sendable (SessionCall) async throws -> SessionReply
        ) async throws -> SessionReply {
            try await next(call)
        }

        func interceptServerPush(
            _ push: SessionCall,
            session: SessionServerEnd,
            next: @escaping Next
        ) async throws(SessionError) {
            try await work(push, session, next)
        }
    }

    @Test func theyStandAroundPushesInOrder() async throws {
        let (sent, taken) = (Notes<String>(), Notes<String>())
        func atServer(_ name: String) -> AtServer {
            AtServer { push, session, next throws(SessionError) in
                #expect(push.kind == .push && push.method == Self.news && session.name.isEmpty)
                sent.add("\(name) begins")
                var push = push
                push.metadata["way", default: ""] += name
                try await next(push)
                sent.add("\(name) ends")
            }
        }
        func atClient(_ name: String) -> AtClient {
            AtClient { push, next in
                taken.add("\(name) gets \(push.method) by \(push.metadata["way"] ?? "")")
                try await next(push)
                taken.add("\(name) ends")
            }
        }
        try await withScene(client: [atClient("c"), atClient("d")], server: [atServer("a"), atServer("b")]) {
            client,
            session in
            var news = news(of: client)
            let pushing = Task { try await session.push(Self.news, TestMessage(number: 1), until: .processed) }
            #expect(try await news.next()?.number == 1)
            taken.add("taken")
            #expect(sent.all == ["a begins", "b begins"])
            async let second: Void = session.push(Self.news, TestMessage(number: 2))
            #expect(try await news.next()?.number == 2)
            try await pushing.value
            try await second
            let gets = ["c gets t.T/News by ab", "d gets t.T/News by ab"]
            #expect(taken.all == gets + ["taken", "d ends", "c ends"] + gets)
            #expect(sent.all.filter { $0 == "b ends" }.count == 2)
            #expect(sent.all.last == "a ends")
        }
    }

    @Test func theyChangeWhatIsPushed() async throws {
        let atServer = AtServer { push, _, next throws(SessionError) in
            try await next(SessionCall(Self.news, .push, metadata: ["from": push.method], payload: push.payload))
        }
        let atClient = AtClient { push, next in
            #expect(push.metadata == ["from": "t.T/Other"])
            #expect(push.payload == (try TestMessage(number: 12).serializedBytes()))
            try await next(SessionCall(push.method, .push, payload: try TestMessage(number: 34).serializedBytes()))
        }
        try await withScene(client: [atClient], server: [atServer]) { client, session in
            var news = news(of: client)
            try await session.push("t.T/Other", TestMessage(number: 12))
            #expect(try await news.next()?.number == 34)
        }
    }

    @Test func theyDoNotChangeHowLongAPushIsWaitedFor() async throws {
        // The stage of a new call is `accepted`.
        let atServer = AtServer { push, _, next throws(SessionError) in
            try await next(SessionCall(push.method, .push, payload: push.payload))
        }
        try await withScene(server: [atServer]) { client, session in
            var news = news(of: client)
            let returned = Notes<Int>()
            let pushing = Task {
                try await session.push(Self.news, TestMessage(number: 1), until: .processed)
                returned.add(1)
            }
            #expect(try await news.next()?.number == 1)
            try await session.push(Self.news, TestMessage(number: 2))
            #expect(returned.all.isEmpty)
            #expect(try await news.next()?.number == 2)
            try await pushing.value
        }
    }

    @Test func aLoopThatIsCancelledWaitsForNoInterceptor() async throws {
        let goesOn = Event()
        let atClient = AtClient { push, next in
            try await next(push)
            goesOn.signal()
            try await Event().wait()
        }
        try await withScene(client: [atClient]) { client, session in
            let pushes = client.pushes(Self.news, of: TestMessage.self)
            let loop = Task {
                var news = pushes.makeAsyncIterator()
                #expect(try await news.next()?.number == 1)
                return try await news.next()
            }
            try await session.push(Self.news, TestMessage(number: 1))
            try await goesOn.wait()
            loop.cancel()
            await #expect(throws: SessionError.self) { try await loop.value }
        }
    }

    @Test func aServersRefusesToPush() async throws {
        let atServer = AtServer { push, _, next throws(SessionError) in
            guard push.payloadByteCount < 100 else { throw SessionError(code: .messageRefused, message: "too much") }
            try await next(push)
        }
        try await withScene(server: [atServer]) { client, session in
            var news = news(of: client)
            let long = TestMessage(repeatElement(1, count: 100))
            let error = await sessionError { try await session.push(Self.news, long) }
            #expect(error?.message == "too much")
            try await session.push(Self.news, TestMessage(number: 2))
            #expect(try await news.next()?.number == 2)
        }
    }

    @Test func aClientsRefusesAPush() async throws {
        let log = TestLog()
        let count = Notes<Void>()
        let atClient = AtClient { push, next in
            count.add(())
            if count.count == 1 { throw SessionStatus(.permissionDenied, "not this") }
            if count.count > 2 { try await next(push) }
        }
        try await withScene(client: [atClient], log: log) { client, session in
            var news = news(of: client)
            for number in 1...3 { try await session.push(Self.news, TestMessage(number: number)) }
            #expect(try await news.next()?.number == 3)
            let warnings = log.entries.filter { $0.level == .warning }
            #expect(warnings.count == 1)
            #expect(warnings.first?.text.contains("A push was dropped") == true)
            #expect(warnings.first?.text.contains("not this") == true)
        }
    }

    @Test func aPushIsHandedOverOnce() async throws {
        let log = TestLog()
        let errors = Notes<SessionError?>()
        let atClient = AtClient { push, next in
            try await next(push)
            errors.add(await sessionError { try await next(push) })
            throw SessionStatus(.internal, "after it")
        }
        try await withScene(client: [atClient], log: log) { client, session in
            var news = news(of: client)
            for number in 1...2 { try await session.push(Self.news, TestMessage(number: number)) }
            #expect(try await news.next()?.number == 1)
            #expect(try await news.next()?.number == 2)
            #expect(errors.all.map { $0?.code } == [.messageRefused])
            #expect(log.entries.contains { $0.level == .warning && $0.text.contains("after it") })
            #expect(!log.entries.contains { $0.text.contains("A push was dropped") })
        }
    }

    @Test func leavingTheLoopEndsThem() async throws {
        let notes = Notes<String>()
        let atClient = AtClient { push, next in
            try await next(push)
            notes.add("ends")
        }
        try await withScene(client: [atClient]) { client, session in
            let pushes = client.pushes(Self.news, of: TestMessage.self)
            let pushing = Task { try await session.push(Self.news, TestMessage(number: 1), until: .processed) }
            for try await push in pushes {
                #expect(push.number == 1)
                #expect(notes.count == 0)
                break
            }
            try await pushing.value
            #expect(notes.count == 1)
        }
    }

    @Test func aLoopThatIsCancelledCancelsThem() async throws {
        let begun = Event()
        let atClient = AtClient { _, _ in
            begun.signal()
            try await Event().wait()
        }
        try await withScene(client: [atClient]) { client, session in
            let pushes = client.pushes(Self.news, of: TestMessage.self)
            let taking = Task { await sessionError { for try await _ in pushes {} } }
            try await session.push(Self.news, TestMessage(number: 1))
            try await begun.wait()
            taking.cancel()
            #expect(await taking.value?.code == .cancelled)
        }
    }

    @Test func theyLearnThatAPushIsNoMessage() async throws {
        let notes = Notes<SessionError?>()
        let atServer = AtServer { push, _, next throws(SessionError) in
            try await next(push.payloadByteCount > 100 ? SessionCall(push.method, .push, payload: [0xFF]) : push)
        }
        let atClient = AtClient { push, next in notes.add(await sessionError { try await next(push) }) }
        try await withScene(client: [atClient], server: [atServer]) { client, session in
            var news = news(of: client)
            try await session.push(Self.news, TestMessage(repeatElement(1, count: 200)))
            try await session.push(Self.news, TestMessage(number: 2))
            #expect(try await news.next()?.number == 2)
            #expect(notes.all.map { $0?.code } == [.malformedMessage])
        }
    }

    // MARK: Those that there are

    /// Pushes once in each direction, until both are processed.
    private func pushBothWays(_ client: SessionClient, _ session: SessionServerEnd) async throws {
        let pushes = client.pushes(Self.news, of: TestMessage.self)
        async let taken: Void = {
            for try await _ in pushes { break }
        }()
        try await session.push(Self.news, TestMessage(number: 1), until: .processed)
        try await taken
        try await client.push("t.T/Push", TestMessage(number: 1), until: .processed)
    }

    @Test func tracing() async throws {
        let tracer = InMemoryTracer()
        let interceptor = SessionTracingInterceptor(tracer: tracer)
        try await withScene(client: [interceptor], server: [interceptor]) { client, session in
            tracer.clearAll()
            try await pushBothWays(client, session)
        }
        let spans = tracer.finishedSpans
        #expect(spans.count == 4)
        for method in [Self.news, "t.T/Push"] {
            let producer = try #require(spans.first { $0.operationName == method && $0.kind == .producer })
            let consumer = try #require(spans.first { $0.operationName == method && $0.kind == .consumer })
            #expect(consumer.traceID == producer.traceID)
            #expect(consumer.parentSpanID == producer.spanID)
        }
    }

    @Test func metrics() async throws {
        let metrics = TestMetrics()
        let interceptor = SessionMetricsInterceptor(factory: metrics)
        try await withScene(client: [interceptor], server: [interceptor]) { try await pushBothWays($0, $1) }
        for role in ["client", "server"] {
            for method in [Self.news, "t.T/Push"] {
                let dimensions = [("role", role), ("method", method)]
                let calls = try metrics.expectCounter("lifeline.session.calls", dimensions + [("status", "ok")])
                #expect(calls.totalValue == 1)
                #expect(try metrics.expectTimer("lifeline.session.call.duration", dimensions).values.count == 1)
            }
        }
    }

    @Test func logging() async throws {
        let (log, served) = (TestLog(), TestLog())
        try await withScene(
            client: [SessionLoggingInterceptor(logger: log.logger)],
            server: [SessionLoggingInterceptor(logger: served.logger)]
        ) { try await pushBothWays($0, $1) }
        for log in [log, served] {
            #expect(log.entries.filter { $0.text.contains("t.T/News") && $0.text.contains("succeeded") }.count == 1)
        }
    }
}
