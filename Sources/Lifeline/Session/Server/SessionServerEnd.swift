internal import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

/// The server's end of a session with one client. It outlives the session's connections.
public final class SessionServerEnd: Sendable {
    /// The session's id: 32 hexadecimal digits, chosen by the server.
    public var id: String { "\(sessionID)" }

    /// The session's server. The server releases the session when it is over.
    public let server: SessionServer

    private struct State {
        var description: SessionDescription
        var pushHandlers: [Task<Void, Never>] = []
        /// The number of tasks that have not returned. Each task that handles pushes counts. The tasks that handle
        /// requests count as one together, as do the handlers that do not wait, and the session itself until its end
        /// was reported.
        var taskCount = 3
        /// Whether new handlers of pushes are cancelled at once.
        var cancelsHandlers = false
        /// Whether services were told of the session.
        var isTold = false
        /// Nil until something is logged, which is never in most sessions.
        var log: LimitedLog?
    }

    package let sessionID: SessionID
    let engine: SessionEngine
    let frameLimit: Int
    let decodingOptions: DecodingOptions
    /// The client's store; nil if the client or the server has none.
    let storeID: SessionStoreID?
    let methods: SessionMethods
    let interceptors: [any SessionServerInterceptor]
    private let whenEnded: @Sendable (SessionID) -> Void
    private let workers = HandlerWorkers()
    private let allReturned = Latch<Void>()
    private let state: NIOLockedValueBox<State>

    /// - Parameters:
    ///   - kept: the client's store, and what the server's store has for it; nil if the client or the server has none.
    ///   - found: the session as another server left it; nil for a new session.
    ///   - whenEnded: called once, when the session is over.
    init(
        _ id: SessionID,
        _ description: SessionDescription,
        keeping kept: (client: SessionStoreID, durability: SessionMachine.Durability)?,
        _ found: SessionFinding?,
        of server: SessionServer,
        whenEnded: @escaping @Sendable (SessionID) -> Void
    ) {
        sessionID = id
        storeID = kept?.client
        self.server = server
        let configuration = server.configuration
        frameLimit = configuration.server.connection.sessionFrameLimit
        decodingOptions = configuration.server.connection.decodingOptions
        methods = server.methods
        interceptors = server.interceptors
        self.whenEnded = whenEnded
        state = NIOLockedValueBox(State(description: description))
        // Interceptors wait, and Swift's default executor has other threads than those that read.
        let isSynchronous = interceptors.isEmpty && configuration.server.handlerExecutor == .eventLoop
        engine = SessionEngine(
            role: .server,
            options: configuration.limits.options(maximumFrameLength: frameLimit),
            details: SessionMachine.OpeningDetails(kept: configuration.keptDuration),
            snapshot: found?.snapshot,
            findMethod: { [methods, isSynchronous] in methods.method($0, isSynchronous: isSynchronous) },
            budget: server.budget,
            timer: server.timer
        )
        engine.attach(self)
        guard let kept, let store = configuration.store else { return }
        engine.use(
            SessionEngine.Store(store: store, peer: kept.client) { [weak self] error in
                self?.logger.warning("The store failed", metadata: ["error": "\(error)"])
            },
            kept.durability
        )
    }

    var logger: Logger {
        state.withLockedValue { state in
            if let log = state.log { return log.logger }
            var logger = server.logger
            logger[metadataKey: "session"] = "\(sessionID)"
            let log = LimitedLog.ofSession(logger) { [clock = server.clock] in clock.now }
            state.log = log
            return log.logger
        }
    }

    /// Logs only if the server logs such lines, so that most sessions need no log.
    private func debug(_ message: Logger.Message, _ metadata: @autoclosure () -> Logger.Metadata = [:]) {
        if server.logger.logLevel <= .debug { logger.debug(message, metadata: metadata()) }
    }

    /// The name by which the session is found: the identity's or, without one, the name that the client chose. It may
    /// be empty, and another session may have it by now.
    public var name: String { state.withLockedValue { $0.description.name } }

    /// The client's identity at its last connection, if any.
    public var identity: SessionIdentity? { state.withLockedValue { $0.description.identity } }

