internal import LifelineCore
internal import NIOCore
internal import NIOSSL
internal import NIOTLS

/// The handler above NIOSSL's: waits for the end of the handshake, converts errors, and passes on large writes in
/// parts.
final class TLSHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The size of parts, four records. NIOSSL keeps a buffer as large as the largest write for as long as the
    /// connection lives, so a message of megabytes would cost that memory for ever.
    private static let largestWrite = 64 << 10

    /// The agreed application protocol (ALPN); nil when there is none.
    private(set) var applicationProtocol: String?

    private let peer: String
    private let gate = VerificationGate()
    /// Nil once it is completed.
    private var handshakeDone: EventLoopPromise<Void>?
    /// The reason why the peer's certificate was refused, which NIOSSL does not keep.
    private var refusal: ConnectionError?

    /// - Parameter peer: the name of the peer, for errors.
    init(peer: String, handshakeDone: EventLoopPromise<Void>) {
        self.peer = peer
        self.handshakeDone = handshakeDone
    }

    /// Adds NIOSSL's handler and this one to the end of the pipeline.
    func add(behind tls: NIOSSLHandler, to channel: any Channel) -> EventLoopFuture<Void> {
        guard let outcome = handshakeDone?.futureResult else { preconditionFailure("A handler is added once.") }
        do {
            let pipeline = channel.pipeline.syncOperations
            // This one first, because NIOSSL's begins, and may fail, as soon as it is added.
            try pipeline.addHandler(self)
            try pipeline.addHandler(gate, position: .before(self))
            try pipeline.addHandler(tls, position: .before(self))
        } catch {
            end(with: .failure(error))
        }
        return outcome
    }

    /// Fails before it has begun.
    func fail(_ error: ConnectionError) -> EventLoopFuture<Void> {
        guard let outcome = handshakeDone?.futureResult else { preconditionFailure("A handler is added once.") }
        end(with: .failure(error))
        return outcome
    }

    /// Returns a callback that verifies the peer's certificates in a task, because that takes milliseconds.
    func verificationCallback(_ verifier: CertificateVerifier) -> NIOSSLCustomVerificationCallback {
        verificationCallback { certificates, loop in
            let verified = loop.makePromise(of: Void.self)
            verified.completeWithTask { try await verifier.verify(certificates) }
            return verified.futureResult
        }
    }

    /// - Parameter verify: begins to verify. The returned future fails when the peer is refused, and is completed on
    ///   the loop.
    func verificationCallback(
        _ verify: @escaping (_ certificates: [NIOSSLCertificate], _ loop: any EventLoop) -> EventLoopFuture<Void>
    ) -> NIOSSLCustomVerificationCallback {
        { certificates, promise in
            self.gate.close()
            verify(certificates, promise.futureResult.eventLoop).assumeIsolated().whenComplete { result in
                if case .failure(let error) = result { self.refusal = error as? ConnectionError }
                let isVerified = (try? result.get()) != nil
                promise.succeed(isVerified ? .certificateVerified : .failed)
                self.gate.resume()
            }
        }
    }

    private func end(with result: Result<Void, any Error>) {
        guard let handshakeDone else { return }
        self.handshakeDone = nil
        handshakeDone.completeWith(result)
        gate.open()
    }

    // MARK: Events

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted(let negotiatedProtocol):
            applicationProtocol = negotiatedProtocol
            // The handlers above are added in this call, before NIOSSL passes on bytes that came with the end of the
            // handshake.
            end(with: .success(()))
        case ChannelEvent.inputClosed where handshakeDone != nil:
            end(with: .failure(HandshakeCut()))
        default:
            break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard handshakeDone != nil else {
            let translated: (any Error)? = ConnectionError.tlsError(error, peer: peer)
            return context.fireErrorCaught(translated ?? error)
        }
        let reason: (any Error)? = refusal ?? ConnectionError.tlsError(error, peer: peer)
        end(with: .failure(reason ?? HandshakeCut(cause: error)))
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(with: .failure(HandshakeCut()))
        context.fireChannelInactive()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var bytes = unwrapOutboundIn(data)
        while bytes.readableBytes > TLSHandler.largestWrite, let part = bytes.readSlice(length: TLSHandler.largestWrite)
        {
            // Flushed, because otherwise NIOSSL encrypts all parts into one buffer.
            context.writeAndFlush(wrapOutboundOut(part), promise: nil)
        }
        context.write(wrapOutboundOut(bytes), promise: promise)
    }
}

/// The handler below NIOSSL's while the peer's certificate is verified.
///
/// It stops reading from the socket meanwhile, because NIOSSL would keep all bytes of a peer that is not verified yet.
/// Only the bytes of the read that started it are kept, and, from a peer that has ended its side, those in the socket's
/// buffer.
///
/// It holds back the end of the peer's stream until the handshake is done. A client of TLS 1.3 may have sent
/// everything, and ended its side, before the server has verified its certificate; NIOSSL would take that for an end
/// inside the handshake.
private final class VerificationGate: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    private var context: ChannelHandlerContext?
    private var isClosed = false
    private var holdsEnd = false
    private var isVerifying = false
    private var holdsRead = false

    func close() {
        isClosed = true
        isVerifying = true
    }

    /// Resumes after the verdict. In TLS 1.2 more of the handshake may follow.
    func resume() {
        isVerifying = false
        guard holdsRead else { return }
        holdsRead = false
        context?.read()
    }

    func read(context: ChannelHandlerContext) {
        if isVerifying { holdsRead = true } else { context.read() }
    }

    /// Passes on the end in the next tick, after the bytes that the peer has sent before it.
    func open() {
        guard isClosed else { return }
        context?.eventLoop.assumeIsolated().execute {
            self.isClosed = false
            if self.holdsEnd { self.context?.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        }
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if isClosed, case .inputClosed? = event as? ChannelEvent {
            holdsEnd = true
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }
}
