internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers
internal import ServiceLifecycle

/// The life of a server as a service: it listens, and serves until it is shut down. It runs once.
final class ServerLifecycle: Sendable {
    private struct State {
        var isStarted = false
        /// The time at which the server cuts the remaining connections; nil until a shutdown is requested.
        var deadline: MonotonicTime?
    }

    let clock: any ClientClock
    /// How long handlers may go on after graceful shutdown, or after the end of the body of a `with…` function.
    private let gracePeriod: Duration
    private let state = NIOLockedValueBox(State())
    private let bound = Latch<Result<[Endpoint], any Error>>()
    private let shutdownRequest = Latch<Void>()
    /// Rung when a later request brings the deadline forward.
    private let deadlineBell = Doorbell()
    private let finished = Latch<Void>()

    init(gracePeriod: Duration, clock: any ClientClock) {
        self.gracePeriod = gracePeriod
        self.clock = clock
    }

    // MARK: Running

    /// Listens, and serves until the server is shut down, by its service group or by a call, or the task is cancelled.
    ///
    /// - Parameters:
    ///   - listen: makes the listeners. They stop accepting when a shutdown is requested.
    ///   - serve: accepts until the listeners have stopped, ends its connections by `shutdownDeadline`, or at once when
    ///     the task is cancelled, and returns when none is left.
    /// - Throws: what `listen` throws; `alreadyRun` for a second call; `CancellationError`.
    func run<Inbox: Sendable>(
        listen: nonisolated(nonsending) () async throws -> [any TransportListener<Inbox>],
        serve: nonisolated(nonsending) ([any TransportListener<Inbox>]) async -> Void
    ) async throws {
        guard try start() else { return }
        defer { finished.open(with: ()) }
        let listeners: [any TransportListener<Inbox>]
        do {
            listeners = try await listen()
        } catch {
            bound.open(with: .failure(error))
            throw error
        }
        bound.open(with: .success(listeners.map(\.boundEndpoint)))
        await withGracefulShutdownHandler {
            async let _: Void = stopAccepting(on: listeners)
            await serve(listeners)
        } onGracefulShutdown: {
            self.requestShutdown(gracePeriod: self.gracePeriod)
        }
        try Task.checkCancellation()
    }

    /// Runs `server`, which belongs to this lifecycle, and `body` once it listens. When `body` returns, the server
    /// shuts down with its grace period; when it throws or the task is cancelled, at once.
    nonisolated(nonsending) func withRunning<Server: Service, Result>(
        _ server: Server,
        _ body: nonisolated(nonsending) (Server) async throws -> Result
    ) async throws -> Result {
        // Cancelled and awaited when the rest throws.
        async let running: Void = server.run()
        _ = try await boundEndpoints
        let result = try await body(server)
        await shutdown(gracePeriod: gracePeriod)
        // It can only throw that the task was cancelled, which `body` has seen.
        try? await running
        return result
    }

    /// Returns false when the server was shut down before.
    private func start() throws(ConnectionError) -> Bool {
        let (wasStarted, isShutDown) = state.withLockedValue { state in
            defer { state.isStarted = true }
            return (state.isStarted, state.deadline != nil)
        }
        if wasStarted {
            throw ConnectionError(code: .alreadyRun, message: "A server runs once. Make a new one.")
        }
        return !isShutDown
    }

    private func stopAccepting<Inbox>(on listeners: [any TransportListener<Inbox>]) async {
        guard await isShutdownRequested() else { return }
        for listener in listeners { await listener.stopAccepting() }
    }

    // MARK: Listening

    /// The endpoints on which the server listens, with real ports. Waits until it listens.
    ///
    /// - Throws: the reason for which it cannot listen; `CancellationError`.
    var boundEndpoints: [Endpoint] {
        get async throws { try await bound.wait().get() }
    }

    // MARK: Shutting down

    /// Requests a shutdown, unless an earlier request ends its grace period sooner, and waits until the server has shut
    /// down or the task is cancelled.
    func shutdown(gracePeriod: Duration) async {
        requestShutdown(gracePeriod: gracePeriod)
        try? await waitUntilShutDown()
    }

    /// Requests a shutdown without waiting for it.
    func requestShutdown(gracePeriod: Duration) {
        let deadline = clock.now + gracePeriod.clamped(atLeast: .zero)
        let isStarted = state.withLockedValue { state in
            state.deadline = min(state.deadline ?? deadline, deadline)
            return state.isStarted
        }
        shutdownRequest.open(with: ())
        deadlineBell.ring()
        guard !isStarted else { return }
        let error = ConnectionError(code: .closedLocally, message: "The server was shut down before it was run.")
        bound.open(with: .failure(error))
        finished.open(with: ())
    }

    /// Waits until the server has shut down.
    ///
    /// - Throws: `CancellationError`.
    func waitUntilShutDown() async throws {
        try await finished.wait()
    }

    /// Waits until a shutdown is requested. Returns false when the task is cancelled first.
    func isShutdownRequested() async -> Bool {
        (try? await shutdownRequest.wait()) != nil
    }

    /// The time at which the server cuts the remaining connections; nil until a shutdown is requested.
    var shutdownDeadline: MonotonicTime? { state.withLockedValue { $0.deadline } }

    /// Waits until `latch` is open, the grace period of the shutdown that was requested is over, or the task is
    /// cancelled.
    func waitForGracePeriod(unless latch: Latch<Void>) async {
        await withTaskGroup { group in
            group.addTask { try? await latch.wait() }
            group.addTask {
                while let deadline = self.shutdownDeadline, self.clock.now < deadline, !Task.isCancelled {
                    await self.clock.race(until: deadline) { await self.deadlineBell.wait() }
                }
            }
            await group.next()
            group.cancelAll()
        }
    }
}
