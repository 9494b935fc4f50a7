public import LifelineCore
package import LifelineRuntime
package import LifelineTransport
public import Logging
internal import NIOConcurrencyHelpers
public import ServiceLifecycle

/// A server of sessions: listens on its endpoints, and has services handle what its clients ask for. Sessions go on
/// while connections come and go; a client may go on with its session at another endpoint than before.
///
/// `run()` drives it. Run it as a service of a `ServiceGroup` of swift-service-lifecycle, whose graceful shutdown
/// drains it:
///
///     let server = try SessionServer(listeningOn: endpoint, services: [Room()])
///     try await ServiceGroup(services: [server], gracefulShutdownSignals: [.sigterm], logger: logger).run()
///
/// `withSessionServer` runs one for as long as a function takes.
public final class SessionServer: Sendable {
    /// The endpoints that the server was made for; `boundEndpoints` has the real ports where 0 was asked for.
    public let endpoints: [Endpoint]

    struct State {
        var registry: SessionRegistry<SessionServerEnd>
        /// Sessions of which something is left: handlers that have not returned, for some.
        var sessions: [SessionID: SessionServerEnd] = [:]
        /// Sessions that go to other servers. Opens with whether they are on their way.
        var moves: [SessionID: Latch<Bool>] = [:]
        /// Sessions that are looked for at other servers, by the connections of their clients. Opens with the search's end.
        var searches: [UInt64: Latch<Void>] = [:]
        var connections: [UInt64: any TransportConnection] = [:]
        var lastConnection: UInt64 = 0
        /// Of two connections that claim a session the later claim counts.
        var lastClaim: UInt64 = 0
        /// Whether nothing may be left: connections that were accepted a moment before are cut, too.
        var hasEnded = false
        /// Of each endpoint that has TLS, once it listens.
        var certificates: [ServerCertificates] = []
        /// Opens when no connection is left, once somebody waits for that.
        var idle: Latch<Void>?
        /// When sessions are looked at that may expire.
        var alarm: (deadline: MonotonicTime, call: SharedTimer.CallID)?
        var random: any RandomNumberGenerator & Sendable
    }

    let configuration: SessionServerConfiguration
    let services: [any SessionService]
    let methods: SessionMethods
    /// Where it leaves sessions for other servers; nil: nowhere.
    let depot: (any SessionDepot)?
    let interceptors: [any SessionServerInterceptor]
    /// What its sessions share.
    let budget: SharedSessionBudget
    let timer: SharedTimer
    let transport: any Transport
    let lifecycle: ServerLifecycle
    let log: LimitedLog
    let state: NIOLockedValueBox<State>

    var clock: any ClientClock { lifecycle.clock }
    var logger: Logger { log.logger }

    /// Makes a server that does nothing until it is run.
    ///
    /// - Parameters:
    ///   - services: what clients can ask for.
    ///   - interceptors: stand between sessions and handlers, the first one outermost.
    ///   - logger: gets what happens to connections, as `Server.init` says. Handlers that failed, clients that broke
    ///     the rules and errors of `authenticate`: `warning`; clients that were refused: `info`. Of lines with one
    ///     message, 5 in ten minutes are written of each session, and 100 in ten seconds of all; how many were left
    ///     out, the next one says, or a line at the end of the session or of the server.
    /// - Throws: `ConnectionError` `invalidConfiguration` when two methods have one name, or the default delivery is
    ///   durable and there is no store.
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

    /// The same on several endpoints: a client may go on with its session at another one than before.
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

    /// Where it keeps durable messages; nil: nowhere.
    public var store: (any SessionStore)? { configuration.store }

    /// The sessions, those that have no connection at present included; in no order.
    public var sessions: [SessionServerEnd] {
        state.withLockedValue { state in state.registry.ids.compactMap { state.registry[$0] } }
    }

    /// The session of an id, as `SessionServerEnd.id` has it; nil when there is none.
    public func session(id: String) -> SessionServerEnd? {
        guard let id = SessionID(hexadecimal: id) else { return nil }
        return state.withLockedValue { $0.registry[id] }
    }

