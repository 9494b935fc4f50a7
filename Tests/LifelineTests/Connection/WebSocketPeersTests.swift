import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineRuntime
import LifelineTestSupport
import LifelineTransport
import Logging
import NIOConcurrencyHelpers
import Testing

/// WebSocket with raw peers that are slow, hostile, or end in the wrong place.
@Suite(.timeLimit(.minutes(2))) struct WebSocketPeersTests {
    private let webSocket = Endpoint(
        address: .tcp(host: "127.0.0.1", port: 0),
        isEncrypted: false,
        webSocketTarget: "/"
    )

    // MARK: Servers that a client meets

    /// The Close may arrive with the answer, before the program has the connection.
    @Test func aServerThatClosesAtOnce() async throws {
        for _ in 0..<50 {
            let messages = try await client { peer in
                try await peer.answerHandshake(early: [0x88, 0x02, 0x03, 0xE8])
                #expect(try await peer.read(8).prefix(2) == [0x88, 0x82], "the answer, masked")
                try peer.finish()
            } _: { connection in
                try await count(of: connection)
            }
            #expect(messages == 0)
        }
    }

    @Test func framesThatComeWithTheAnswer() async throws {
        let frame = try TestMessage(number: 7).delimitedBytes
        let number = try await client { peer in
            try await peer.answerHandshake(early: [0x82, UInt8(frame.count)] + frame)
            _ = try await peer.read(8)
            try await peer.write([0x88, 0x02, 0x03, 0xE8])
        } _: { connection in
            for try await message in connection.messages { return message.number }
            return nil
        }
        #expect(number == 7)
    }

    @Test(
        arguments: [
            ("HTTP/1.1 302 Found\r\nLocation: ws://elsewhere/\r\nContent-Length: 0\r\n\r\n", 302, "ws://elsewhere/"),
            ("HTTP/1.1 503 Busy\r\nContent-Length: 1000000\r\n\r\nand so on", 503, nil),
            ("HTTP/1.1 200 OK\r\n\r\n<html>", 200, nil),
            ("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 403 Forbidden\r\n\r\n", 403, nil),
        ] as [(String, Int, String?)]
    )
    func refusals(answer: String, status: Int, location: String?) async throws {
        let error = await connectionError {
            try await client { peer in
                _ = try await peer.readHead()
                try await peer.write(Array(answer.utf8))
                _ = try? await peer.read()
            } _: { connection in
                try await count(of: connection)
            }
        }
        #expect(error?.code == .webSocketRefused)
        let refusal = try #require(error?.cause as? WebSocketRefusal)
        #expect(refusal.status == status && refusal.location == location)
    }

    @Test(
        arguments: [
            "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2.0 101 X\r\n\r\n", "HTTP/1.1 101 X\r\n\r\n",
            "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
            "HTTP/1.1 101 X\r\nA: \(String(repeating: "a", count: 20_000))\r\n\r\n",
            "HTTP/1.1 101 X\r\n\(String(repeating: "a: b\r\n", count: 101))\r\n",
            "HTTP/1.1 101 X\r\n\(String(repeating: "a: \(String(repeating: "b", count: 1000))\r\n", count: 40))\r\n",
        ]
    )
    func answersThatAreNone(answer: String) async throws {
        let error = await connectionError {
            try await client { peer in
                _ = try await peer.readHead()
                try? await peer.write(Array(answer.utf8))
                _ = try? await peer.read()
            } _: { connection in
                try await count(of: connection)
            }
        }
        #expect(error?.code == .protocolViolation)
    }

    @Test(arguments: [0, 1, 20]) func aServerThatEndsInsideTheHandshake(byteCount: Int) async throws {
        let error = await connectionError {
            try await client { peer in
                _ = try await peer.readHead()
                try await peer.write(Array("HTTP/1.1 101 Switching Protocols\r\n".utf8.prefix(byteCount)))
                try peer.finish()
                _ = try? await peer.read()
            } _: { connection in
                try await count(of: connection)
            }
        }
        #expect(error?.code == .connectFailed)
    }

    @Test func anEndWithoutACloseIsAnError() async throws {
        let error = await connectionError {
            try await client { peer in
                try await peer.answerHandshake(early: [0x82, 0x01, 0x00])
                try peer.finish()
                _ = try? await peer.read()
            } _: { connection in
                try await count(of: connection)
            }
        }
        #expect(error?.code == .closedByPeer)
        #expect(error?.message.contains("before the WebSocket was closed") == true)
    }

    @Test func aCloseWithAnErrorIsTyped() async throws {
        let error = await connectionError {
            try await client { peer in
                try await peer.answerHandshake(early: [0x88, 0x06, 0x0F, 0xA1] + Array("Gone".utf8))
                #expect(try await peer.read(8).prefix(2) == [0x88, 0x82])
            } _: { connection in
                try await count(of: connection)
            }
        }
        #expect(error?.code == .webSocketClosed)
        #expect(
            error?.cause as? WebSocketClosure == WebSocketClosure(WebSocketCloseCode(rawValue: 4001), reason: "Gone")
        )
    }

    @Test func aServerThatDoesNotHangUpIsLeft() async throws {
        let listener = try await RawSocket.listen()
        let endpoint = try Endpoint("ws://127.0.0.1:\(listener.port)")
        async let peer = {
            let peer = try await listener.accept()
            try await peer.answerHandshake()
            #expect(try await peer.read(8).prefix(2) == [0x88, 0x82])
            try await peer.write([0x88, 0x02, 0x03, 0xE8])
            return peer
        }()
        try await withTestConnection(to: endpoint, configuration: .patient) { _ in }
        _ = try await peer
    }

    // MARK: Clients that a server meets

    @Test func byteByByte() async throws {
        try await withTestServer(on: webSocket, configuration: .patient, handler: echo) { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            let frame = try TestMessage(number: 7).delimitedBytes
            let mask: [UInt8] = [1, 2, 3, 4]
            let masked = frame.enumerated().map { $1 ^ mask[$0 % 4] }
            let all = Array(RawSocket.request.utf8) + [0x82, 0x80 | UInt8(frame.count)] + mask + masked
            for byte in all { try await peer.write([byte]) }
            #expect(try await peer.readHead().hasPrefix("HTTP/1.1 101 "))
            #expect(try await peer.read(2 + frame.count) == [0x82, UInt8(frame.count)] + frame)
        }
    }

    @Test(
        arguments: [
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "426"),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n", "405"),
            ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}", "400"),
            ("GET /\(String(repeating: "a", count: 9000)) HTTP/1.1\r\n", "431"),
            ("GET / HTTP/1.1\r\n\(String(repeating: "a: b\r\n", count: 101))", "431"),
            (
                "GET / HTTP/1.1\r\n\(String(repeating: "a: \(String(repeating: "b", count: 1000))\r\n", count: 40))",
                "431"
            ),
            ("GET / HTTP/1.0\r\n\r\n", "400"), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", "400"),
        ]
    )
    func requestsThatAreNone(request: String, status: String) async throws {
        var configuration = ServerConfiguration()
        configuration.maximumConnections = 1
        configuration.connection = .patient
        try await withTestServer(on: webSocket, configuration: configuration, handler: echo) { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            try await peer.write(Array(request.utf8))
            let answer = String(decoding: try await peer.read(), as: UTF8.self)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
            #expect(answer.lowercased().contains("content-length: 0\r\n") && answer.hasSuffix("\r\n\r\n"))
            // The connection may have been closed meanwhile.
            try? peer.finish()
            // Its slot is free for another connection.
            try await withTestConnection(to: server.boundEndpoint, configuration: .patient) { connection in
                let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                #expect(reply?.number == 1)
            }
        }
    }

    @Test func aClientThatDoesNotAskIsNotWaitedForForever() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.connectTimeout = .milliseconds(50)
        configuration.maximumConnections = 1
        let log = TestLog()
        try await withTestServer(on: webSocket, configuration: configuration, log: log, handler: echo) { server in
            for start in ["", "GET / HTT", RawSocket.request.dropLast(2)] as [Substring] {
                let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
                try await peer.write(Array(start.utf8))
                // A reset, if the server has not read the bytes.
                let answer = try? await peer.read()
                #expect(answer?.isEmpty != false)
            }
            // The log line follows the end that the peer sees.
            try await until { log.entries.count { $0.level == .info && $0.text.contains("connectTimeout") } >= 3 }
        }
        #expect(log.entries.count { $0.level == .info && $0.text.contains("connectTimeout") } == 3)
    }

    /// The peer goes away, by an end or a reset, or sends more than may wait for the answer.
    @Test(arguments: ["end", "reset", "bytes"]) func authorizeIsCancelledWhenThePeerIsGone(how: String) async throws {
        var configuration = ServerConfiguration.patient
        let (asked, cancelled) = (Latch<Void>(), Latch<Void>())
        configuration.webSocket.authorize = { _ in
            asked.open(with: ())
            await withTaskCancellationHandler {
                await cancelled.waitUninterrupted()
            } onCancel: {
                cancelled.open(with: ())
            }
            return true
        }
        try await withTestServer(on: webSocket, configuration: configuration, handler: echo) { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            let request = RawSocket.request.dropLast() + "Authorization: Basic YTpi\r\n\r\n"
            try await peer.write(Array(request.utf8))
            try await asked.wait()
            switch how {
            case "end": try peer.finish()
            case "reset": try peer.reset()
            // The server may close the connection before everything is sent.
            default: try? await peer.write([UInt8](repeating: 0, count: 1 << 20))
            }
            try await cancelled.wait()
        }
    }

    /// Bytes that arrive during `authorize` belong to the open WebSocket.
    @Test func framesThatArriveDuringAuthorization() async throws {
        var configuration = ServerConfiguration.patient
        let (asked, answered) = (Latch<Void>(), Latch<Void>())
        configuration.webSocket.authorize = { _ in
            asked.open(with: ())
            try? await answered.wait()
            return true
        }
        try await withTestServer(on: webSocket, configuration: configuration, handler: echo) { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            let request = RawSocket.request.dropLast() + "Authorization: Basic YTpi\r\n\r\n"
            let frame = try TestMessage(number: 7).delimitedBytes
            let message = [0x82, 0x80 | UInt8(frame.count), 0, 0, 0, 0] + frame
            try await peer.write(Array(request.utf8) + message.prefix(5))
            try await asked.wait()
            try await peer.write(Array(message.dropFirst(5)))
            answered.open(with: ())
            #expect(try await peer.readHead().hasPrefix("HTTP/1.1 101 "))
            #expect(try await peer.read(2 + frame.count) == [0x82, UInt8(frame.count)] + frame)
        }
    }

    @Test(
        arguments: [
            ([0x82, 0x00], 1002), ([0xC2, 0x80, 0, 0, 0, 0], 1002), ([0x83, 0x80, 0, 0, 0, 0], 1002),
            ([0x89, 0xFE, 0, 126], 1002), ([0x09, 0x80], 1002), ([0x81, 0x80, 0, 0, 0, 0], 1003),
            ([0x82, 0xFF, 0, 0, 0, 0, 1, 0, 0, 0], 1009), ([0x82, 0xFF, 0x7F, 0, 0, 0, 0, 0, 0, 0], 1009),
            ([0x82, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0], 1002), ([0x82, 0xFE, 0, 0x7D], 1002),
            ([0x88, 0x81, 0, 0, 0, 0, 3], 1002), ([0x88, 0x83, 0, 0, 0, 0, 3, 0xE8, 0xFF], 1007),
        ] as [([UInt8], Int)]
    )
    func violationsAreAnsweredWithTheirCode(bytes: [UInt8], code: Int) async throws {
        let log = TestLog()
        try await withTestServer(on: webSocket, configuration: .patient, log: log, handler: echo) { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            // The bytes that follow do not keep the peer from reading the answer.
            try await peer.requestHandshake(early: bytes + [UInt8](repeating: 0, count: 50_000))
            let answer = try await peer.read()
            #expect(answer.first == 0x88)
            #expect(Int(answer[2]) << 8 | Int(answer[3]) == code)
            #expect(answer.count == 2 + Int(answer[1]), "and nothing after it")
            // The connection may have been closed meanwhile.
            try? peer.finish()
        }
        #expect(log.entries.contains { $0.level == .warning && $0.text.contains("protocolViolation") })
    }

    @Test func pingsAreAnsweredBetweenFragments() async throws {
        try await withTestServer(on: webSocket, configuration: .patient, handler: echo) { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            try await peer.requestHandshake()
            let frame = try TestMessage(number: 77).delimitedBytes
            let (head, tail) = (Array(frame.prefix(2)), Array(frame.dropFirst(2)))
            try await peer.write(
                [0x02, 0x82, 0, 0, 0, 0] + head + [0x89, 0x82, 0, 0, 0, 0, 0x68, 0x69] + [
                    0x80, 0x80 | UInt8(tail.count), 0, 0, 0, 0,
                ] + tail
            )
            #expect(try await peer.read(4) == [0x8A, 0x02, 0x68, 0x69])
            #expect(try await peer.read(2 + frame.count) == [0x82, UInt8(frame.count)] + frame)
            try await peer.write([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8])
            #expect(try await peer.read() == [0x88, 0x02, 0x03, 0xE8])
        }
    }

    /// After the client's Close no message is accepted. All accepted ones arrive before the answer, or are reported
    /// lost.
    @Test func messagesAcceptedBeforeThePeersCloseAreNotLostSilently() async throws {
        let log = TestLog()
        let accepted = NIOLockedValueBox(0)
        let message = TestMessage([UInt8](repeating: 1, count: 200_000))
        let bytes = try await withTestServer(on: webSocket, configuration: .patient, log: log) { connection in
            // More than the kernels' buffers hold, to a client that closes instead of reading.
            let error = await connectionError {
                while true {
                    try await connection.send(message)
                    accepted.withLockedValue { $0 += 1 }
                }
            }
            #expect(error?.code == .closedByPeer)
        } _: { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            try await peer.requestHandshake()
            try await peer.write([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8])
            return try await peer.read()
        }
        #expect(bytes.suffix(4) == [0x88, 0x02, 0x03, 0xE8])
        let frameLength = try 10 + message.delimitedBytes.count
        let isTold = log.entries.contains { $0.level == .warning && $0.text.contains("closedByPeer") }
        #expect((bytes.count - 4) / frameLength == accepted.withLockedValue { $0 } || isTold)
    }

    // MARK: -

    /// Runs a client's connection to a raw server.
    private func client<Result: Sendable>(
        configuration: ConnectionConfiguration = .patient,
        _ server: @escaping @Sendable (RawSocket) async throws -> Void,
        _ body: nonisolated(nonsending) (TestConnection) async throws -> Result
    ) async throws -> Result {
        let listener = try await RawSocket.listen()
        async let serving: Void = server(listener.accept())
        let result = try await withTestConnection(
            to: Endpoint("ws://127.0.0.1:\(listener.port)"),
            configuration: configuration,
            body
        )
        try await serving
        return result
    }

    private func count(of connection: TestConnection) async throws -> Int {
        var count = 0
        for try await _ in connection.messages { count += 1 }
        return count
    }
}

extension ConnectionConfiguration {
    /// The peer has enough time, even on a slow machine.
    fileprivate static var patient: ConnectionConfiguration {
        var configuration = ConnectionConfiguration()
        configuration.connectTimeout = .seconds(100)
        configuration.closeTimeout = .seconds(100)
        return configuration
    }
}

extension ServerConfiguration {
    fileprivate static var patient: ServerConfiguration {
        var configuration = ServerConfiguration()
        configuration.connection = .patient
        return configuration
    }
}
