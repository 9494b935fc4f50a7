import LifelineCore
import LifelineRuntime
import MetricsTestKit
import NIOCore
import NIOEmbedded
import NIOWebSocket
import Testing

@testable import LifelineTransport

/// The layer's handler, with frames below it and a connection's handler above, on a manual clock.
@Suite struct WebSocketHandlerTests {
    // MARK: Input

    @Test func framesOfOneReadAreOneBatch() throws {
        let test = try WebSocketTest()
        try test.receive([0x01, 0xA1, 0x02])
        try test.receive([0xB1, 0xB2, 0x00])
        #expect(test.record.batches.isEmpty)
        test.completeRead()
        #expect(test.record.batches == [[[0xA1], [0xB1, 0xB2], []]])
    }

    @Test func otherFramesAreSignsOfLife() throws {
        let test = try WebSocketTest()
        for opcode: WebSocketOpcode in [.ping, .pong] {
            try test.receive([], opcode)
            test.completeRead()
        }
        // A part of a frame delivers nothing yet.
        test.completeRead()
        #expect(test.record.batches == [[], [], []])
    }

    @Test func messagesAreJoinedAndBecomeFrames() throws {
        let test = try WebSocketTest(messages: true)
        try test.receive(Array("a".utf8), .text, isFinal: false)
        try test.receive(Array("b".utf8), .continuation, isFinal: false)
        try test.receive([], .continuation)
        try test.receive([0xFF], .binary)
        try test.receive([], .text)
        test.completeRead()
        #expect(test.record.batches == [[[1, 0x61, 0x62], [2, 0xFF], [1]]])
    }

    @Test func messagesOfEveryLengthOfPrefix() throws {
        let test = try WebSocketTest(messages: true, limit: 1 << 20)
        for length in [0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 70_000] {
            let payload = [UInt8](repeating: 7, count: length)
            try test.receive(payload, .binary)
            test.completeRead()
            #expect(test.record.batches.last == [[2] + payload])
            _ = try test.offer(frame([2] + payload))
            test.handler.flush()
            let sent = try test.sent()
            #expect(sent.map(\.opcode) == [.binary] && sent.map(\.bytes) == [payload])
        }
    }

    // MARK: Output

    @Test func aWriteIsOneMessageOfManyFrames() throws {
        let test = try WebSocketTest()
        for payload: [UInt8] in [[1], [2, 2], []] { _ = try test.offer(frame(payload)) }
        test.handler.flush()
        let sent = try test.sent()
        #expect(sent.map(\.bytes) == [[1, 1, 2, 2, 2, 0]])
        #expect(sent.allSatisfy { $0.opcode == .binary && $0.fin && $0.maskKey == nil })
    }

