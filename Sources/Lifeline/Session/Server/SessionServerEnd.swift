internal import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

/// The server's end of a session with one client. It goes on while connections come and go.
public final class SessionServerEnd: Sendable {
    /// What names the session: 32 hexadecimal digits, chosen by the server.
    public var id: String { "\(sessionID)" }

    /// The server that it is a session of. It lets go of the session when that is over.
    public let server: SessionServer

    private struct State {
        var description: SessionDescription
        var pushHandlers: [Task<Void, Never>] = []
        /// Tasks that handle pushes and have not returned; those that handle requests, as one, until they all have;
        /// handlers that do not wait, as one, too; and the session itself, until everybody has been told of its end.
        var taskCount = 3
        /// Whether handlers of pushes that begin are cancelled at once.
        var cancelsHandlers = false
        /// Whether services know it.
        var isTold = false
        /// Nil: nothing was logged, as in most sessions.
        var log: LimitedLog?
    }

    package let sessionID: SessionID
    let engine: SessionEngine
    let frameLimit: Int
    let decodingOptions: DecodingOptions
    /// The client's store; nil where it has none, or the server.
    let storeID: SessionStoreID?
    let methods: SessionMethods
    let interceptors: [any SessionServerInterceptor]
    private let whenEnded: @Sendable (SessionID) -> Void
    private let workers = HandlerWorkers()
    private let allReturned = Latch<Void>()
    private let state: NIOLockedValueBox<State>

    /// - Parameters:
    ///   - kept: the client's store, and what the server's has for it; nil where one of them has none.
    ///   - found: the session at the server that had it; nil: it begins.
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
        // Interceptors wait, and the threads that Swift has for tasks are not those that read.
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

    /// Most servers write no such lines, and their sessions need no log.
    private func debug(_ message: Logger.Message, _ metadata: @autoclosure () -> Logger.Metadata = [:]) {
        if server.logger.logLevel <= .debug { logger.debug(message, metadata: metadata()) }
    }

    /// How the session is found: as its identity says, or, without one, as its client wants. It may be empty, and
    /// another session may have the name by now.
    public var name: String { state.withLockedValue { $0.description.name } }

    /// Who the client is, as was found out when it connected last; nil when nothing was.
    public var identity: SessionIdentity? { state.withLockedValue { $0.description.identity } }

    /// What the client said of itself when it connected last. What nobody has checked is the client's word only.
    public var metadata: SessionMetadata { state.withLockedValue { $0.description.metadata } }

    /// What became of messages so far.
    public var statistics: SessionStatistics { engine.statistics }

    /// Tells the client something. Returns when it is accepted; waits while too much is kept for the client.
    ///
    /// - Parameters:
    ///   - method: `package.Service/Method`.
    ///   - delivery: what is promised of it; nil: `SessionServerConfiguration.defaultDelivery`. Default: nil.
    ///   - stage: `processed` waits until the client has processed it, and throws when it does not come to that.
    /// - Throws: `SessionError`: `cancelled`, `messageRefused`, or why the session has ended; of a durable push `noStore`
    ///   and `storeFailed`; until it is processed also those of `SessionPushStage`; also what an interceptor throws. What
    ///   its delivery drops is no error otherwise.
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

    /// Sends what has come by the interceptors.
    nonisolated(nonsending) func send(
        _ push: SessionCall,
        until stage: SessionPushStage
    ) async throws(SessionError) {
        let content = try EncodedContent(.push, push.metadata, payload: push.payload)
        try content.check(frameLimit: frameLimit)
        try await engine.send(.push(method: push.method), content, push.delivery, until: stage)
    }

    /// Ends the session when everything that was accepted is processed, and every handler of a request has returned.
    /// Its client is told, and does not come back by itself. Takes no more messages from now on.
    public func end() {
        engine.close()
    }

    /// Ends the session as `end()` does, and at once when it goes on after `gracePeriod`: its handlers are cancelled
    /// then, and what the client has not processed is in doubt. Returns when the session has ended. Cancelling the task
    /// ends the session at once, too.
    ///
    /// The client, where there is one, is told, and does not come back by itself.
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

// What its server does with it.
extension SessionServerEnd {
    /// A client has come back.
    func renew(_ description: SessionDescription) {
        state.withLockedValue { $0.description = description }
    }

    /// It has come from another server, and is kept whether or not its client is still there.
    func arrived() {
        debug("The session has come from another server")
        tellServices()
    }

    /// Tells services that it begins here, once.
    private func tellServices() {
        let isFirst = state.withLockedValue { state in
            defer { state.isTold = true }
            return !state.isTold
        }
        if isFirst { for service in server.services { service.sessionOpened(self) } }
    }

    /// Its server shuts down, and has cut its connections.
    func shutDown() {
        engine.end(.shutDown)
        // Those, too, that go on after the session.
        cancelHandlers()
    }

    /// Its client has begun another session.
    func endForNext() {
        engine.end(.begunAgain)
        // Those, too, that go on after the session.
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

    /// Whether it has ended, and all of its handlers have returned.
    var isOver: Bool { allReturned.value != nil }

    /// Waits for that, and until the store knows what they have processed.
    func waitUntilOver() async {
        await allReturned.waitUninterrupted()
        await engine.stored?.waitUninterrupted()
    }

    /// Waits for the same, until the task is cancelled.
    ///
    /// - Throws: `CancellationError`.
    func over() async throws {
        try await allReturned.wait()
        try await engine.stored?.wait()
    }

    /// All handlers of requests have returned, and no request comes any more.
    func handlersReturned() { taskReturned() }

    /// The same of handlers that do not wait.
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
        // Handlers of pushes go on there when the connection is another one.
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
        // The name is the client's.
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
            // First, so that nobody finds it any more.
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
            // A server's session is not lost: it ends.
            break
        }
    }
}

/// Whose session it is.
struct SessionDescription: Sendable {
    let name: String
    let metadata: SessionMetadata
    let identity: SessionIdentity?

    /// - Parameter identity: decides the name, where there is one.
    init(_ hello: ClientOpening, _ identity: SessionIdentity?) {
        name = identity?.sessionName ?? hello.name
        metadata = hello.metadata
        self.identity = identity
    }
}
