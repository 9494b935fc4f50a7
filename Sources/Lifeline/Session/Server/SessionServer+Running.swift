internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

// Listening, serving and shutting down.
extension SessionServer {
    typealias Listener = any TransportListener<SessionServerIntake>

    /// Listens on all endpoints. If one fails, listens on none.
    func listen() async throws -> [Listener] {
        let memoryBudget = MemoryBudget(limit: configuration.server.memoryBudget)
        var listeners: [Listener] = []
        do {
            for endpoint in endpoints { listeners.append(try await listen(on: endpoint, memoryBudget)) }
            return listeners
        } catch {
            for listener in listeners { await listener.close() }
            throw error
        }
    }

    private func listen(on endpoint: Endpoint, _ memoryBudget: MemoryBudget) async throws -> Listener {
        let configuration = configuration.server
        var options = configuration.connection.transportOptions(
            maximumFrameLength: configuration.connection.sessionFrameLimit,
            hasHeartbeat: true,
            metrics: TransportMetrics(role: "server")
        )
        options.layers = try configuration.layers(
            on: endpoint,
            carrying: .delimited,
            logger: logger
        )
        options.openingFrameLimit = SessionServerIntake.openingFrameLimit
        options.memoryBudget = memoryBudget
        let certificates = options.layers.compactMap { ($0 as? TLSServerLayer)?.certificates }
        state.withLockedValue { $0.certificates += certificates }
        return try await transport.listen(
            on: endpoint,
            options: configuration.listenerOptions(connection: options, logger: logger)
        ) {
            SessionReceiver(SessionServerIntake())
        }
    }

    /// Accepts connections on all listeners until they have stopped. Ends everything when a shutdown is requested, or
    /// when the task is cancelled.
    func serve(on listeners: [Listener]) async {
        await withDiscardingTaskGroup { group in
            for listener in listeners {
                group.addTask { await self.accept(on: listener) }
            }
            let removal = Task { await removeOldMessages() }
            // If a listener fails, its sessions continue until the server is shut down.
            _ = await lifecycle.isShutdownRequested()
            await drain()
            await endAll()
            removal.cancel()
            await removal.value
        }
        await waitUntilConnectionsAreOver()
    }

    private func waitUntilConnectionsAreOver() async {
        let idle = Latch<Void>()
        let isIdle = state.withLockedValue { state in
            state.idle = idle
            return state.connections.isEmpty
        }
        if !isIdle { await idle.waitUninterrupted() }
    }

    /// Removes stored messages of clients that have not come back for a long time, now and once a day.
    private func removeOldMessages() async {
        guard let store = configuration.store, let duration = configuration.maximumStoredDuration else { return }
        repeat {
            let date = clock.date - max(duration, .zero).saturatedNanoseconds / 1_000_000
            let used = state.withLockedValue { $0.registry.usedStores }
            do {
                let count = try await store.removeGroups(addedUntil: date, except: used)
                if count == 0 { continue }
                logger.warning(
                    "Durable messages were removed whose clients have not come back",
                    metadata: ["count": "\(count)"]
                )
            } catch {
                logger.warning("The store failed", metadata: ["error": "\(error)"])
            }
        } while (try? await clock.sleep(until: clock.now + .seconds(86_400))) != nil
    }

    /// Accepts the connections of a listener. Returns when all its clients are let in or refused.
    private func accept(on listener: Listener) async {
        await withDiscardingTaskGroup { admissions in
            do {
                while let opened = try await listener.nextConnection() {
                    admissions.addTask { await self.serve(opened) { listener.releaseConnection() } }
                }
            } catch {
                // The task was cancelled, so clients that were not let in yet are not.
                await listener.close()
            }
        }
    }

    /// Sends the clients away within the grace period, or at once when the task is cancelled.
    private func drain() async {
        let now = clock.now
        let end = lifecycle.shutdownDeadline ?? now
        let idle = Latch<Void>()
        let (drained, isIdle) = state.withLockedValue { state in
            state.idle = idle
            let othersContinue = depot?.isShared == true
            let drained = state.registry.drain(until: end, othersContinue: othersContinue, now: now)
            return (drained, state.connections.isEmpty)
        }
        for (session, drain) in drained {
            session.engine.drain(drain)
            if session.engine.connection == nil { moveIfDraining(session) }
        }
        if !isIdle { await lifecycle.waitForGracePeriod(unless: idle) }
    }

    /// Leaves the remaining sessions for other servers, aborts the connections, and ends the other sessions. Waits for
    /// handlers.
    private func endAll() async {
        if !Task.isCancelled { await moveAll() }
        let (connections, sessions) = state.withLockedValue { state in
            state.hasEnded = true
            if let alarm = state.alarm.take() { timer.cancel(alarm.call) }
            return (Array(state.connections.values), Array(state.sessions.values))
        }
        for connection in connections { connection.abort(.serverShutDown) }
        // Their clients learn from the next server that the sessions are over.
        for session in sessions { session.shutDown() }
        for session in sessions { await session.waitUntilOver() }
    }
}

extension ConnectionError {
    static var serverShutDown: ConnectionError {
        ConnectionError(code: .closedLocally, message: "The server is shutting down.")
    }
}
