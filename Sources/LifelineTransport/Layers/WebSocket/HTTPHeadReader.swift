internal import NIOCore

/// An event: all bytes read so far were decoded.
struct HTTPBytesDecoded {}

/// Runs one of NIO's HTTP decoders until the protocol is switched.
///
/// NIO's own handler passes on the bytes after the head later, when it leaves the pipeline, and loses them when the
/// peer ends its side meanwhile. Its decoder does not bound everything before a head's end, either: empty lines, heads
/// of informational answers, reason phrases.
final class HTTPHeadReader<Decoder: ByteToMessageDecoder>: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// The most bytes until a head is complete: twice what `WebSocketLayer.headLimits` allows for its fields.
    private static var maximumHeadByteCount: Int { 64 << 10 }
    /// The most bytes that may wait after a head, until the WebSocket is open: some reads of the largest size.
    private static var maximumRestByteCount: Int { 256 << 10 }

    private enum State {
        /// Can go to: keeping, dropping.
        case decoding
        /// Received bytes are kept for the next handler. Can go to: dropping.
        case keeping
        /// Received bytes are dropped. Can go to: no other state.
        case dropping
    }

    private var decoder: Decoder
    private var state = State.decoding
    private var decodedByteCount = 0
    /// The bytes that are not decoded.
    private var bytes = ByteBuffer()

    init(_ decoder: Decoder) {
        self.decoder = decoder
    }

    /// Keeps the bytes after the head, which is complete.
    func keepRest() {
        if case .decoding = state { state = .keeping }
    }

    /// Returns the bytes after the head so far. No more are kept.
    func takeRest() -> ByteBuffer {
        defer { drop() }
        return bytes
    }

    /// Drops all further bytes.
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
        // Moved out, because a callee of the decoder may call `drop()`.
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

    /// The decoder leaves the bytes of an incomplete field, and all bytes after the head when the protocol is switched.
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
