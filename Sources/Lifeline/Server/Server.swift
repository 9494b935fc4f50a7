public import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// A running server, as the body of `withServer` sees it.
public final class Server: Sendable {
    /// Where it listens, with the real port when 0 was asked for.
    public let endpoint: Endpoint

    private struct State {
        var connections: [UInt64: any TransportConnection] = [:]
        var nextID: UInt64 = 0
        var isShuttingDown = false
        var hasStoppedAccepting = false
    }

    private let shutdownOrder: ShutdownOrder
    private let certificates: ServerCertificates?
    private let stopAccepting: @Sendable () async -> Void
    private let state = NIOLockedValueBox(State())
    private let shutdownRequest = Latch<Duration>()
    /// A later call wants it over before the first one's grace period is.
    private let cutRequest = Latch<Void>()
    private let idle = Latch<Void>()
    private let finished = Latch<Void>()

    init(
        endpoint: Endpoint,
        shutdownOrder: ShutdownOrder,
        certificates: ServerCertificates? = nil,
        stopAccepting: @escaping @Sendable () async -> Void
    ) {
        self.endpoint = endpoint
        self.shutdownOrder = shutdownOrder
        self.certificates = certificates
        self.stopAccepting = stopAccepting
    }

    /// Shuts the server down, within `gracePeriod`:
    ///
    /// 1. It stops accepting.
    /// 2. By `ServerConfiguration.shutdownOrder`, it ends the handlers' message sequences after what has arrived, or this
    ///    side of their connections after what was accepted. As long as this side is open, the peers' pings are answered.
    /// 3. Each handler finishes and returns; what its connection has accepted is written, this side is ended, and what
    ///    comes is read and dropped until the peer has ended its own, or `ConnectionConfiguration.closeTimeout` is over.
    /// 4. What is left when the grace period is over is cut, with a reset, and its handler is cancelled.
    ///
    /// Returns when all handlers have returned, or the task is cancelled. A further call changes nothing but the end of
    /// the grace period, when its own is over earlier.
    public func shutdown(gracePeriod: Duration) async {
        let connections = state.withLockedValue { state in
            state.isShuttingDown = true
            return Array(state.connections.values)
        }
        if shutdownRequest.open(with: gracePeriod) {
            await stopAccepting()
            for connection in connections { beginClosing(connection) }
            try? await finished.wait()
        } else if await !isOpen(finished, within: gracePeriod), !Task.isCancelled {
            cutRequest.open(with: ())
            try? await finished.wait()
        }
    }

    /// Loads the files of `ServerConfiguration.tls` again, for connections that are accepted from now on; those that
    /// stand go on. A server without TLS has nothing to load.
    ///
    /// - Throws: `ConnectionError` `invalidConfiguration` when they cannot be used; what was loaded before stays in use.
    public func reloadCertificate() async throws(ConnectionError) {
        try await certificates?.reload()
    }

    /// Waits until the server has shut down. Use it as the body of a server that runs until its task is cancelled.
    ///
    /// - Throws: `CancellationError`.
    public func waitUntilShutDown() async throws {
        try await finished.wait()
    }
}

// MARK: What the serving task reports and asks

extension Server {
    /// A connection was accepted. Returns its name for `remove(_:)`.
    func add(_ connection: any TransportConnection) -> UInt64 {
        let (id, isShuttingDown) = state.withLockedValue { state in
            state.nextID += 1
            state.connections[state.nextID] = connection
            return (state.nextID, state.isShuttingDown)
        }
        if isShuttingDown { beginClosing(connection) }
        return id
    }

    /// A connection is closed and its handler has returned.
    func remove(_ id: UInt64) {
        let isIdle = state.withLockedValue { state in
            state.connections[id] = nil
            return state.hasStoppedAccepting && state.connections.isEmpty
        }
        if isIdle { idle.open(with: ()) }
    }

    /// No more connections are accepted: waits until the handlers have returned or the grace period is over, and cuts
    /// the connections that are left.
    func drain() async {
        let isIdle = state.withLockedValue { state in
            state.hasStoppedAccepting = true
            return state.connections.isEmpty
        }
        if isIdle { idle.open(with: ()) }
        // A listener that failed by itself lets the connections go on until somebody shuts the server down.
        guard let gracePeriod = try? await shutdownRequest.wait() else { return cutConnections() }
        await withTaskGroup { group in
            group.addTask { _ = await self.isOpen(self.idle, within: gracePeriod) }
            group.addTask { try? await self.cutRequest.wait() }
            await group.next()
            group.cancelAll()
        }
        cutConnections()
    }

    /// All handlers have returned.
    func finish() {
        finished.open(with: ())
    }

    private func beginClosing(_ connection: any TransportConnection) {
        switch shutdownOrder {
        case .handlersFirst: connection.stopReceiving()
        case .peersFirst: connection.endSending()
        }
    }

    /// Waits for a latch. False when the time, or the task, was over first.
    private func isOpen(_ latch: Latch<Void>, within duration: Duration) async -> Bool {
        await withTaskGroup { group in
            group.addTask { try? await latch.wait() }
            group.addTask { try? await Task.sleep(for: duration) }
            await group.next()
            group.cancelAll()
        }
        return latch.value != nil
    }

    private func cutConnections() {
        for connection in state.withLockedValue({ Array($0.connections.values) }) {
            connection.abort(ConnectionError(code: .closedLocally, message: "The server is shutting down."))
        }
    }
}
