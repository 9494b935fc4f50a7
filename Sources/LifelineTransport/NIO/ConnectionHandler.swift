internal import LifelineCore
internal import LifelineRuntime
internal import NIOCore

/// The one handler of a connection: finds frames in place, passes them on in batches, and writes the bytes of the
/// outbound queue when tasks have run, or once a tick. It translates; `ConnectionStateMachine`, `Liveness`,
/// `FrameAssembler` and the two queues decide.
///
/// Inbound back-pressure: while the receiver's queue is over its high-water mark, the channel's `read` events are held
/// here. One read may still come in after that. When the peer ends its side, NIO nevertheless reads the bytes that the
/// kernel still holds, which are at most the socket's receive buffer.
final class ConnectionHandler<Receiver: FrameReceiver>: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    let outbound: OutboundQueue
    let closed = Latch<ClosureReport>()
    /// Opens when the kernel has everything accepted and this side has ended, or with the reason why that will not
    /// happen.
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
    /// Runs tasks on the loop; nil if none run there.
    var executor: LoopExecutor?
    var pauses: ReadPauses = []
    private var isReadHeld = false
    var closeTimer: Scheduled<Void>?
    let metrics: TransportMetrics
    private let tracksDelivery: Bool
    let hasLayers: Bool
    let layersSendPings: Bool
    var watch: SocketWatch?
    /// The state while the end waits for acknowledgements.
    var lastWait: LastWait?
    /// Whether the peer's pings can no longer be found.
    private var cannotAnswer = false
    /// Nil while there is no connection.
    var liveness: Liveness?
    var livenessTimer = LoopTimer()
    var isWriting = false
    private var replies: ReplyBacklog
    let replyBuffer: ReplyBuffer?
    /// Nil when this handler does not control the length of reads.
    var sharedReadLength: NIOLoopBoundBox<Int>?
    private var readLength = ReadLength.normal
    /// A copy of the receiver's limit: reading it there would copy the receiver.
    let partLimit: PartLimit
    /// The read bytes that are still to be received.
    var rest = ByteBuffer()
    /// The events after the rest, which are handled when that has been received.
    var deferred: [DeferredEvent] = []
    /// The number of the connection's last turn on the loop; nil before the first.
    var lastTurn: Int?
    /// Whether the rest waits for the connection's next turn.
    var isWaitingForTurn = false
    /// The limit for frames once the peer was let in.
    private let maximumFrameLength: Int
    /// Set on an accepted connection until the peer has sent something, or was let in.
    var newcomer: Newcomer?
    /// Whether a peer is let in with its first bytes.
    let letsAnybodyIn: Bool
    private let memoryBudget: MemoryBudget?
    var memoryCharge: MemoryCharge?
    /// The bytes kept for a peer that does not take written ones; 0 while it does.
    private var stalledByteCount = 0
    private let outboundMarks: WaterMarks
    /// The bytes being written; their memory is reused afterwards.
    var bytesInFlight = ByteBuffer()

    var inbox: Receiver.Inbox { receiver.inbox }

    /// - Parameters:
    ///   - whenActive: called when the connection is open.
    ///   - now: reads the clock for the peer's liveness.
    ///   - acknowledgedByteCount: returns the number of written bytes that the peer's kernel has acknowledged; nil if
    ///     unknown.
    ///   - unacknowledgedByteCount: returns the number of bytes that this kernel has taken and the peer's has not
    ///     acknowledged; nil if unknown.
    init(
        receiver: Receiver,
        options: ConnectionOptions,
        whenActive: ((ConnectionHandler, any Channel) -> Void)? = nil,
        now: @escaping () -> MonotonicTime = MonotonicTime.now,
        acknowledgedByteCount: @escaping (any Channel) -> UInt64? = {
            ($0 as? any AcknowledgedChannel)?.acknowledgedByteCount
                ?? withSocket(of: $0) { TCPSocket.information(on: $0)?.acknowledgedByteCount } ?? nil
        },
        unacknowledgedByteCount: @escaping (any Channel) -> UInt64? = {
            ($0 as? any AcknowledgedChannel)?.unacknowledgedByteCount
                ?? withSocket(of: $0) { TCPSocket.unacknowledgedByteCount(on: $0) } ?? nil
        }
    ) {
        self.receiver = receiver
        // With layers, the peer's TCP acknowledges other bytes than those of frames.
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
        // With layers the channel is active before this handler is added.
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
            watch = SocketWatch.watch(context.channel)
            if watch == nil { outbound.stopTracking() }
        }
        liveness = Liveness(livenessOptions, connectedAt: now())
        boundRetransmission()
        armLivenessTimer()
        whenActive.take()?(self, context.channel)
    }

    /// Notes that the peer was let in.
    func admitPeer() {
        assembler.raiseLimit(to: maximumFrameLength)
        newcomer?.leave()
        newcomer = nil
    }

    /// Charges the bytes that are kept until the socket is read or written again.
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

    /// Receives a part of the read bytes, or drops all of them when no more are wanted.
    func receivePart(_ limit: PartLimit) {
        let bytes = rest
        rest = ByteBuffer()
        let action = machine.receivedBytes()
        if action == .discard || (action == .answer && (cannotAnswer || !receiver.answersPings)) { return }
        let before = assembler.frameCount
        var byteCount = bytes.readableBytes
        do {
            // At once, because the following calls may receive the rest.
            defer { metrics.received(byteCount: byteCount, frameCount: assembler.frameCount - before) }
            byteCount = try bytes.withUnsafeReadableBytes {
                try assembler.receivePart(of: $0, limit: limit, into: &receiver)
            }
        } catch let error as ConnectionError {
            // The receiver itself has failed.
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

    /// Makes a channel read into its loop's buffer, which this handler gives back. For the handler next to the socket.
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

    /// - Parameter action: the handling of the bytes.
    private func framingViolated(_ error: ConnectionError, _ action: ConnectionStateMachine.BytesAction) {
        // Bytes that are dropped need not be frames.
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

    /// Resumes reading, because the receiver takes more.
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
            // First, so that code that sees the end cannot send any more. The layer fails accepted bytes that are not
            // written.
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
            // Bytes received from now on are dropped, however much waits for the receiver. Pings are still answered, so
            // the limit for a peer that asks and does not read remains.
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
            // Answers from now on would delay the end for as long as the peer asks.
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

    /// Handles a write that the kernel has not fully taken. Until it has, bytes are accepted up to the high mark.
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
            // In the next tick, so that messages sent until then go out together.
            if outbound.completeWrite() { context?.eventLoop.assumeIsolated().execute { self.flush() } }
            if let watch, outbound.asksForAcknowledgement {
                outbound.acknowledge(byteCount: watch.acknowledgedByteCount)
            }
        }
    }
}