    /// The client's metadata at its last connection. Unless `authenticate` has checked it, it is only the client's
    /// claim.
    public var metadata: SessionMetadata { state.withLockedValue { $0.description.metadata } }

    /// The numbers of messages by their outcomes so far.
    public var statistics: SessionStatistics { engine.statistics }

    /// Pushes a message to the client. Returns when it is accepted. Waits while too many messages are kept for the
    /// client.
    ///
    /// - Parameters:
    ///   - method: `package.Service/Method`.
    ///   - delivery: the guarantees for the delivery; nil: `SessionServerConfiguration.defaultDelivery`. Default: nil.
    ///   - stage: `processed` waits until the client has processed the push, and throws if that does not happen.
    /// - Throws: `SessionError`: `cancelled`, `messageRefused`, or the reason for the end of the session; for a durable
    ///   push `noStore` and `storeFailed`; with the stage `processed` also those of `SessionPushStage`; also errors of
    ///   an interceptor. With the stage `accepted`, a message that its delivery drops causes no error.
    public nonisolated(nonsending) func push<Message: DelimitedMessage>(
        _ method: String,
        _ message: Message,
        delivery: SessionDelivery? = nil,
        until stage: SessionPushStage = .accepted,
        metadata: SessionMetadata = [:]
    ) async throws(SessionError) {
        let delivery = delivery ?? server.configuration.defaultDelivery
        let payload = try message.sessionPayload()
        if !interceptors.isEmpty {
            return try await pushIntercepted(method, payload, delivery, until: stage, metadata: metadata)
        }
        let content = try EncodedContent(.push, metadata, payload: payload)
        try content.check(frameLimit: frameLimit)
        try await engine.send(.push(method: method), content, delivery, until: stage)
    }

    /// Sends a push that has passed the interceptors.
    nonisolated(nonsending) func send(
        _ push: SessionCall,
        until stage: SessionPushStage
    ) async throws(SessionError) {
        let content = try EncodedContent(.push, push.metadata, payload: push.payload)
        try content.check(frameLimit: frameLimit)
        try await engine.send(.push(method: push.method), content, push.delivery, until: stage)
    }

    /// Ends the session when everything that was accepted is processed, and every handler of a request has returned.
    /// The client is told, and does not come back by itself. Takes no more messages from now on.
    public func end() {
        engine.close()
    }

    /// Ends the session as `end()` does. If it lasts longer than `gracePeriod`, ends it at once: its handlers are
    /// cancelled, and the messages that the client has not processed are in doubt. Returns when the session has ended.
    /// Cancelling the task also ends the session at once.
    ///
    /// A connected client is told, and does not come back by itself.
    public func end(gracePeriod: Duration) async {
        await withTaskCancellationHandler {
            engine.close(within: gracePeriod)
            await engine.waitUntilEnded()
        } onCancel: {
            engine.end(.abandoned)
        }
    }
}

extension SessionServerEnd: Identifiable {}

// Calls of the server.
extension SessionServerEnd {
    /// Notes that the client has come back.
    func renew(_ description: SessionDescription) {
        state.withLockedValue { $0.description = description }
    }

    /// Notes that the session has come from another server. It is kept whether or not its client is still connected.
    func arrived() {
        debug("The session has come from another server")
        tellServices()
    }

    /// Tells services once that the session begins here.
    private func tellServices() {
        let isFirst = state.withLockedValue { state in
            defer { state.isTold = true }
            return !state.isTold
        }
        if isFirst { for service in server.services { service.sessionOpened(self) } }
    }

    /// Ends the session because its server shuts down. The server has aborted its connections.
    func shutDown() {
        engine.end(.shutDown)
        // Also the handlers that outlive the session.
        cancelHandlers()
    }

    /// Ends the session because its client has begun another one.
    func endForNext() {
        engine.end(.begunAgain)
        // Also the handlers that outlive the session.
        cancelHandlers()
    }

    private func cancelHandlers() {
        let tasks = state.withLockedValue { state in
            state.cancelsHandlers = true
            return state.pushHandlers
        }
        for task in tasks { task.cancel() }
        workers.cancelAll()
    }

