import LifelineCore
import LifelineOlderFramings
import LifelineRuntime
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

/// The layer between bytes of the wire and a connection's handler.
@Suite struct HeadedFramingLayerTests {
    private static let limit = 300

    // MARK: Input

    /// A response, an empty push, and a push whose content needs a length of two bytes.
    private static let responses: [UInt8] =
        [0, 0, 5, 0, 0, 0, 0, 9, 0, 0, 4, 1, 0, 0, 0, 2, 0x6F, 0x6B]
        + [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0]
        + [0, 0, 5, 1, 0, 0, 0, 0, 0, 0, 4, 2, 0, 0, 0, 200] + [UInt8](repeating: 0xEE, count: 200)

    private static let responsePayloads: [[UInt8]] = [
        [0, 0, 5, 0, 0, 0, 0, 9, 0, 0, 4, 1, 0x6F, 0x6B],
        [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 7],
        [0, 0, 5, 1, 0, 0, 0, 0, 0, 0, 4, 2] + [UInt8](repeating: 0xEE, count: 200),
    ]

    private static let lines = Array(
        ("{\"type\":\"echo\",\"size\":2}\r\nok" + "{ \"size\":\"0\",\"x\":[1],\"type\":\"\\u00e9\" }\r\n"
            + "{\"type\":\"\",\"size\":3}\r\n{}\n").utf8
    )

    private static let linePayloads: [[UInt8]] = [
        [0, 0, 0, 0, 0, 4] + "echook".utf8, [0, 0, 0, 0, 0, 2] + "é".utf8, [0, 0, 0, 0, 0, 0] + "{}\n".utf8,
    ]

    @Test func everySplitOfFixedHeaders() throws {
        for split in 0...Self.responses.count {
            let test = try LayerTest(FixedHeader.ClientFraming(maximumContentLength: Self.limit))
            try test.receive(Self.responses[..<split])
            try test.receive(Self.responses[split...])
            #expect(test.record.batches.flatMap(\.self) == Self.responsePayloads, "split at \(split)")
            #expect(test.record.batches.count == 2, "a read is a batch, whatever is in it")
        }
    }

    @Test func everySplitOfHeadLines() throws {
        for split in 0...Self.lines.count {
            let test = try LayerTest(HeadLineFraming(maximumContentLength: Self.limit))
            try test.receive(Self.lines[..<split])
            try test.receive(Self.lines[split...])
            #expect(test.record.batches.flatMap(\.self) == Self.linePayloads, "split at \(split)")
        }
    }

    @Test func byteByByte() throws {
        let test = try LayerTest(FixedHeader.ClientFraming(maximumContentLength: Self.limit))
        for byte in Self.responses { try test.receive([byte]) }
        #expect(test.record.batches.flatMap(\.self) == Self.responsePayloads)
        #expect(test.record.batches.count == Self.responses.count, "each byte is a sign of life")
        test.endInput()
        #expect(test.record.hasEnded && test.record.end == nil)
    }

    // MARK: Hostile peers

    @Test(arguments: [
        ([0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 1, 45], FramingError.Code.frameTooLarge),
        ([0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0xFF, 0xFF, 0xFF, 0xFF], .frameTooLarge),
    ]) func aHeaderThatDeclaresTooMuch(header: [UInt8], code: FramingError.Code) throws {
        let test = try LayerTest(FixedHeader.ClientFraming(maximumContentLength: Self.limit))
        try test.receive(Self.responses + header)
        test.expectViolation(code, after: Self.responsePayloads)
        // Later bytes are dropped.
        try test.receive(Self.responses)
        #expect(test.record.batches.flatMap(\.self) == Self.responsePayloads)
    }

    @Test(arguments: [
        ("{\"type\":\"a\",\"size\":301}\r\n", FramingError.Code.frameTooLarge),
        ("{\"type\":\"a\",\"size\":-1}\r\n", .malformedHead),
        ("{\"type\":\"a\",\"size\":0}\n", .malformedHead),
        ("GET / HTTP/1.1\r\n", .malformedHead),
        ("{" + String(repeating: " ", count: 4096), .headTooLarge),
    ]) func aHeadThatIsNone(head: String, code: FramingError.Code) throws {
        let test = try LayerTest(HeadLineFraming(maximumContentLength: Self.limit))
        try test.receive(Self.lines + head.utf8)
        test.expectViolation(code, after: Self.linePayloads)
    }

