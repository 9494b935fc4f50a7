internal import NIOCore

/// All that was read was decoded so far; this is what follows the head of the last message.
struct HTTPBytesDecoded {
    let rest: ByteBuffer
}

/// Runs one of NIO's HTTP decoders until the protocol is switched.
///
/// NIO's own handler for that hands what follows the head on later, when it leaves the pipeline, and loses it when the peer
/// ends its side meanwhile.
final class HTTPHeadReader<Decoder: ByteToMessageDecoder>: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// What may wait behind a head, until the WebSocket is open: some reads of the largest size.
    private static var maximumByteCount: Int { 256 << 10 }

    private var decoder: Decoder
    private var bytes = ByteBuffer()
    private var hasFailed = false

    init(_ decoder: Decoder) {
        self.decoder = decoder
    }

    func handlerAdded(context: ChannelHandlerContext) {
        decoder.decoderAdded(context: context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        decoder.decoderRemoved(context: context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasFailed else { return }
        bytes.writeImmutableBuffer(unwrapInboundIn(data))
        do {
            // It keeps bytes of a field that is not whole, and all that follows the head when the protocol is switched.
            _ = try decoder.decode(context: context, buffer: &bytes)
            if bytes.readableBytes > Self.maximumByteCount { throw ByteToMessageDecoderError.PayloadTooLargeError() }
        } catch {
            hasFailed = true
            return context.fireErrorCaught(error)
        }
        context.fireUserInboundEventTriggered(HTTPBytesDecoded(rest: bytes))
    }
}