    @Test func messagesHaveWholeFramesUpToTheirMaximum() throws {
        let test = try WebSocketTest(maximumMessageLength: 6)
        for payload: [UInt8] in [[1], [2, 2], [3], [4, 4, 4, 4, 4, 4, 4, 4], [5]] { _ = try test.offer(frame(payload)) }
        test.handler.flush()
        #expect(
            try test.sent().map(\.bytes) == [[1, 1, 2, 2, 2], [1, 3], [8] + [UInt8](repeating: 4, count: 8), [1, 5]]
        )
        #expect(test.handler.outbound.unwrittenByteCount == 0)
    }

    @Test func aClientMasksEachFrameAnew() throws {
        let test = try WebSocketTest(role: .client)
        for _ in 0..<20 {
            _ = try test.offer([0x00])
            test.handler.flush()
        }
        let keys = try test.sent().compactMap(\.maskKey)
        #expect(keys.count == 20 && Set(keys.map { Array($0) }).count > 10)
    }

    // MARK: Pings

    @Test func pingsAreAnsweredAfterTheRead() throws {
        let test = try WebSocketTest()
        for number: UInt8 in 0..<10 { try test.receive([number], .ping) }
        test.completeRead()
        let sent = try test.sent()
        #expect(sent.map(\.bytes) == (0..<10).map { [$0] } && sent.allSatisfy { $0.opcode == .pong })
    }

    @Test func ofManyPingsThatWaitTheNewestIsAnswered() throws {
        let test = try WebSocketTest(holdingWrites: true)
        for number: UInt8 in 0..<200 { try test.receive([number], .ping) }
        test.completeRead()
        #expect(test.writes.held.count == 16)
        while !test.writes.held.isEmpty {
            test.writes.completeFirst()
            test.channel.embeddedEventLoop.run()
        }
        let answered = test.writes.completed.map(\.bytes)
        #expect(answered == (0..<16).map { [$0] } + [[199]])
    }

    @Test func theLayersPingIsTheHeartbeatWhereThereIsNoOther() throws {
        let test = try WebSocketTest(liveness: LivenessOptions(heartbeat: HeartbeatConfiguration()))
        test.record.pingFrame = { (_) throws(ConnectionError) in nil }
        test.advance(seconds: 30)
        let ping = try #require(try test.sent().first)
        #expect(ping.opcode == .ping && ping.bytes == [0, 0, 0, 0, 0, 0, 0, 1])
        test.advance(seconds: 5)
        try test.receive(ping.bytes, .pong)
        test.completeRead()
        test.advance(seconds: 29)
        #expect(try test.sent().isEmpty, "the answer counts")
        test.advance(seconds: 30)
        #expect(test.channel.isActive)
        test.advance(seconds: 1)
        #expect(!test.channel.isActive && test.record.end?.code == .heartbeatTimeout)
    }

    /// 1,000 bytes are in the kernel when the ping is written, which ends at 1,010 of the socket's bytes, whatever the
    /// connection wrote. The peer reads some of them every 9 s.
    @Test(arguments: [true, false]) func aPingOnItsWayToAPeerThatReadsSlowlyIsNotMissed(isOurs: Bool) throws {
        let test = try WebSocketTest(liveness: LivenessOptions(heartbeat: HeartbeatConfiguration()))
        if isOurs { test.record.pingFrame = { (_) throws(ConnectionError) in nil } }
        (test.record.acknowledgedByteCount, test.record.unacknowledgedByteCount) = (10, 1000)
        test.advance(seconds: 30)
        #expect(try test.sent().map(\.opcode) == [isOurs ? .ping : .binary])
        for count in 1...20 as ClosedRange<UInt64> {
            test.advance(seconds: 9)
            test.record.acknowledgedByteCount = 10 + count * 49
        }
        test.record.acknowledgedByteCount = 1009
        test.advance(seconds: 10)
        #expect(try test.channel.isActive && test.sent().isEmpty, "on its way")
        test.record.acknowledgedByteCount = 1010
        test.advance(seconds: 10)
        test.record.acknowledgedByteCount = 5000
        test.advance(seconds: 29)
        #expect(test.channel.isActive, "the question has arrived, and time for an answer begins")
        test.record.acknowledgedByteCount = 9000
        test.advance(seconds: 10)
        #expect(test.record.end?.code == .heartbeatTimeout)
    }

    @Test func theUsersOwnHeartbeatGoesFirst() throws {
        let test = try WebSocketTest(liveness: LivenessOptions(heartbeat: HeartbeatConfiguration()))
        test.advance(seconds: 30)
        #expect(try test.sent().map(\.opcode) == [.binary])
    }

    @Test func nobodyIsAskedAfterOurEnd() throws {
        let test = try WebSocketTest(liveness: LivenessOptions(heartbeat: HeartbeatConfiguration()))
        test.record.pingFrame = { (_) throws(ConnectionError) in nil }
        if test.handler.outbound.finish() { test.handler.flush() }
        #expect(try test.sent().map(\.opcode) == [.connectionClose])
        test.advance(seconds: 3600)
        #expect(try test.sent().isEmpty && test.channel.isActive)
    }

    // MARK: Ends

    @Test func ourEndIsACloseAfterWhatIsQueued() throws {
        let test = try WebSocketTest()
        _ = try test.offer([0x00])
        test.handler.close()
        test.handler.flush()
        test.channel.embeddedEventLoop.run()
        let sent = try test.sent()
        #expect(sent.map(\.opcode) == [.binary, .connectionClose] && sent.last?.bytes == [0x03, 0xE8])
        #expect(test.channel.isActive)
        try test.receive([0x03, 0xE8], .connectionClose)
        #expect(!test.channel.isActive, "a server hangs up")
        #expect(test.report?.failure == nil && test.report?.unwrittenByteCount == 0)
    }

    @Test func thePeersEndIsAnsweredAtOnce() throws {
        let test = try WebSocketTest()
        try test.receive([0x01, 0xA1])
        try test.receive([0x03, 0xE9], .connectionClose)
        #expect(test.record.batches == [[[0xA1]]])
        #expect(test.record.hasEnded && test.record.end == nil)
        #expect(try test.sent().map(\.bytes) == [[0x03, 0xE9]])
        #expect(!test.channel.isActive && test.report?.failure == nil)
        let error = #expect(throws: ConnectionError.self) { try test.offer([0x00]) }
        #expect(error?.code == .closedByPeer)
    }

    @Test(arguments: [WebSocketStateMachine.Role.client, .server])
    func anEndInsideAMessageIsAnErrorThatIsAnswered(role: WebSocketStateMachine.Role) throws {
        let test = try WebSocketTest(role: role, messages: true)
        try test.receive([0xA1], .binary)
        try test.receive(Array("lo".utf8), .text, isFinal: false)
        try test.receive([0x03, 0xE8], .connectionClose)
        #expect(test.record.batches == [[[2, 0xA1]]], "what is whole is delivered")
        let sent = try test.sent()
        #expect(sent.map(\.opcode) == [.connectionClose] && sent[0].bytes == [0x03, 0xE8])
        test.advance(seconds: 1)
        #expect(!test.channel.isActive && test.report?.failure?.code == .protocolViolation)
        #expect(test.record.end?.code == .protocolViolation)
        #expect((test.record.end?.cause as? FramingError)?.code == .truncatedFrame)
    }

    /// A message boundary means nothing there: a peer may split its stream of frames anywhere.
    @Test func anEndInsideAMessageOfWholeFramesIsNone() throws {
        let test = try WebSocketTest()
        try test.receive([0x01, 0xA1], .binary, isFinal: false)
        try test.receive([0x03, 0xE8], .connectionClose)
        #expect(test.record.batches == [[[0xA1]]] && test.record.hasEnded && test.record.end == nil)
        let cut = try WebSocketTest()
        try cut.receive([0x02, 0xA1], .binary)
        try cut.receive([0x03, 0xE8], .connectionClose)
        #expect((cut.record.end?.cause as? FramingError)?.code == .truncatedFrame)
    }

    @Test func unwrittenMessagesFailWithThePeersEnd() throws {
        let test = try WebSocketTest()
        _ = try test.offer([0x00])
        try test.receive([0x03, 0xE8], .connectionClose)
        test.handler.flush()
        #expect(test.report?.failure?.code == .closedByPeer && test.report?.failedInUse == true)
        #expect(test.report?.unwrittenByteCount == 1)
        #expect(try test.sent().map(\.opcode) == [.connectionClose])
    }

    @Test func pendingBytesAreSentBeforeTheAnswer() throws {
        let test = try WebSocketTest(holdingWrites: true)
        _ = try test.offer([0x00])
        test.handler.flush()
        try test.receive([0x03, 0xE8], .connectionClose)
        #expect(test.writes.held.count == 2 && test.channel.isActive)
        test.writes.completeFirst()
        test.channel.embeddedEventLoop.run()
        #expect(test.channel.isActive)
        test.writes.completeFirst()
        test.channel.embeddedEventLoop.run()
        #expect(!test.channel.isActive && test.report?.failure == nil)
        #expect(test.writes.completed.map(\.opcode) == [.binary, .connectionClose])
    }

    @Test func aClientWaitsForTheServerToHangUp() throws {
        for hangsUp in [true, false] {
            let test = try WebSocketTest(role: .client)
            try test.receive([0x03, 0xE8], .connectionClose)
            #expect(test.record.hasEnded && test.channel.isActive)
            if hangsUp {
                test.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            } else {
                test.advance(milliseconds: 999)
                #expect(test.channel.isActive)
                test.advance(milliseconds: 1)
            }
            #expect(!test.channel.isActive && test.report?.failure == nil)
        }
    }

    /// If a server closes without reading our answer, its system resets the connection.
    @Test func aResetAfterThePeersCloseIsNoFailure() throws {
        let test = try WebSocketTest(role: .client)
        try test.receive([0x03, 0xE8], .connectionClose)
        test.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
        #expect(!test.channel.isActive && test.report?.failure == nil)
        let unread = try WebSocketTest(role: .server, holdingWrites: true)
        try unread.receive([0x03, 0xE8], .connectionClose)
        unread.writes.failFirst(with: IOError(errnoCode: 32, reason: "pipe"))
        #expect(!unread.channel.isActive && unread.report?.failure == nil)
    }

    @Test func aViolationIsToldAndTheAnswerGivenTime() throws {
        for role: WebSocketStateMachine.Role in [.client, .server] {
            let test = try WebSocketTest(role: role)
            try test.receive([0x01, 0xA1])
            try test.receive([], WebSocketOpcode(encodedWebSocketOpcode: 3)!)
            #expect(test.record.batches == [[[0xA1]]], "what came before is delivered")
            #expect(try test.sent().first?.bytes.prefix(2) == [0x03, 0xEA])
            #expect(test.channel.isActive)
            #expect(test.outputEnd.count == (role == .server ? 1 : 0), "a server hangs up first")
            try test.receive([0x01, 0xA2])
            test.completeRead()
            #expect(test.record.batches.count == 1, "what follows is dropped")
            test.advance(seconds: 1)
            #expect(!test.channel.isActive && test.report?.failure?.code == .protocolViolation)
            #expect(test.record.end?.code == .protocolViolation)
        }
    }

    @Test func thePeerLearnsThatItsMessageIsMalformed() throws {
        // A prefix that does not end, and a payload that the receiver does not take.
        for bytes: [UInt8] in [[0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x01, 0xFF]] {
            let test = try WebSocketTest()
            try test.receive(bytes)
            test.completeRead()
            let sent = try test.sent()
            #expect(sent.map(\.opcode) == [.connectionClose] && sent[0].bytes.prefix(2) == [0x03, 0xEF])
            test.advance(seconds: 1)
            #expect(!test.channel.isActive && test.report?.failure?.code == .protocolViolation)
        }
    }

    @Test func tooLargeAFrameIsAViolation() throws {
        let test = try WebSocketTest()
        test.channel.pipeline.fireErrorCaught(NIOWebSocketError.invalidFrameLength)
        #expect(try test.sent().first?.bytes.prefix(2) == [0x03, 0xF1])
        test.channel.pipeline.fireErrorCaught(NIOWebSocketError.fragmentedControlFrame)
        #expect(try test.sent().isEmpty, "once")
        test.advance(seconds: 1)
        #expect((test.record.end?.cause as? WebSocketClosure)?.code == .messageTooBig)
    }

    @Test func anEndBelowWithoutACloseIsAnError() throws {
        let half = try WebSocketTest()
        half.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(half.record.end?.code == .closedByPeer)
        let whole = try WebSocketTest()
        whole.channel.pipeline.fireChannelInactive()
        #expect(whole.record.end?.code == .closedByPeer)
        #expect(whole.report?.failure?.code == .closedByPeer)
    }

    @Test func anAbortIsAtOnce() throws {
        let test = try WebSocketTest()
        test.handler.fail(.closedLocally, resetting: true)
        #expect(!test.channel.isActive && test.record.end?.code == .closedLocally)
        #expect(try test.sent().isEmpty)
    }

    @Test func anAbortDoesNotWaitForTheServerToHangUp() throws {
        let test = try WebSocketTest(role: .client)
        try test.receive([0x03, 0xE8], .connectionClose)
        #expect(test.record.hasEnded && test.channel.isActive)
        test.handler.fail(.closedLocally, resetting: true)
        #expect(!test.channel.isActive)
        #expect(test.outputEnd.closeCount == 0, "a layer below would wait")
    }

    /// The peer has time to read the answer once, and not a second time because of TLS.
    @Test func anEndThatIsOverdueIsACut() throws {
        let regular = try WebSocketTest(role: .client)
        try regular.receive([0x03, 0xE8], .connectionClose)
        let failed = try WebSocketTest(role: .client)
        try failed.receive([0x03, 0xF3], .connectionClose)
        let violated = try WebSocketTest()
        try violated.receive([], WebSocketOpcode(encodedWebSocketOpcode: 3)!)
        for test in [regular, failed, violated] {
            test.advance(milliseconds: 999)
            #expect(test.channel.isActive)
            test.advance(milliseconds: 1)
            #expect(!test.channel.isActive && test.outputEnd.closeCount == 0)
        }
        #expect(regular.report?.failure == nil)
    }

    @Test func aLayerBelowSaysThatItIsTheEndAndDoesNotWait() throws {
        let server = try WebSocketTest(role: .server)
        try server.receive([0x03, 0xE8], .connectionClose)
        let client = try WebSocketTest(role: .client)
        try client.receive([0x03, 0xE8], .connectionClose)
        client.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        for test in [server, client] {
            #expect(!test.channel.isActive && test.report?.failure == nil)
            #expect(test.outputEnd.count == 1 && test.outputEnd.closeCount == 0)
        }
    }

    @Test func anotherErrorPassesThrough() throws {
        let test = try WebSocketTest()
        test.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
        #expect(test.record.end?.code == .closedByPeer)
        #expect(test.record.end?.cause is IOError)
    }

    private func frame(_ payload: [UInt8]) -> [UInt8] {
        Varint.encoded(UInt64(payload.count)) + payload
    }
}