    @Test func anEndInsideAFrame() throws {
        // One by one: inside a header, before a content, inside it; 18 bytes are the first frame.
        for length in [1, 15, 16, 17, 19] {
            let test = try LayerTest(FixedHeader.ClientFraming(maximumContentLength: Self.limit))
            try test.receive(Self.responses[..<length])
            test.endInput()
            test.expectViolation(.truncatedFrame, after: Array(Self.responsePayloads.prefix(length < 18 ? 0 : 1)))
        }
    }

    /// The end of a WebSocket.
    @Test func anEndOfBothSidesInsideAFrame() throws {
        let test = try LayerTest(HeadLineFraming(maximumContentLength: Self.limit))
        try test.receive(Array("{\"type\":".utf8))
        test.channel.pipeline.fireUserInboundEventTriggered(PeerEndedBothSides())
        test.expectViolation(.truncatedFrame, after: [])
    }

    /// Accepted frames are written, whatever the peer still sends.
    @Test(arguments: [false, true]) func aViolationAfterThisSideCloses(byEnding: Bool) throws {
        let test = try LayerTest(FixedHeader.ClientFraming(maximumContentLength: Self.limit), holdsWrites: true)
        try test.send(head: FixedHeader.Request(url: 0x500, serial: 0x401), content: [1])
        test.handler.flush()
        test.handler.close()
        if byEnding {
            try test.receive(Self.responses[..<3])
            test.endInput()
        } else {
            try test.receive([UInt8](repeating: 0xFF, count: 16))
            try test.receive(Self.responses)
        }
        #expect(test.channel.isActive)
        test.writes.completeFirst()
        test.channel.embeddedEventLoop.run()
        let outputEnd = try #require(test.handler.outputEnded.value)
        #expect(outputEnd == nil)
        if !byEnding { test.endInput() }
        #expect(!test.channel.isActive)
        let report = try #require(test.handler.closed.value)
        #expect(report.failure == nil && report.unwrittenByteCount == 0 && report.peerEndedInTime)
        #expect(test.record.hasEnded && test.record.end == nil)
    }

    @Test func aViolationThatNobodyReceives() throws {
        let test = try LayerTest(FixedHeader.ClientFraming(maximumContentLength: Self.limit))
        test.handler.stopReceiving()
        try test.receive([UInt8](repeating: 0xFF, count: 16))
        try test.receive(Self.responses)
        #expect(test.channel.isActive && test.record.end == nil)
        try test.send(head: FixedHeader.Request(url: 0x500, serial: 0x401), content: [])
        test.handler.flush()
        #expect(try test.written().count == 12)
    }

    // MARK: Output

    @Test func requestsAreWrittenAndReportedInOrder() throws {
        let test = try LayerTest(FixedHeader.ClientFraming(maximumContentLength: Self.limit))
        for serial: UInt32 in [0x402, 0x401] {
            try test.send(head: FixedHeader.Request(url: 0x500, serial: serial), content: [1, 2])
        }
        try test.send(head: FixedHeader.Request(url: 7, serial: 7), content: [])
        try test.send(head: FixedHeader.Request(url: 1, serial: 0x401), content: [])
        test.handler.flush()
        let header: [UInt8] = [0, 0, 5, 0, 0, 0, 4]
        #expect(
            try test.written() == header + [2, 0, 0, 0, 2, 1, 2] + header + [1, 0, 0, 0, 2, 1, 2]
                + [0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 0] + [0, 0, 0, 1, 0, 0, 4, 1, 0, 0, 0, 0]
        )
        #expect(test.observer.tags == [0x402, 0x401], "neither the notification nor the ping is a request")
    }

    @Test func tagsOfHeadLinesAreNotWritten() throws {
        let test = try LayerTest(HeadLineFraming(maximumContentLength: Self.limit))
        try test.send(head: HeadLine(type: "a\"b"), tag: 0x1234_5678, content: Array("x".utf8))
        try test.send(head: HeadLine(type: ""), content: [])
        test.handler.flush()
        #expect(
            String(decoding: try test.written(), as: UTF8.self)
                == "{\"type\":\"a\\\"b\",\"size\":1}\r\nx{\"type\":\"\",\"size\":0}\r\n"
        )
        #expect(test.observer.tags == [0x1234_5678])
    }

    @Test func contentsOfAnyLengthOfPrefix() throws {
        for length in [0, 115, 116, 127, 128, 16_371, 16_372, 70_000] {
            let test = try LayerTest(FixedHeader.ServerFraming(maximumContentLength: 1 << 20), limit: 1 << 20)
            let content = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
            let fields: [UInt8] = [0, 0, 5, 0, 0, 0, 4, 1]
            let count = withUnsafeBytes(of: UInt32(length).bigEndian) { Array($0) }
            try test.receive(fields + count + content)
            #expect(test.record.batches == [[fields + content]])
            try test.send(head: FixedHeader.Response(url: 0x500, status: 3, serial: 0x401), content: content)
            test.handler.flush()
            #expect(try test.written() == [0, 0, 5, 0, 0, 0, 0, 3, 0, 0, 4, 1] + count + content)
        }
    }
}

