import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import Logging
import Testing

@testable import Lifeline

/// Clients and a server of sessions over TCP in one process.
@Suite(.timeLimit(.minutes(1))) struct SessionEndToEndTests {
    private func withScene<Result: Sendable>(
        _ methods: SessionMethod...,
        configuration: SessionServerConfiguration = SessionServerConfiguration(),
        client: SessionClientConfiguration = SessionClientConfiguration(),
        log: TestLog = TestLog(),
        _ body: (SessionClient, SessionServer) async throws -> Result
    ) async throws -> Result {
        // Closing waits for handlers, however busy the machine is.
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
            // What was under way does not fill the window for good.
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
            #expect(log.entries.filter { $0.text.contains("t.T/Nothing") }.count == 2)
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
            // As many as are kept; one more waits.
            let waiting = Task {
                for number in 0..<60 { try await slow.push("t.T/Report", TestMessage(number: number)) }
            }
            try await until { slow.statistics.keptMessageCount >= 30 }
            try await withSessionClient(to: server.boundEndpoints[0], logger: TestLog().logger) { fast in
                for number in 0..<2_000 { try await fast.push("t.T/Report", TestMessage(number: number)) }
                _ = try await fast.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            }
            // It still waits.
            #expect(slow.statistics.keptMessageCount >= 30)
            release.signal()
            try await waiting.value
        }
    }

    /// What the server has accepted before it goes is with the client then, though it does not fit the window at once.
    @Test func aServerThatGoesAwaySendsWhatItHasAccepted() async throws {
        let count = 2_000
        let (notes, inDoubt) = (Notes<Int>(), Notes<SessionMessageInDoubt>())
        var configuration = SessionServerConfiguration()
        configuration.server.shutdownGracePeriod = .seconds(50)
        configuration.whenInDoubt = { _, messages in messages.forEach(inDoubt.add) }
        var clientConfiguration = SessionClientConfiguration()
        clientConfiguration.limits.maximumUnprocessedMessageCount = 64
        // The server listens later.
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
            // The name is not the client's to choose.
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
            let long = String(repeating: "x", count: 100_000)
            let unknown = await sessionError {
                try await client.call(long, TestMessage(number: 1), returning: TestMessage.self)
            }
            #expect(unknown?.status?.code == .unimplemented)
            #expect((unknown?.status?.message.utf8.count ?? .max) < 200)
            // The session goes on.
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
            // They fill the window, until they are dropped.
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

    /// The first server handles what was begun there, the second the rest: nothing is in doubt.
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
}
