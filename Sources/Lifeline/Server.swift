public import LifelineCore
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

    private let certificates: ServerCertificates?
    private let stopAccepting: @Sendable () async -> Void
    private let state = NIOLockedValueBox(State())
    private let shutdownRequest = Latch<Duration>()
    private let idle = Latch<Void>()
    private let finished = Latch<Void>()

    init(
        endpoint: Endpoint,
        certificates: ServerCertificates? = nil,
        stopAccepting: @escaping @Sendable () async -> Void
    ) {
        self.endpoint = endpoint
        self.certificates = certificates
        self.stopAccepting = stopAccepting
    }

    /// Shuts the server down: stops accepting, ends the handlers' message sequences after what has arrived, lets the
    /// handlers finish for `gracePeriod`, and then cuts their connections and cancels them.
    ///
    /// Returns when all handlers have returned, or the task is cancelled. Further calls wait for the first one's end.
    public func shutdown(gracePeriod: Duration) async {
        let connections = state.withLockedValue { state in
            state.isShuttingDown = true
            return Array(state.connections.values)
        }
        if shutdownRequest.open(with: gracePeriod) {
            await stopAccepting()
            for connection in connections { connection.stopReceiving() }
        }
        try? await finished.wait()
    }

    /// Loads the files of `ServerConfiguration.tls` again, for connections that are accepted from now on; those that
    /// stand go on. A server without TLS has nothing to load.
    ///
    /// - Throws: `ConnectionError` `tlsConfigurationInvalid` when they cannot be used; what was loaded before stays in use.
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
        if isShuttingDown { connection.stopReceiving() }
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
            group.addTask { try? await self.idle.wait() }
            group.addTask { try? await Task.sleep(for: gracePeriod) }
            await group.next()
            group.cancelAll()
        }
        cutConnections()
    }

    /// All handlers have returned.
    func finish() {
        finished.open(with: ())
    }

    private func cutConnections() {
        for connection in state.withLockedValue({ Array($0.connections.values) }) {
            connection.abort(ConnectionError(code: .closedLocally, message: "The server is shutting down."))
        }
    }
}
