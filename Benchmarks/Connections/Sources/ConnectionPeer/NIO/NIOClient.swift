internal import NIOCore
internal import NIOPosix

/// A client with SwiftNIO's own codecs, which flushes when a read is complete.
final class NIOClient: PeerClient {
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private var channel: (any Channel)?

    func open(port: Int, connectionCount: Int) async throws {
        guard connectionCount == 1 else { throw Unsupported() }
        channel = try await ClientBootstrap(group: group)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers([
                        ByteToMessageHandler(VarintFrameDecoder()),
                        MessageToByteHandler(VarintFrameEncoder()),
                        SendingHandler(),
                    ])
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
    }

    func oneWay(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        try await run(payload, inFlight: nil, limit)
    }

    func echo(_ payload: Payload, inFlight: Int, _ limit: SendLimit) async throws -> Outcome {
        try await run(payload, inFlight: inFlight, limit)
    }

    private func run(_ payload: Payload, inFlight: Int?, _ limit: SendLimit) async throws -> Outcome {
        guard let channel else { throw Unsupported() }
        return try await channel.eventLoop.flatSubmit {
            let done = channel.eventLoop.makePromise(of: Outcome.self)
            do {
                let handler = try channel.pipeline.syncOperations.handler(type: SendingHandler.self)
                handler.start(ByteBuffer(bytes: payload.bytes), inFlight: inFlight, limit, done)
            } catch {
                done.fail(error)
            }
            return done.futureResult
        }.get()
    }

    func close() async throws {
        try await channel?.close()
    }
}

/// Sends one way, or echoes messages.
private final class SendingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private struct Run {
        let payload: ByteBuffer
        let limit: SendLimit
        let isOneWay: Bool
        let done: EventLoopPromise<Outcome>
        let begin = now()
        var trips: RoundTrips?
        var check = EchoCheck()
        var sent = 0
        var outstanding = 0
        var isSending = true
    }

    private var run: Run?
    private var context: ChannelHandlerContext?
    private var isInSend = false

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func start(_ payload: ByteBuffer, inFlight: Int?, _ limit: SendLimit, _ done: EventLoopPromise<Outcome>) {
        guard let context else { return done.fail(ChannelError.ioOnClosedChannel) }
        var run = Run(payload: payload, limit: limit, isOneWay: inFlight == nil, done: done)
        run.trips = RoundTrips(inFlight: inFlight ?? 0, begin: run.begin)
        self.run = run
        if let inFlight {
            for _ in 0..<inFlight { send(context) }
            context.flush()
        } else {
            sendWhileThereIsRoom(context)
        }
    }

    private func send(_ context: ChannelHandlerContext) {
        guard let payload = run?.payload else { return }
        context.write(wrapOutboundOut(payload), promise: nil)
        run?.sent += 1
        run?.outstanding += 1
    }

    private func sendWhileThereIsRoom(_ context: ChannelHandlerContext) {
        guard !isInSend else { return }
        isInSend = true
        while let run, run.isSending, context.channel.isWritable {
            if run.sent % 64 == 0, run.limit.isReached(since: run.begin, sent: run.sent) {
                self.run?.isSending = false
                context.write(wrapOutboundOut(ByteBuffer()), promise: nil)
                context.flush()
            } else {
                send(context)
                // Writes are collected up to the channel's high-water mark.
                if !context.channel.isWritable { context.flush() }
            }
        }
        isInSend = false
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if run?.isOneWay == true { sendWhileThereIsRoom(context) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        run?.outstanding -= 1
        run?.trips?.end()
        guard let expected = run.map({ $0.isOneWay ? ByteBuffer() : $0.payload }) else { return }
        do {
            try run?.check.received { unwrapInboundIn(data) == expected }
        } catch {
            return errorCaught(context: context, error: error)
        }
        guard let run else { return }
        if run.isOneWay { return finish() }
        if run.isSending {
            if (run.sent % 64 == 0 || run.trips != nil) && run.limit.isReached(since: run.begin, sent: run.sent) {
                self.run?.isSending = false
            } else {
                return send(context)
            }
        }
        if run.outstanding == 0 { finish() }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    private func finish() {
        guard let run else { return }
        self.run = nil
        var outcome = Outcome(messages: run.sent, nanoseconds: now() - run.begin)
        run.trips?.complete(&outcome)
        run.done.succeed(outcome)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        run?.done.fail(error)
        run = nil
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        run?.done.fail(ChannelError.eof)
        run = nil
    }
}
