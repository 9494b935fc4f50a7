internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

/// The accept loop of a server, its connections and their tasks.
final class ServerLoop<Inbox: Sendable>: Sendable {
    private struct State {
        var connections: [UInt64: any TransportConnection] = [:]
        var lastID: UInt64 = 0
        var hasStoppedAccepting = false
    }

    private let listener: any TransportListener<Inbox>
    private let lifecycle: ServerLifecycle
    private let shutdownOrder: ShutdownOrder
    private let handlerExecutor: HandlerExecutor
    private let logger: Logger
    private let serve: @Sendable (OpenedConnection<Inbox>) async throws -> Void
    private let state = NIOLockedValueBox(State())
    /// Opens when nothing is accepted any more and all handlers have returned.
    private let idle = Latch<Void>()

    /// - Parameter serve: handles a connection. Returns when it is closed.
    init(
        listener: any TransportListener<Inbox>,
        lifecycle: ServerLifecycle,
        shutdownOrder: ShutdownOrder,
        handlerExecutor: HandlerExecutor,
        logger: Logger,
        serve: @escaping @Sendable (OpenedConnection<Inbox>) async throws -> Void
    ) {
        self.listener = listener
        self.lifecycle = lifecycle
        self.shutdownOrder = shutdownOrder
        self.handlerExecutor = handlerExecutor
        self.logger = logger
        self.serve = serve
    }

    /// Accepts connections, each with its own task, until the listener stops, and then drains them. Returns when all
    /// handlers have returned.
    func run() async {
        // When handlers run on event loops, a connection on the accepting loop reaches its handler without a switch of
        // threads.
        await withTaskExecutorPreference(handlerExecutor.executor(of: listener)) { await accept() }
    }

    private func accept() async {
        await withDiscardingTaskGroup { group in
            do {
                while let opened = try await listener.nextConnection() {
                    // Not in the task, which may begin after a shutdown has found no connection to wait for.
                    let id = add(opened.connection)
                    let executor = handlerExecutor.executor(onLoop: opened.connection.executor)
                    group.addTask(executorPreference: executor) { await self.serve(opened, as: id) }
                }
            } catch {
                // Cancelled. No new handlers need to begin.
                await listener.close()
            }
            await drain()
            group.cancelAll()
        }
    }

    private func serve(_ opened: OpenedConnection<Inbox>, as id: UInt64) async {
        do {
            try await serve(opened)
        } catch {
            log(error, of: opened.connection)
        }
        listener.releaseConnection()
        remove(id)
    }

    /// Not inlined into the function that waits for the handler, whose task would keep room for these values meanwhile.
    @inline(never)
    private func log(_ error: any Error, of connection: any TransportConnection) {
        logger.warning(
            "A connection ended with an error",
            metadata: ["remote": "\(connection.remoteEndpoint)", "error": "\("\(error)".escaped())"]
        )
    }

    // MARK: Connections

    private func add(_ connection: any TransportConnection) -> UInt64 {
        state.withLockedValue { state in
            state.lastID += 1
            state.connections[state.lastID] = connection
            return state.lastID
        }
    }

    private func remove(_ id: UInt64) {
        let isIdle = state.withLockedValue { state in
            state.connections[id] = nil
            return state.hasStoppedAccepting && state.connections.isEmpty
        }
        if isIdle { idle.open(with: ()) }
    }

    /// Begins to close the connections, waits until the handlers have returned or the grace period is over, and cuts
    /// the connections that are left. Cuts them at once when the task is cancelled.
    private func drain() async {
        let isIdle = state.withLockedValue { state in
            state.hasStoppedAccepting = true
            return state.connections.isEmpty
        }
        if isIdle { idle.open(with: ()) }
        // When the listener failed by itself, connections go on until the server is shut down.
        if await lifecycle.isShutdownRequested() {
            for connection in openConnections { beginClosing(connection) }
            await lifecycle.waitForGracePeriod(unless: idle)
        }
        for connection in openConnections {
            connection.abort(ConnectionError(code: .closedLocally, message: "The server is shutting down."))
        }
    }

    private var openConnections: [any TransportConnection] {
        state.withLockedValue { Array($0.connections.values) }
    }

    private func beginClosing(_ connection: any TransportConnection) {
        switch shutdownOrder {
        case .handlersFirst: connection.stopReceiving()
        case .peersFirst: connection.endSending()
        }
    }
}
