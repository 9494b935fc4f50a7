import LifelineCore
import LifelineTestSupport
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOWebSocket
import Testing

@testable import LifelineTransport

/// The layer with its handshake, byte by byte and on a manual clock.
@Suite struct WebSocketLayerTests {
    private static let request =
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    /// Two frames of three bytes in messages that cut the second one, masked with zeros.
    private static let frames: [UInt8] =
        [0x82, 0x84, 0, 0, 0, 0, 2, 0xA1, 0xA2, 2] + [0x89, 0x80, 0, 0, 0, 0] + [0x82, 0x82, 0, 0, 0, 0, 0xB1, 0xB2]

    @Test func everySplitOfAHandshakeAndItsFirstFrames() throws {
        let bytes = Array(Self.request.utf8) + Self.frames
        for split in 0...bytes.count {
            let test = try LayerTest()
            for piece in [bytes[..<split], bytes[split...]] where !piece.isEmpty { try test.receive(Array(piece)) }
            try test.expectOpenAndReceived("split at \(split)")
        }
    }

    @Test func randomSplits() throws {
        let bytes = Array(Self.request.utf8) + Self.frames
        var random = SeededGenerator(seed: 5)
        for _ in 0..<100 {
            let test = try LayerTest()
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...[1, 4, 40].randomElement(using: &random)!, using: &random)
                try test.receive(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            try test.expectOpenAndReceived("seed 5")
        }
    }

    @Test func aPeerThatEndsWithItsFirstFrames() throws {
        let test = try LayerTest()
        try test.receive(Array(Self.request.utf8) + Self.frames + [0x88, 0x80, 0, 0, 0, 0])
        test.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(test.record.batches.flatMap { $0 } == [[0xA1, 0xA2], [0xB1, 0xB2]])
        #expect(test.record.hasEnded && test.record.end == nil)
    }

    @Test func nothingOfTheHandshakeIsLeftInThePipeline() throws {
        let test = try LayerTest()
        try test.receive(Array(Self.request.utf8))
        let pipeline = test.channel.pipeline.syncOperations
        #expect(throws: (any Error).self) { try pipeline.handler(type: WebSocketServerOpener.self) }
        #expect(throws: (any Error).self) { try pipeline.handler(type: HTTPHeadReader<HTTPRequestDecoder>.self) }
        #expect(throws: (any Error).self) { try pipeline.handler(type: HTTPResponseEncoder.self) }
        #expect(try pipeline.handler(type: WebSocketHandler.self).opening.target == "/")
    }

    @Test(arguments: ["", "GET / HTTP/1.1\r\nHost", request.dropLast(2)] as [Substring])
    func aHandshakeIsNotWaitedForForever(start: Substring) throws {
        let test = try LayerTest()
        if !start.isEmpty { try test.receive(Array(start.utf8)) }
        test.channel.embeddedEventLoop.advanceTime(by: .milliseconds(9999))
        #expect(test.channel.isActive)
        test.channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(!test.channel.isActive)
        #expect((test.outcome.error as? HandshakeTimeout)?.handshakeName == "the WebSocket handshake")
    }

    @Test(arguments: ["", "HTTP/1.1 101 Switching Protocols\r\nUpgra"])
    func aServerThatDoesNotAnswerIsNotWaitedForForever(start: String) throws {
        let test = try LayerTest(role: .client)
        #expect(try test.sent().hasPrefix("GET / HTTP/1.1\r\n"))
        if !start.isEmpty { try test.receive(Array(start.utf8)) }
        test.channel.embeddedEventLoop.advanceTime(by: .milliseconds(9999))
        #expect(test.channel.isActive)
        test.channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(!test.channel.isActive)
        #expect((test.outcome.error as? HandshakeTimeout)?.handshakeName == "the WebSocket handshake")
    }

