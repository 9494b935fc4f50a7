import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import NIOConcurrencyHelpers
import TestProtos
import Testing

@testable import Lifeline

/// Synchronous handlers, which run on the event loop that reads the frames.
@Suite(.timeLimit(.minutes(1))) struct SessionSynchronousTests {
    private typealias Frame = Lifeline_Session_V1_Frame

    /// The arguments of such handlers, and whether two of them ran at the same time.
    private final class Witness: Sendable {
        let numbers = Notes<Int>()
        let metadata = Notes<SessionMetadata>()
        let runningCount = NIOLockedValueBox(0)
        let overlapCount = NIOLockedValueBox(0)

        func note(_ message: TestMessage, _ context: SessionContext) {
            let count = runningCount.withLockedValue { count in
                count += 1
                return count
            }
            if count > 1 { overlapCount.withLockedValue { $0 += 1 } }
            numbers.add(message.number ?? -1)
            metadata.add(context.metadata)
            runningCount.withLockedValue { $0 -= 1 }
        }
    }

    private static func unary(
        _ name: String = "t.T/Echo",
        _ handler: @escaping @Sendable (TestMessage, SessionContext) throws -> TestMessage = { message, _ in message }
    ) -> SessionMethod {
        .unary(name, handler)
    }

    private static func push(
        _ handler: @escaping @Sendable (TestMessage, SessionContext) throws -> Void
    ) -> SessionMethod {
        .push("t.T/Push", handler)
    }

    private static func payload(_ number: Int) throws -> [UInt8] { try TestMessage(number: number).serializedBytes() }

    private static func request(_ serial: UInt32, method: UInt32 = 1, _ payload: [UInt8]) -> Frame {
        .with { ($0.request.serial, $0.request.method, $0.request.payload) = (serial, method, payload) }
    }

    private static func push(_ payload: [UInt8], method: UInt32 = 1) -> Frame {
        .with { ($0.push.method, $0.push.payload) = (method, payload) }
    }

    /// Writes frames at once.
    private func send(_ frames: [Frame], by client: RawSessionClient) async throws {
        try await client.socket.write(try frames.flatMap { frame in try frame.withDelimitedBytes { Array($0) } })
    }

    private func withClient(
        _ methods: SessionMethod...,
        log: TestLog = TestLog(),
        interceptors: [any SessionServerInterceptor] = [],
        configure: (inout SessionServerConfiguration) -> Void = { _ in },
        _ body: (RawSessionClient, SessionServerEnd) async throws -> Void
    ) async throws {
        try await withServer(methods, log: log, interceptors: interceptors, configure: configure) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await body(client, try #require(server.sessions.first))
        }
    }

    /// Whether the session has a synchronous handler for the first method that the client has named.
    private func isSynchronous(_ session: SessionServerEnd) -> Bool? {
        session.engine.state.withLock { $0.routes.first?.method?.isSynchronous }
    }

    // MARK: Requests

    @Test func requestsAreAnsweredInOrder() async throws {
        try await withClient(Self.unary()) { client, session in
            try await client.name("t.T/Echo")
            let frames = try (1...50).map { try Self.request(UInt32($0), Self.payload($0)) }
            try await send(frames, by: client)
            for number in 1...50 {
                let response = try await client.next().urgentResponse
                #expect(response.serial == UInt32(number) && response.status == 0)
                #expect(response.payload == (try Self.payload(number)))
            }
            #expect(isSynchronous(session) == true)
        }
    }

    @Test func thrownErrorsBecomeStatuses() async throws {
        struct Failure: Error {}
        let method = Self.unary { message, _ in
            switch message.number {
            case 1: throw SessionStatus(.notFound, "gone")
            case 2: throw Failure()
            case 3: throw CancellationError()
            default: return message
            }
        }
        try await withClient(method) { client, _ in
            try await client.name("t.T/Echo")
            var payloads = try (1...4).map { try Self.payload($0) }
            payloads.append([0xFF])
            try await send(payloads.enumerated().map { Self.request(UInt32($0 + 1), $1) }, by: client)
            let codes: [SessionStatus.Code] = [.notFound, .unknown, .cancelled, .ok, .invalidArgument]
            for (index, code) in codes.enumerated() {
                let response = try await client.next().urgentResponse
                #expect((response.serial, response.status) == (UInt32(index + 1), code.rawValue))
                if code == .notFound { #expect(response.message == "gone") }
            }
        }
    }

    @Test func theyKnowTheirCall() async throws {
        let told = Notes<String>()
        let method = Self.unary { message, context in
            let deadline = context.timeRemaining.map { "\($0)" } ?? "none"
            told.add("\(context.method) \(context.metadata) \(deadline) \(context.session.id.count)")
            return message
        }
        try await withClient(method) { client, _ in
            try await client.ask("t.T/Echo", serial: 1)
            try await client.ask("t.T/Echo", serial: 2) {
                $0.metadata = ["a": "b"]
                $0.timeoutMilliseconds = 7_000
            }
            for serial in 1...2 as ClosedRange<UInt32> {
                #expect(try await client.next().urgentResponse.serial == serial)
            }
        }
        #expect(told.all == ["t.T/Echo [:] none 32", "t.T/Echo [\"a\": \"b\"] 7.0 seconds 32"])
    }

    /// A call of a push method and a request with parts run no handler.
    @Test func callsOfTheWrongKind() async throws {
        let push = Self.push { _, _ in Issue.record("it has begun") }
        try await withClient(Self.unary { _, _ in throw SessionStatus(.aborted) }, push) { client, _ in
            try await client.ask("t.T/Push", serial: 1)
            #expect(try await client.next().urgentResponse.status == SessionStatus.Code.unimplemented.rawValue)
            try await client.ask("t.T/Echo", serial: 2, hasParts: true)
            #expect(try await client.next().urgentResponse.status == SessionStatus.Code.unimplemented.rawValue)
        }
    }

    /// The cancellation arrives together with the request: its handler does not begin, but others do. The same is true
    /// for asynchronous handlers.
    @Test(arguments: [true, false])
    func aRequestThatIsCancelledBeforeItsHandlerBegins(isSynchronous: Bool) async throws {
        let witness = Witness()
        let waiting = SessionMethod.unary("t.T/Echo") {
            (message: TestMessage, context: SessionContext) async throws -> TestMessage in
            witness.note(message, context)
            return message
        }
        let method = Self.unary { message, context in
            witness.note(message, context)
            return message
        }
        try await withClient(isSynchronous ? method : waiting) { client, session in
            try await client.name("t.T/Echo")
            var frames = try (1...3).map { try Self.request(UInt32($0), Self.payload($0)) }
            frames.insert(.with { $0.cancel.serial = 2 }, at: 2)
            try await send(frames, by: client)
            #expect(try await client.next().urgentResponse.serial == 1)
            #expect(try await client.next().urgentResponse.serial == 3)
            #expect(witness.numbers.all == [1, 3] && self.isSynchronous(session) == isSynchronous)
            // The request no longer counts as running.
            try await until { session.engine.state.withLock { $0.machine.runningCount } == 0 }
        }
    }

    /// A request that arrives before the session knows its connection is skipped, and sent again. It is handled once.
    @Test func aRequestThatComesWithTheHello() async throws {
        let witness = Witness()
        let method = Self.unary { message, context in
            witness.note(message, context)
            return message
        }
        try await withServer(method) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            let frames = [.method(1, "t.T/Echo"), Self.request(1, try Self.payload(7))]
            try await send([.hello()] + frames, by: client)
            let received = try await client.next().welcome.progress.received
            try await send(Array(frames.dropFirst(Int(received))), by: client)
            #expect(try await client.next().urgentResponse.payload == Self.payload(7))
            #expect(witness.numbers.all == [7])
        }
    }

    @Test func aHandlerPushesBack() async throws {
        let method = Self.unary { message, context in
            Task { try await context.session.push("t.T/News", message) }
            return message
        }
        try await withClient(method) { client, _ in
            try await client.ask("t.T/Echo", Self.payload(7))
            var (wasPushed, wasAnswered) = (false, false)
            for _ in 0..<2 {
                let frame = try await client.next()
                switch frame.kind {
                case .push(let push)?: wasPushed = push.payload == (try Self.payload(7))
                case .urgentResponse(let response)?: wasAnswered = response.payload == (try Self.payload(7))
                default: break
                }
            }
            #expect(wasPushed && wasAnswered)
        }
    }

    // MARK: Pushes

    @Test func pushesAreHandledInOrder() async throws {
        let witness = Witness()
        try await withClient(Self.push(witness.note), Self.unary()) { client, session in
            try await client.name("t.T/Push")
            for start in stride(from: 1, through: 401, by: 40) {
                try await send(try (start...start + 39).map { try Self.push(Self.payload($0)) }, by: client)
            }
            // Handled messages count as processed.
            try await until { session.engine.state.withLock { $0.machine.inbound.processed } == 441 }
            #expect(witness.numbers.all == Array(1...440) && witness.overlapCount.withLockedValue { $0 } == 0)
            #expect(isSynchronous(session) == true)
        }
    }

    @Test func pushesThatFailDelayNoOther() async throws {
        let (witness, log) = (Witness(), TestLog())
        let method = Self.push { message, context in
            witness.note(message, context)
            if message.number == 2 { throw SessionStatus(.notFound, "gone") }
        }
        try await withClient(method, log: log) { client, session in
            try await client.name("t.T/Push")
            let payloads = try [Self.payload(1), Self.payload(2), [0xFF], Self.payload(4)]
            var frames = payloads.map { Self.push($0) }
            frames[3].push.metadata = ["a": "b"]
            try await send(frames, by: client)
            try await until { session.engine.state.withLock { $0.machine.inbound.processed } == 5 }
            #expect(witness.numbers.all == [1, 2, 4] && witness.metadata.all == [[:], [:], ["a": "b"]])
        }
        #expect(log.entries.count { $0.text.contains("The handler of a push failed") } == 2)
    }

    /// Pushes that arrived before the end of the session are handled, and the session exists until then.
    @Test func pushesThatAreLeftAtTheEnd() async throws {
        let witness = Witness()
        try await withServer(Self.push(witness.note)) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await client.name("t.T/Push")
            var frames = try (1...3).map { try Self.push(Self.payload($0)) }
            frames.append(.with { $0.goodbye.code = .closed })
            try await send(frames, by: client)
            try await until { server.sessions.isEmpty }
            try client.socket.reset()
        }
        #expect(witness.numbers.all == [1, 2, 3])
    }

    /// Blocks a thread until a test releases it.
    private struct Gate {
        private let isOpen = ConditionLock(value: false)

        func wait() {
            isOpen.lock(whenValue: true)
            isOpen.unlock()
        }

        func open() {
            isOpen.lock()
            isOpen.unlock(withValue: true)
        }
    }

    /// A server that shuts down waits for a handler that runs.
    @Test func aSessionIsOverWhenItsHandlersHaveReturned() async throws {
        let (begun, gate) = (Event(), Gate())
        let method = Self.push { _, _ in
            begun.signal()
            gate.wait()
        }
        try await withClient(method) { client, session in
            defer { gate.open() }
            try await client.push("t.T/Push")
            try await begun.wait()
            session.engine.end(.shutDown)
            await session.engine.waitUntilEnded()
            #expect(!session.isOver)
            gate.open()
            await session.waitUntilOver()
        }
    }

    /// The pushes arrive over the older and the newer connection of a session at the same time.
    @Test func pushesOfTwoConnectionsAreHandledInOrder() async throws {
        for _ in 0..<20 {
            let witness = Witness()
            try await withServer(Self.push(witness.note)) { server, _ in
                let first = try await RawSessionClient.connect(to: server)
                let welcome = try await first.hello().welcome
                try await first.name("t.T/Push")
                let frames = try (1...100).map { try Self.push(Self.payload($0)) }
                try await send(frames, by: first)
                let second = try await RawSessionClient.connect(to: server, methods: first.methods)
                let progress = try await second.resume(welcome).welcome.progress
                // The method's name may not have arrived either.
                if progress.received == 0 { try await second.send(.method(1, "t.T/Push")) }
                try await send(Array(frames.dropFirst(max(Int(progress.received) - 1, 0))), by: second)
                try await until { witness.numbers.count == 100 }
                try second.socket.reset()
            }
            #expect(witness.numbers.all == Array(1...100) && witness.overlapCount.withLockedValue { $0 } == 0)
        }
    }

    // MARK: Where they run in a task

    private struct Stamp: SessionServerInterceptor {
        let calls: Notes<String>

        func intercept(
            _ call: SessionCall,
            session: SessionServerEnd,
            next: @escaping @Sendable (SessionCall) async throws -> SessionReply
        ) async throws -> SessionReply {
            calls.add(call.method)
            return try await next(call)
        }
    }

    @Test(arguments: [false, true]) func behindInterceptorsAndOnTheGlobalPool(areIntercepted: Bool) async throws {
        let (witness, calls) = (Witness(), Notes<String>())
        let configure: (inout SessionServerConfiguration) -> Void = {
            if !areIntercepted { $0.server.handlerExecutor = .globalPool }
        }
        try await withClient(
            Self.unary(),
            Self.push(witness.note),
            interceptors: areIntercepted ? [Stamp(calls: calls)] : [],
            configure: configure
        ) { client, session in
            try await client.ask("t.T/Echo", Self.payload(5))
            #expect(try await client.next().urgentResponse.payload == Self.payload(5))
            for number in 1...3 { try await client.push("t.T/Push", Self.payload(number)) }
            try await until { session.engine.state.withLock { $0.machine.inbound.processed } == 6 }
            #expect(witness.numbers.all == [1, 2, 3])
            #expect(isSynchronous(session) == false)
        }
        #expect(calls.all.first == (areIntercepted ? "t.T/Echo" : nil))
    }
}
