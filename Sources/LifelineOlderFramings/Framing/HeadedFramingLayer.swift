internal import LifelineCore
internal import LifelineTransport
package import NIOCore

/// Is informed of written requests on the connection's loop, before the peer can answer them, and in their order on the
/// wire.
package protocol RequestObserver: Sendable {
    /// Notes that the request with this tag is being written.
    func wroteRequest(tag: UInt32)
}

/// The layer of an older framing, above all other layers. It converts its frames to Lifeline's own (`CarriedFrame`) and
/// back, so that queues, back-pressure, heartbeats and closing are the same for every framing.
///
/// Its handler is the only one outside of the transport, because a generic handler is specialized for its framings only
/// in their module.
package struct HeadedFramingLayer<Framing: HeadedFraming>: ChannelLayer
where Framing.InboundHead: CarriedHead, Framing.OutboundHead: CarriedHead {
    private let framing: Framing
    private let observer: (any RequestObserver)?

    package init(_ framing: Framing, observer: (any RequestObserver)? = nil) {
        self.framing = framing
        self.observer = observer
    }

    /// The layer has no handshake, so this name is never used.
    package var handshakeName: String { "the framing" }

    package func add(to channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture {
            let handler = HeadedFramingHandler(framing, observer: observer)
            try channel.pipeline.syncOperations.addHandler(handler)
        }
    }
}

/// The layer's handler. It only translates; `HeadedFrameAssembler` and the framing decide.
///
/// The frames that a read completes are passed on together. A read that completes none passes on no bytes, which counts
/// as a sign of life.
final class HeadedFramingHandler<Framing: HeadedFraming>: ChannelDuplexHandler
where Framing.InboundHead: CarriedHead, Framing.OutboundHead: CarriedHead {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var assembler: HeadedFrameAssembler<Framing>
    private let observer: (any RequestObserver)?
    /// Whether the stream has failed: later bytes are dropped.
    private var hasFailed = false

    init(_ framing: Framing, observer: (any RequestObserver)?) {
        assembler = HeadedFrameAssembler(framing: framing)
        self.observer = observer
    }

    // MARK: Input

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // No more frames, but a sign of life.
        if hasFailed { return context.fireChannelRead(wrapInboundOut(ByteBuffer())) }
        let bytes = unwrapInboundIn(data)
        // Lifeline's form of a frame is shorter than the wire form, so this only grows for bytes of earlier reads.
        var sink = Sink(frames: context.channel.allocator.buffer(capacity: bytes.readableBytes))
        let result = Result { try bytes.withUnsafeReadableBytes { try assembler.receive($0, into: &sink) } }
        context.fireChannelRead(wrapInboundOut(sink.frames))
        if case .failure(let error) = result { fail(error, context) }
    }

    private struct Sink: HeadedFrameSink {
        var frames: ByteBuffer

        mutating func receive(head: Framing.InboundHead, content: UnsafeRawBufferPointer) throws {
            let headLength = head.carriedLength
            // The framing's limit fits into a prefix.
            let length = UInt64(headLength + content.count)
            let prefixLength = Varint.encodedLength(of: length)
            frames.writeWithUnsafeMutableBytes(minimumWritableBytes: prefixLength + headLength) { room in
                Varint.encode(length, into: room)
                head.writeCarried(tag: 0, into: UnsafeMutableRawBufferPointer(rebasing: room[prefixLength...]))
                return prefixLength + headLength
            }
            frames.writeBytes(content)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        var isEnd = event is PeerEndedBothSides
        if case .inputClosed? = event as? ChannelEvent { isEnd = true }
        if isEnd, !hasFailed {
            do { try assembler.finish() } catch { fail(error, context) }
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func fail(_ error: any Error, _ context: ChannelHandlerContext) {
        hasFailed = true
        context.fireUserInboundEventTriggered(FramingViolated(error))
    }

    // MARK: Output

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let frames = unwrapOutboundIn(data)
        var wire = context.channel.allocator.buffer(capacity: frames.readableBytes)
        do {
            try frames.withUnsafeReadableBytes { try encode($0, into: &wire) }
        } catch {
            // This never happens, because messages are checked when they are made.
            promise?.fail(error)
            return
        }
        context.write(wrapOutboundOut(wire), promise: promise)
    }

    private func encode(_ frames: UnsafeRawBufferPointer, into wire: inout ByteBuffer) throws(FramingError) {
        var offset = 0
        while offset < frames.count {
            guard let range = CarriedFrame.nextPayload(in: frames, from: offset) else { throw .malformedPrefix }
            let payload = UnsafeRawBufferPointer(rebasing: frames[range])
            guard let (head, tag, headLength) = Framing.OutboundHead.carried(in: payload) else {
                throw .invalidHead("A frame has no head.")
            }
            try write(head, UnsafeRawBufferPointer(rebasing: payload[headLength...]), into: &wire)
            if tag != 0 { observer?.wroteRequest(tag: tag) }
            offset = range.upperBound
        }
    }

    private func write(
        _ head: Framing.OutboundHead,
        _ content: UnsafeRawBufferPointer,
        into wire: inout ByteBuffer
    ) throws(FramingError) {
        let framing = assembler.framing
        let headLength = try framing.headLength(of: head, contentLength: content.count)
        var result: Result<Int, FramingError> = .success(0)
        wire.writeWithUnsafeMutableBytes(minimumWritableBytes: headLength) { room in
            result = Result { () throws(FramingError) in
                try framing.writeHead(head, contentLength: content.count, into: room)
            }
            return (try? result.get()) ?? 0
        }
        _ = try result.get()
        wire.writeBytes(content)
    }
}
