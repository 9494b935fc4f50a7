public import LifelineCore
package import LifelineRuntime
package import LifelineTransport
public import Logging
internal import NIOConcurrencyHelpers
public import ServiceLifecycle

/// A server of sessions. It listens on its endpoints, and passes the clients' calls and pushes to its services. A
/// session outlives its connections, and a client may resume its session at another endpoint than before.
///
/// `run()` runs the server. Run it as a service of a `ServiceGroup` of swift-service-lifecycle, whose graceful shutdown
/// drains it:
///
///     let server = try SessionServer(listeningOn: endpoint, services: [Room()])
///     try await ServiceGroup(services: [server], gracefulShutdownSignals: [.sigterm], logger: logger).run()
///
/// `withSessionServer` runs a server for the time of a function.
public final class SessionServer: Sendable {
    /// The endpoints that the server was made for. `boundEndpoints` has the real ports in place of port 0.
    public let endpoints: [Endpoint]

    struct State {
        var registry: SessionRegistry<SessionServerEnd>
        /// The sessions of which something is left: for some, only handlers that have not returned.
        var sessions: [SessionID: SessionServerEnd] = [:]
        /// The sessions that move to other servers. A latch opens with whether its session is in the depot.
        var moves: [SessionID: Latch<Bool>] = [:]
        /// The searches for sessions at other servers, by the clients' connections. A latch opens at the end of its
        /// search.
        var searches: [UInt64: Latch<Void>] = [:]
        var connections: [UInt64: any TransportConnection] = [:]
        var lastConnection: UInt64 = 0
        /// The number of the last claim. If two connections claim a session, the later claim counts.
        var lastClaim: UInt64 = 0
        /// Whether the server has ended, so that connections that were just accepted are aborted, too.
        var hasEnded = false
        /// The certificates of each endpoint with TLS, once it listens.
        var certificates: [ServerCertificates] = []
        /// Opens when no connection is left; nil until something waits for it.
        var idle: Latch<Void>?
        /// The deadline of the timer for sessions that may expire.
        var alarm: (deadline: MonotonicTime, call: SharedTimer.CallID)?
        var random: any RandomNumberGenerator & Sendable
    }

    let configuration: SessionServerConfiguration
    let services: [any SessionService]
    let methods: SessionMethods
    /// The depot in which it leaves sessions for other servers, if any.
    let depot: (any SessionDepot)?
    let interceptors: [any SessionServerInterceptor]
    /// The budget that its sessions share.
    let budget: SharedSessionBudget
    let timer: SharedTimer
    let transport: any Transport
    let lifecycle: ServerLifecycle
    let log: LimitedLog
    let state: NIOLockedValueBox<State>

    var clock: any ClientClock { lifecycle.clock }
    var logger: Logger { log.logger }

    /// Makes a server. `run()` starts it.
    ///
    /// - Parameters:
    ///   - services: the methods that clients can call.
    ///   - interceptors: run between sessions and handlers, the first one outermost.
    ///   - logger: receives lines about connections, as `Server.init` says. Failed handlers, violations of the protocol
    ///     and errors of `authenticate` are `warning`; refused clients are `info`. Of lines with the same message, at
    ///     most 5 in ten minutes are written for each session, and 100 in ten seconds for all. The next line, or a line
    ///     at the end of the session or the server, has the number of omitted ones.
    /// - Throws: `ConnectionError` `invalidConfiguration` when two methods have one name, or when the default delivery
    ///   is durable and there is no store.
    public convenience init(
        listeningOn endpoint: Endpoint,
        configuration: SessionServerConfiguration = SessionServerConfiguration(),
        services: [any SessionService],
        interceptors: [any SessionServerInterceptor] = [],
        logger: Logger = Logger(label: "lifeline.session")
    ) throws(ConnectionError) {
        try self.init(
            listeningOn: [endpoint],
            configuration: configuration,
            services: services,
            interceptors: interceptors,
            logger: logger
        )
    }

