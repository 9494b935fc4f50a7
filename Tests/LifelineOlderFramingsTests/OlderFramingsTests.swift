import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineOlderFramings
import LifelineTestSupport
import Testing

/// Connections and servers whose messages are frames of the older framings, over every kind of endpoint.
@Suite(.timeLimit(.minutes(1))) struct OlderFramingsTests {
    private let scene: TLSScene

    init() throws { scene = try TLSScene() }

    /// The timeout includes connecting and handshakes, so it is long enough for a busy machine.
    private let timeout = Duration.seconds(60)

    private static let endpoints = [
        "tcp://127.0.0.1:0", "tls://127.0.0.1:0", "ws://127.0.0.1:0/x", "wss://127.0.0.1:0/",
    ]

    /// A server that answers requests with their own contents and the status 3, and notifications with a push.
    private func withFixedHeaderServer<Result>(
        on endpoint: Endpoint,
        _ configure: (inout ServerConfiguration) -> Void = { _ in },
        _ body: nonisolated(nonsending) (Endpoint) async throws -> Result
    ) async throws -> Result {
        var configuration = try scene.server
        configure(&configuration)
        return try await withServer(
            listeningOn: endpoint,
            configuration: configuration,
            logger: TestLog().logger,
            receiving: FixedHeaderRequest.self,
            sending: FixedHeaderResponse.self,
            heartbeat: .fixedHeader
        ) { connection in
            for try await request in connection.messages {
                let isTold = request.isNotification
                try await connection.send(
                    isTold
                        ? .push(request.url, content: request.content)
                        : request.response(status: 3, content: request.content)
                )
            }
        } _: {
            try await body($0.boundEndpoint)
        }
    }

    @Test(arguments: endpoints) func requestsOverEveryTransport(endpoint: String) async throws {
        try await withFixedHeaderServer(on: Endpoint(endpoint)) { endpoint in
            var configuration = ClientConfiguration()
            configuration.connection = try scene.client
            try await withFixedHeaderClient(to: endpoint, configuration: configuration) { client in
                // More than one WebSocket message carries.
                for content in [[], [1, 2, 3], [UInt8](repeating: 5, count: 200_000)] {
                    let answer = try await client.request(url: 0x500, content: content, timeout: timeout)
                    #expect(answer.url == 0x500 && answer.status == 3 && answer.content == content)
                }
                try await client.notify(7, content: [9])
                for try await push in client.pushes {
                    #expect(try push == .push(7, content: [9]) && push.isPush)
                    break
                }
            }
        }
    }

    @Test(arguments: endpoints) func headLinesOverEveryTransport(endpoint: String) async throws {
        try await withServer(
            listeningOn: Endpoint(endpoint),
            configuration: try scene.server,
            logger: TestLog().logger,
            receiving: HeadLineMessage.self,
            sending: HeadLineMessage.self
        ) { connection in
            for try await message in connection.messages {
                try await connection.send(HeadLineMessage(type: "news", content: [1]))
                try await connection.send(message)
            }
        } _: { server in
            var configuration = ClientConfiguration()
            configuration.connection = try scene.client
            try await withHeadLineClient(to: server.boundEndpoint, configuration: configuration) { client in
                for content in [[], [UInt8](repeating: 5, count: 200_000)] {
                    let answer = try await client.request(type: "grüezi \"", content: content, timeout: timeout)
                    #expect(answer == HeadLineMessage(type: "grüezi \"", content: content))
                }
                for try await push in client.pushes {
                    #expect(push == HeadLineMessage(type: "news", content: [1]))
                    break
                }
            }
        }
    }

    @Test func aLateSubscriberBeginsWithTheNewest() async throws {
        try await withFixedHeaderServer(on: Endpoint("tcp://127.0.0.1:0"), { $0.tls = nil }) { endpoint in
            try await withFixedHeaderClient(to: endpoint) { client in
                _ = try await client.request(url: 0x500, timeout: timeout)
                var events = client.events.makeAsyncIterator()
                #expect(await events.next()?.transition.to == .ready)
            }
        }
        try await withHeadLineServer { endpoint in
            try await withHeadLineClient(to: endpoint) { client in
                _ = try await client.request(type: "q", content: [1], timeout: timeout)
                var events = client.events.makeAsyncIterator()
                #expect(await events.next()?.transition.to == .ready)
            }
        }
    }

    /// A server that sends back each message.
    private func withHeadLineServer(_ body: nonisolated(nonsending) (Endpoint) async throws -> Void) async throws {
        try await withServer(
            listeningOn: .tcp(host: "127.0.0.1", port: 0),
            logger: TestLog().logger,
            receiving: HeadLineMessage.self,
            sending: HeadLineMessage.self
        ) { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: {
            try await body($0.boundEndpoint)
        }
    }

    @Test func headLinesOverAUnixSocket() async throws {
        try await withTemporaryPath("lines.sock") { path in
            try await withServer(
                listeningOn: .unix(path: path),
                logger: TestLog().logger,
                receiving: HeadLineMessage.self,
                sending: HeadLineMessage.self
            ) { connection in
                for try await message in connection.messages { try await connection.send(message) }
            } _: { server in
                try await withHeadLineClient(to: server.boundEndpoint) { client in
                    let answer = try await client.request(type: "q", content: [1])
                    #expect(answer.content == [1])
                }
            }
        }
    }

    @Test func throughAProxy() async throws {
        let listener = try await RawSocket.listen()
        var configuration = ClientConfiguration()
        configuration.connection.proxy = .http(host: "127.0.0.1", port: UInt16(listener.port))
        let endpoint = Endpoint.tcp(host: "device.invalid", port: 7000)
        try await withFixedHeaderClient(to: endpoint, configuration: configuration) { client in
            async let answer = client.request(url: 0x500, content: [1])
            let proxy = try await listener.accept()
            let connect = Array("CONNECT device.invalid:7000 HTTP/1.1\r\nHost: device.invalid:7000\r\n\r\n".utf8)
            #expect(try await proxy.read(connect.count) == connect)
            // A push arrives with the proxy's last byte.
            let push: [UInt8] = [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0]
            try await proxy.write(Array("HTTP/1.1 200 OK\r\n\r\n".utf8) + push)
            #expect(try await proxy.read(13) == [0, 0, 5, 0, 0, 0, 4, 1, 0, 0, 0, 1, 1])
            try await proxy.write([0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 1, 2])
            #expect(try await answer.content == [2])
            for try await push in client.pushes {
                #expect(push.url == 7)
                break
            }
            try proxy.finish()
        }
    }

    // MARK: Types

    @Test func typesThatNoFramingHas() async throws {
        func refusal<Received: DelimitedMessage, Sent: DelimitedMessage>(
            _ received: Received.Type,
            _ sent: Sent.Type
        ) async -> [ConnectionError.Code?] {
            let client = await connectionError {
                let endpoint = Endpoint.tcp(host: "127.0.0.1", port: 1)
                try await withConnection(to: endpoint, receiving: received, sending: sent) { _ in }
            }
            let server = await connectionError {
                try await withServer(listeningOn: anyPort, receiving: received, sending: sent) { _ in
                } _: { _ in
                }
            }
            return [client?.code, server?.code]
        }
        let refused: [ConnectionError.Code?] = [.invalidConfiguration, .invalidConfiguration]
        #expect(await refusal(FixedHeaderRequest.self, FixedHeaderRequest.self) == refused)
        #expect(await refusal(FixedHeaderResponse.self, FixedHeaderResponse.self) == refused)
        #expect(await refusal(FixedHeaderRequest.self, RawMessage.self) == refused)
        #expect(await refusal(RawMessage.self, FixedHeaderRequest.self) == refused)
        #expect(await refusal(HeadLineMessage.self, RawMessage.self) == refused)
        #expect(await refusal(WebSocketMessage.self, HeadLineMessage.self) == refused)
        #expect(await refusal(HeadLineMessage.self, FixedHeaderRequest.self) == refused)
    }

    @Test func overAUnixSocket() async throws {
        try await withTemporaryPath("older.sock") { path in
            try await withFixedHeaderServer(on: .unix(path: path)) { endpoint in
                try await withFixedHeaderClient(to: endpoint) { client in
                    let answer = try await client.request(url: 0x500, content: [1])
                    #expect(answer.content == [1])
                }
            }
        }
    }

    /// Golden bytes, without the client's help.
    @Test func aServerOnTheWire() async throws {
        try await withFixedHeaderServer(on: anyPort) { endpoint in
            let peer = try await RawSocket.connect(toPort: endpoint.port ?? 0)
            // The ping comes first: its answer does not wait for the handler, and the handler's answers do not wait for
            // it.
            try await peer.write([0, 0, 0, 1, 0, 0, 4, 1, 0, 0, 0, 0])
            #expect(try await peer.read(16) == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0])
            try await peer.write(
                // A client with its own numbering may use a serial that equals the url.
                [0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 0, 0]
                    + [0, 0, 5, 0, 0, 0, 4, 2, 0, 0, 0, 1, 0xAA]
                    + [0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 0]
            )
            let other: [UInt8] = [0, 0, 5, 0, 0, 0, 0, 3, 0, 0, 5, 0, 0, 0, 0, 0]
            let answer: [UInt8] = [0, 0, 5, 0, 0, 0, 0, 3, 0, 0, 4, 2, 0, 0, 0, 1, 0xAA]
            let push: [UInt8] = [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0]
            #expect(try await peer.read(49) == other + answer + push)
            try peer.finish()
            #expect(try await peer.read().isEmpty)
        }
    }

    @Test(arguments: [2, 3]) func theLimitIsThatOfTheContent(limit: Int) async throws {
        var configuration = ConnectionConfiguration()
        configuration.maximumFrameLength = limit
        try await withFixedHeaderServer(on: anyPort) {
            $0.connection.maximumFrameLength = 3
        } _: { endpoint in
            let error = await connectionError {
                try await withConnection(
                    to: endpoint,
                    configuration: configuration,
                    receiving: FixedHeaderResponse.self,
                    sending: FixedHeaderRequest.self
                ) { connection in
                    try await connection.send(FixedHeaderRequest(url: 0x500, serial: 0x401, content: [1, 2, 3]))
                    for try await answer in connection.messages {
                        #expect(answer.content == [1, 2, 3])
                        break
                    }
                }
            }
            #expect(error?.code == (limit == 3 ? nil : .messageRefused))
            #expect((error?.cause as? FramingError)?.code == (limit == 3 ? nil : .payloadTooLarge))
        }
    }

    /// The limit counts only the content, in both directions, however long the type is.
    @Test(arguments: ["", String(repeating: "x", count: 4000)]) func theLimitOfHeadLines(type: String) async throws {
        let listener = try await RawSocket.listen()
        var configuration = ClientConfiguration()
        configuration.connection.maximumFrameLength = 3
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: UInt16(listener.port))
        try await withHeadLineClient(to: endpoint, configuration: configuration) { client in
            let peer = try await listener.accept()
            let frame = Array("{\"type\":\"\(type)\",\"size\":3}\r\nabc".utf8)
            for _ in 0..<2 {
                async let answer = client.request(type: type, content: Array("abc".utf8))
                #expect(try await peer.read(frame.count) == frame)
                try await peer.write(frame)
                #expect(try await answer.content == Array("abc".utf8))
                let error = await #expect(throws: RequestError.self) {
                    try await client.request(type: type, content: Array("abcd".utf8))
                }
                let refusal = (error?.cause as? ConnectionError)?.cause as? FramingError
                #expect(refusal?.code == .payloadTooLarge)
                #expect(refusal?.message.contains("4 bytes is over the limit of 3") == true)
            }
            async let lost = client.request(type: type)
            _ = try await peer.read(frame.count - 3)
            try await peer.write(Array("{\"type\":\"\(type)\",\"size\":4}\r\nabcd".utf8))
            do {
                _ = try await lost
                Issue.record("over the limit")
            } catch {
                let violation = ((error as? RequestError)?.cause as? ConnectionError)?.cause as? FramingError
                #expect(violation?.code == .frameTooLarge)
                #expect(violation?.message.contains("4 bytes, over the limit of 3") == true)
            }
        }
    }

    @Test(arguments: [(8, 0x401), (0x500, 0x400), (0x500, 0x500), (0x500, 0xFFFF_FFFF)] as [(UInt32, UInt32)])
    func numbersThatSayNothing(url: UInt32, serial: UInt32) async throws {
        try await withFixedHeaderServer(on: anyPort) { endpoint in
            try await withConnection(
                to: endpoint,
                receiving: FixedHeaderResponse.self,
                sending: FixedHeaderRequest.self
            ) { connection in
                let message = FixedHeaderRequest(url: url, serial: serial)
                let error = await connectionError { try await connection.send(message) }
                if url == 8 {
                    #expect(error == nil, "requests may have any url but the heartbeat's")
                } else {
                    #expect(error?.code == .messageRefused)
                    #expect((error?.cause as? FramingError)?.code == .invalidHead)
                }
            }
        }
    }

    @Test func aTypeThatDoesNotFit() async throws {
        let listener = try await RawSocket.listen()
        try await withHeadLineClient(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { client in
            let peer = try await listener.accept()
            let type = String(repeating: "x", count: 4096)
            let error = await #expect(throws: RequestError.self) { try await client.request(type: type) }
            #expect(error?.code == .notSent)
            #expect((error?.cause as? ConnectionError)?.code == .messageRefused)
            try peer.finish()
        }
    }
}