    /// The session of a name, which is its identity's or, without one, what its client calls itself; nil when there is
    /// none. Of several with one name, the newest has it.
    public func session(named name: String) -> SessionServerEnd? {
        state.withLockedValue { $0.registry[name: name]?.session }
    }

    // MARK: Running

    /// Where the server listens, with the real ports where 0 was asked for. Waits until it does.
    ///
    /// - Throws: `ConnectionError`: why it does not listen, `closedLocally` when it was shut down before it was run.
    ///   `CancellationError`.
    public var boundEndpoints: [Endpoint] {
        get async throws { try await lifecycle.boundEndpoints }
    }

    /// Listens, and serves sessions until the server is shut down or the task is cancelled. In a `ServiceGroup`,
    /// graceful shutdown does what `shutdown(gracePeriod:)` does with `ServerConfiguration.shutdownGracePeriod`.
    /// Cancelling cuts all connections at once, ends the sessions, and cancels their handlers.
    ///
    /// Returns when all handlers have: one that ignores cancellation holds it up. A server runs once; one that was shut
    /// down before returns at once.
    ///
    /// - Throws: `ConnectionError` when listening fails, `alreadyRun` for a second call. `CancellationError` when the
    ///   task is cancelled.
    public func run() async throws {
        defer { log.logLeftOutCounts() }
        try await lifecycle.run {
            try await listen()
        } serve: { listeners in
            await serve(on: listeners)
        }
    }

    /// Shuts the server down, within `gracePeriod`:
    ///
    /// 1. It stops accepting, and begins no more sessions.
    /// 2. It sends what waits for a client, and then tells it to come back after a pause, a random part of
    ///    `SessionServerConfiguration.drainSpread`; clients that do not take all in three quarters of the grace period
    ///    are told then. A client begins nothing more here; what it had sent is handled, and it leaves when it has all
    ///    its replies and has processed all pushes.
    /// 3. What is left when the grace period is over is cut, its handlers are cancelled, and their sessions end.
    ///
    /// In a fleet (`LifelineFleet`) whose engine is shared, sessions do not end: each is left in the engine once its client
    /// has gone, or the grace period is over, and another server goes on with it. Handlers that run then are cancelled, and
    /// have three seconds more.
    ///
    /// Returns when all handlers have returned, or the task is cancelled. A further call changes nothing but the end of
    /// the grace period, when its own is over earlier. A client that comes back to the next server begins a new session
    /// there, with what it had not sent. `SessionServerConfiguration.whenInDoubt` learns which pushes may not have been
    /// processed.
    public func shutdown(gracePeriod: Duration) async {
        await lifecycle.shutdown(gracePeriod: gracePeriod)
    }

    /// Waits until the server has shut down. Use it as the body of a server that runs until its task is cancelled.
    ///
    /// - Throws: `CancellationError`.
    public func waitUntilShutDown() async throws {
        try await lifecycle.waitUntilShutDown()
    }

    /// Loads the files of `ServerConfiguration.tls` again, for connections that are accepted from now on; those that
    /// stand go on. A server without TLS has nothing to load, nor one that does not run yet.
    ///
    /// - Throws: `ConnectionError` `invalidConfiguration` when they cannot be used; what was loaded before stays in
    ///   use.
    public func reloadCertificate() async throws(ConnectionError) {
        for certificates in state.withLockedValue({ $0.certificates }) { try await certificates.reload() }
    }
}

extension SessionServer: Service {}

// Ends of sessions.
extension SessionServer {
    /// A session is over.
    func sessionEnded(_ id: SessionID) {
        let session = state.withLockedValue { state in
            state.registry.ended(id)
            return state.sessions[id]
        }
        guard let session else { return }
        // One that a handler outlives is waited for by a shutdown, and has its place until then.
        Task.detached {
            await session.waitUntilOver()
            self.state.withLockedValue { state in
                // It may have come back from another server.
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
    /// Reads its description; nil when it is none.
    fileprivate init?(hexadecimal text: String) {
        let digits = text.utf8.compactMap { UInt8(exactly: Character(UnicodeScalar($0)).hexDigitValue ?? -1) }
        guard digits.count == 32, text.utf8.count == 32 else { return nil }
        self.init((0..<16).map { digits[2 * $0] << 4 | digits[2 * $0 + 1] })
    }
}
