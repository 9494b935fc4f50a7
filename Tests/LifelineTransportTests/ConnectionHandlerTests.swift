import Glibc
import LifelineCore
import LifelineRuntime
import MetricsTestKit
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

@Suite struct ConnectionHandlerTests {
    // MARK: Input

    @Test func oneBatchForEachRead() throws {
        let test = try HandlerTest()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x01, 0xA1, 0x00, 0x02, 0xB1]))
        try test.channel.writeInbound(ByteBuffer(bytes: [0xB2]))
        try test.channel.writeInbound(ByteBuffer(bytes: [0x01]))
        #expect(test.record.batches == [[[0xA1], []], [[0xB1, 0xB2]], []])
        #expect(test.record.end == nil)
    }

    /// Tasks run between the parts, and may do anything there.
    @Test(arguments: [nil, "stop", "fail", "pause"]) func oneBatchForEachPartOfARead(action: String?) throws {
        let test = try HandlerTest(partLength: 2)
        let loop = test.channel.embeddedEventLoop
        let executor = LoopExecutor(loop)
        test.handler.executor = executor
        test.record.demand = action == "pause" ? .pause : .more
        let handler = NIOLoopBound(test.handler, eventLoop: loop)
        let record = test.record
        let batchCounts = NIOLockedValueBox<[Int]>([])
        record.whenBatchEnded = {
            Task(executorPreference: executor) {
                batchCounts.withLockedValue { $0.append(record.batches.count) }
                switch action {
                case "stop": handler.value.stopReceiving()
                case "fail": handler.value.fail(.closedLocally, resetting: true)
                case "pause": handler.value.resumeReading()
                default: break
                }
            }
        }
        test.record.answersPings = false
        test.channel.read()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00, 0x01, 0xA1, 0x01, 0xB1, 0x00, 0x00, 0x01]))
        let all: [[[UInt8]]] = [[[], [0xA1]], [[0xB1]], [[], []], []]
        let ends = action == "stop" || action == "fail"
        #expect(test.record.batches == (ends ? Array(all[..<1]) : all))
        #expect(batchCounts.withLockedValue { $0 } == Array(1...(ends ? 1 : 4)), "each task before the next part")
        if ends { return }
        try test.channel.writeInbound(ByteBuffer(bytes: [0xC1]))
        #expect(test.record.batches == all + [[[0xC1]]])
        #expect(test.counts("received") == [9, 6])
    }

    /// When a write fails, NIO reads the remaining bytes at once.
    @Test func readsBetweenPartsFollowThem() throws {
        let test = try HandlerTest(partLength: 2)
        let pipeline = NIOLoopBound(test.channel.pipeline.syncOperations, eventLoop: test.channel.embeddedEventLoop)
        try test.receiveInParts([0x00, 0x01, 0xA1, 0x00, 0x02, 0xB1]) {
            pipeline.value.fireChannelRead(NIOAny(ByteBuffer(bytes: [0xB2, 0x00])))
        }
        #expect(test.record.batches == [[[], [0xA1]], [[], [0xB1, 0xB2]], [[]]])
        #expect(test.record.end == nil)
    }

    /// Bytes that a peer sent before it left are not lost when a write to it fails.
    @Test(arguments: ["write", "error", "end"]) func readBytesAreReceivedBeforeAFailure(of cause: String) throws {
        let test = try HandlerTest(partLength: 2, holdingWrites: true)
        _ = try test.offer([0x00])
        test.handler.flush()
        let channel = NIOLoopBound(test.channel, eventLoop: test.channel.embeddedEventLoop)
        let writes = NIOLoopBound(test.writes, eventLoop: test.channel.embeddedEventLoop)
        try test.receiveInParts([0x00, 0x01, 0xA1, 0x00, 0x01, 0xB1]) {
            switch cause {
            case "write": writes.value.held.removeFirst().promise?.fail(IOError(errnoCode: EPIPE, reason: "write"))
            case "error": channel.value.pipeline.fireErrorCaught(IOError(errnoCode: ECONNRESET, reason: "read"))
            default: channel.value.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            }
        }
        #expect(test.record.batches == [[[], [0xA1]], [[], [0xB1]]])
        #expect(test.record.hasEnded)
        #expect((test.record.end == nil) == (cause == "end"))
    }

    /// The failed reply makes the handler receive the rest within the first part.
    @Test func bytesWithAFailedReplyAreCountedOnce() throws {
        let test = try HandlerTest(partLength: 2, holdingWrites: true)
        test.handler.executor = LoopExecutor(test.channel.embeddedEventLoop)
        test.writes.failure = IOError(errnoCode: EPIPE, reason: "write")
        test.record.replies = .success([0x00])
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00, 0x01, 0xA1, 0x01, 0xB1]))
        #expect(test.record.batches == [[[], [0xA1]], [[0xB1]]])
        #expect(test.counts("received") == [5, 3])
    }

    /// With layers above the socket, the state of the stream is unknown.
    @Test func withoutAnExecutorAReadIsOneBatch() throws {
        let test = try HandlerTest(partLength: 1)
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00, 0x00, 0x00]))
        #expect(test.record.batches == [[[], [], []]])
    }

    @Test func bytesAndFramesAreCounted() throws {
        let test = try HandlerTest()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x01, 0xA1, 0x00, 0x02, 0xB1]))
        try test.channel.writeInbound(ByteBuffer(bytes: [0xB2]))
        for frame in [[0x00], [0x01, 0xC1]] as [[UInt8]] { _ = try test.offer(frame) }
        test.handler.flush()
        #expect(test.counts("received") == [6, 3])
        #expect(test.counts("sent") == [3, 2])
    }

    /// As on a Unix socket, which never reports acknowledged bytes.
    @Test func framesAreNotRememberedWhereNothingIsAcknowledged() throws {
        let test = try HandlerTest(tracksDelivery: true)
        _ = try test.offer([0x00])
        #expect(test.handler.outbound.acknowledge(byteCount: 0) == nil)
    }

    @Test func readsAreHeldWhilePaused() throws {
        let test = try HandlerTest()
        test.channel.read()
        #expect(test.reads.count == 1)
        test.record.demand = .pause
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.channel.read()
        test.channel.read()
        #expect(test.reads.count == 1)
        test.handler.resumeReading()
        #expect(test.reads.count == 2, "the read that was held goes on, once")
        test.handler.resumeReading()
        #expect(test.reads.count == 2)
        test.channel.read()
        #expect(test.reads.count == 3)
    }

    @Test(arguments: [[0x80, 0x80, 0x80, 0x80, 0x10], [0x0B], [0x01, 0xFF]] as [[UInt8]])
    func violationsEndTheInputAndCloseTheChannel(bytes: [UInt8]) throws {
        let test = try HandlerTest(limit: 10)
        var wasActive: Bool?
        test.record.whenEnded = { wasActive = test.channel.isActive }
        try test.channel.writeInbound(ByteBuffer(bytes: [0x01, 0xA1] + bytes + [0x00]))
        #expect(wasActive == true, "the receiver knows before the peer can come back")
        #expect(test.record.batches == [[[0xA1]]], "what came before is delivered")
        #expect(test.record.end?.code == .protocolViolation)
        #expect(!test.channel.isActive)
        #expect(test.handler.closed.value?.failure?.code == .protocolViolation)
        #expect(test.handler.closed.value?.failedInUse == true)
    }

    @Test func inputClosedAtABoundaryIsTheEnd() throws {
        let test = try HandlerTest()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(test.record.hasEnded)
        #expect(test.record.end == nil)
        #expect(test.channel.isActive, "our side stays open")
    }

    @Test func inputClosedInsideAFrameIsTruncation() throws {
        let test = try HandlerTest()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x02, 0x00]))
        test.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect((test.record.end?.cause as? FramingError)?.code == .truncatedFrame)
        #expect(!test.channel.isActive)
    }

    @Test func channelErrorsEndTheInput() throws {
        let test = try HandlerTest()
        test.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
        #expect(test.record.end?.code == .closedByPeer)
        let other = try HandlerTest()
        other.channel.pipeline.fireErrorCaught(IOError(errnoCode: 5, reason: "input/output"))
        #expect(other.record.end?.code == .ioError)
    }

    @Test func stoppedInputIsReadAndDropped() throws {
        let test = try HandlerTest()
        test.record.demand = .pause
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00, 0x05]))
        test.channel.read()
        test.handler.stopReceiving()
        #expect(test.record.hasEnded && test.record.end == nil, "inside a frame, since it is our own doing")
        #expect(test.reads.count == 1)
        try test.channel.writeInbound(ByteBuffer(bytes: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]))
        #expect(test.channel.isActive)
        let batchCount = test.record.batches.count
        try test.channel.writeInbound(ByteBuffer(bytes: [0x01, 0xA1]))
        #expect(test.record.batches.count == batchCount, "where frames begin is not known any more")
    }

    @Test func pingsAreAnsweredAfterTheInputWasStopped() throws {
        let test = try HandlerTest()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x02, 0xA1]))
        test.handler.stopReceiving()
        test.record.demand = .refused
        test.record.replies = .success([0x01, 0xEE])
        try test.channel.writeInbound(ByteBuffer(bytes: [0xA2, 0x00]))
        #expect(test.record.batches.last == [[0xA1, 0xA2], []], "the frame that was begun before, too")
        #expect(try test.channel.readOutbound(as: ByteBuffer.self) == ByteBuffer(bytes: [0x01, 0xEE]))
        test.handler.close()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        #expect(test.record.batches.count == 2, "not when our side ends")
    }

    @Test func nothingIsDecodedForNobodyWhereThereAreNoPings() throws {
        let test = try HandlerTest()
        test.record.answersPings = false
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.handler.stopReceiving()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        #expect(test.record.batches == [[[]]])
    }

    // MARK: Output

    @Test func framesOfOneTickAreOneWrite() throws {
        let test = try HandlerTest()
        #expect(try test.offer([0x01, 0xA1]) == .accepted(scheduleFlush: true))
        #expect(try test.offer([0x01, 0xA2]) == .accepted(scheduleFlush: false))
        test.handler.flush()
        #expect(try test.channel.readOutbound(as: ByteBuffer.self) == ByteBuffer(bytes: [0x01, 0xA1, 0x01, 0xA2]))
        #expect(try test.channel.readOutbound(as: ByteBuffer.self) == nil)
        test.handler.flush()
        #expect(try test.channel.readOutbound(as: ByteBuffer.self) == nil)
        #expect(test.handler.outbound.unwrittenByteCount == 0)
    }

    @Test func oneWriteAtATimeAndTheRestInTheNextTick() throws {
        let test = try HandlerTest(holdingWrites: true)
        _ = try test.offer([0x00])
        test.handler.flush()
        _ = try test.offer([0x01, 0xA1])
        _ = try test.offer([0x01, 0xA2])
        test.handler.flush()
        #expect(test.writes.held.count == 1, "the second waits for the first")
        #expect(test.handler.outbound.unwrittenByteCount == 5)
        test.writes.completeFirst()
        #expect(test.writes.held.isEmpty, "not in the same tick")
        test.channel.embeddedEventLoop.run()
        #expect(test.writes.held.map(\.data) == [ByteBuffer(bytes: [0x01, 0xA1, 0x01, 0xA2])])
    }

    @Test func aFailedWriteFailsTheConnection() throws {
        let test = try HandlerTest(holdingWrites: true)
        _ = try test.offer([0x00])
        test.handler.flush()
        test.writes.held.removeFirst().promise?.fail(IOError(errnoCode: 32, reason: "write"))
        #expect(test.record.end?.code == .closedByPeer)
        #expect(test.handler.closed.value?.unwrittenByteCount == 1)
        let error = #expect(throws: ConnectionError.self) { try test.offer([0x00]) }
        #expect(error?.code == .closedByPeer)
    }

    @Test func theEndOfTheOutputSaysWhyItNeverComes() throws {
        let test = try HandlerTest(holdingWrites: true)
        _ = try test.offer([0x00])
        test.handler.flush()
        _ = test.handler.outbound.finish()
        #expect(test.handler.outputEnded.value == nil)
        test.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
        #expect(test.handler.outputEnded.value??.code == .closedByPeer)
    }

    // MARK: Closing

    @Test func theCloseTimerGoesOnWhileBytesAreWritten() throws {
        let test = try HandlerTest(holdingWrites: true)
        _ = try test.offer([0x00])
        test.handler.flush()
        _ = try test.offer([0x01, 0xA1])
        test.handler.close()
        test.channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        test.writes.completeFirst()
        test.channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        #expect(test.channel.isActive, "5 s are over, but there was progress")
        test.channel.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(!test.channel.isActive)
        #expect(test.handler.closed.value?.unwrittenByteCount == 2)
        #expect(test.handler.closed.value?.failedInUse == false)
    }

    /// The time for writing does not reduce the peer's time.
    @Test func thePeerHasTheWholeTimeToEndItsSide() throws {
        let test = try HandlerTest(holdingWrites: true)
        _ = try test.offer([0x00])
        test.handler.flush()
        test.handler.close()
        test.channel.embeddedEventLoop.advanceTime(by: .milliseconds(4_900))
        test.writes.completeFirst()
        test.channel.embeddedEventLoop.advanceTime(by: .milliseconds(4_900))
        #expect(test.handler.outputEnded.value != nil && test.channel.isActive)
        test.channel.embeddedEventLoop.advanceTime(by: .milliseconds(200))
        #expect(!test.channel.isActive)
        #expect(test.handler.closed.value?.peerEndedInTime == false)
    }

    @Test func abortEndsEverythingAtOnce() throws {
        let test = try HandlerTest(holdingWrites: true)
        _ = try test.offer([0x00])
        test.handler.flush()
        test.handler.fail(.closedLocally, resetting: true)
        #expect(test.record.end?.code == .closedLocally)
        #expect(test.handler.closed.value?.unwrittenByteCount == 1)
        #expect(!test.channel.isActive)
    }
}