    /// Makes a server with several endpoints. A client may resume its session at another endpoint than before.
    public convenience init(
        listeningOn endpoints: [Endpoint],
        configuration: SessionServerConfiguration = SessionServerConfiguration(),
        services: [any SessionService],
        interceptors: [any SessionServerInterceptor] = [],
        logger: Logger = Logger(label: "lifeline.session")
    ) throws(ConnectionError) {
        try self.init(
            listeningOn: endpoints,
            configuration: configuration,
            services: services,
            interceptors: interceptors,
            logger: logger,
            transport: NIOTransport.shared,
            clock: BootTimeClock()
        )
    }

    package init(
        listeningOn endpoints: [Endpoint],
        configuration: SessionServerConfiguration,
        services: [any SessionService],
        interceptors: [any SessionServerInterceptor],
        logger: Logger,
        transport: any Transport,
        clock: any ClientClock
    ) throws(ConnectionError) {
        try configuration.defaultDelivery.checkAsDefault(hasStore: configuration.store != nil)
        methods = try SessionMethods(services)
        self.services = services
        depot = services.lazy.compactMap { $0 as? any SessionDepot }.first
        self.endpoints = endpoints
        self.configuration = configuration
        self.interceptors = interceptors
        self.transport = transport
        timer = SharedTimer(clock: clock)
        lifecycle = ServerLifecycle(gracePeriod: configuration.server.shutdownGracePeriod, clock: clock)
        log = .ofServer(logger) { clock.now }
        budget = SharedSessionBudget(
            limit: SessionAllowance(
                byteCount: configuration.maximumKeptByteCount,
                handlerCount: configuration.maximumHandlerCount
            ),
            pauseLimit: configuration.drainSpread
        )
        var registry = SessionRegistryConfiguration()
        registry.helloTimeout = configuration.helloTimeout.clamped(atLeast: .zero)
        registry.drainSpread = configuration.drainSpread.clamped(atLeast: .zero)
        registry.hasStore = configuration.store != nil
        registry.movesSessions = depot != nil
        registry.keptDuration = configuration.keptDuration.clamped(atLeast: .zero)
        registry.maximumOpeningRate = configuration.maximumOpeningRate
        registry.maximumSessionCount = max(configuration.maximumSessionCount, 1)
        registry.maximumCountPerIdentity = max(configuration.maximumSessionCountPerIdentity, 1)
        registry.maximumCountPerAddress = max(configuration.maximumSessionCountPerAddress ?? .max, 1)
        var random = SystemRandomNumberGenerator()
        state = NIOLockedValueBox(
            State(registry: SessionRegistry(registry, seed: random.next()), random: random)
        )
    }

    // MARK: Sessions

    /// The store of durable messages, if any.
    public var store: (any SessionStore)? { configuration.store }

    /// All sessions, including those without a connection, in no particular order.
    public var sessions: [SessionServerEnd] {
        state.withLockedValue { state in state.registry.ids.compactMap { state.registry[$0] } }
    }

    /// Returns the session with an id (`SessionServerEnd.id`), if any.
    public func session(id: String) -> SessionServerEnd? {
        guard let id = SessionID(hexadecimal: id) else { return nil }
        return state.withLockedValue { $0.registry[id] }
    }

    /// Returns the session with a name, if any: the name of its identity or, without one, the name that its client
    /// chose. If several sessions have the name, returns the newest.
    public func session(named name: String) -> SessionServerEnd? {
        state.withLockedValue { $0.registry[name: name]?.session }
    }

    // MARK: Running

    /// The endpoints that the server listens on, with the real ports in place of port 0. Waits until the server
    /// listens.
    ///
    /// - Throws: `ConnectionError`: the reason why the server does not listen; `closedLocally` when it was shut down
    ///   before it was run. `CancellationError`.
    public var boundEndpoints: [Endpoint] {
        get async throws { try await lifecycle.boundEndpoints }
    }

    /// Listens, and serves sessions until the server is shut down or the task is cancelled. In a `ServiceGroup`, a
    /// graceful shutdown does the same as `shutdown(gracePeriod:)` with `ServerConfiguration.shutdownGracePeriod`.
    /// Cancelling the task aborts all connections at once, ends the sessions, and cancels their handlers.
    ///
    /// Returns when all handlers have returned, so a handler that ignores cancellation delays it. A server runs once.
    /// If it was shut down before, `run()` returns at once.
    ///
    /// - Throws: `ConnectionError` when listening fails, and `alreadyRun` for a second call. `CancellationError` when
    ///   the task is cancelled.
    public func run() async throws {
        defer { log.logLeftOutCounts() }
        try await lifecycle.run {
            try await listen()
        } serve: { listeners in
            await serve(on: listeners)
        }
    }

