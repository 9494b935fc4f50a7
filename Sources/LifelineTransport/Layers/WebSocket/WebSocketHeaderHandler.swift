internal import LifelineCore
internal import NIOCore

/// Checks the headers of frames before the codec reads them. The first invalid frame, and all bytes after it, are
/// dropped; `WebSocketHandler` gets the `WebSocketClosure` as an error.
final class WebSocketHeaderHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var checker: WebSocketHeaderChecker
    private var hasFailed = false

    init(_ rules: WebSocketFrameRules) {
        checker = WebSocketHeaderChecker(rules)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if hasFailed { return }
        var bytes = unwrapInboundIn(data)
        let (validCount, violation) = bytes.withUnsafeReadableBytes { checker.check($0) }
        guard let violation else { return context.fireChannelRead(data) }
        hasFailed = true
        if validCount > 0, let valid = bytes.readSlice(length: validCount) {
            context.fireChannelRead(wrapInboundOut(valid))
        }
        context.fireErrorCaught(violation)
    }
}