/// A handler in a channel that a test drives.
struct HandlerTest {
    let channel: EmbeddedChannel
    let handler: ConnectionHandler<RecordingReceiver>
    let record = Record()
    let reads = ReadCounter()
    let writes = WriteHolder()
    let metrics = TestMetrics()

    init(
        limit: Int = 1000,
        partLength: Int = .max,
        loop sharedLoop: EmbeddedEventLoop? = nil,
        holdingWrites: Bool = false,
        liveness: LivenessOptions = LivenessOptions(),
        tracksDelivery: Bool = false,
        configure: (inout ConnectionOptions) -> Void = { _ in }
    ) throws {
        channel = sharedLoop.map { EmbeddedChannel(loop: $0) } ?? EmbeddedChannel()
        let loop = channel.embeddedEventLoop
        let record = record
        var options = ConnectionOptions(
            maximumFrameLength: limit,
            connectTimeout: .seconds(1),
            closeTimeout: .seconds(5),
            outboundMarks: WaterMarks(low: 100, high: 200),
            liveness: liveness,
            tracksDelivery: tracksDelivery,
            metrics: TransportMetrics(role: "test", factory: metrics)
        )
        configure(&options)
        handler = ConnectionHandler(
            receiver: RecordingReceiver(inbox: record, partLength: partLength),
            options: options,
            now: { MonotonicTime(nanoseconds: Int64(loop.now.uptimeNanoseconds)) + record.sleep },
            acknowledgedByteCount: { _ in record.acknowledgedByteCount }
        )
        if holdingWrites { try channel.pipeline.syncOperations.addHandler(writes) }
        try channel.pipeline.syncOperations.addHandlers(reads, handler)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    /// Reads bytes in parts, and runs a task after the first part.
    func receiveInParts(_ bytes: [UInt8], _ body: @escaping @Sendable () -> Void) throws {
        let executor = LoopExecutor(channel.embeddedEventLoop)
        handler.executor = executor
        let record = record
        record.whenBatchEnded = {
            record.whenBatchEnded = {}
            Task(executorPreference: executor) { body() }
        }
        try channel.writeInbound(ByteBuffer(bytes: bytes))
    }

    /// The number of bytes, and of frames.
    func counts(_ direction: String) -> [Int64] {
        ["bytes", "frames"].map {
            metrics.counterTotal(label: "lifeline.\(direction).\($0)", dimensions: [("role", "test")])
        }
    }

    func offer(_ bytes: [UInt8]) throws -> OutboundQueue.Offer {
        try bytes.withUnsafeBytes { try handler.outbound.offer($0) }
    }
}

/// Records what a receiver got. Used only on the test's thread; @unchecked because an inbox has to be Sendable.
final class Record: @unchecked Sendable {
    var batches: [[[UInt8]]] = []
    var hasEnded = false
    var end: ConnectionError?
    var whenEnded: () -> Void = {}
    var demand = ReadDemand.more
    var whenBatchEnded: () -> Void = {}
    var answersPings = true
    /// The number of bytes that it holds.
    var byteCount = 0
    /// The receiver's reply to the next batch.
    var replies: Result<[UInt8], ConnectionError> = .success([])
    var pingFrame: (UInt64) throws(ConnectionError) -> [UInt8]? = { (number) in [0x02, 0xEE, UInt8(number)] }
    /// The bytes that the peer's TCP has acknowledged; nil as on a socket other than TCP.
    var acknowledgedByteCount: UInt64?
    /// The bytes in the kernel that are not acknowledged.
    var unacknowledgedByteCount: UInt64?
    /// How long the machine has slept, while the loop's clock stood still.
    var sleep = Duration.zero
}

struct RecordingReceiver: FrameReceiver, FrameSink {
    struct Undecodable: Error {}

