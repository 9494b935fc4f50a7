internal import LifelineCore
internal import NIOCore

/// What a connection's handle has its handler do, on its loop. The handle knows no more of it, so that it is no generic code,
/// which looks types up at every call.
protocol ConnectionControl: AnyObject {
    func flush()
    func probe()
    func resumeReading()
    func stopReceiving()
    func close()
    func fail(_ reason: ConnectionError, resetting: Bool)
}

extension ConnectionHandler: ConnectionControl {}

/// The thread-safe handle on a connection whose handler lives on its event loop.
final class NIOTransportConnection: TransportConnection {
    let localEndpoint: Endpoint
    let remoteEndpoint: Endpoint
    let applicationProtocol: String?
    let webSocket: WebSocketOpening?
    var executor: (any TaskExecutor)? { loopExecutor }

    private let loopExecutor: LoopExecutor?
    private let eventLoop: any EventLoop
    private let handler: NIOLoopBound<any ConnectionControl>
    private let outbound: OutboundQueue
    private let closed: Latch<ClosureReport>
    private let outputEnded: Latch<ConnectionError?>

    /// Call it on the channel's loop. `endpoint` names the ends that have no name of their own, and the peer behind a proxy.
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
        self.localEndpoint = Endpoint(channel.localAddress, spokenToAs: endpoint) ?? endpoint
        let tls = try? channel.pipeline.syncOperations.handler(type: TLSHandler.self)
        self.applicationProtocol = tls?.applicationProtocol
        self.webSocket = try? channel.pipeline.syncOperations.handler(type: WebSocketHandler.self).opening
        let remoteAddress = isProxied ? nil : channel.remoteAddress
        self.remoteEndpoint = Endpoint(remoteAddress, spokenToAs: endpoint) ?? endpoint
    }

    func offer(_ frames: UnsafeRawBufferPointer, count: Int) throws(ConnectionError) -> PendingSend? {
        switch try outbound.offer(frames, count: count) {
        case .pending(let pending):
            return pending
        case .accepted(let scheduleFlush):
            if scheduleFlush { flushSoon() }
            return nil
        }
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

    func resumeReading() {
        onLoop { $0.resumeReading() }
    }

    func stopReceiving() {
        onLoop { $0.stopReceiving() }
    }

    func close() {
        onLoop { $0.close() }
    }

    func abort(_ reason: ConnectionError) {
        onLoop { $0.fail(reason, resetting: true) }
    }

    func waitUntilClosed() async -> ClosureReport {
        await closed.waitUninterrupted()
    }

    private func flushSoon() {
        guard let loopExecutor else { return onLoop { $0.flush() } }
        loopExecutor.flush(handler)
    }

    private func onLoop(_ body: @escaping @Sendable (any ConnectionControl) -> Void) {
        eventLoop.execute { [handler] in body(handler.value) }
    }
}