    @Test func aRefusedPeerHasTheTimeToReadWhy() throws {
        let test = try LayerTest()
        try test.receive(Array("GET /x HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        #expect(try test.sent().hasPrefix("HTTP/1.1 426 "))
        #expect((test.outcome.error as? ConnectionError)?.code == .webSocketRefused)
        try test.receive(Array("whatever else".utf8))
        #expect(test.channel.isActive)
        test.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!test.channel.isActive)
    }

    @Test func aPeerThatEndsInsideTheHandshake() throws {
        let test = try LayerTest()
        try test.receive(Array("GET / HTTP/1.1\r\n".utf8))
        test.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(test.outcome.error is HandshakeCut && !test.channel.isActive)
    }

    // MARK: Peers that never shake hands

    /// Bytes that the decoder consumes do not count as a head, and the rest would grow.
    @Test(
        arguments: [
            (.server, "", "\r\n"), (.client, "", "\r\n"), (.client, "", "HTTP/1.1 103 Early Hints\r\n\r\n"),
            (.client, "HTTP/1.1 101 ", "x"), (.server, "GET /", "x"), (.server, "GET / HTTP/1.1\r\nA:", " "),
            (.client, "HTTP/1.1 103 Early Hints\r\nA:", " "),
        ] as [(WebSocketStateMachine.Role, String, String)]
    )
    func anEndlessHeadIsRefused(role: WebSocketStateMachine.Role, start: String, part: String) throws {
        let test = try LayerTest(role: role)
        if !start.isEmpty { try test.receive(Array(start.utf8)) }
        let piece = [UInt8](repeating: 0, count: 2000).indices.map { Array(part.utf8)[$0 % part.utf8.count] }
        var sent = 0
        while test.outcome.error == nil, sent < 1 << 20 {
            try test.receive(piece)
            sent += piece.count
        }
        test.channel.embeddedEventLoop.advanceTime(by: SocketEnd.lingerTime)
        #expect(sent < 1 << 20 && !test.channel.isActive)
        if role == .server {
            #expect(try test.sent().hasPrefix("HTTP/1.1 431 "))
            #expect((test.outcome.error as? ConnectionError)?.code == .webSocketRefused)
        } else {
            #expect((test.outcome.error as? ConnectionError)?.code == .protocolViolation)
        }
    }

    @Test func ofARefusedPeerNothingIsKept() throws {
        let test = try LayerTest()
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n"
        try test.receive(Array(head.utf8) + [UInt8](repeating: 1, count: 70_000))
        #expect(try test.sent().hasPrefix("HTTP/1.1 405 "))
        for _ in 0..<100 { try test.receive([UInt8](repeating: 0, count: 65_536)) }
        let reader = try test.channel.pipeline.syncOperations.handler(type: HTTPHeadReader<HTTPRequestDecoder>.self)
        #expect(reader.takeRest().storageCapacity == 0)
        #expect(test.channel.isActive, "it has the time to read why")
    }

    @Test func aReaderGivesBackWhatIsDecoded() throws {
        let test = try LayerTest()
        let fields = (0..<90).map { "A\($0): \(String(repeating: "a", count: 200))\r\n" }.joined()
        for byte in Array("GET / HTTP/1.1\r\n\(fields)".utf8) { try test.receive([byte]) }
        let reader = try test.channel.pipeline.syncOperations.handler(type: HTTPHeadReader<HTTPRequestDecoder>.self)
        #expect(reader.takeRest().storageCapacity < 1024)
    }
}

private final class Outcome {
    var isOpen = false
    var error: (any Error)?
}

/// One side in a channel whose bytes a test gives.
private struct LayerTest {
    let channel = EmbeddedChannel()
    let record = Record()
    let outcome = Outcome()

    init(role: WebSocketStateMachine.Role = .server) throws {
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let endpoint = try Endpoint("ws://h:1")
        let layer = WebSocketLayer(
            role == .server
                ? .server(try WebSocketServerHandshake(on: endpoint, configuration: WebSocketServerConfiguration()))
                : .client(try WebSocketRequest(to: endpoint, configuration: WebSocketConfiguration())),
            options: .init(maximumMessageLength: 65_536, maximumReceivedLength: 65_536)
        )
        var options = ConnectionOptions(
            maximumFrameLength: 1000,
            connectTimeout: .seconds(10),
            closeTimeout: .seconds(5),
            outboundMarks: WaterMarks(low: 100, high: 200),
            metrics: TransportMetrics(role: "test")
        )
        options.layers = [layer]
        let handler = ConnectionHandler(receiver: RecordingReceiver(inbox: record), options: options)
        let outcome = outcome
        let deadline = channel.embeddedEventLoop.now + .seconds(10)
        channel.addLayers([layer], deadline: deadline, lingering: role == .server) {
            try $0.pipeline.syncOperations.addHandler(handler)
        }
        .assumeIsolated().whenComplete { result in
            switch result {
            case .success: outcome.isOpen = true
            case .failure(let error): outcome.error = error
            }
        }
        // Next to the embedded channel, which closes at any end.
        try channel.pipeline.syncOperations.addHandler(OutputEnd(), position: .first)
    }

    func receive(_ bytes: [UInt8]) throws {
        channel.pipeline.fireChannelRead(ByteBuffer(bytes: bytes))
        channel.pipeline.fireChannelReadComplete()
        channel.embeddedEventLoop.run()
    }

    /// The bytes that were written since the last call.
    func sent() throws -> String {
        var text = ""
        while let bytes = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
        return text
    }

    func expectOpenAndReceived(_ comment: Comment) throws {
        #expect(outcome.isOpen, comment)
        #expect(record.batches.flatMap { $0 } == [[0xA1, 0xA2], [0xB1, 0xB2]], comment)
        #expect(try sent().hasPrefix("HTTP/1.1 101 "), comment)
    }
}