    let inbox: Record
    let partLimit: PartLimit
    private var batch: [[UInt8]] = []

    init(inbox: Record, partLength: Int = .max) {
        self.inbox = inbox
        self.partLimit = PartLimit(byteCount: partLength)
    }

    var answersPings: Bool { inbox.answersPings }
    var inboxByteCount: Int { inbox.byteCount }

    mutating func receive(frame: UnsafeRawBufferPointer) throws {
        if frame.first == 0xFF { throw Undecodable() }
        batch.append(Array(frame))
    }

    mutating func finishBatch() -> ReadDemand {
        inbox.batches.append(batch)
        batch = []
        inbox.whenBatchEnded()
        return inbox.demand
    }

    mutating func takeReplies() throws(ConnectionError) -> [UInt8] {
        defer { inbox.replies = .success([]) }
        return try inbox.replies.get()
    }

    func pingFrame(number: UInt64) throws(ConnectionError) -> [UInt8]? { try inbox.pingFrame(number) }

    mutating func finish(throwing error: ConnectionError?) {
        inbox.hasEnded = true
        inbox.end = error
        inbox.whenEnded()
    }
}

final class ReadCounter: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    var count = 0
    func read(context: ChannelHandlerContext) {
        count += 1
        context.read()
    }
}

/// A socket whose peer does not read: writes complete when the test says so.
final class WriteHolder: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    var held: [(data: ByteBuffer, promise: EventLoopPromise<Void>?)] = []
    /// The error of every write.
    var failure: IOError?

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if let failure {
            promise?.fail(failure)
        } else {
            held.append((unwrapOutboundIn(data), promise))
        }
    }

    /// A socket can end its output alone, which an embedded channel cannot.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode == .output { promise?.succeed() } else { context.close(mode: mode, promise: promise) }
    }

    func completeFirst() { held.removeFirst().promise?.succeed() }

    func handlerRemoved(context: ChannelHandlerContext) {
        for (_, promise) in held { promise?.fail(ChannelError.ioOnClosedChannel) }
    }
}
