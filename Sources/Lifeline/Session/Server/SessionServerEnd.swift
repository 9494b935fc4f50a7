internal import LifelineCore
public import LifelineMessages
internal import LifelineProtos
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

/// The server's end of a session with one client. It goes on while connections come and go.
public final class SessionServerEnd: Sendable {
    /// What names the session: 32 hexadecimal digits, chosen by the server.
    public let id: String

    /// The server that it is a session of. It lets go of the session when that is over.
    public let server: SessionServer

    private struct State {
        var description: SessionDescription
        /// What handles requests, by their counts, which ascend.
        var handlers = SparseQueue<Task<Void, Never>>()
        /// Where pushes wait for the task that handles those of their method, by its index.
        var inboxes: [Int: SessionInbox] = [:]
        var pushHandlers: [Task<Void, Never>] = []
        var unwantedPushCount = 0
        /// Tasks that have not returned, and the session itself, until everybody has been told of its end.
        var taskCount = 1
        /// Whether handlers that begin are cancelled at once.
        var cancelsHandlers = false
    }

    let sessionID: SessionID
    let engine: SessionEngine
    let frameLimit: Int
    let decodingOptions: DecodingOptions
    private let methods: SessionMethods
    private let interceptors: [any SessionServerInterceptor]
    private let log: LimitedLog
    private let whenEnded: @Sendable (SessionID) -> Void
    private let allReturned = Latch<Void>()
    private let state: NIOLockedValueBox<State>

    /// - Parameter whenEnded: called once, when the session is over.
    init(
        _ id: SessionID,
        _ description: SessionDescription,
        of server: SessionServer,
        whenEnded: @escaping @Sendable (SessionID) -> Void
    ) {
        sessionID = id
        self.id = "\(id)"
        self.server = server
        let configuration = server.configuration
        frameLimit = configuration.server.connection.maximumFrameLength
        decodingOptions = configuration.server.connection.decodingOptions
        methods = server.methods
        interceptors = server.interceptors
        var logger = server.logger
        logger[metadataKey: "session"] = "\(id)"
        let clock = server.clock
        log = .ofSession(logger) { clock.now }
        self.whenEnded = whenEnded
        state = NIOLockedValueBox(State(description: description))
        engine = SessionEngine(
            role: .server,
            options: configuration.limits.options(maximumFrameLength: frameLimit),
            details: SessionOpeningDetails(keptDuration: configuration.keptDuration),
            budget: server.budget,
            clock: server.clock
        )
        engine.attach(self)
    }

    private var logger: Logger { log.logger }

    /// How the session is found: as its identity says, or, without one, as its client wants. It may be empty, and
    /// another session may have the name by now.
    public var name: String { state.withLockedValue { $0.description.name } }

    /// Who the client is, as was found out when it connected last; nil when nothing was.
    public var identity: SessionIdentity? { state.withLockedValue { $0.description.identity } }

    /// What the client said of itself when it connected last. What nobody has checked is the client's word only.
    public var metadata: SessionMetadata { state.withLockedValue { $0.description.metadata } }

    /// What became of messages so far.
    public var statistics: SessionStatistics {
        var statistics = engine.statistics
        statistics.unwantedPushCount = state.withLockedValue { $0.unwantedPushCount }
        return statistics
    }