/// Both handlers in a channel that a test drives. The channel's bytes are WebSocket frames.
private struct WebSocketTest {
    let channel = EmbeddedChannel()
    let handler: ConnectionHandler<RecordingReceiver>
    let record = Record()
    let writes = FrameHolder()
    let outputEnd = OutputEnd()
    private let role: WebSocketStateMachine.Role

    init(
        role: WebSocketStateMachine.Role = .server,
        messages: Bool = false,
        limit: Int = 1000,
        maximumMessageLength: Int = 65_536,
        holdingWrites: Bool = false,
        liveness: LivenessOptions = LivenessOptions()
    ) throws {
        self.role = role
        let layerOptions = WebSocketLayer.Options(
            receivesMessages: messages,
            sendsMessages: messages,
            maximumMessageLength: maximumMessageLength,
            maximumReceivedLength: limit
        )
        var options = ConnectionOptions(
            maximumFrameLength: limit + 1,
            connectTimeout: .seconds(1),
            closeTimeout: .seconds(5),
            outboundMarks: WaterMarks(low: 100, high: 200),
            liveness: liveness,
            metrics: TransportMetrics(role: "test", factory: TestMetrics())
        )
        let request = try WebSocketRequest(to: Endpoint("ws://h"), configuration: WebSocketConfiguration())
        options.layers = [WebSocketLayer(.client(request), options: layerOptions)]
        let loop = channel.embeddedEventLoop
        handler = ConnectionHandler(
            receiver: RecordingReceiver(inbox: record),
            options: options,
            now: { MonotonicTime(nanoseconds: Int64(loop.now.uptimeNanoseconds)) },
            acknowledgedByteCount: { [record] _ in record.acknowledgedByteCount },
            unacknowledgedByteCount: { [record] _ in record.unacknowledgedByteCount }
        )
        let opening = WebSocketOpening(subprotocol: nil, target: "/", headers: [:])
        try channel.pipeline.syncOperations.addHandlers(SocketEnd(), outputEnd)
        if holdingWrites { try channel.pipeline.syncOperations.addHandler(writes) }
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandlers(
            WebSocketHandler(role: role, opening: opening, options: layerOptions),
            handler
        )
    }

