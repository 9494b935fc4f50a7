internal import LifelineCore
internal import NIOCore
internal import NIOWebSocket

/// The end of a WebSocket: each side sends a Close, then a server closes the TCP connection, and a client waits for
/// that.
extension WebSocketHandler {
    /// How long to wait for the other side to close the TCP connection: a client leaves that to the server (RFC 6455,
    /// section 7.1.1), and a server that refuses something gives the peer time to read its Close. Long enough for
    /// several round trips.
    static var lingerTime: TimeAmount { .seconds(1) }

    enum Linger {
        /// Can go to: waiting.
        case none
        /// The TCP connection stays open until the peer closes it, or the time is over. Can go to: over.
        case waiting(Wait)
        case over
    }

    struct Wait {
        let timer: Scheduled<Void>
        /// Whether a Close reports a failure: then the cut that follows waits, too.
        let isAfterFailure: Bool
        var isCloseRequested = false
        var close: EventLoopPromise<Void>?

        mutating func requestClose(_ promise: EventLoopPromise<Void>?) {
            isCloseRequested = true
            guard let close else { return close = promise }
            promise.map { close.futureResult.cascade(to: $0) }
        }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        switch mode {
        case .input:
            context.close(mode: .input, promise: promise)
        case .output:
            // The peer closes its side in response, and a server then closes the TCP connection.
            if let close = machine.endRequested() { writeClose(close, context) }
            let written = closeWritten ?? context.eventLoop.makeSucceededVoidFuture()
            // A peer that has closed may be gone before it reads our answer.
            let hasPeerClosed = machine.hasPeerClosed
            written.flatMapErrorThrowing { if !hasPeerClosed { throw $0 } }.cascade(to: promise)
        case .all:
            if case .waiting(var wait) = linger {
                wait.requestClose(promise)
                linger = .waiting(wait)
                return
            }
            closeTransport(context, promise)
        }
    }

    func writeClose(_ payload: [UInt8], _ context: ChannelHandlerContext) {
        let written = context.eventLoop.makePromise(of: Void.self)
        closeWritten = written.futureResult
        context.writeAndFlush(frame(.connectionClose, ByteBuffer(bytes: payload)), promise: written)
    }

    func beginLinger(isAfterFailure: Bool, _ context: ChannelHandlerContext) {
        guard case .none = linger else { return }
        let timer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingerTime) {
            self.endLinger(isOverdue: true, context)
        }
        linger = .waiting(Wait(timer: timer, isAfterFailure: isAfterFailure))
        context.read()
    }

    func endLinger(isOverdue: Bool, _ context: ChannelHandlerContext) {
        guard case .waiting(let wait) = linger else { return }
        linger = .over
        wait.timer.cancel()
        guard wait.isCloseRequested else { return }
        if isOverdue || wait.isAfterFailure {
            cut(context, wait.close)
        } else {
            closeTransport(context, wait.close)
        }
    }

    /// Closes the TCP connection after both sides have closed. A layer below sends its end, and does not wait for that
    /// of the peer, because many peers do not send it.
    private func closeTransport(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        guard machine.hasPeerClosed, !machine.maySend else {
            // The end that follows is not a cut by the peer.
            _ = machine.transportEnded()
            return context.close(mode: .all, promise: promise)
        }
        let timer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingerTime) { self.cut(context, nil) }
        let ended = context.eventLoop.makePromise(of: Void.self)
        ended.futureResult.assumeIsolated().whenComplete { _ in
            timer.cancel()
            self.cut(context, promise)
        }
        context.close(mode: .output, promise: ended)
    }

    func cut(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        _ = machine.transportEnded()
        context.triggerUserOutboundEvent(SocketCut(), promise: promise)
    }
}