/// The layer with a connection's handler above it.
private struct LayerTest<Framing: HeadedFraming>
where Framing.InboundHead: CarriedHead, Framing.OutboundHead: CarriedHead {
    let channel = EmbeddedChannel()
    let record = Record()
    let observer = TagRecord()
    let handler: ConnectionHandler<RecordingReceiver>
    let writes = WriteHolder()

    init(_ framing: Framing, limit: Int = 300, holdsWrites: Bool = false) throws {
        let layer = HeadedFramingLayer(framing, observer: observer)
        var options = ConnectionOptions(
            maximumFrameLength: limit + 12,
            connectTimeout: .seconds(10),
            closeTimeout: .seconds(5),
            outboundMarks: WaterMarks(low: 1 << 20, high: 2 << 20),
            metrics: TransportMetrics(role: "test")
        )
        options.layers = [layer]
        handler = ConnectionHandler(receiver: RecordingReceiver(inbox: record), options: options)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(SocketEnd())
        if holdsWrites { try channel.pipeline.syncOperations.addHandler(writes) }
        try layer.add(to: channel).wait()
        try channel.pipeline.syncOperations.addHandler(handler)
    }

    func receive(_ bytes: some Sequence<UInt8>) throws {
        channel.pipeline.fireChannelRead(ByteBuffer(bytes: bytes))
        channel.pipeline.fireChannelReadComplete()
    }

    func endInput() {
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    func send(head: some CarriedHead, tag: UInt32 = 0, content: [UInt8]) throws {
        let frame = try CarriedFrame.bytes(head: head, tag: tag, content: content)
        _ = try frame.withUnsafeBytes { try handler.outbound.offer($0) }
    }

    func written() throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let buffer = try channel.readOutbound(as: ByteBuffer.self) { bytes += buffer.readableBytesView }
        return bytes
    }

    func expectViolation(
        _ code: FramingError.Code,
        after payloads: [[UInt8]],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(!channel.isActive, sourceLocation: sourceLocation)
        #expect(record.batches.flatMap(\.self) == payloads, sourceLocation: sourceLocation)
        #expect(record.hasEnded && record.end?.code == .protocolViolation, sourceLocation: sourceLocation)
        #expect((record.end?.cause as? FramingError)?.code == code, sourceLocation: sourceLocation)
        #expect(handler.closed.value?.failure?.code == .protocolViolation, sourceLocation: sourceLocation)
    }
}

private final class TagRecord: RequestObserver {
    private let recorded = NIOLockedValueBox<[UInt32]>([])
    var tags: [UInt32] { recorded.withLockedValue { $0 } }
    func wroteRequest(tag: UInt32) { recorded.withLockedValue { $0.append(tag) } }
}

/// Records what the receiver got. Used only on the test's thread; @unchecked because an inbox has to be Sendable.
private final class Record: @unchecked Sendable {
    var batches: [[[UInt8]]] = []
    var hasEnded = false
    var end: ConnectionError?
}

private struct RecordingReceiver: FrameReceiver, FrameSink {
    let inbox: Record
    var batch: [[UInt8]] = []

    var answersPings: Bool { true }
    var partLength: Int { .max }

    mutating func receive(frame: UnsafeRawBufferPointer) { batch.append(Array(frame)) }

    mutating func finishBatch() -> ReadDemand {
        inbox.batches.append(batch)
        batch = []
        return .more
    }

    func takeReplies() -> [UInt8] { [] }

    func pingFrame(number: UInt64) -> [UInt8]? { nil }

    mutating func finish(throwing error: ConnectionError?) {
        inbox.hasEnded = true
        inbox.end = error
    }
}

/// Holds the bytes that are written back.
private final class WriteHolder: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    private var held: [EventLoopPromise<Void>?] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) { held.append(promise) }

    func completeFirst() { held.removeFirst()?.succeed() }

    func handlerRemoved(context: ChannelHandlerContext) {
        for promise in held { promise?.fail(ChannelError.ioOnClosedChannel) }
    }
}