    /// Whether the session has ended and all of its handlers have returned.
    var isOver: Bool { allReturned.value != nil }

    /// Waits until the session is over, and the store has everything that the handlers processed.
    func waitUntilOver() async {
        await allReturned.waitUninterrupted()
        await engine.stored?.waitUninterrupted()
    }

    /// Waits for the same, or until the task is cancelled.
    ///
    /// - Throws: `CancellationError`.
    func over() async throws {
        try await allReturned.wait()
        try await engine.stored?.wait()
    }

    /// Notes that all handlers of requests have returned and that no more requests come.
    func handlersReturned() { taskReturned() }

    /// Notes the same of handlers that do not wait.
    func synchronousWorkEnded() { taskReturned() }

    private func taskReturned() {
        let isOver = state.withLockedValue { state in
            state.taskCount -= 1
            return state.taskCount == 0
        }
        guard isOver else { return }
        state.withLockedValue { $0.log }?.logLeftOutCounts()
        allReturned.open(with: ())
    }
}

extension SessionServerEnd: SessionOwner {
    func begin(_ request: InboundRequest) {
        let executor = server.configuration.server.handlerExecutor.executor(onLoop: request.executor)
        workers.submit(request, of: self, on: executor)
    }

    func cancel(_ request: IncomingRequest) {
        guard let waiting = workers.cancel(request) else { return }
        engine.respond(to: waiting.request, EncodedContent(unchecked: SessionStatus(.cancelled)))
    }

    func handlePushes(of method: Int, from inbox: SessionInbox) {
        let method = methods[method]
        // Handlers of pushes stay on this executor even if the connection changes.
        let executor = server.configuration.server.handlerExecutor.executor(onLoop: engine.connection?.executor)
        let cancelled = state.withLockedValue { state -> Task<Void, Never>? in
            state.taskCount += 1
            let task = Task.detached(executorPreference: executor) {
                await self.handlePushes(of: method, from: inbox)
                self.taskReturned()
            }
            state.pushHandlers.append(task)
            return state.cancelsHandlers ? task : nil
        }
        cancelled?.cancel()
    }

    func unwanted(_ method: String) {
        // The name comes from the client.
        logger.notice("There is no method for a push", metadata: ["method": "\(method.escaped(limit: 100))"])
    }

    func received(_ event: SessionEngineEvent) {
        switch event {
        case .opened(_, let isResumed):
            debug("The session was opened", ["resumed": "\(isResumed)"])
            tellServices()
            server.configuration.whenOpened(self, isResumed)
        case .peerViolated(let message):
            logger.warning("The client broke the rules of sessions", metadata: ["error": "\(message.escaped())"])
        case .ended(let end, let inDoubt):
            let reason = end.isFailure ? SessionError(end) : nil
            debug("The session is over", reason.map { ["reason": "\($0.message)"] } ?? [:])
            if end.dropsWork { cancelHandlers() }
            // First, so that the session is no longer found.
            whenEnded(sessionID)
            if !inDoubt.isEmpty { server.configuration.whenInDoubt(self, inDoubt) }
            if engine.wasOpened {
                server.configuration.whenEnded(self)
                for service in server.services { service.sessionEnded(self) }
            }
            if workers.end() { handlersReturned() }
            if engine.endSynchronousWork() { synchronousWorkEnded() }
            taskReturned()
        case .expired(let messages):
            logger.warning("Durable messages have expired", metadata: ["count": "\(messages.count)"])
            server.configuration.whenInDoubt(self, messages)
        case .refused(let messages):
            server.configuration.whenInDoubt(self, messages)
        case .lost, .peerLeaving, .peerAccused:
            // A server's session is not lost; it ends.
            break
        }
    }
}

/// The description of a session's client.
struct SessionDescription: Sendable {
    let name: String
    let metadata: SessionMetadata
    let identity: SessionIdentity?

    /// - Parameter identity: sets the name, if there is one.
    init(_ hello: ClientOpening, _ identity: SessionIdentity?) {
        name = identity?.sessionName ?? hello.name
        metadata = hello.metadata
        self.identity = identity
    }
}
