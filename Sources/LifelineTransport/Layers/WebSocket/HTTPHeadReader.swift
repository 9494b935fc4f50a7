internal import NIOCore

/// What was read so far was decoded.
struct HTTPBytesDecoded {}

/// Runs one of NIO's HTTP decoders until the protocol is switched.
///
/// NIO's own handler for that hands what follows the head on later, when it leaves the pipeline, and loses it when the
/// peer ends its side meanwhile. Nor does the decoder bound everything that may stand before a head's end: empty lines,
/// heads of informational answers, the phrase beside a status.
final class HTTPHeadReader<Decoder: ByteToMessageDecoder>: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// Until a head is complete: twice what `WebSocketLayer.headLimits` give its fields.
    private static var maximumHeadByteCount: Int { 64 << 10 }
    /// What may wait behind a head, until the WebSocket is open: some reads of the largest size.
    private static var maximumRestByteCount: Int { 256 << 10 }

    private enum State {
        /// Can go to: keeping, dropping.
        case decoding
        /// What comes is for who follows. Can go to: dropping.
        case keeping
        /// What comes is for nobody. Can go to: nothing.
        case dropping
    }

    private var decoder: Decoder
    private var state = State.decoding
    private var decodedByteCount = 0
    /// What is not decoded.
    private var bytes = ByteBuffer()

    init(_ decoder: Decoder) {
        self.decoder = decoder
    }

    /// The head is complete: what follows it is kept.
    func keepRest() {
        if case .decoding = state { state = .keeping }
    }

    /// What follows the head, so far. No more is kept.
    func takeRest() -> ByteBuffer {
        defer { drop() }
        return bytes
    }

    /// Nothing more is wanted.
    func drop() {
        state = .dropping
        bytes = ByteBuffer()
    }

    func handlerAdded(context: ChannelHandlerContext) {
        decoder.decoderAdded(context: context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        decoder.decoderRemoved(context: context)
        drop()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .dropping = state { return }
        // Taken out, for whom the decoder calls may want nothing more.
        var bytes = ByteBuffer()
        swap(&bytes, &self.bytes)
        bytes.writeImmutableBuffer(unwrapInboundIn(data))
        do {
            if case .decoding = state { try decode(&bytes, context) }
            try checkCount(of: bytes)
        } catch {
            drop()
            return context.fireErrorCaught(error)
        }
        if case .dropping = state { return }
        bytes.discardReadBytes()
        self.bytes = bytes
        context.fireUserInboundEventTriggered(HTTPBytesDecoded())
    }

    /// The decoder leaves bytes of a field that is not whole, and all that follows the head when the protocol is
    /// switched.
    private func decode(_ bytes: inout ByteBuffer, _ context: ChannelHandlerContext) throws {
        let before = bytes.readableBytes
        _ = try decoder.decode(context: context, buffer: &bytes)
        decodedByteCount += before - bytes.readableBytes
    }

    private func checkCount(of bytes: ByteBuffer) throws {
        let isTooMuch =
            switch state {
            case .decoding: decodedByteCount + bytes.readableBytes > Self.maximumHeadByteCount
            case .keeping: bytes.readableBytes > Self.maximumRestByteCount
            case .dropping: false
            }
        if isTooMuch { throw ByteToMessageDecoderError.PayloadTooLargeError() }
    }
}
