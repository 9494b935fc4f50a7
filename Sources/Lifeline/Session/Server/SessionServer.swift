public import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

/// A running server of sessions, as the body of `withSessionServer` sees it.
public final class SessionServer: Sendable {
    /// Where it listens, with the real ports when 0 was asked for.
    public let boundEndpoints: [Endpoint]

    struct State {
        var registry: SessionRegistry<SessionServerEnd>
        /// Sessions of which something is left: handlers that have not returned, for some.
        var sessions: [SessionID: SessionServerEnd] = [:]
        var connections: [UInt64: any TransportConnection] = [:]
        var lastConnection: UInt64 = 0
        /// Of two connections that claim a session the later claim counts.
        var lastClaim: UInt64 = 0
        /// Until when clients are told at the latest that the server goes away; nil while it does not.
        var drainDeadline: MonotonicTime?
        /// Opens when no connection is left, once somebody waits for that.
        var idle: Latch<Void>?
        var timer: Task<Void, Never>?
        var armedDeadline: MonotonicTime?
        var random: any RandomNumberGenerator & Sendable
    }

    let configuration: SessionServerConfiguration
    let methods: SessionMethods
    let interceptors: [any SessionServerInterceptor]
    /// What its sessions share.
    let budget: SharedSessionBudget
    let clock: any ClientClock
    let logger: Logger
    /// Of each endpoint that has TLS.
    private let certificates: [ServerCertificates]
    let stopAccepting: @Sendable () async -> Void
    let state: NIOLockedValueBox<State>
    /// Opens when it has shut down.
    private let finished = Latch<Void>()

    init(
        boundEndpoints: [Endpoint],
        configuration: SessionServerConfiguration,
        methods: SessionMethods,
        interceptors: [any SessionServerInterceptor],
        clock: any ClientClock,
        logger: Logger,
        certificates: [ServerCertificates],
        stopAccepting: @escaping @Sendable () async -> Void
    ) {
        self.boundEndpoints = boundEndpoints
        self.configuration = configuration
        self.methods = methods
        self.interceptors = interceptors
        self.clock = clock
        self.logger = logger
        self.certificates = certificates
        self.stopAccepting = stopAccepting
        budget = SharedSessionBudget(
            limit: SessionAllowance(
                byteCount: configuration.maximumKeptByteCount,
                handlerCount: configuration.maximumHandlerCount
            ),
            pauseLimit: configuration.drainSpread
        )
        var registry = SessionRegistryConfiguration()
        registry.keptDuration = configuration.keptDuration.clamped(atLeast: .zero)
        registry.maximumSessionCount = max(configuration.maximumSessionCount, 1)
        registry.maximumCountPerIdentity = max(configuration.maximumSessionCountPerIdentity, 1)
        registry.maximumCountPerAddress = max(configuration.maximumSessionCountPerAddress ?? .max, 1)
        var random = SystemRandomNumberGenerator()
        state = NIOLockedValueBox(
            State(registry: SessionRegistry(registry, seed: random.next()), random: random)
        )
    }

    // MARK: Sessions

    /// The sessions, those that have no connection at present included; in no order.
    public var sessions: [SessionServerEnd] {
        state.withLockedValue { state in state.registry.ids.compactMap { state.registry[$0] } }
    }

    /// The session of an id, as `SessionServerEnd.id` has it; nil when there is none.
    public func session(id: String) -> SessionServerEnd? {
        guard let id = SessionID(hexadecimal: id) else { return nil }
        return state.withLockedValue { $0.registry[id] }
    }

    /// The session of a name, which is its identity's or, without one, what its client calls itself; nil when there is none. Of
    /// several with one name, the newest has it.
    public func session(named name: String) -> SessionServerEnd? {
        state.withLockedValue { $0.registry[name: name]?.session }
    }

    // MARK: Certificates

    /// Loads the files of `ServerConfiguration.tls` again, for connections that are accepted from now on; those that stand go on.
    /// A server without TLS has nothing to load.
    ///
    /// - Throws: `ConnectionError` `invalidConfiguration` when they cannot be used; what was loaded before stays in use.
    public func reloadCertificate() async throws(ConnectionError) {
        for certificates in certificates { try await certificates.reload() }
    }

    // MARK: Shutting down

