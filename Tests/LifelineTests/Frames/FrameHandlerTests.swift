import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import LifelineWellKnownTypes
import Logging
import NIOConcurrencyHelpers
import Testing

/// Handlers of frames on real sockets.
@Suite(.timeLimit(.minutes(2))) struct FrameHandlerTests {
    private static let sizes = [0, 1, 127, 128, 300, 70_000, 1 << 20]

    // MARK: Every kind of socket

    private func checkEcho(
        _ endpoint: Endpoint,
        _ configuration: ServerConfiguration,
        _ client: ConnectionConfiguration
    ) async throws {
        try await withTestFrameServer(on: endpoint, configuration: configuration) { _ in
            TestHandler.echo()
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: client) { connection in
                for size in Self.sizes {
                    let message = TestMessage((0..<size).map { UInt8(truncatingIfNeeded: $0) })
                    let reply = try await roundTrip(message, on: connection)
                    #expect(reply == message)
                }
                // Many frames in one read, and some across two reads.
                async let sending: Void = connection.send(contentsOf: (0..<5000).lazy.map { TestMessage(number: $0) })
                var next = 0
                for try await message in connection.messages {
                    if message.number != next { break }
                    next += 1
                    if next == 5000 { break }
                }
                #expect(next == 5000)
                try await sending
            }
        }
    }

    @Test func overTCP() async throws {
        try await checkEcho(anyPort, ServerConfiguration(), ConnectionConfiguration())
    }

    @Test func overAUnixSocket() async throws {
        try await withTemporaryPath {
            try await checkEcho(.unix(path: $0), ServerConfiguration(), ConnectionConfiguration())
        }
    }

    @Test func overTLS() async throws {
        let scene = try TLSScene()
        try await checkEcho(.tls(host: "127.0.0.1", port: 0), scene.server, scene.client)
    }

    @Test func overAWebSocket() async throws {
        let webSocket = Endpoint(
            address: .tcp(host: "127.0.0.1", port: 0),
            isEncrypted: false,
            webSocketTarget: "/"
        )
        try await checkEcho(webSocket, ServerConfiguration(), ConnectionConfiguration())
    }

    @Test func aClientsHandlerTakesTheReplies() async throws {
        let received = NIOLockedValueBox<[[UInt8]]>([])
        let end = FrameEnd()
        try await withTestFrameServer { _ in
            TestHandler.echo()
        } _: { server in
            try await withFrameConnection(to: server.boundEndpoint) { _ in
                TestHandler(end: end) { frames, _ in
                    for payload in frames { received.withLockedValue { $0.append(Array(payload)) } }
                }
            } _: { connection in
                #expect(try await connection.remoteEndpoint == server.boundEndpoint)
                try connection.send(bytes: [1, 2, 3])
                try connection.send(TestMessage(number: 7))
                try await until { received.withLockedValue { $0.count } == 2 }
            }
        }
        #expect(try received.withLockedValue { $0 } == [[1, 2, 3], TestMessage(number: 7).serializedBytes()])
        #expect(try await end.wait() == nil)
    }

    // MARK: Handlers

    @Test func theHandlerIsMadeBeforeTheFirstReadAndMayGreet() async throws {
        try await withTestFrameServer { connection in
            try? connection.send(bytes: [0xA1])
            return TestHandler.echo()
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            #expect(try await peer.read(2) == [1, 0xA1])
            try await peer.write([1, 0xA2])
            #expect(try await peer.read(2) == [1, 0xA2])
        }
    }

    /// A noncopyable handler with state across reads.
    private struct Counter: FrameHandler, ~Copyable {
        var count: UInt8 = 0

        mutating func received(_ frames: FrameRun, _ replies: inout FrameWriter) throws {
            for _ in frames {
                count += 1
                try withUnsafeBytes(of: &count) { try replies.write($0) }
            }
        }
    }

    @Test func aHandlerMayBeAValue() async throws {
        try await withTestFrameServer { _ in
            Counter()
        } _: { server in
            for _ in 0..<2 {
                let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
                try await peer.write([0, 0])
                #expect(try await peer.read(4) == [1, 1, 1, 2])
                try await peer.write([0])
                #expect(try await peer.read(2) == [1, 3], "one for each connection")
            }
        }
    }

    @Test func aHandlerThatHoldsItsConnectionIsReleased() async throws {
        final class Holder: FrameHandler {
            let connection: FrameConnection
            let released: Event
            init(_ connection: FrameConnection, _ released: Event) {
                self.connection = connection
                self.released = released
            }
            deinit { released.signal() }
            func received(_ frames: FrameRun, _ replies: inout FrameWriter) {}
        }
        let released = Event()
        try await withTestFrameServer {
            Holder($0, released)
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try peer.finish()
            #expect(try await peer.read().isEmpty)
            try await released.wait()
        }
    }

    @Test func anErrorOfAHandlerResetsItsConnection() async throws {
        struct Trouble: Error {}
        let (end, log) = (FrameEnd(), TestLog())
        try await withTestFrameServer(log: log) { _ in
            TestHandler(end: end) { _, _ in throw Trouble() }
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try await peer.write([0])
            let error = try await end.wait()
            #expect(error?.code == .closedLocally)
            #expect(error?.cause is Trouble)
            await #expect(throws: RawSocket.Failure.self) { try await peer.read() }
        }
        #expect(log.entries.contains { $0.level == .warning })
    }

    @Test func aPayloadThatIsNoMessageIsAViolation() async throws {
        let end = FrameEnd()
        try await withTestFrameServer { _ in
            TestHandler(end: end) { frames, _ in
                for payload in frames { _ = try TestMessage(serializedBytes: payload) }
            }
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try await peer.write([1, 0xFF])
            let error = try await end.wait()
            #expect(error?.code == .protocolViolation)
            #expect(error?.cause is MessageError)
        }
    }

    // MARK: Violations and limits

    @Test(
        arguments: [
            ([0x80, 0x80, 0x80, 0x80, 0x10], .malformedPrefix), ([0x0B], .frameTooLarge),
        ] as [([UInt8], FramingError.Code)]
    )
    func malformedFramesResetTheConnection(bytes: [UInt8], code: FramingError.Code) async throws {
        var configuration = ServerConfiguration()
        configuration.connection.maximumFrameLength = 10
        let end = FrameEnd()
        let received = NIOLockedValueBox(0)
        try await withTestFrameServer(configuration: configuration) { _ in
            TestHandler(end: end) { frames, _ in received.withLockedValue { $0 += frames.count } }
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try await peer.write([0, 1, 7] + bytes)
            let error = try await end.wait()
            #expect(error?.code == .protocolViolation)
            #expect((error?.cause as? FramingError)?.code == code)
            #expect(received.withLockedValue { $0 } == 2, "the frames before it were handled")
            await #expect(throws: RawSocket.Failure.self) { try await peer.read() }
        }
    }

    @Test func anEndInsideAFrameIsTold() async throws {
        let end = FrameEnd()
        try await withTestFrameServer { _ in
            TestHandler.echo(end: end)
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try await peer.write([3, 1])
            try peer.finish()
            #expect((try await end.wait()?.cause as? FramingError)?.code == .truncatedFrame)
        }
    }

    @Test func framesOverTheLimitAreNotSentAndTheConnectionGoesOn() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.maximumFrameLength = 10
        let refusals = NIOLockedValueBox<[ConnectionError.Code?]>([])
        try await withTestFrameServer(configuration: configuration) { connection in
            TestHandler { frames, replies in
                let payload = [UInt8](repeating: 1, count: 11)
                let bySend = #expect(throws: ConnectionError.self) { try connection.send(bytes: payload) }
                let byReply = #expect(throws: ConnectionError.self) {
                    try payload.withUnsafeBytes { try replies.write($0) }
                }
                let byMessage = #expect(throws: ConnectionError.self) { try replies.write(TestMessage(payload)) }
                refusals.withLockedValue { $0 += [bySend?.code, byReply?.code, byMessage?.code] }
                try replies.write(TestMessage(number: frames.count))
            }
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                let reply = try await roundTrip(TestMessage(), on: connection)
                #expect(reply?.number == 1)
            }
        }
        #expect(refusals.withLockedValue { $0 } == [.messageRefused, .messageRefused, .messageRefused])
    }
}
