internal import LifelineCore
internal import LifelineProtos
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

/// The client's end of a session: learns what becomes of the session, makes its connections, and has the inboxes of its
/// pushes.
final class SessionClientEnd: Sendable {
    typealias Frame = Lifeline_Session_V1_Frame

    private struct State {
        var inboxes: [String: SessionInbox] = [:]
        var unwantedPushCount = 0
    }

    let history = SessionHistory()
    let leftovers: LeftoverPushes
    private let engine: SessionEngine
    private let clock: any ClientClock
    private let log: LimitedLog
    private let renewMetadata: (@Sendable () async throws -> SessionMetadata)?
    /// Keeps the connections that the session goes over.
    private let keeper: ConnectionKeeper
    private let configuration: ConnectionConfiguration
    private let state = NIOLockedValueBox(State())

    init(
        engine: SessionEngine,
        keeper: ConnectionKeeper,
        configuration: ConnectionConfiguration,
        leftoverLimit: SessionWindow,
        renewMetadata: (@Sendable () async throws -> SessionMetadata)?,
        clock: any ClientClock,
        logger: Logger
    ) {
        self.engine = engine
        self.keeper = keeper
        self.configuration = configuration
        leftovers = LeftoverPushes(limit: leftoverLimit)
        self.renewMetadata = renewMetadata
        self.clock = clock
        log = .ofSession(logger) { clock.now }
    }

    private var logger: Logger { log.logger }

    var unwantedPushCount: Int { state.withLockedValue { $0.unwantedPushCount } }

    /// Why the server has ended the session; nil when it has not.
    var failure: SessionError? {
        guard let end = engine.endReason, end.isFailure else { return nil }
        return SessionError(end)
    }

    /// Where pushes of a method go from now on.
    func registerInbox(for method: String) -> SessionInbox {
        let inbox = state.withLockedValue { state in
            let inbox = state.inboxes[method] ?? SessionInbox(leftovers: leftovers)
            state.inboxes[method] = inbox
            return inbox
        }
        // One that is registered later is not among those that end with the session.
        if let end = engine.endReason { inbox.finish(SessionClientEnd.result(end)) }
        return inbox
    }

    /// Nobody wants the pushes of a method any more: what waits is dropped.
    func removeInbox(_ inbox: SessionInbox, for method: String) {
        let isRegistered = state.withLockedValue { state in
            guard state.inboxes[method] === inbox else { return false }
            state.inboxes[method] = nil
            return true
        }
        guard isRegistered else { return }
        for item in inbox.close() { engine.finish(item.receipt) }
        inbox.finish(.success(()))
    }

    /// How iterations of pushes end.
    private static func result(_ end: SessionEndReason) -> Result<Void, SessionError> {
        end.isFailure ? .failure(SessionError(end)) : .success(())
    }

    /// A push was not what its method has, or an interceptor threw.
    func failed(_ method: String, _ error: any Error, wasDelivered: Bool = false) {
        let metadata: Logger.Metadata = [
            "method": "\(method.escaped(limit: 100))", "error": "\("\(error)".escaped())",
        ]
        logger.warning(wasDelivered ? "An interceptor of a push failed" : "A push was dropped", metadata: metadata)
    }
}

extension SessionClientEnd: SessionOwner {
    func inbox(for push: Lifeline_Session_V1_Push) -> SessionInbox? {
        let method = push.method
        let inbox = state.withLockedValue { state in
            if state.inboxes[method] == nil { state.unwantedPushCount += 1 }
            return state.inboxes[method]
        }
        if inbox == nil {
            // The name is the server's.
            logger.notice("Nobody has asked for a push", metadata: ["method": "\(method.escaped(limit: 100))"])
        }
        return inbox
    }

    /// A server asks nothing of its clients but by pushes.
    func begin(_ request: IncomingRequest, deadline: MonotonicTime?, _ content: Lifeline_Session_V1_Request) {
        engine.respond(to: request, SessionStatus(.unimplemented, "A client handles no requests."))
    }

    func cancel(_ request: IncomingRequest) {}

