import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineRuntime
import LifelineTestSupport
import LifelineTransport
import LifelineWellKnownTypes
import Logging
import NIOConcurrencyHelpers
import Testing

/// WebSockets between our client and our server, on real sockets.
@Suite(.timeLimit(.minutes(2))) struct WebSocketTests {
    private typealias WebSocketConnection = Connection<WebSocketMessage, WebSocketMessage>

    // MARK: Frames

    @Test(arguments: [1, 20, 1000, 64 << 10]) func messagesGoThereAndBack(maximumMessageLength: Int) async throws {
        var configuration = ServerConfiguration()
        configuration.connection.webSocket.maximumMessageLength = maximumMessageLength
        var random = SeededGenerator(seed: UInt64(maximumMessageLength))
        let messages = (0..<300).map { index in
            TestMessage(random.bytes(index % 50 == 0 ? 100_000 : Int.random(in: 0...100, using: &random)))
        }
        try await withTestServer(on: webSocket, configuration: configuration, handler: echo) { server in
            #expect(try await server.boundEndpoint.description.hasPrefix("ws://127.0.0.1:"))
            try await withTestConnection(
                to: server.boundEndpoint,
                configuration: configuration.connection
            ) { connection in
                async let sending: Void = connection.send(contentsOf: messages)
                var received: [TestMessage] = []
                for try await message in connection.messages {
                    received.append(message)
                    if received.count == messages.count { break }
                }
                try await sending
                #expect(received == messages)
            }
        }
    }

    @Test func oneHandlerServesWebSocketsAndPlainConnections() async throws {
        try await withTestServer(handler: echo) { plain in
            try await withTestServer(on: webSocket, handler: echo) { webSocket in
                let (plain, webSocket) = try await (plain.boundEndpoint, webSocket.boundEndpoint)
                for endpoint in [plain, webSocket] {
                    let reply = try await withTestConnection(to: endpoint) { connection in
                        #expect((connection.webSocket == nil) == (endpoint == plain))
                        return try await roundTrip(TestMessage(number: 5), on: connection)
                    }
                    #expect(reply?.number == 5)
                }
            }
        }
    }

    @Test func aPeerThatDoesNotReadHoldsTheSenderUp() async throws {
        // 20 MiB in all: more than the queues and the kernel hold.
        let (message, count) = (TestMessage([UInt8](repeating: 1, count: 64 << 10)), 320)
        let isFull = Event()
        let accepted = NIOLockedValueBox(0)
        try await withTestServer(on: webSocket) { connection in
            try await isFull.wait()
            for try await _ in connection.messages {}
        } _: { server in
            try await withTestServer(handler: echo) { other in
                try await withTestConnection(to: server.boundEndpoint) { connection in
                    let sending = Task {
                        for _ in 0..<count {
                            try await connection.send(message)
                            accepted.withLockedValue { $0 += 1 }
                        }
                    }
                    try await until { accepted.withLockedValue { $0 } > 0 }
                    try await settle(accepted, on: other)
                    #expect((1..<count).contains(accepted.withLockedValue { $0 }))
                    isFull.signal()
                    try await sending.value
                }
            }
        }
    }

    /// Returns when `count` has not changed during a hundred round trips on the same event loops.
    private func settle(_ count: NIOLockedValueBox<Int>, on other: Server) async throws {
        try await withTestConnection(to: other.boundEndpoint) { connection in
            var last = -1
            while count.withLockedValue({ $0 }) != last {
                last = count.withLockedValue { $0 }
                for number in 0..<100 { _ = try await roundTrip(TestMessage(number: number), on: connection) }
            }
        }
    }

    // MARK: Messages

    @Test func messagesOfTheUsersOwn() async throws {
        let messages: [WebSocketMessage] = [
            .text("Grüezi 🎉"), .text(""), .binary([]), .binary([0, 255]), .text(String(repeating: "x", count: 200_000)),
            .binary([UInt8](repeating: 7, count: 70_000)),
        ]
        try await withMessageServer { server in
            try await withMessageConnection(to: server.boundEndpoint) { connection in
                for message in messages { try await connection.send(message) }
                var received: [WebSocketMessage] = []
                for try await message in connection.messages {
                    received.append(message)
                    if received.count == messages.count { break }
                }
                #expect(received == messages)
            }
        }
    }

    @Test func theLimitIsTheMessages() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.maximumFrameLength = 1000
        try await withMessageServer(configuration: configuration) { server in
            try await withMessageConnection(
                to: server.boundEndpoint,
                configuration: configuration.connection
            ) { connection in
                let largest = WebSocketMessage.binary([UInt8](repeating: 1, count: 1000))
                try await connection.send(largest)
                var messages = connection.messages.makeAsyncIterator()
                #expect(try await messages.next() == largest)
                let tooLarge = WebSocketMessage.binary([UInt8](repeating: 1, count: 1001))
                #expect(await connectionError { try await connection.send(tooLarge) }?.code == .messageRefused)
            }
            let error = await connectionError {
                try await withMessageConnection(to: server.boundEndpoint) { connection in
                    try await connection.send(.text(String(repeating: "x", count: 1001)))
                    for try await _ in connection.messages {}
                }
            }
            #expect(error?.code == .webSocketClosed)
            #expect((error?.cause as? WebSocketClosure)?.code == .messageTooBig)
        }
    }

    @Test func textsAreRefusedWhereFramesAreExpected() async throws {
        let log = TestLog()
        try await withTestServer(on: webSocket, log: log, handler: echo) { server in
            let error = await connectionError {
                try await withMessageConnection(to: server.boundEndpoint) { connection in
                    try await connection.send(.text("Hello"))
                    for try await _ in connection.messages {}
                }
            }
            #expect((error?.cause as? WebSocketClosure)?.code == .unsupportedData)
        }
        #expect(log.entries.contains { $0.level == .warning && $0.text.contains("1003") })
    }

    @Test func framesOfOneSideAreBinaryMessagesOfTheOther() async throws {
        try await withTestServer(on: webSocket, handler: echo) { server in
            try await withMessageConnection(to: server.boundEndpoint) { connection in
                // A message may hold two frames, and a frame may be in two messages.
                let bytes = try TestMessage(number: 1).delimitedBytes + TestMessage(number: 22).delimitedBytes
                try await connection.send(.binary(Array(bytes.prefix(7))))
                try await connection.send(.binary([]))
                try await connection.send(.binary(Array(bytes.dropFirst(7))))
                var echoed: [UInt8] = []
                for try await case .binary(let part) in connection.messages {
                    echoed += part
                    if echoed.count == bytes.count { break }
                }
                #expect(echoed == bytes)
            }
        }
    }

    // MARK: Negotiation

    @Test func theConnectionHasTheNegotiatedValues() async throws {
        var configuration = ServerConfiguration()
        configuration.webSocket.subprotocols = ["chat.v2", "chat.v1"]
        configuration.webSocket.paths = .any
        configuration.webSocket.authorize = { $0 == WebSocketCredentials(user: "ada", password: "secret") }
        configuration.connection.webSocket.subprotocols = ["chat.v1", "chat.v2"]
        configuration.connection.webSocket.credentials = WebSocketCredentials(user: "ada", password: "secret")
        configuration.connection.webSocket.cookies = ["session": "1"]
        configuration.connection.webSocket.headers = ["X-Room": "7"]
        let seen = NIOLockedValueBox<WebSocketOpening?>(nil)
        try await withTestServer(on: webSocket, configuration: configuration) { connection in
            seen.withLockedValue { $0 = connection.webSocket }
            for try await _ in connection.messages {}
        } _: { server in
            let endpoint = try await Endpoint("\(server.boundEndpoint)room?id=7")
            try await withTestConnection(to: endpoint, configuration: configuration.connection) { connection in
                #expect(connection.webSocket?.subprotocol == "chat.v2")
                #expect(connection.webSocket?.target == "/room?id=7")
                #expect(connection.webSocket?.headers["Upgrade"] == "websocket")
            }
        }
        let opening = try #require(seen.withLockedValue { $0 })
        #expect(opening.subprotocol == "chat.v2" && opening.target == "/room?id=7")
        #expect(opening.headers["x-room"] == "7" && opening.headers["Cookie"] == "session=1")
        #expect(!"\(opening)".contains("session=1"))
    }

    @Test func refusalsAreTypedAndReleaseTheirPlace() async throws {
        var configuration = ServerConfiguration()
        configuration.maximumConnections = 1
        configuration.webSocket.authorize = { $0.password == "right" }
        let log = TestLog()
        try await withTestServer(on: webSocket, configuration: configuration, log: log, handler: echo) { server in
            for (path, password, status) in [("", "wrong", 401), ("", nil, 401), ("elsewhere", "right", 404)] {
                var client = ConnectionConfiguration()
                client.webSocket.credentials = password.map { WebSocketCredentials(user: "ada", password: $0) }
                let endpoint = try await Endpoint("\(server.boundEndpoint)\(path)")
                let error = await connectionError {
                    try await withTestConnection(to: endpoint, configuration: client) { _ in }
                }
                #expect(error?.code == .webSocketRefused)
                #expect((error?.cause as? WebSocketRefusal)?.status == status)
            }
            var client = ConnectionConfiguration()
            client.webSocket.credentials = WebSocketCredentials(user: "ada", password: "right")
            try await withTestConnection(to: server.boundEndpoint, configuration: client) { connection in
                let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                #expect(reply?.number == 1)
            }
        }
        #expect(log.entries.count { $0.level == .info } == 3)
        #expect(!log.entries.contains { $0.text.contains("right") || $0.text.contains("wrong") && $0.level != .info })
    }

    @Test func aMisconfiguredClientOrServerDoesNotBegin() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.webSocket.headers = ["Host": "x"]
        configuration.webSocket.subprotocols = ["a b"]
        let connecting = await connectionError {
            try await withTestConnection(to: webSocket, configuration: configuration.connection) { _ in }
        }
        #expect(connecting?.code == .invalidConfiguration)
        let listening = await connectionError {
            try await withTestServer(on: webSocket, configuration: configuration, handler: echo) { _ in true }
        }
        #expect(listening?.code == .invalidConfiguration)
        let plain = try await withTestServer(configuration: configuration, handler: echo) { try await $0.boundEndpoint }
        #expect(plain.port != nil, "other endpoints do not look at it")
    }

    @Test func aClientDoesNotRepeatWhatIsRefused() async throws {
        try await withTestServer(on: webSocket, handler: echo) { server in
            try await withClient(
                to: Endpoint("\(server.boundEndpoint)elsewhere"),
                receiving: TestMessage.self,
                sending: TestMessage.self,
                logger: TestLog().logger
            ) { client in
                var events = client.events.makeAsyncIterator()
                let event = try await events.reach(.gaveUp)
                #expect(event.transition.reason.error?.code == .webSocketRefused)
                #expect(client.history.count { $0.transition.to == .connecting } == 1)
            }
        }
    }

    // MARK: Ends

    @Test func everythingAcceptedArrivesBeforeTheEnd() async throws {
        let received = NIOLockedValueBox(0)
        var configuration = ConnectionConfiguration()
        // The peer has time to read, even on a slow machine.
        configuration.closeTimeout = .seconds(100)
        try await withTestServer(on: webSocket) { connection in
            for try await message in connection.messages { received.withLockedValue { $0 += message.payload.count } }
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: configuration) { connection in
                for _ in 0..<100 { try await connection.send(TestMessage([UInt8](repeating: 1, count: 10_000))) }
            }
        }
        #expect(received.withLockedValue { $0 } == 1_000_000)
    }

    @Test func aServersEndIsTheEndOfMessages() async throws {
        try await withTestServer(on: webSocket) { connection in
            try await connection.send(TestMessage(number: 1))
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                var messages = connection.messages.makeAsyncIterator()
                let first = try await messages.next()
                #expect(first?.number == 1)
                let end = try await messages.next()
                #expect(end == nil)
                let error = await connectionError { try await connection.send(TestMessage()) }
                #expect(error?.code == .closedByPeer, "there is no half-close")
            }
        }
    }

    /// Both arrive in one read. The task that the message wakes then sends after the Close, when nothing may be sent
    /// any more.
    @Test func aMessageAndACloseThatComeTogether() async throws {
        let end = Latch<ConnectionError?>()
        try await withTestServer(on: webSocket) { connection in
            let error = await connectionError {
                for try await message in connection.messages { try? await connection.send(message) }
            }
            end.open(with: error)
        } _: { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            try await peer.requestHandshake()
            let frame = try TestMessage([7]).delimitedBytes
            let message: [UInt8] = [0x82, 0x80 | UInt8(frame.count), 0, 0, 0, 0] + frame
            // After this answer, the handler waits for the next message.
            try await peer.write(message)
            #expect(try await peer.read(2 + frame.count) == [0x82, UInt8(frame.count)] + frame)
            try await peer.write(message + [0x88, 0x80, 0, 0, 0, 0])
            #expect(try await peer.read() == [0x88, 0x00])
            #expect(try await end.wait() == nil)
        }
    }

    @Test func anAbortIsNoRegularEnd() async throws {
        struct Stop: Error {}
        let ended = NIOLockedValueBox<ConnectionError?>(nil)
        let hasEnded = Event()
        try await withTestServer(on: webSocket) { connection in
            let error = await connectionError { for try await _ in connection.messages {} }
            ended.withLockedValue { $0 = error }
            hasEnded.signal()
        } _: { server in
            await #expect(throws: Stop.self) {
                try await withTestConnection(to: server.boundEndpoint) { connection in
                    #expect(connection.webSocket != nil)
                    throw Stop()
                }
            }
            try await hasEnded.wait()
        }
        #expect(ended.withLockedValue { $0 }?.code == .closedByPeer)
    }

    @Test func aClientConnectsAgain() async throws {
        try await withTestServer(on: webSocket) { connection in
            for try await message in connection.messages {
                try await connection.send(message)
                return
            }
        } _: { server in
            var configuration = ClientConfiguration()
            configuration.backoff.initialDelay = .milliseconds(1)
            configuration.backoff.maximumAttempts = nil
            try await withTestClient(to: server.boundEndpoint, configuration: configuration) { client in
                var messages = client.messages.makeAsyncIterator()
                var events = client.events.makeAsyncIterator()
                for number in 0..<5 {
                    // Each connection takes one message. A message to the previous connection is lost, and reported.
                    _ = try await events.reach(.ready)
                    try await client.send(TestMessage(number: number))
                    guard try await messages.next() != nil else { return }
                }
                let reasons = Set(client.history.map(\.transition.reason.code))
                #expect(reasons.contains(.closedByPeer) && !reasons.contains(.protocolViolation))
            }
        }
    }

    @Test func pingsOfTheLayerAreTheHeartbeat() async throws {
        let listener = try await RawSocket.listen()
        var configuration = ConnectionConfiguration()
        configuration.heartbeat.interval = .milliseconds(20)
        configuration.heartbeat.timeout = .milliseconds(20)
        // Long enough for a peer on a busy machine.
        configuration.connectTimeout = .seconds(100)
        let endpoint = try Endpoint("ws://127.0.0.1:\(listener.port)")
        async let error = connectionError { [configuration] in
            try await withTestConnection(to: endpoint, configuration: configuration) { connection in
                for try await _ in connection.messages {}
            }
        }
        let peer = try await listener.accept()
        try await peer.answerHandshake()
        // Three masked pings of eight bytes, and no answer.
        let pings = try await peer.read(3 * 14)
        #expect(pings.count == 3 * 14 && [0, 14, 28].allSatisfy { pings.dropFirst($0).starts(with: [0x89, 0x88]) })
        #expect(await error?.code == .heartbeatTimeout)
    }

    @Test func pongsAreSignsOfLife() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.heartbeat.interval = .milliseconds(5)
        configuration.connection.heartbeat.timeout = .seconds(60)
        configuration.connection.heartbeat.allowedMisses = 1
        configuration.connection.idleTimeout = .seconds(60)
        try await withTestServer(on: webSocket, configuration: configuration) { connection in
            for try await _ in connection.messages {}
        } _: { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            try await peer.requestHandshake()
            for _ in 0..<20 {
                // A ping of eight bytes, unmasked.
                let ping = try await peer.read(10)
                #expect(ping.prefix(2) == [0x89, 0x08])
                try await peer.write([0x8A, 0x88, 0, 0, 0, 0] + ping.dropFirst(2))
            }
            try await peer.write([0x88, 0x80, 0, 0, 0, 0])
            var rest = try await peer.read()
            // Skips pings that were on their way.
            while rest.first == 0x89 { rest.removeFirst(10) }
            #expect(rest == [0x88, 0x00])
        }
    }

    // MARK: -

    private let webSocket = Endpoint(
        address: .tcp(host: "127.0.0.1", port: 0),
        isEncrypted: false,
        webSocketTarget: "/"
    )

    private func withMessageServer<Result>(
        configuration: ServerConfiguration = ServerConfiguration(),
        _ body: nonisolated(nonsending) (Server) async throws -> Result
    ) async throws -> Result {
        try await withServer(
            listeningOn: webSocket,
            configuration: configuration,
            logger: TestLog().logger,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self,
            handler: { for try await message in $0.messages { try await $0.send(message) } },
            body
        )
    }

    private func withMessageConnection<Result>(
        to endpoint: Endpoint,
        configuration: ConnectionConfiguration = ConnectionConfiguration(),
        _ body: nonisolated(nonsending) (WebSocketConnection) async throws -> Result
    ) async throws -> Result {
        try await withConnection(
            to: endpoint,
            configuration: configuration,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self,
            body
        )
    }
}
