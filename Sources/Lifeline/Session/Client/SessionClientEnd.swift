internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

/// The client's end of a session: receives the session's events, and makes its connections.
final class SessionClientEnd: Sendable {
    let history = SessionHistory()
    /// Opens when the store is open, or will never be.
    let storeIsOpen = Latch<Void>()
    private let engine: SessionEngine
    private let clock: any ClientClock
    private let log: LimitedLog
    private let renewMetadata: (@Sendable () async throws -> SessionMetadata)?
    /// Keeps the connections of the session.
    private let keeper: ConnectionKeeper

    init(
        engine: SessionEngine,
        keeper: ConnectionKeeper,
        renewMetadata: (@Sendable () async throws -> SessionMetadata)?,
        clock: any ClientClock,
        logger: Logger
    ) {
        self.engine = engine
        self.keeper = keeper
        self.renewMetadata = renewMetadata
        self.clock = clock
        log = .ofSession(logger) { clock.now }
    }

    private var logger: Logger { log.logger }

    /// The reason for which the server has ended the session; nil when it has not.
    var failure: SessionError? {
        guard let end = engine.endReason, end.isFailure else { return nil }
        return SessionError(end)
    }

    /// Reports a failed store. The session goes on.
    func storeFailed(_ error: StoreError) {
        logger.warning("The store failed", metadata: ["error": "\(error)"])
    }

    /// Reports a push that is not of its method's type, or an error of an interceptor.
    func failed(_ method: String, _ error: any Error, wasDelivered: Bool = false) {
        let metadata: Logger.Metadata = [
            "method": "\(method.escaped(limit: 100))", "error": "\("\(error)".escaped())",
        ]
        logger.warning(wasDelivered ? "An interceptor of a push failed" : "A push was dropped", metadata: metadata)
    }
}

extension SessionClientEnd: SessionOwner {
    func unwanted(_ method: String) {
        // The name comes from the server, so it is escaped.
        logger.notice("Nobody has asked for a push", metadata: ["method": "\(method.escaped(limit: 100))"])
    }

    /// Refuses a request: servers only send pushes to their clients.
    func begin(_ request: InboundRequest) {
        let status = SessionStatus(.unimplemented, "A client handles no requests.")
        engine.respond(to: request.request, EncodedContent(unchecked: status))
    }

    func cancel(_ request: IncomingRequest) {}

    // A client has no methods.
    func answer(_ request: InboundRequest) -> EncodedContent {
        EncodedContent(unchecked: SessionStatus(.unimplemented))
    }

    func handle(_ pushes: SessionInbox.Run, of method: Int) {}
    func synchronousWorkEnded() {}

    /// Does nothing: pushes go to the loops that have asked for them.
    func handlePushes(of method: Int, from inbox: SessionInbox) {}

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
            history.append(.lost(inDoubt: inDoubt), reason: reason)
        case .refused(let messages):
            logger.warning("The server does not take what was pushed", metadata: ["count": "\(messages.count)"])
            history.append(.refused(messages))
        case .expired(let messages):
            logger.warning("Durable messages have expired", metadata: ["count": "\(messages.count)"])
            history.append(.expired(messages))
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
        storeIsOpen.open(with: ())
        log.logLeftOutCounts()
        // The goodbye is on the way.
        keeper.beginClose()
    }
}

// The connections of the session.
extension SessionClientEnd: ConnectionUser {
    func connect(as id: ClientMachine.ConnectionID) async throws -> any TransportConnection {
        try await engine.waitForLeftovers {
            logger.warning("Not connecting until pushes that have arrived are taken; see SessionClient.pushes")
        }
        if let renewMetadata {
            do {
                let metadata = try await renewMetadata()
                engine.renew(metadata)
            } catch {
                throw ConnectionError(
                    code: .connectFailed,
                    message:
                        "The client's metadata could not be renewed: \("\(error)".escaped())",
                    cause: error
                )
            }
        }
        let sink = SessionClientSink(id: id, engine: engine, keeper: keeper)
        return try await keeper.connect { SessionReceiver(sink) }
    }

    func use(_ connection: any TransportConnection, as id: ClientMachine.ConnectionID) async {
        engine.connected(connection, as: id)
    }

    func ended(_ id: ClientMachine.ConnectionID) {
        engine.disconnected(id)
    }
}

/// Receives the frames of one of a session's connections.
private final class SessionClientSink: SessionFrameSink {
    private let id: ClientMachine.ConnectionID
    private let engine: SessionEngine
    private let keeper: ConnectionKeeper

    init(id: ClientMachine.ConnectionID, engine: SessionEngine, keeper: ConnectionKeeper) {
        self.id = id
        self.engine = engine
        self.keeper = keeper
    }

    func receive(_ frames: inout FrameRun.Iterator) -> Bool { engine.receive(&frames, over: id) }

    func batchEnded() { engine.batchEnded() }

    func finish(throwing error: ConnectionError?) {
        engine.inputEnded(error, on: id)
        // With an error, the end of the connection informs the keeper.
        if error == nil { _ = keeper.inputEnded(id) }
    }
}
