import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import Logging
import NIOConcurrencyHelpers
import Testing

/// WebSockets over TLS, and both through a proxy: the layers work together.
@Suite(.timeLimit(.minutes(2))) struct SecureWebSocketTests {
    private typealias WebSocketConnection = Connection<WebSocketMessage, WebSocketMessage>

    private let scene: TLSScene

    init() throws { scene = try TLSScene() }

    private let wss = Endpoint(address: .tcp(host: "127.0.0.1", port: 0), isEncrypted: true, webSocketTarget: "/")

    private func withSecureServer<Result>(
        of scene: TLSScene? = nil,
        log: TestLog = TestLog(),
        handler: @escaping @Sendable (TestConnection) async throws -> Void = echo,
        _ body: nonisolated(nonsending) (Server) async throws -> Result
    ) async throws -> Result {
        let configuration = try (scene ?? self.scene).server
        return try await withTestServer(on: wss, configuration: configuration, log: log, handler: handler, body)
    }

    // MARK: Messages

    @Test func messagesGoToAndFro() async throws {
        try await withSecureServer { server in
            #expect(try await server.boundEndpoint.description.hasPrefix("wss://127.0.0.1:"))
            try await scene.withConnection(to: server.boundEndpoint) { connection in
                #expect(try await connection.remoteEndpoint == server.boundEndpoint)
                #expect(connection.webSocket?.target == "/")
                for size in [0, 1, 16_383, 16_384, 65_536, 70_000, 3 << 20] {
                    let message = TestMessage((0..<size).map { UInt8(truncatingIfNeeded: $0) })
                    let reply = try await roundTrip(message, on: connection)
                    #expect(reply == message)
                }
            }
        }
    }

    @Test func messagesOfTheUsersOwn() async throws {
        let sent: [WebSocketMessage] = [.text("Grüezi 🎉"), .text(""), .binary([]), .binary([0, 255])]
        try await withServer(
            listeningOn: wss,
            configuration: try scene.server,
            logger: TestLog().logger,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self
        ) { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: { server in
            let echoed = try await withConnection(
                to: server.boundEndpoint,
                configuration: try scene.client,
                receiving: WebSocketMessage.self,
                sending: WebSocketMessage.self
            ) { connection in
                for message in sent { try await connection.send(message) }
                var echoed: [WebSocketMessage] = []
                for try await message in connection.messages {
                    echoed.append(message)
                    if echoed.count == sent.count { break }
                }
                return echoed
            }
            #expect(echoed == sent)
        }
    }

    @Test func theHandshakesComeInSmallPieces() async throws {
        var server = try scene.server
        server.connection.connectTimeout = .seconds(100)
        try await withTestServer(on: wss, configuration: server, handler: echo) { server in
            let relay = try await Relay(to: server.boundEndpoint, chunk: 5)
            async let relaying: Void = relay.run { _, _ in }
            try await scene.withConnection(to: relay.webSocketEndpoint) {
                $0.connectTimeout = .seconds(100)
            } _: { connection in
                let reply = try await roundTrip(TestMessage(number: 7), on: connection)
                #expect(reply?.number == 7)
            }
            try await relaying
        }
    }

    // MARK: Refusals

    @Test func eachLayerRefusesForItself() async throws {
        let log = TestLog()
        var configuration = try scene.server
        configuration.maximumConnections = 1
        configuration.webSocket.authorize = { $0.password == "right" }
        try await withTestServer(on: wss, configuration: configuration, log: log, handler: echo) { server in
            let stranger = try await scene.refusal(of: server.boundEndpoint) { $0.tls.trust = .system }
            #expect(stranger?.code == .certificateUntrusted)
            let wrong = try await scene.refusal(of: server.boundEndpoint) {
                $0.webSocket.credentials = WebSocketCredentials(user: "ada", password: "wrong")
            }
            #expect(wrong?.code == .webSocketRefused)
            #expect((wrong?.cause as? WebSocketRefusal)?.status == 401)
            // The slot of each refused connection was released.
            let right = try await scene.refusal(of: server.boundEndpoint) {
                $0.webSocket.credentials = WebSocketCredentials(user: "ada", password: "right")
            }
            #expect(right == nil)
        }
        #expect(log.entries.count { $0.level == .info } == 2, "\(log.entries)")
    }

    @Test func theWrongSchemeHasAClearError() async throws {
        try await withSecureServer { server in
            let port = UInt16(try #require(await server.boundEndpoint.port))
            // The server sees bytes that are not TLS, and closes.
            let plain = Endpoint(
                address: .tcp(host: "127.0.0.1", port: Int(port)),
                isEncrypted: false,
                webSocketTarget: "/"
            )
            #expect(await scene.refusal(of: plain)?.code == .connectFailed)
            // Frames are not an HTTP request.
            let refusal = await scene.refusal(of: .tls(host: "127.0.0.1", port: port))
            #expect(refusal?.code == .protocolViolation, "nor is HTTP's answer a frame")
        }
    }

    // MARK: Ends

    @Test func everythingAcceptedArrivesBeforeTheEnd() async throws {
        let received = NIOLockedValueBox(0)
        let log = TestLog()
        try await withSecureServer(log: log) { connection in
            for try await message in connection.messages { received.withLockedValue { $0 += message.payload.count } }
        } _: { server in
            try await scene.withConnection(to: server.boundEndpoint) {
                // The peer has time to read, even on a slow machine.
                $0.closeTimeout = .seconds(100)
            } _: { connection in
                for _ in 0..<100 { try await connection.send(TestMessage([UInt8](repeating: 1, count: 10_000))) }
            }
        }
        #expect(received.withLockedValue { $0 } == 1_000_000)
        #expect(log.entries.isEmpty, "\(log.entries)")
    }

    /// No layer waits for an end that another layer has already answered. Such a wait would last for 5 s or for hours,
    /// longer than the suite's time limit.
    @Test(arguments: [true, false]) func endsInOrderDoNotWait(byServer: Bool) async throws {
        let log = TestLog()
        var configuration = try scene.server
        configuration.connection.closeTimeout = .seconds(3600)
        try await withTestServer(on: wss, configuration: configuration, log: log) { connection in
            try await connection.send(TestMessage(number: 1))
            if !byServer { for try await _ in connection.messages {} }
        } _: { server in
            for _ in 0..<40 {
                try await scene.withConnection(to: server.boundEndpoint) {
                    $0.closeTimeout = .seconds(3600)
                } _: { connection in
                    var messages = connection.messages.makeAsyncIterator()
                    #expect(try await messages.next()?.number == 1)
                    if byServer {
                        let end = try await messages.next()
                        #expect(end == nil)
                    }
                }
            }
        }
        #expect(log.entries.isEmpty, "\(log.entries)")
    }

    @Test func anAbortIsNoRegularEnd() async throws {
        struct Stop: Error {}
        let ended = NIOLockedValueBox<ConnectionError?>(nil)
        let hasEnded = Event()
        try await withSecureServer { connection in
            let error = await connectionError { for try await _ in connection.messages {} }
            ended.withLockedValue { $0 = error }
            hasEnded.signal()
        } _: { server in
            await #expect(throws: Stop.self) {
                try await scene.withConnection(to: server.boundEndpoint) { connection in
                    #expect(connection.webSocket != nil)
                    throw Stop()
                }
            }
            try await hasEnded.wait()
        }
        #expect(ended.withLockedValue { $0 }?.code == .closedByPeer)
    }

    @Test func aCutBelowTLSIsNoRegularEnd() async throws {
        try await withSecureServer { server in
            let relay = try await Relay(to: server.boundEndpoint)
            let cut = Event()
            async let relaying: Void = relay.run { client, _ in
                try await cut.wait()
                try client.finish()
            }
            let error = await connectionError {
                try await scene.withConnection(to: relay.webSocketEndpoint) { connection in
                    let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                    #expect(reply?.number == 1)
                    cut.signal()
                    for try await _ in connection.messages {}
                }
            }
            #expect(error?.code == .truncated || error?.code == .closedByPeer, "\(String(describing: error))")
            try await relaying
        }
    }

    @Test func aViolationIsToldToThePeer() async throws {
        let log = TestLog()
        try await withSecureServer(log: log) { server in
            let error = await connectionError {
                try await withConnection(
                    to: server.boundEndpoint,
                    configuration: try scene.client,
                    receiving: WebSocketMessage.self,
                    sending: WebSocketMessage.self
                ) { connection in
                    try await connection.send(.text("no frame"))
                    for try await _ in connection.messages {}
                }
            }
            #expect((error?.cause as? WebSocketClosure)?.code == .unsupportedData)
        }
        #expect(log.entries.contains { $0.level == .warning && $0.text.contains("1003") })
    }

    /// The receiver of the frames finds this error, above all layers.
    @Test func thePeerLearnsThatItsMessageIsMalformed() async throws {
        try await withSecureServer { server in
            let error = await connectionError {
                try await withConnection(
                    to: server.boundEndpoint,
                    configuration: try scene.client,
                    receiving: WebSocketMessage.self,
                    sending: WebSocketMessage.self
                ) { connection in
                    try await connection.send(.binary([UInt8](repeating: 0xFF, count: 10)))
                    for try await _ in connection.messages {}
                }
            }
            #expect((error?.cause as? WebSocketClosure)?.code == .invalidPayload)
        }
    }

    // MARK: All layers

    /// The proxy alone knows the host; the certificate is the host's.
    @Test func throughAProxy() async throws {
        let scene = try TLSScene { ($0.names, $0.addresses) = (["chat.invalid"], []) }
        try await withSecureServer(of: scene) { server in
            let relay = try await Relay(to: server.boundEndpoint, isProxy: true)
            async let relaying = relay.run { _, _ in }
            let endpoint = try Endpoint("wss://chat.invalid:7443/")
            try await scene.withConnection(to: endpoint) {
                $0.proxy = .http(host: "127.0.0.1", port: UInt16(relay.listener.port))
            } _: { connection in
                #expect(connection.remoteEndpoint == endpoint)
                #expect(connection.webSocket != nil)
                for number in 0..<10 {
                    let reply = try await roundTrip(TestMessage(number: number), on: connection)
                    #expect(reply?.number == number)
                }
            }
            try await relaying
        }
    }

    @Test func aClientConnectsAgain() async throws {
        try await withSecureServer { server in
            let relay = try await Relay(to: server.boundEndpoint, isProxy: true)
            let cuts = [Event(), Event()]
            async let relaying: Void = {
                for cut in cuts {
                    try await relay.run { client, server in
                        try await cut.wait()
                        try client.reset()
                        try server.reset()
                    }
                }
                try await relay.run { _, _ in }
            }()
            var configuration = ClientConfiguration()
            configuration.connection = try scene.client
            configuration.connection.proxy = .http(host: "127.0.0.1", port: UInt16(relay.listener.port))
            configuration.backoff.initialDelay = .milliseconds(1)
            configuration.watchesNetwork = false
            try await withTestClient(to: server.boundEndpoint, configuration: configuration) { client in
                var events = client.events.makeAsyncIterator()
                var messages = client.messages.makeAsyncIterator()
                for number in 0...cuts.count {
                    _ = try await events.reach(.ready)
                    try await client.send(TestMessage(number: number))
                    #expect(try await messages.next()?.number == number)
                    if number < cuts.count { cuts[number].signal() }
                }
            }
            try await relaying
        }
    }
}

extension Relay {
    fileprivate var webSocketEndpoint: Endpoint {
        Endpoint(
            address: .tcp(host: "127.0.0.1", port: listener.port),
            isEncrypted: true,
            webSocketTarget: "/"
        )
    }
}