    /// Tells the client something. Returns when it is accepted; waits while too much is kept for the client.
    ///
    /// - Parameters:
    ///   - method: `package.Service/Method`.
    ///   - stage: `processed` waits until the client has processed it, and throws when it does not come to that.
    /// - Throws: `SessionError`: `cancelled`, `messageRefused`, or why the session has ended; until it is processed
    ///   also those of `SessionPushStage`; also what an interceptor throws. What its delivery drops is no error
    ///   otherwise.
    public nonisolated(nonsending) func push<Message: DelimitedMessage>(
        _ method: String,
        _ message: Message,
        delivery: SessionDelivery = .reliable,
        until stage: SessionPushStage = .accepted,
        metadata: SessionMetadata = [:]
    ) async throws(SessionError) {
        let content = try CallContent(message)
        if !interceptors.isEmpty {
            return try await pushIntercepted(method, content, delivery, until: stage, metadata: metadata)
        }
        let payload = OutgoingPayload.push(method: method, metadata: metadata, payload: content.bytes)
        try payload.check(limit: frameLimit)
        try await engine.push(payload, delivery, until: stage)
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

// What its server does with it.
extension SessionServerEnd {
    /// A client has come back.
    func renew(_ description: SessionDescription) {
        state.withLockedValue { $0.description = description }
    }

    /// Its server shuts down, and has cut its connections.
    func shutDown() {
        engine.end(.shutDown)
        // Those, too, that go on after the session.
        cancelHandlers()
    }

    private func cancelHandlers() {
        let tasks = state.withLockedValue { state in
            state.cancelsHandlers = true
            return state.handlers.elements + state.pushHandlers
        }
        for task in tasks { task.cancel() }
    }

    /// Whether it has ended, and all of its handlers have returned.
    var isOver: Bool { allReturned.value != nil }

    /// Waits for that.
    func waitUntilOver() async {
        await allReturned.waitUninterrupted()
    }

    private func taskReturned(_ change: (inout State) -> Void = { _ in }) {
        let isOver = state.withLockedValue { state in
            change(&state)
            state.taskCount -= 1
            return state.taskCount == 0
        }
        guard isOver else { return }
        log.logLeftOutCounts()
        allReturned.open(with: ())
    }
}

extension SessionServerEnd: SessionOwner {
    /// What runs handlers that begin now; those of pushes go on there when the connection is another one.
    private var executor: (any TaskExecutor)? {
        engine.connection.flatMap { server.configuration.server.handlerExecutor.executor(of: $0) }
    }

    func begin(_ request: IncomingRequest, deadline: MonotonicTime?, _ content: Lifeline_Session_V1_Request) {
        let found = content.withMethodUTF8Span { methods.index(of: $0.span) }.map { methods[$0] }
        // Interceptors see those that nobody handles, too.
        let method = found.flatMap { $0.kind == .push ? nil : $0 } ?? .unimplemented(content.method)
        let call = SessionCall(
            method.name,
            method.kind,
            metadata: nil,
            // For interceptors: a handler asks its context.
            timeout: interceptors.isEmpty ? nil : deadline.map { $0 - engine.clock.now },
            isImplemented: found != nil,
            content: .request(content)
        )
        let executor = executor
        let cancelled = state.withLockedValue { state -> Task<Void, Never>? in
            state.taskCount += 1
            // Detached: whose task this runs in has nothing to do with the request. The task removes itself, which
            // waits for this lock.
            let task = Task.detached(executorPreference: executor) {
                await self.handle(call, method, request, deadline)
                self.taskReturned { $0.handlers.remove(request.count) }
            }
            state.handlers.append(request.count, task)
            return state.cancelsHandlers ? task : nil
        }
        // The user's code runs in it, which may ask this session.
        cancelled?.cancel()
    }

    func cancel(_ request: IncomingRequest) {
        state.withLockedValue { $0.handlers[request.count] }?.cancel()
    }

    func inbox(for push: Lifeline_Session_V1_Push) -> SessionInbox? {
        guard let index = push.withMethodUTF8Span({ methods.index(of: $0.span) }), methods[index].kind == .push else {
            unwanted(push.method)
            return nil
        }
        if let inbox = state.withLockedValue({ $0.inboxes[index] }) { return inbox }
        let method = methods[index]
        let executor = executor
        let inbox = SessionInbox()
        let cancelled = state.withLockedValue { state -> Task<Void, Never>? in
            state.inboxes[index] = inbox
            state.taskCount += 1
            let task = Task.detached(executorPreference: executor) {
                await self.handlePushes(of: method, from: inbox)
                self.taskReturned()
            }
            state.pushHandlers.append(task)
            return state.cancelsHandlers ? task : nil
        }
        cancelled?.cancel()
        return inbox
    }

    func received(_ event: SessionEngineEvent) {
        switch event {
        case .opened(_, let isResumed):
            logger.debug("The session was opened", metadata: ["resumed": "\(isResumed)"])
            server.configuration.whenOpened(self, isResumed)
        case .peerViolated(let message):
            logger.warning("The client broke the rules of sessions", metadata: ["error": "\(message.escaped())"])
        case .ended(let end, let inDoubt):
            let reason = end.isFailure ? SessionError(end) : nil
            logger.debug("The session is over", metadata: reason.map { ["reason": "\($0.message)"] } ?? [:])
            for inbox in state.withLockedValue({ Array($0.inboxes.values) }) { inbox.finish(.success(())) }
            if end.dropsWork { cancelHandlers() }
            // First, so that nobody finds it any more.
            whenEnded(sessionID)
            if !inDoubt.isEmpty { server.configuration.whenInDoubt(self, inDoubt) }
            if engine.wasOpened { server.configuration.whenEnded(self) }
            taskReturned()
        case .refused(let messages):
            server.configuration.whenInDoubt(self, messages)
        case .lost, .peerLeaving, .peerAccused:
            // A server's session is not lost: it ends.
            break
        }
    }

    private func unwanted(_ method: String) {
        state.withLockedValue { $0.unwantedPushCount += 1 }
        // The name is the client's.
        logger.notice("There is no method for a push", metadata: ["method": "\(method.escaped(limit: 100))"])
    }
}

// Handlers.
extension SessionServerEnd {
    private nonisolated(nonsending) func handle(
        _ call: SessionCall,
        _ method: SessionMethod,
        _ request: IncomingRequest,
        _ deadline: MonotonicTime?
    ) async {
        do {
            respond(to: request, of: call.method, with: .success(try await run(call, method, request, deadline)))
        } catch {
            respond(to: request, of: call.method, with: .failure(error))
        }
    }

    /// Never a part of the function that waits for the handler, whose task would have room for all of this meanwhile.
    @inline(never)
    private func respond(
        to request: IncomingRequest,
        of method: String,
        with result: Result<SessionReply, any Error>
    ) {
        do {
            let reply = try result.get()
            let payload = reply.content.bytes
            let response = OutgoingPayload.response(SessionStatus(.ok), metadata: reply.metadata, payload: payload)
            try response.check(limit: frameLimit)
            engine.respond(to: request, response)
        } catch {
            engine.respond(to: request, sendable(status(of: error, method), method))
        }
    }

    /// The status, or what takes its place when no frame can carry it.
    private func sendable(_ status: SessionStatus, _ method: String) -> SessionStatus {
        do throws(SessionError) {
            try OutgoingPayload.response(status, metadata: [:], payload: []).check(limit: frameLimit)
            return status
        } catch {
            warn("A status cannot be sent", method, error)
            return SessionStatus(.internal, "The status \(status.code) cannot be sent.")
        }
    }

    private nonisolated(nonsending) func handlePushes(of method: SessionMethod, from inbox: SessionInbox) async {
        while let item = try? await inbox.next() {
            do {
                _ = try await run(call(of: item.push, method), method, nil, nil)
            } catch {
                warn("The handler of a push failed", method.name, error)
            }
            engine.finish(item.receipt)
        }
    }

    private func call(of push: Lifeline_Session_V1_Push, _ method: SessionMethod) -> SessionCall {
        SessionCall(method.name, .push, metadata: nil, content: .push(push))
    }

    /// Logs what went wrong. The method's name and words in the error may be the client's.
    @inline(never)
    private func warn(_ message: Logger.Message, _ method: String, _ error: any Error) {
        let error = "\(error)".escaped()
        logger.warning(message, metadata: ["method": "\(method.escaped(limit: 100))", "error": "\(error)"])
    }

    private nonisolated(nonsending) func run(
        _ call: SessionCall,
        _ method: SessionMethod,
        _ request: IncomingRequest?,
        _ deadline: MonotonicTime?
    ) async throws -> SessionReply {
        if interceptors.isEmpty {
            return SessionReply(content: try await method.handle(call, context(of: call, request, deadline)))
        }
        return try await interceptors[...].make(call, session: self) { call in
            SessionReply(content: try await method.handle(call, self.context(of: call, request, deadline)))
        }
    }

    private func context(
        of call: SessionCall,
        _ request: IncomingRequest?,
        _ deadline: MonotonicTime?
    ) -> SessionContext {
        SessionContext(
            method: call.method,
            lazyMetadata: call.lazyMetadata,
            deadline: deadline,
            session: self,
            request: request
        )
    }

    /// What a client learns of an error.
    private func status(of error: any Error, _ method: String) -> SessionStatus {
        switch error {
        case let status as SessionStatus where status.code != .ok: return status
        case is CancellationError: return SessionStatus(.cancelled)
        case let error as SessionError where error.code == .cancelled: return SessionStatus(.cancelled)
        case let error as SessionError where error.code == .serverExhausted:
            return SessionStatus(.resourceExhausted, error.message)
        case let error as SessionError where error.code == .messageRefused:
            warn("A reply cannot be sent", method, error)
            return SessionStatus(.internal, "The reply cannot be sent.")
        default:
            warn("A handler failed", method, error)
            return SessionStatus(.unknown)
        }
    }
}

/// Whose session it is.
struct SessionDescription: Sendable {
    let name: String
    let metadata: SessionMetadata
    let identity: SessionIdentity?

    /// - Parameter identity: decides the name, where there is one.
    init(_ hello: SessionServerIntake.Hello, _ identity: SessionIdentity?) {
        name = identity?.sessionName ?? hello.name
        metadata = hello.metadata
        self.identity = identity
    }
}