    /// Shuts the server down, within `gracePeriod`:
    ///
    /// 1. It stops accepting, and begins no more sessions.
    /// 2. It sends what waits for a client, and then tells it to come back after a pause, a random part of
    ///    `SessionServerConfiguration.drainSpread`; clients that do not take all in three quarters of the grace period are
    ///    told then. A client begins nothing more here; what it had sent is handled, and it leaves when it has all its replies
    ///    and has processed all pushes.
    /// 3. What is left when the grace period is over is cut, its handlers are cancelled, and their sessions end.
    ///
    /// Returns when all handlers have returned. A client that comes back to the next server begins a new session there, with
    /// what it had not sent. `SessionServerConfiguration.whenInDoubt` learns which pushes may not have been processed.
    public func shutdown(gracePeriod: Duration) async {
        await stopAccepting()
        let gracePeriod = gracePeriod.clamped(atLeast: .zero)
        let start = clock.now
        let deadline = start + gracePeriod * 3 / 4
        let drained = state.withLockedValue { state in
            state.drainDeadline = .earliest(state.drainDeadline, deadline)
            return state.registry.drain(spread: configuration.drainSpread).map { ($0.session, $0.pause) }
        }
        for (session, pause) in drained { session.engine.drain(pause: pause, by: deadline) }
        await waitUntilIdle(until: start + gracePeriod)
        await endAll()
        finished.open(with: ())
    }

    /// Waits until the server has shut down. Use it as the body of a server that runs until its task is cancelled.
    ///
    /// - Throws: `CancellationError`.
    public func waitUntilShutDown() async throws {
        try await finished.wait()
    }

    private func waitUntilIdle(until deadline: MonotonicTime) async {
        let (idle, isIdle) = state.withLockedValue { state in
            let idle = state.idle ?? Latch()
            state.idle = idle
            return (idle, state.connections.isEmpty)
        }
        if !isIdle { await idle.wait(until: deadline, by: clock) }
    }

    /// Cuts the connections and ends the sessions that are left. Waits for their handlers.
    private func endAll() async {
        let (connections, sessions, timer) = state.withLockedValue { state in
            (Array(state.connections.values), Array(state.sessions.values), state.timer)
        }
        timer?.cancel()
        for connection in connections {
            connection.abort(ConnectionError(code: .closedLocally, message: "The server is shutting down."))
        }
        // Their clients learn from the next server that they are over.
        for session in sessions { session.shutDown() }
        for session in sessions { await session.waitUntilOver() }
    }
}

// Ends of sessions.
extension SessionServer {
    /// A session is over.
    func sessionEnded(_ id: SessionID) {
        let session = state.withLockedValue { state in
            state.registry.ended(id)
            return state.sessions[id]
        }
        guard let session else { return }
        session.cancelHandlersOfRequests()
        // One that a handler outlives is waited for by a shutdown, and has its place until then.
        Task.detached {
            await session.waitUntilOver()
            self.state.withLockedValue { $0.sessions[id] = nil }
        }
    }

    /// Sets the timer for the session that expires next.
    func armTimer() {
        state.withLockedValue { state in
            guard let next = state.registry.nextDeadline, state.drainDeadline == nil else { return }
            if let armed = state.armedDeadline, armed <= next { return }
            state.armedDeadline = next
            state.timer?.cancel()
            state.timer = Task.detached { [weak self, clock] in
                do { try await clock.sleep(until: next) } catch { return }
                self?.timerFired(next)
            }
        }
    }

    private func timerFired(_ deadline: MonotonicTime) {
        let now = clock.now
        let expired = state.withLockedValue { state -> [SessionServerEnd] in
            guard state.armedDeadline == deadline else { return [] }
            state.armedDeadline = nil
            return state.registry.timerFired(now: now).map(\.session)
        }
        for session in expired { session.engine.end(.expired) }
        armTimer()
    }
}

extension SessionID {
    /// Reads its description; nil when it is none.
    fileprivate init?(hexadecimal text: String) {
        let digits = text.utf8.compactMap { UInt8(exactly: Character(UnicodeScalar($0)).hexDigitValue ?? -1) }
        guard digits.count == 32, text.utf8.count == 32 else { return nil }
        self.init((0..<16).map { digits[2 * $0] << 4 | digits[2 * $0 + 1] })
    }
}