    var report: ClosureReport? { handler.closed.value }

    /// Lets a frame of the peer's come.
    func receive(_ bytes: [UInt8], _ opcode: WebSocketOpcode = .binary, isFinal: Bool = true) throws {
        var payload = ByteBuffer(bytes: bytes)
        let maskKey: WebSocketMaskingKey? = role == .server ? [1, 2, 3, 4] : nil
        if let maskKey { payload.webSocketMask(maskKey) }
        channel.pipeline.fireChannelRead(
            WebSocketFrame(fin: isFinal, opcode: opcode, maskKey: maskKey, data: payload)
        )
        channel.embeddedEventLoop.run()
    }

    func completeRead() {
        channel.pipeline.fireChannelReadComplete()
    }

    func offer(_ bytes: [UInt8]) throws -> OutboundQueue.Offer {
        try bytes.withUnsafeBytes { try handler.outbound.offer($0) }
    }

    /// The frames that were written since the last call.
    func sent() throws -> [WebSocketFrame] {
        var frames: [WebSocketFrame] = []
        while let frame = try channel.readOutbound(as: WebSocketFrame.self) { frames.append(frame) }
        return frames
    }

    func advance(seconds: Int64) {
        channel.embeddedEventLoop.advanceTime(by: .seconds(seconds))
    }