    /// Shuts the server down within `gracePeriod`:
    ///
    /// 1. It accepts no more connections, and begins no more sessions.
    /// 2. It sends each client its waiting messages, and then tells it to come back after a pause, a random part of
    ///    `SessionServerConfiguration.drainSpread`. A client that has not received everything after three quarters of
    ///    the grace period is told then. From then on, a client begins nothing more here. Its earlier messages are
    ///    handled, and it leaves when it has all its replies and has processed all pushes.
    /// 3. At the end of the grace period, it aborts the remaining connections, cancels their handlers, and ends their
    ///    sessions.
    ///
    /// In a fleet (`LifelineFleet`) whose engine is shared, sessions do not end: each is left in the engine once its
    /// client has left, or the grace period is over, and another server continues it. Clients are sent away one after
    /// another over `drainSpread`, without a pause. Handlers that still run at the end of the grace period are
    /// cancelled, and have three more seconds.
    ///
    /// Returns when all handlers have returned, or the task is cancelled. A further call can only shorten the grace
    /// period. A client that comes back to the next server begins a new session there, with the messages that it had
    /// not sent. `SessionServerConfiguration.whenInDoubt` receives the pushes that may not have been processed.
    public func shutdown(gracePeriod: Duration) async {
        await lifecycle.shutdown(gracePeriod: gracePeriod)
    }

    /// Waits until the server has shut down. Use it as the body of a server that runs until its task is cancelled.
    ///
    /// - Throws: `CancellationError`.
    public func waitUntilShutDown() async throws {
        try await lifecycle.waitUntilShutDown()
    }

    /// Loads the files of `ServerConfiguration.tls` again, for connections that are accepted from now on. Present
    /// connections continue. Does nothing if the server has no TLS, or does not run yet.
    ///
    /// - Throws: `ConnectionError` `invalidConfiguration` when the files cannot be used. The files that were loaded
    ///   before stay in use.
    public func reloadCertificate() async throws(ConnectionError) {
        for certificates in state.withLockedValue({ $0.certificates }) { try await certificates.reload() }
    }
}

extension SessionServer: Service {}

// Ends of sessions.
extension SessionServer {
    /// Notes that a session is over.
    func sessionEnded(_ id: SessionID) {
        let session = state.withLockedValue { state in
            state.registry.ended(id)
            return state.sessions[id]
        }
        guard let session else { return }
        // If a handler outlives the session, a shutdown waits for it, and the session keeps its place until then.
        Task.detached {
            await session.waitUntilOver()
            self.state.withLockedValue { state in
                // The session may have come back from another server.
                if state.sessions[id] === session { state.sessions[id] = nil }
                state.registry.nothingIsLeft(of: id, session.storeID)
            }
        }
    }

    /// Sets the timer for the session that expires next.
    func armTimer() {
        state.withLockedValue { state in
            guard let next = state.registry.nextDeadline else { return }
            if let alarm = state.alarm {
                if alarm.deadline <= next { return }
                timer.cancel(alarm.call)
            }
            state.alarm = (next, timer.run(at: next) { [weak self] in self?.timerFired(next) })
        }
    }

    private func timerFired(_ deadline: MonotonicTime) {
        let now = clock.now
        let expired = state.withLockedValue { state -> [SessionServerEnd] in
            guard state.alarm?.deadline == deadline else { return [] }
            state.alarm = nil
            return state.registry.timerFired(now: now).map(\.session)
        }
        for session in expired { session.engine.end(.expired) }
        armTimer()
    }
}

extension SessionID {
    /// Parses an id's description; nil if it is none.
    fileprivate init?(hexadecimal text: String) {
        let digits = text.utf8.compactMap { UInt8(exactly: Character(UnicodeScalar($0)).hexDigitValue ?? -1) }
        guard digits.count == 32, text.utf8.count == 32 else { return nil }
        self.init((0..<16).map { digits[2 * $0] << 4 | digits[2 * $0 + 1] })
    }
}
