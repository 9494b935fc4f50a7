internal import LifelineCore
internal import LifelineRuntime
internal import NIOCore

/// The one handler of a connection: finds frames in place, hands them on in batches, and writes what the outbound queue
/// holds when tasks have run, or once a tick. It translates; `ConnectionStateMachine`, `Liveness`, `FrameAssembler` and
/// the two queues decide.
///
/// Inbound back-pressure: while the receiver's queue is over its high-water mark, the channel's `read` events are held
/// here. One read may still come in after that. When the peer ends its side, NIO reads what the kernel still holds
/// regardless, which is at most the socket's receive buffer.
final class ConnectionHandler<Receiver: FrameReceiver>: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    let outbound: OutboundQueue
    let closed = Latch<ClosureReport>()
    /// Everything accepted is with the kernel, and our side has ended; or why that never comes.
    let outputEnded = Latch<ConnectionError?>()
    let closeTimeout: Duration
    let livenessOptions: LivenessOptions
    let now: () -> MonotonicTime
    let acknowledgedByteCount: (any Channel) -> UInt64?
    let unacknowledgedByteCount: (any Channel) -> UInt64?
    /// Set to nil after the first call, to break the reference cycle.
    private var whenActive: ((ConnectionHandler, any Channel) -> Void)?

    var machine = ConnectionStateMachine()
    private var assembler: FrameAssembler
    var receiver: Receiver
    var context: ChannelHandlerContext?
    /// Runs tasks on the loop; nil where none run there.
    var executor: LoopExecutor?
    var pauses: ReadPauses = []
    private var isReadHeld = false
    var closeTimer: Scheduled<Void>?
    let metrics: TransportMetrics
    private let tracksDelivery: Bool
    let hasLayers: Bool
    let layersSendPings: Bool
    var watch: SocketWatch?
    /// While the end waits for acknowledgements.
    var lastWait: LastWait?
    /// Nobody can find the peer's pings any more.
    private var cannotAnswer = false
    /// Nil while there is no connection.
    var liveness: Liveness?
    var livenessTimer = LoopTimer()
    var isWriting = false
    private var replies: ReplyBacklog
    let replyBuffer: ReplyBuffer?
    /// Nil when this handler does not say how much is read.
    var sharedReadLength: NIOLoopBoundBox<Int>?
    private var readLength = ReadLength.normal
    /// The receiver's: asking it would copy that.
    let partLimit: PartLimit
    /// What is left of what was read, and is still to be received.
    var rest = ByteBuffer()
    /// What came behind the rest, and is dealt with when that has been received.
    var deferred: [DeferredEvent] = []
    /// Which of the loop's turns was the connection's last; nil before the first.
    var lastTurn: Int?
    /// Whether the rest waits for the connection's next turn.
    var isWaitingForTurn = false
    /// The limit for frames once the peer was let in.
    private let maximumFrameLength: Int
    /// Until the peer has spoken, or was let in, on a connection that was accepted.
    var newcomer: Newcomer?
    /// Whether the peer's first bytes let it in.
    let letsAnybodyIn: Bool
    private let memoryBudget: MemoryBudget?
    var memoryCharge: MemoryCharge?
    /// What is held for a peer that does not take what is written; 0 while it does.
    private var stalledByteCount = 0
    private let outboundMarks: WaterMarks
    /// What is being written; its memory is used on afterwards.
    var bytesInFlight = ByteBuffer()

    var inbox: Receiver.Inbox { receiver.inbox }

    /// - Parameters:
    ///   - whenActive: called when the connection stands.
    ///   - now: reads the clock by which the peer's liveness is judged.
    ///   - acknowledgedByteCount: what the peer's kernel has acknowledged of what was written; nil where nobody can
    ///     tell.
    ///   - unacknowledgedByteCount: what it has not, of what our kernel has taken; nil where nobody can tell.
    init(
        receiver: Receiver,
        options: ConnectionOptions,
        whenActive: ((ConnectionHandler, any Channel) -> Void)? = nil,
        now: @escaping () -> MonotonicTime = MonotonicTime.now,
        acknowledgedByteCount: @escaping (any Channel) -> UInt64? = {
            withSocket(of: $0) { TCPSocket.information(on: $0)?.acknowledgedByteCount } ?? nil
        },
        unacknowledgedByteCount: @escaping (any Channel) -> UInt64? = {
            withSocket(of: $0) { TCPSocket.unacknowledgedByteCount(on: $0) } ?? nil
        }
    ) {
        self.receiver = receiver
        // What layers make of the frames' bytes is not what the peer's TCP acknowledges.
        self.hasLayers = !options.layers.isEmpty
        self.layersSendPings = options.layers.contains { $0.sendsPings }
        self.tracksDelivery = options.tracksDelivery && !hasLayers
        self.outbound = OutboundQueue(marks: options.outboundMarks, tracksDelivery: tracksDelivery)
        self.metrics = options.metrics
        let openingLimit = min(options.openingFrameLimit ?? .max, options.maximumFrameLength)
        self.assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: openingLimit))
        self.maximumFrameLength = options.maximumFrameLength
        self.letsAnybodyIn = options.openingFrameLimit == nil
        self.memoryBudget = options.memoryBudget
        self.outboundMarks = options.outboundMarks
        self.closeTimeout = options.closeTimeout
        self.livenessOptions = options.liveness
        self.replies = ReplyBacklog(marks: options.outboundMarks)
        self.replyBuffer = receiver.replyBuffer
        self.partLimit = receiver.partLimit
        self.now = now
        self.acknowledgedByteCount = acknowledgedByteCount
        self.unacknowledgedByteCount = unacknowledgedByteCount
        self.whenActive = whenActive
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        // Behind layers the channel is active before this handler is there.
        if context.channel.isActive { begin(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        begin(context)
        context.fireChannelActive()
    }

    private func begin(_ context: ChannelHandlerContext) {
        if tracksDelivery {
            watch = withSocket(of: context.channel) { SocketWatch($0) } ?? nil
            if watch == nil { outbound.stopTracking() }
        }
        liveness = Liveness(livenessOptions, connectedAt: now())
        boundRetransmission()
        armLivenessTimer()
        whenActive.take()?(self, context.channel)
    }

    /// The peer was let in.
    func admitPeer() {
        assembler.raiseLimit(to: maximumFrameLength)
        newcomer?.leave()
        newcomer = nil
    }

    /// Charges what is held until the socket is read or written again.
    func chargeMemory() {
        guard let memoryBudget, liveness != nil else { return }
        var byteCount = assembler.heldByteCount + rest.readableBytes + stalledByteCount
        if pauses.contains(.receiver) { byteCount += receiver.inboxByteCount }
        if memoryCharge == nil {
            // Most connections never keep anything.
            guard byteCount >= MemoryCharge.smallest, let eventLoop = context?.eventLoop else { return }
            let handler = NIOLoopBound(self, eventLoop: eventLoop)
            memoryCharge = memoryBudget.makeCharge {
                eventLoop.execute { handler.value.fail(.outOfMemoryBudget, resetting: true) }
            }
        }
        memoryCharge?.update(byteCount)
    }

    // MARK: Input

    /// Receives a part of what was read, or all of it where nobody wants more.
    func receivePart(_ limit: PartLimit) {
        let bytes = rest
        rest = ByteBuffer()
        let action = machine.receivedBytes()
        if action == .discard || (action == .answer && (cannotAnswer || !receiver.answersPings)) { return }
        let before = assembler.frameCount
        var byteCount = bytes.readableBytes
        do {
            // At once: what follows may take in the rest.
            defer { metrics.received(byteCount: byteCount, frameCount: assembler.frameCount - before) }
            byteCount = try bytes.withUnsafeReadableBytes {
                try assembler.receivePart(of: $0, limit: limit, into: &receiver)
            }
        } catch let error as ConnectionError {
            // The receiver's own doing.
            _ = receiver.finishBatch()
            return fail(error, resetting: true)
        } catch {
            _ = receiver.finishBatch()
            return framingViolated(.protocolViolation(error), action)
        }
        if byteCount < bytes.readableBytes {
            rest = bytes
            rest.moveReaderIndex(forwardBy: byteCount)
        }
        if receiver.finishBatch() == .pause { pauseReading(.receiver) }
        if let replyBuffer { sendReplies(in: replyBuffer) }
        do throws(ConnectionError) {
            try reply(receiver.takeReplies())
        } catch {
            fail(error, resetting: true)
        }
    }

    /// Has a channel read into its loop's buffer, which this handler gives back. For the handler next to the socket.
    func readIntoSharedBuffer(of channel: any Channel) throws {
        let length = NIOLoopBoundBox(readLength, eventLoop: channel.eventLoop)
        try channel.syncOptions?.setOption(.recvAllocator, value: SharedReceiveAllocator(readLength: length))
        sharedReadLength = length
    }

    func setReadLength(after byteCount: Int) {
        let length = ReadLength.next(after: byteCount, pendingLength: assembler.pendingLength)
        if length == readLength { return }
        readLength = length
        sharedReadLength?.value = length
    }

    /// - Parameter action: what was done with the bytes.
    private func framingViolated(_ error: ConnectionError, _ action: ConnectionStateMachine.BytesAction) {
        // What is for nobody may be anything.
        cannotAnswer = true
        if action == .parse { fail(error, resetting: true) }
    }

    private func reply(_ frames: [UInt8]) {
        guard !frames.isEmpty, let flushNow = outbound.append(frames) else { return }
        if replies.queued(byteCount: frames.count) { pauseReading(.replies) }
        if flushNow { flush() }
    }

    private func sendReplies(in buffer: ReplyBuffer) {
        let flushNow = buffer.take { bytes, frameCount in
            let byteCount = bytes.readableBytes
            guard let flushNow = outbound.append(&bytes, frameCount: frameCount) else { return false }
            if replies.queued(byteCount: byteCount) { pauseReading(.replies) }
            return flushNow
        }
        if flushNow == true { flush() }
    }

    func read(context: ChannelHandlerContext) {
        if !pauses.isEmpty {
            isReadHeld = true
        } else {
            context.read()
        }
    }

    /// The receiver takes more.
    func resumeReading() {
        resumeReading(.receiver)
    }

    func resumeReading(_ reason: ReadPauses) {
        guard !pauses.isEmpty else { return }
        pauses.subtract(reason)
        guard pauses.isEmpty else { return }
        liveness?.readingResumed(now: now())
        armLivenessTimer()
        if reason.contains(.receiver) { chargeMemory() }
        guard isReadHeld else { return }
        isReadHeld = false
        context?.read()
    }

    func pauseReading(_ reason: ReadPauses) {
        pauses.insert(reason)
        liveness?.readingPaused()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        handle(.user(event))
        context.fireUserInboundEventTriggered(event)
    }

    func inboundEventTriggered(_ event: Any) {
        if case .inputClosed? = event as? ChannelEvent {
            liveness?.inputEnded()
            perform(machine.inputEnded())
        } else if event is PeerEndedBothSides {
            liveness?.inputEnded()
            // First, so that who sees the end cannot send any more. What is accepted and not written, the layer fails.
            let flushNow = outbound.finish(refusing: .webSocketEnded)
            perform(machine.inputEnded())
            if flushNow { flush() }
        } else if let violation = event as? FramingViolated {
            framingViolated(violation.error, machine.receivedBytes())
        }
    }

    func stopReceiving() {
        perform(machine.stopReceivingRequested())
    }

    func perform(_ action: ConnectionStateMachine.EndAction) {
        if let end = action.finishInput {
            if let violation = finishInput(end) { fail(violation, resetting: true) }
            // What comes from now on is for nobody, however much waits for the receiver. Pings are still answered, so
            // that a peer which asks and does not read is read no further than before.
            resumeReading(.receiver)
        }
        if action.closeChannel { context?.close(promise: nil) }
    }

    /// Ends the receiver's input. Returns an error when the peer ended inside a frame.
    func finishInput(_ end: ConnectionStateMachine.InputEnd) -> ConnectionError? {
        if let failure = machine.failure {
            receiver.finish(throwing: failure)
            return nil
        }
        do throws(FramingError) {
            if end == .byPeer { try assembler.finish() }
            receiver.finish(throwing: nil)
            return nil
        } catch {
            let violation = ConnectionError.protocolViolation(error)
            receiver.finish(throwing: violation)
            return violation
        }
    }

    // MARK: Output

    func flush() {
        guard let context else { return }
        switch outbound.takeForFlush() {
        case .none:
            return
        case .write(let buffer, let frameCount, let isFinishing):
            // What a peer asks from now on would put the end off for as long as it asks.
            if isFinishing { replyBuffer?.isOpen = false }
            metrics.sent(byteCount: buffer.readableBytes, frameCount: frameCount)
            let written = context.eventLoop.makePromise(of: Void.self)
            written.futureResult.assumeIsolated().whenComplete { self.completeWrite($0) }
            isWriting = true
            bytesInFlight = buffer
            replies.writeStarted()
            context.writeAndFlush(wrapOutboundOut(buffer), promise: written)
            watchWrite(byteCount: buffer.readableBytes)
            if isWriting, buffer.readableBytes > outboundMarks.low { writeStalled(byteCount: buffer.readableBytes) }
        case .endOutput:
            replyBuffer?.isOpen = false
            let ended = context.eventLoop.makePromise(of: Void.self)
            ended.futureResult.assumeIsolated().whenComplete { self.completeOutput($0) }
            context.close(mode: .output, promise: ended)
        }
    }

    /// The kernel has not taken all of a write. Until it has, as much may be accepted as the high mark allows.
    private func writeStalled(byteCount: Int) {
        stalledByteCount = max(byteCount, outboundMarks.high)
        chargeMemory()
    }

    private func completeWrite(_ result: Result<Void, any Error>) {
        switch result {
        case .failure(let error):
            ioFailed(error)
        case .success:
            isWriting = false
            if stalledByteCount > 0 {
                stalledByteCount = 0
                chargeMemory()
            }
            SpareBuffer.forWriting.giveBack(bytesInFlight)
            bytesInFlight = ByteBuffer()
            liveness?.writeCompleted()
            if replies.writeCompleted() { resumeReading(.replies) }
            // The next tick, so that what is sent until then goes out together.
            if outbound.completeWrite() { context?.eventLoop.assumeIsolated().execute { self.flush() } }
            if let watch, outbound.asksForAcknowledgement {
                outbound.acknowledge(byteCount: watch.acknowledgedByteCount)
            }
        }
    }
}