    func advance(milliseconds: Int64) {
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(milliseconds))
    }
}

extension WebSocketFrame {
    fileprivate var bytes: [UInt8] { Array(buffer: data) }
}

/// A socket whose peer does not read: writes complete when the test says so.
private final class FrameHolder: ChannelOutboundHandler {
    typealias OutboundIn = WebSocketFrame
    var held: [(frame: WebSocketFrame, promise: EventLoopPromise<Void>?)] = []
    var completed: [WebSocketFrame] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        held.append((unwrapOutboundIn(data), promise))
    }

    func completeFirst() {
        let (frame, promise) = held.removeFirst()
        completed.append(frame)
        promise?.succeed()
    }

    func failFirst(with error: any Error) { held.removeFirst().promise?.fail(error) }

    func handlerRemoved(context: ChannelHandlerContext) {
        for (_, promise) in held { promise?.fail(ChannelError.ioOnClosedChannel) }
    }
}

/// A socket whose sides end separately, unlike those of an embedded channel; or a layer below, whose close a cut
/// bypasses.
final class OutputEnd: ChannelOutboundHandler {
    typealias OutboundIn = WebSocketFrame
    var count = 0
    var closeCount = 0

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard case .output = mode else {
            closeCount += 1
            return context.close(mode: mode, promise: promise)
        }
        count += 1
        promise?.succeed()
    }
}
