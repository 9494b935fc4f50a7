internal import LifelineCore
internal import LifelineRuntime
internal import NIOCore

/// The interface between a connection's handle and its handler, on its loop. With this protocol the handle is not
/// generic code, which looks up types at every call.
protocol ConnectionControl: AnyObject {
    var undeliveredByteCount: Int { get }
    func flush()
    func probe()
    func admitPeer()
    func resumeReading()
    func continueReading()
    func stopReceiving()
    func close()
    func fail(_ reason: ConnectionError, resetting: Bool)
}

extension ConnectionHandler: ConnectionControl {}

/// The thread-safe handle on a connection whose handler lives on its event loop.
final class NIOTransportConnection: TransportConnection {
    // Made only on request, because each takes 6,000 instructions and few are needed.
    var localEndpoint: Endpoint { Endpoint(localAddress, spokenToAs: endpoint) ?? endpoint }
    var remoteEndpoint: Endpoint { Endpoint(remoteAddress, spokenToAs: endpoint) ?? endpoint }
    let applicationProtocol: String?
    let webSocket: WebSocketOpening?
    var executor: (any TaskExecutor)? { loopExecutor }

    /// Names ends without a name of their own, and the peer behind a proxy.
    private let endpoint: Endpoint
    private let localAddress: SocketAddress?
    private let remoteAddress: SocketAddress?
    private let loopExecutor: LoopExecutor?
    private let eventLoop: any EventLoop
    private let handler: NIOLoopBound<any ConnectionControl>
    private let outbound: OutboundQueue
    private let closed: Latch<ClosureReport>
    private let outputEnded: Latch<ConnectionError?>

    /// Call it on the channel's loop.
    ///
    /// - Parameter endpoint: names ends without a name of their own, and the peer behind a proxy.
    init(
        channel: any Channel,
        handler: ConnectionHandler<some FrameReceiver>,
        endpoint: Endpoint,
        isProxied: Bool,
        executor: LoopExecutor?
    ) {
        self.eventLoop = channel.eventLoop
        self.loopExecutor = executor
        self.handler = NIOLoopBound<any ConnectionControl>(handler, eventLoop: channel.eventLoop)
        self.outbound = handler.outbound
        self.closed = handler.closed
        self.outputEnded = handler.outputEnded
        self.endpoint = endpoint
        self.localAddress = channel.localAddress
        self.remoteAddress = isProxied ? nil : channel.remoteAddress
        let layers = handler.hasLayers ? channel.pipeline.syncOperations : nil
        self.applicationProtocol = try? layers?.handler(type: TLSHandler.self).applicationProtocol
        self.webSocket = try? layers?.handler(type: WebSocketHandler.self).opening
    }

    func offer(_ frames: UnsafeRawBufferPointer, count: Int) throws(ConnectionError) -> PendingSend? {
        flushed(try outbound.offer(frames, count: count))
    }

    func offer(writing body: (inout OutboundBytes) -> Void) throws(ConnectionError) -> PendingSend? {
        flushed(try outbound.offer(writing: body))
    }

    private func flushed(_ offer: OutboundQueue.Offer) -> PendingSend? {
        switch offer {
        case .pending(let pending):
            return pending
        case .accepted(let scheduleFlush):
            if scheduleFlush { flushSoon() }
            return nil
        }
    }

    func offerLater(_ source: any FrameSource) -> Bool {
        if loopExecutor?.offerLater(source) == true { return true }
        if eventLoop.inEventLoop { return false }
        // The loop has to be woken anyway, to write.
        eventLoop.execute { source.offer() }
        return true
    }

    func writeEarly() {
        guard let loopExecutor, eventLoop.inEventLoop, loopExecutor.shouldWriteEarly() else { return }
        handler.value.flush()
    }

    nonisolated(nonsending) func wait(for pending: PendingSend) async throws {
        try await outbound.wait(for: pending)
    }

    func offerNow(_ head: UnsafeRawBufferPointer, _ rest: UnsafeRawBufferPointer) throws(ConnectionError) -> Bool {
        guard let scheduleFlush = try outbound.offerNow(head, rest) else { return false }
        if scheduleFlush { flushSoon() }
        return true
    }

    nonisolated(nonsending) func waitForRoom() async throws {
        try await outbound.waitForRoom()
    }

    func finishSending() async throws {
        endSending()
        if let failure = try await outputEnded.wait() { throw failure }
    }

    func endSending() {
        if outbound.finish() { flushSoon() }
    }

    func probe() {
        onLoop { $0.probe() }
    }

    func admitPeer() {
        onLoop { $0.admitPeer() }
    }

    func resumeReading() {
        onLoop { $0.resumeReading() }
    }

    func stopReceiving() {
        onLoop { $0.stopReceiving() }
    }

    func close() {
        onLoop { $0.close() }
    }

    func undeliveredByteCount() async -> Int {
        // A loop that is shut down has closed the connection.
        (try? await eventLoop.submit { [handler] in handler.value.undeliveredByteCount }.get()) ?? 0
    }

    func abort(_ reason: ConnectionError) {
        onLoop { handler in
            // The last words of a session may still wait until the loop's tasks have run.
            handler.flush()
            handler.fail(reason, resetting: true)
        }
    }

    func waitUntilClosed() async -> ClosureReport {
        await closed.waitUninterrupted()
    }

    func whenClosed(_ call: @escaping @Sendable () -> Void) {
        closed.whenOpened { _ in call() }
    }

    private func flushSoon() {
        guard let loopExecutor else { return onLoop { $0.flush() } }
        loopExecutor.flush(handler)
    }

    private func onLoop(_ body: @escaping @Sendable (any ConnectionControl) -> Void) {
        eventLoop.execute { [handler] in body(handler.value) }
    }
}
