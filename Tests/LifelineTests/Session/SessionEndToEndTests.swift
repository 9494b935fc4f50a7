import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineWellKnownTypes
import Logging
import Testing

@testable import Lifeline

/// Session clients and a session server over TCP in one process.
@Suite(.timeLimit(.minutes(1))) struct SessionEndToEndTests {
    private func withScene<Result: Sendable>(
        _ methods: SessionMethod...,
        configuration: SessionServerConfiguration = SessionServerConfiguration(),
        client: SessionClientConfiguration = SessionClientConfiguration(),
        log: TestLog = TestLog(),
        _ body: (SessionClient, SessionServer) async throws -> Result
    ) async throws -> Result {
        // Closing waits for handlers, even on a busy machine.
        var client = client
        client.closeTimeout = .seconds(50)
        return try await withSessionServer(
            listeningOn: anyPort,
            configuration: configuration,
            services: methods.map { TestService($0) },
            logger: log.logger
        ) { server in
            try await withSessionClient(to: server.boundEndpoints[0], configuration: client, logger: log.logger) {
                client in
                try await body(client, server)
            }
        }
    }

    private var echo: SessionMethod { .unary("t.T/Echo") { (message: TestMessage, _) in message } }

    @Test func aCall() async throws {
        try await withScene(echo) { client, _ in
            let reply = try await client.call("t.T/Echo", TestMessage(number: 7), returning: TestMessage.self)
            #expect(reply.number == 7)
        }
    }

    @Test func manyCallsAtOnce() async throws {
        try await withScene(echo) { client, _ in
            let sum = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 1...500 {
                    group.addTask {
                        try await client.call("t.T/Echo", TestMessage(number: number), returning: TestMessage.self)
                            .number
                            ?? 0
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(sum == 500 * 501 / 2)
        }
    }

    @Test func metadataAndDeadlinesReachTheHandler() async throws {
        let method = SessionMethod.unary("t.T/Tell") { (_: TestMessage, context) in
            #expect(context.method == "t.T/Tell")
            #expect(context.metadata == ["who": "me"])
            let remaining = try #require(context.timeRemaining)
            #expect(remaining > .seconds(400) && remaining <= .seconds(500))
            #expect(context.session.metadata == ["token": "x"])
            return TestMessage(context.session.name.utf8)
        }
        var configuration = SessionClientConfiguration()
        configuration.name = "anna"
        configuration.metadata = ["token": "x"]
        try await withScene(method, client: configuration) { client, server in
            let reply: TestMessage = try await client.call(
                "t.T/Tell",
                TestMessage(number: 1),
                timeout: .seconds(500),
                metadata: ["who": "me"]
            )
            #expect(reply.payload == Array("anna".utf8))
            let session = try #require(server.session(named: "anna"))
            #expect(server.session(id: session.id) === session)
            #expect(server.session(id: "") == nil && server.session(id: String(session.id.dropLast())) == nil)
            #expect(server.sessions.count == 1)
        }
    }

    @Test func errorsBecomeStatuses() async throws {
        struct Odd: Error {}
        let detail = SessionStatus.Detail(typeURL: "t/x", value: [1])
        let method = SessionMethod.unary("t.T/Fail") { (message: TestMessage, _) -> TestMessage in
            switch message.number {
            case 1: throw SessionStatus(.notFound, "gone", details: [detail])
            case 2: throw CancellationError()
            default: throw Odd()
            }
        }
        let log = TestLog()
        try await withScene(method, log: log) { client, _ in
            func status(_ name: String, _ message: TestMessage) async -> SessionStatus? {
                let error = await sessionError { try await client.call(name, message, returning: TestMessage.self) }
                #expect(error?.code == .status)
                return error?.status
            }
            #expect(
                await status("t.T/Fail", TestMessage(number: 1)) == SessionStatus(.notFound, "gone", details: [detail])
            )
            #expect(await status("t.T/Fail", TestMessage(number: 2)) == SessionStatus(.cancelled))
            #expect(await status("t.T/Fail", TestMessage(number: 3)) == SessionStatus(.unknown))
            #expect(log.entries.contains { $0.level == .warning && $0.text.contains("Odd") })
            #expect(await status("t.T/Nothing", TestMessage(number: 3))?.code == .unimplemented)
        }
    }

    @Test func cancellingACallCancelsItsHandler() async throws {
        let (begun, cancelled) = (Event(), Event())
        let method = SessionMethod.unary("t.T/Wait") { (message: TestMessage, _) in
            begun.signal()
            try? await Event().wait()
            cancelled.signal()
            return message
        }
        try await withScene(method) { client, _ in
            let task = Task { try await client.call("t.T/Wait", TestMessage(number: 1), returning: TestMessage.self) }
            try await begun.wait()
            task.cancel()
            #expect(await sessionError { try await task.value }?.code == .cancelled)
            try await cancelled.wait()
        }
    }

    @Test func aStreamToItsEnd() async throws {
        let method = SessionMethod.stream("t.T/Count") {
            (message: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
            for number in 0..<(message.number ?? 0) { try await stream.send(TestMessage(number: number)) }
        }
        try await withScene(method) { client, _ in
            var numbers: [Int] = []
            for try await message in client.stream("t.T/Count", TestMessage(number: 1_000), of: TestMessage.self) {
                numbers.append(message.number ?? -1)
            }
            #expect(numbers == Array(0..<1_000))
        }
    }

    @Test func leavingAStreamCancelsItsHandler() async throws {
        let cancelled = Event()
        let method = SessionMethod.stream("t.T/Endless") {
            (_: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
            defer { cancelled.signal() }
            while !Task.isCancelled { try await stream.send(TestMessage(number: 1)) }
        }
        try await withScene(method, echo) { client, _ in
            var count = 0
            for try await _ in client.stream("t.T/Endless", TestMessage(number: 0), of: TestMessage.self) {
                count += 1
                if count == 5 { break }
            }
            try await cancelled.wait()
            // The messages that were under way do not fill the window for good.
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
        }
    }

    @Test func aStreamThatFails() async throws {
        let method = SessionMethod.stream("t.T/Fail") {
            (_: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
            try await stream.send(TestMessage(number: 1))
            throw SessionStatus(.dataLoss, "half")
        }
        try await withScene(method) { client, _ in
            var iterator = client.stream("t.T/Fail", TestMessage(number: 0), of: TestMessage.self).makeAsyncIterator()
            let first = try await iterator.next()
            #expect(first?.number == 1)
            let error = await sessionError { try await iterator.next() }
            #expect(error?.status == SessionStatus(.dataLoss, "half"))
        }
    }

    @Test func pushesToTheServerInOrder() async throws {
        let notes = Notes<Int>()
        let method = SessionMethod.push("t.T/Report") { (message: TestMessage, _) in
            notes.add(message.number ?? -1)
        }
        try await withScene(method) { client, _ in
            for number in 0..<2_000 { try await client.push("t.T/Report", TestMessage(number: number)) }
        }
        // Closing waits until everything is processed.
        let isInOrder = notes.all == Array(0..<2_000)
        #expect(isInOrder, "\(notes.count)")
    }

    @Test func pushesToTheClientInOrder() async throws {
        try await withScene(echo) { client, server in
            let news = client.pushes("t.T/News", of: TestMessage.self)
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            let session = try #require(server.sessions.first)
            let sending = Task {
                for number in 0..<2_000 { try await session.push("t.T/News", TestMessage(number: number)) }
            }
            var expected = 0
            for try await message in news {
                #expect(message.number == expected)
                expected += 1
                if expected == 2_000 { break }
            }
            try await sending.value
        }
    }

    @Test func pushesThatNobodyAskedFor() async throws {
        let log = TestLog()
        try await withScene(echo, log: log) { client, server in
            try await client.push("t.T/Nothing", TestMessage(number: 1))
            try await client.push("t.T/Nothing", TestMessage(number: 2))
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            let session = try #require(server.sessions.first)
            try await until { session.statistics.unwantedPushCount == 2 }
            try await session.push("t.T/News", TestMessage(number: 1))
            try await until { client.statistics.unwantedPushCount == 1 }
            // The log has one line for each method.
            #expect(log.entries.filter { $0.text.contains("t.T/Nothing") }.count == 1)
        }
    }

    @Test func aSessionOutlivesItsConnections() async throws {
        let notes = Notes<Int>()
        let method = SessionMethod.push("t.T/Report") { (message: TestMessage, _) in notes.add(message.number ?? -1) }
        try await withScene(method, echo) { client, server in
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            let id = try #require(server.sessions.first?.id)
            for number in 0..<300 {
                if number % 100 == 50 { client.reconnect() }
                try await client.push("t.T/Report", TestMessage(number: number))
            }
            _ = try await client.call("t.T/Echo", TestMessage(number: 2), returning: TestMessage.self)
            #expect(server.sessions.map(\.id) == [id])
            for (event, resumed) in zip(client.sessionHistory, [false, true]) {
                guard case .opened(id, resumed) = event.kind else {
                    #expect(Bool(false), "opened, resumed \(resumed)")
                    continue
                }
            }
        }
        let isInOrder = notes.all == Array(0..<300)
        #expect(isInOrder, "\(notes.count)")
    }

    @Test func aServerThatRefuses() async throws {
        var configuration = SessionServerConfiguration()
        configuration.authenticate = { candidate in
            #expect(!candidate.isReturning)
            if candidate.metadata["token"] != "good" { throw SessionStatus(.unauthenticated, "Who are you?") }
            return nil
        }
        try await withSessionServer(
            listeningOn: anyPort,
            configuration: configuration,
            services: [TestService(echo)],
            logger: TestLog().logger
        ) { server in
            let client = try await SessionClient(to: server.boundEndpoints[0], logger: TestLog().logger)
            let running = Task { try await client.run() }
            let failure = await sessionError {
                try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            }
            #expect(failure?.code == .refused)
            #expect(failure?.status == SessionStatus(.unauthenticated, "Who are you?"))
            let end = await sessionError { try await running.value }
            #expect(end?.code == .refused)
            #expect(server.sessions.isEmpty)

            var good = SessionClientConfiguration()
            good.metadata = ["token": "good"]
            try await withSessionClient(to: server.boundEndpoints[0], configuration: good, logger: TestLog().logger) {
                client in
                _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            }
        }
    }

    @Test func aServerThatEndsASession() async throws {
        try await withScene(echo) { client, server in
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            try #require(server.sessions.first).end()
            var last: SessionEvent.Kind?
            for await event in client.sessionEvents { last = event.kind }
            guard case .ended(nil, let inDoubt)? = last else { return #expect(Bool(false), "\(last as Any)") }
            #expect(inDoubt.isEmpty)
            let error = await sessionError {
                try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            }
            #expect(error?.code == .closedByPeer)
            #expect(server.sessions.isEmpty)
        }
    }

    @Test func aSlowSessionDoesNotSlowTheOthers() async throws {
        let release = Event()
        let method = SessionMethod.push("t.T/Report") { (_: TestMessage, context) in
            if context.session.name == "slow" { try await release.wait() }
        }
        var slow = SessionClientConfiguration()
        slow.name = "slow"
        slow.limits.maximumKeptMessageCount = 40
        try await withScene(method, echo, client: slow) { slow, server in
            // As many pushes as are kept; one more waits.
            let waiting = Task {
                for number in 0..<60 { try await slow.push("t.T/Report", TestMessage(number: number)) }
            }
            try await until { slow.statistics.keptMessageCount >= 30 }
            try await withSessionClient(to: server.boundEndpoints[0], logger: TestLog().logger) { fast in
                for number in 0..<2_000 { try await fast.push("t.T/Report", TestMessage(number: number)) }
                _ = try await fast.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            }
            // The push still waits.
            #expect(slow.statistics.keptMessageCount >= 30)
            release.signal()
            try await waiting.value
        }
    }

    /// The client gets all messages that the server accepted before its shutdown, although they exceed the window.
    @Test func aServerThatGoesAwaySendsWhatItHasAccepted() async throws {
        let count = 2_000
        let (notes, inDoubt) = (Notes<Int>(), Notes<SessionMessageInDoubt>())
        var configuration = SessionServerConfiguration()
        configuration.server.shutdownGracePeriod = .seconds(50)
        configuration.whenInDoubt = { _, messages in messages.forEach(inDoubt.add) }
        var clientConfiguration = SessionClientConfiguration()
        clientConfiguration.limits.maximumUnprocessedMessageCount = 64
        // The server starts later.
        clientConfiguration.client.backoff.maximumAttempts = nil
        let release = Event()
        try await withTemporaryPath { path in
            try await withSessionClient(
                to: .unix(path: path),
                configuration: clientConfiguration,
                logger: TestLog().logger
            ) { client in
                let news = client.pushes("t.T/News", of: TestMessage.self)
                let taking = Task {
                    try await release.wait()
                    for try await message in news { notes.add(message.number ?? -1) }
                }
                try await withSessionServer(
                    listeningOn: .unix(path: path),
                    configuration: configuration,
                    services: [TestService(echo)],
                    logger: TestLog().logger
                ) { server in
                    _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
                    let session = try #require(server.sessions.first)
                    for number in 0..<count { try await session.push("t.T/News", TestMessage(number: number)) }
                    release.signal()
                }
                let isInOrder = notes.all == Array(0..<count)
                #expect(isInOrder, "\(notes.count)")
                #expect(inDoubt.count == 0)
                taking.cancel()
            }
        }
    }

    @Test func handlersKnowWhoItIs() async throws {
        let method = SessionMethod.unary("t.T/Who") { (_: TestMessage, context) in
            TestMessage("\(context.identity?.subject ?? ""), \(context.identity?.attributes["role"] ?? "")".utf8)
        }
        var configuration = SessionServerConfiguration()
        configuration.authenticate = { candidate in
            candidate.metadata["token"] == "1" ? SessionIdentity("anna", attributes: ["role": "owner"]) : nil
        }
        var client = SessionClientConfiguration()
        client.name = "berta"
        client.metadata = ["token": "1"]
        try await withScene(method, configuration: configuration, client: client) { client, server in
            let reply: TestMessage = try await client.call("t.T/Who", TestMessage(number: 1))
            #expect(reply.payload == Array("anna, owner".utf8))
            // The client cannot choose the name.
            #expect(server.session(named: "berta") == nil)
            #expect(server.session(named: "anna")?.name == "anna")
        }
    }

    @Test func aStatusThatIsTooLargeForAFrame() async throws {
        let method = SessionMethod.unary("t.T/Fail") { (_: TestMessage, _) -> TestMessage in
            throw SessionStatus(
                .internal,
                "x",
                details: [.init(typeURL: "t", value: [UInt8](repeating: 1, count: 5 << 20))]
            )
        }
        try await withScene(method, echo) { client, _ in
            let error = await sessionError {
                try await client.call("t.T/Fail", TestMessage(number: 1), returning: TestMessage.self)
            }
            #expect(error?.status?.code == .internal)
            func callUnknown(_ length: Int) async -> SessionError? {
                await sessionError {
                    try await client.call(
                        String(repeating: "x", count: length),
                        TestMessage(number: 1),
                        returning: TestMessage.self
                    )
                }
            }
            let unknown = await callUnknown(256)
            #expect(unknown?.status?.code == .unimplemented)
            #expect((unknown?.status?.message.utf8.count ?? .max) < 200)
            #expect(await callUnknown(257)?.code == .messageRefused)
            // The session continues.
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
        }
    }

    @Test func pushesThatAreStopped() async throws {
        var client = SessionClientConfiguration()
        client.limits.maximumUnprocessedMessageCount = 16
        let stream = SessionMethod.stream("t.T/Count") {
            (message: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
            for number in 0..<3 { try await stream.send(TestMessage(number: number)) }
        }
        try await withScene(echo, stream, client: client) { client, server in
            let news = client.pushes("t.T/News", of: TestMessage.self)
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            let session = try #require(server.sessions.first)
            for number in 0..<64 { try await session.push("t.T/News", TestMessage(number: number)) }
            // The pushes fill the window until they are dropped.
            news.stop()
            var numbers: [Int] = []
            for try await message in client.stream("t.T/Count", TestMessage(number: 1), of: TestMessage.self) {
                numbers.append(message.number ?? -1)
            }
            #expect(numbers == [0, 1, 2])
            var iterator = news.makeAsyncIterator()
            #expect(try await iterator.next() == nil)
            try await until { client.statistics.unwantedPushCount > 0 }
        }
    }

    /// The first server handles the calls that began there, and the second one the rest: nothing is in doubt.
    @Test func aServerThatIsReplacedInOrder() async throws {
        let count = 5_000
        let notes = Notes<Int>()
        let method = SessionMethod.push("t.T/Report") { (message: TestMessage, _) in notes.add(message.number ?? -1) }
        var configuration = SessionServerConfiguration()
        configuration.drainSpread = .milliseconds(5)
        configuration.server.shutdownGracePeriod = .seconds(50)
        var clientConfiguration = SessionClientConfiguration()
        clientConfiguration.client.backoff.initialDelay = .milliseconds(1)
        clientConfiguration.client.backoff.cap = .milliseconds(5)
        clientConfiguration.client.backoff.maximumAttempts = nil
        try await withTemporaryPath { path in
            try await withSessionClient(
                to: .unix(path: path),
                configuration: clientConfiguration,
                logger: TestLog().logger
            ) { client in
                let firstIsDown = Event()
                let pushing = Task {
                    for number in 0..<count {
                        if number == count / 2 { try await firstIsDown.wait() }
                        try await client.push("t.T/Report", TestMessage(number: number))
                    }
                }
                for wanted in [count / 10, count] {
                    try await withSessionServer(
                        listeningOn: .unix(path: path),
                        configuration: configuration,
                        services: [TestService(method)],
                        logger: TestLog().logger
                    ) { _ in
                        try await until { notes.count >= wanted }
                    }
                    firstIsDown.signal()
                }
                try await pushing.value
                let losses = client.sessionHistory.compactMap { event -> [SessionMessageInDoubt]? in
                    if case .lost(let inDoubt) = event.kind { inDoubt } else { nil }
                }
                #expect(losses.first?.isEmpty == true)
                #expect(client.statistics.keptMessageCount == 0)
            }
        }
        let isInOrder = notes.all == Array(0..<count)
        #expect(isInOrder, "\(notes.count)")
    }

    @Test func tooLargeForAFrame() async throws {
        try await withScene(echo) { client, _ in
            let error = await sessionError {
                try await client.push("t.T/Report", TestMessage([UInt8](repeating: 0, count: 4 << 20)))
            }
            #expect(error?.code == .messageRefused)
            // Just small enough.
            let large = TestMessage([UInt8](repeating: 7, count: (4 << 20) - 200))
            let reply = try await client.call("t.T/Echo", large, returning: TestMessage.self)
            #expect(reply == large)
        }
    }

    @Test func twoMethodsOfOneName() async throws {
        let error = await connectionError {
            try await withSessionServer(listeningOn: anyPort, services: [TestService(echo), TestService(echo)]) { _ in }
        }
        #expect(error?.code == .invalidConfiguration)
    }

    // MARK: Streams of the client's

    private static func numbers(_ range: Range<Int>) -> [TestMessage] { range.map { TestMessage(number: $0) } }

    /// Replies with the sum of its messages.
    private var sum: SessionMethod {
        .clientStream("t.T/Sum") { (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            var sum = 0
            for try await message in messages { sum += message.number ?? 0 }
            return TestMessage(number: sum)
        }
    }

    /// Sends each message back.
    private var chat: SessionMethod {
        .bothWays("t.T/Chat") {
            (messages: SessionMessages<TestMessage>, stream: SessionStreamWriter<TestMessage>, _) in
            for try await message in messages { try await stream.send(message) }
        }
    }

    @Test func aClientStream() async throws {
        try await withScene(sum) { client, _ in
            let reply: TestMessage = try await client.clientStream("t.T/Sum", of: TestMessage.self) { stream in
                for number in 1...1_000 { try await stream.send(TestMessage(number: number)) }
            }
            #expect(reply.number == 500_500)
            let none: TestMessage = try await client.clientStream("t.T/Sum", of: TestMessage.self) { _ in }
            #expect(none.number == 0)
        }
    }

    @Test func aHandlerRepliesBeforeTheClientHasSentAll() async throws {
        let first = SessionMethod.clientStream("t.T/First") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            for try await message in messages { return message }
            return TestMessage()
        }
        let cancelled = Event()
        try await withScene(first, echo) { client, _ in
            let reply: TestMessage = try await client.clientStream("t.T/First", of: TestMessage.self) { stream in
                defer { cancelled.signal() }
                while !Task.isCancelled { try await stream.send(TestMessage(number: 7)) }
            }
            #expect(reply.number == 7)
            try await cancelled.wait()
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
        }
    }

    @Test func aHandlerOfAClientStreamThrows() async throws {
        let thrower = SessionMethod.clientStream("t.T/Throw") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            for try await message in messages where message.number == 3 { throw SessionStatus(.notFound, "gone") }
            return TestMessage()
        }
        try await withScene(thrower, echo) { client, _ in
            let error = await sessionError {
                let _: TestMessage = try await client.clientStream("t.T/Throw", of: TestMessage.self) { stream in
                    for number in 1...100_000 { try await stream.send(TestMessage(number: number)) }
                }
            }
            #expect(error?.status == SessionStatus(.notFound, "gone"))
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
        }
    }

    /// Both ways of cancelling: the sending closure throws, or the caller's task is cancelled.
    @Test(arguments: [false, true]) func aClientStreamIsGivenUp(isCancelled: Bool) async throws {
        struct Enough: Error {}
        let (begun, ended) = (Event(), Notes<SessionError.Code?>())
        let hang = SessionMethod.clientStream("t.T/Hang") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            do {
                for try await _ in messages { begun.signal() }
                ended.add(nil)
            } catch {
                ended.add((error as? SessionError)?.code)
            }
            return TestMessage()
        }
        try await withScene(hang, echo) { client, _ in
            let call = Task { () -> TestMessage in
                try await client.clientStream("t.T/Hang", of: TestMessage.self) { stream in
                    try await stream.send(TestMessage(number: 1))
                    try await begun.wait()
                    if !isCancelled { throw Enough() }
                    try await Event().wait()
                }
            }
            try await begun.wait()
            if isCancelled { call.cancel() }
            do {
                _ = try await call.value
                Issue.record("it was given up")
            } catch {
                // The call and the sending closure are cancelled together. The error comes from the one that ends
                // first.
                let isCancellation = error is CancellationError || (error as? SessionError)?.code == .cancelled
                #expect(isCancelled ? isCancellation : error is Enough)
            }
            try await until { ended.count == 1 }
            #expect(ended.all == [.cancelled])
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
        }
    }

    @Test func aClientStreamTakesTooLong() async throws {
        let (begun, ended) = (Notes<Bool>(), Notes<Bool>())
        let hang = SessionMethod.clientStream("t.T/Hang") {
            (messages: SessionMessages<TestMessage>, context) -> TestMessage in
            begun.add(context.timeRemaining != nil)
            defer { ended.add(true) }
            for try await _ in messages {}
            return TestMessage()
        }
        try await withScene(hang, echo) { client, _ in
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            let error = await sessionError {
                let _: TestMessage = try await client.clientStream(
                    "t.T/Hang",
                    of: TestMessage.self,
                    timeout: .milliseconds(20)
                ) { stream in
                    try await stream.send(TestMessage(number: 1))
                    try await Event().wait()
                }
            }
            #expect(error?.code == .timedOut)
            _ = try await client.call("t.T/Echo", TestMessage(number: 2), returning: TestMessage.self)
            // On a busy machine, the timeout may be over before the handler begins.
            try await until { ended.count == begun.count }
            #expect(begun.all.allSatisfy { $0 })
        }
    }

    /// The sender gets an error for the message, and the stream continues.
    @Test func aMessageOfAStreamIsTooLarge() async throws {
        try await withScene(sum) { client, _ in
            let reply: TestMessage = try await client.clientStream("t.T/Sum", of: TestMessage.self) { stream in
                try await stream.send(TestMessage(number: 1))
                let error = await sessionError {
                    try await stream.send(TestMessage([UInt8](repeating: 0, count: 4 << 20)))
                }
                #expect(error?.code == .messageRefused)
                try await stream.send(TestMessage(number: 2))
            }
            #expect(reply.number == 3)
        }
    }

    @Test func bothWays() async throws {
        try await withScene(chat) { client, _ in
            let numbers = try await client.bothWays("t.T/Chat", sending: TestMessage.self, receiving: TestMessage.self)
            {
                stream in
                for message in Self.numbers(0..<1_000) { try await stream.send(message) }
            } receive: { messages in
                var numbers: [Int] = []
                for try await batch in messages.batches { numbers += batch.map { $0.number ?? -1 } }
                return numbers
            }
            #expect(numbers == Array(0..<1_000))
        }
    }

    /// Each message depends on the previous answer.
    @Test func bothWaysTurnByTurn() async throws {
        try await withScene(chat) { client, _ in
            let answers = AsyncStream.makeStream(of: Int.self)
            let last = try await client.bothWays("t.T/Chat", sending: TestMessage.self, receiving: TestMessage.self) {
                stream in
                try await stream.send(TestMessage(number: 0), until: .processed)
                for await answer in answers.stream {
                    if answer == 100 { return }
                    try await stream.send(TestMessage(number: answer + 1))
                }
            } receive: { messages in
                var last = -1
                for try await message in messages {
                    last = message.number ?? -1
                    answers.continuation.yield(last)
                }
                return last
            }
            #expect(last == 100)
        }
    }

    /// The client leaves the call after some messages, and the handler is cancelled.
    @Test func leavingACallBothWays() async throws {
        let cancelled = Event()
        let endless = SessionMethod.bothWays("t.T/Endless") {
            (_: SessionMessages<TestMessage>, stream: SessionStreamWriter<TestMessage>, _) in
            defer { cancelled.signal() }
            while true { try await stream.send(TestMessage(number: 1)) }
        }
        try await withScene(endless, echo) { client, _ in
            let count = try await client.bothWays("t.T/Endless", sending: TestMessage.self, receiving: TestMessage.self)
            {
                stream in
                while !Task.isCancelled { try await stream.send(TestMessage(number: 1)) }
            } receive: { messages in
                var count = 0
                for try await _ in messages {
                    count += 1
                    if count == 5 { break }
                }
                return count
            }
            #expect(count == 5)
            try await cancelled.wait()
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
        }
    }

    /// 10,000 messages in each direction, each once and in order, over connections that are cut.
    @Test func bothWaysOverManyConnections() async throws {
        let count = 10_000
        let seen = Notes<Int>()
        let chat = SessionMethod.bothWays("t.T/Chat") {
            (messages: SessionMessages<TestMessage>, stream: SessionStreamWriter<TestMessage>, _) in
            for try await message in messages {
                seen.add(message.number ?? -1)
                try await stream.send(message)
            }
        }
        var configuration = SessionClientConfiguration()
        configuration.client.backoff.initialDelay = .milliseconds(1)
        configuration.client.backoff.maximumAttempts = nil
        try await withScene(chat, client: configuration) { client, server in
            // A hello that is cut before its welcome may leave an unused session at the server.
            try await until { client.statistics.openingCount == 1 }
            let numbers = try await client.bothWays("t.T/Chat", sending: TestMessage.self, receiving: TestMessage.self)
            {
                stream in
                for number in 0..<count {
                    // Without a connection, none is cut.
                    if number % 500 == 250 {
                        let openings = client.statistics.openingCount
                        client.reconnect()
                        try await until { client.statistics.openingCount > openings }
                    }
                    try await stream.send(TestMessage(number: number))
                }
            } receive: { messages in
                var numbers: [Int] = []
                for try await message in messages { numbers.append(message.number ?? -1) }
                return numbers
            }
            let isInOrder = numbers == Array(0..<count)
            #expect(isInOrder, "\(numbers.count)")
            #expect(client.statistics.openingCount >= count / 500)
            #expect(client.statistics.sessionCount == 1 && server.sessions.count == 1)
        }
        let isInOrder = seen.all == Array(0..<count)
        #expect(isInOrder, "\(seen.count)")
    }

    /// A handler and a client that do not read hold up only their own streams.
    @Test func unreadStreamsDelayNothingElse() async throws {
        let release = Event()
        let slow = SessionMethod.clientStream("t.T/Slow") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            try await release.wait()
            var count = 0
            for try await message in messages { count += message.payload.count }
            return TestMessage(number: count)
        }
        let pushed = Notes<Int>()
        let push = SessionMethod.push("t.T/Push") { (message: TestMessage, _) in pushed.add(message.number ?? -1) }
        try await withScene(slow, push, sum, echo) { client, server in
            let news = client.pushes("t.T/News", of: TestMessage.self)
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            let session = try #require(server.sessions.first)
            // Four times its credit.
            let (count, large) = (1_024, TestMessage([UInt8](repeating: 7, count: 1_024)))
            async let slowReply: TestMessage = client.clientStream("t.T/Slow", of: TestMessage.self) { stream in
                for _ in 0..<count { try await stream.send(large) }
            }
            let telling = Task { for _ in 0..<count { try await session.push("t.T/News", large) } }
            try await until { client.engine.state.withLock { $0.machine.waitingCount } == 1 }
            try await until { session.engine.state.withLock { $0.machine.waitingCount } == 1 }
            for number in 0..<2_000 { try await client.push("t.T/Push", TestMessage(number: number)) }
            let reply: TestMessage = try await client.clientStream("t.T/Sum", of: TestMessage.self) { stream in
                for number in 1...1_000 { try await stream.send(TestMessage(number: number)) }
            }
            #expect(reply.number == 500_500)
            _ = try await client.call("t.T/Echo", TestMessage(number: 2), returning: TestMessage.self)
            try await until { pushed.count == 2_000 }
            #expect(pushed.all == Array(0..<2_000))
            // Both streams still wait.
            #expect(client.engine.state.withLock { $0.machine.waitingCount } == 1)
            #expect(session.engine.state.withLock { $0.machine.waitingCount } == 1)
            release.signal()
            #expect(try await slowReply.number == count << 10)
            var taken = 0
            for try await _ in news {
                taken += 1
                if taken == count { break }
            }
            try await telling.value
        }
    }

    /// The handler is cancelled, and the client learns that its call has ended.
    @Test func aServerIsShutDownDuringACallBothWays() async throws {
        let (begun, cancelled) = (Event(), Event())
        let hang = SessionMethod.bothWays("t.T/Hang") {
            (messages: SessionMessages<TestMessage>, _: SessionStreamWriter<TestMessage>, _) in
            defer { cancelled.signal() }
            for try await _ in messages { begun.signal() }
        }
        var clientConfiguration = SessionClientConfiguration()
        clientConfiguration.closeTimeout = .zero
        clientConfiguration.client.backoff.initialDelay = .milliseconds(1)
        clientConfiguration.client.backoff.maximumAttempts = nil
        try await withTemporaryPath { path in
            func withServer(_ body: () async throws -> Void) async throws {
                var configuration = SessionServerConfiguration()
                configuration.server.shutdownGracePeriod = .zero
                try await withSessionServer(
                    listeningOn: .unix(path: path),
                    configuration: configuration,
                    services: [TestService(hang)],
                    logger: TestLog().logger
                ) { _ in
                    try await body()
                }
            }
            try await withSessionClient(
                to: .unix(path: path),
                configuration: clientConfiguration,
                logger: TestLog().logger
            ) { client in
                let call = Task {
                    try await client.bothWays("t.T/Hang", sending: TestMessage.self, receiving: TestMessage.self) {
                        stream in
                        try await stream.send(TestMessage(number: 1))
                        try await Event().wait()
                    } receive: { messages in
                        for try await _ in messages { Issue.record("nothing is sent") }
                    }
                }
                try await withServer { try await begun.wait() }
                try await cancelled.wait()
                // The next server does not know the session.
                try await withServer {
                    #expect(await sessionError { try await call.value }?.code == .sessionLost)
                }
            }
        }
    }
}