    func received(_ event: SessionEngineEvent) {
        switch event {
        case .opened(let id, let isResumed):
            logger.debug("The session was opened", metadata: ["session": "\(id)", "resumed": "\(isResumed)"])
            history.append(.opened(id: "\(id)", resumed: isResumed))
        case .lost(let reason, let inDoubt):
            logger.warning(
                "The session was lost",
                metadata: ["inDoubt": "\(inDoubt.count)", "error": "\(reason)"]
            )
            for inbox in state.withLockedValue({ Array($0.inboxes.values) }) { inbox.sessionLost() }
            history.append(.lost(inDoubt: inDoubt), reason: reason)
        case .refused(let messages):
            logger.warning("The server does not take what was pushed", metadata: ["count": "\(messages.count)"])
            history.append(.refused(messages))
        case .peerLeaving(let pause):
            logger.info("The server goes away", metadata: ["pause": "\(pause)"])
            keeper.peerLeaving(pause: pause)
        case .peerViolated(let message):
            logger.warning("The server broke the rules of sessions", metadata: ["error": "\(message.escaped())"])
        case .peerAccused(let error):
            logger.warning("The server refused what this client sent", metadata: ["error": "\(error)"])
        case .ended(let end, let inDoubt):
            ended(end, inDoubt)
        }
    }

    private func ended(_ end: SessionEndReason, _ inDoubt: [SessionMessageInDoubt]) {
        let failure = end.isFailure ? SessionError(end) : nil
        if let failure { logger.error("The session is over", metadata: ["error": "\(failure)"]) }
        history.append(.ended(failure, inDoubt: inDoubt))
        for inbox in state.withLockedValue({ Array($0.inboxes.values) }) {
            inbox.finish(SessionClientEnd.result(end))
        }
        log.logLeftOutCounts()
        // The goodbye is on the way.
        keeper.beginClose()
    }
}

// The connections that the session goes over.
extension SessionClientEnd: ConnectionUser {
    func connect(as id: ClientMachine.ConnectionID) async throws -> any TransportConnection {
        try await leftovers.waitForRoom {
            logger.warning("Not connecting until pushes that have arrived are taken; see SessionClient.pushes")
        }
        if let renewMetadata {
            do {
                let metadata = try await renewMetadata()
                engine.state.withLockedValue { $0.details.metadata = metadata }
            } catch {
                throw ConnectionError(
                    code: .connectFailed,
                    message:
                        "What the server is to be told of the client could not be found out: \("\(error)".escaped())",
                    cause: error
                )
            }
        }
        let sink = SessionClientSink(id: id, engine: engine, keeper: keeper)
        return try await keeper.connect { [configuration] in
            MessageReceiver(configuration: configuration, heartbeat: .session, sink: sink)
        }
    }

    func use(_ connection: any TransportConnection, as id: ClientMachine.ConnectionID) async {
        engine.connected(connection, as: id)
    }

    func ended(_ id: ClientMachine.ConnectionID) {
        engine.disconnected(id)
    }
}

/// Where the frames of one of a session's connections go.
private final class SessionClientSink: MessageSink, MessageIntake {
    typealias Frame = SessionClientEnd.Frame

    private let id: ClientMachine.ConnectionID
    private let engine: SessionEngine
    private let keeper: ConnectionKeeper

    init(id: ClientMachine.ConnectionID, engine: SessionEngine, keeper: ConnectionKeeper) {
        self.id = id
        self.engine = engine
        self.keeper = keeper
    }

    var intake: (any MessageIntake<Frame>)? { self }

    /// Frames of heartbeats carry acknowledgements.
    var seesHeartbeats: Bool { true }

    func consume(_ frame: Frame, byteCount: Int) -> Bool {
        // A goodbye is the last thing that is said.
        !engine.received(frame, byteCount: byteCount, on: id) || !frame.isHeartbeat
    }

    func batchEnded() { engine.batchEnded() }

    /// All frames were taken before.
    func receive(_ frames: [Frame], cost: Int) -> ReadDemand { .more }

    func finish(throwing error: ConnectionError?) {
        engine.inputEnded(error, on: id)
        // With an error, the end of the connection tells the keeper.
        if error == nil { _ = keeper.inputEnded(id) }
    }
}
