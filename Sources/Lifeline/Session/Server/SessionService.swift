public import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport

/// What a server does for its clients: methods, by name. Generated handler protocols are services. A type that conforms to two
/// of them says `methods` itself: `chatV1RoomMethods + chatV2RoomMethods`, for example.
public protocol SessionService: Sendable {
    /// The methods. Those of all of a server's services have different names.
    var methods: [SessionMethod] { get }
}

/// A method of a service, by its name, and the function that handles it.
///
/// What the function throws ends a request with a status: a `SessionStatus` as it is, a `CancellationError` as `cancelled`, all
/// else as `unknown`, of which the client learns nothing more, and the server's logger everything.
public struct SessionMethod: Sendable {
    /// `package.Service/Method`.
    public let name: String
    /// Its shape.
    public let kind: SessionCall.Kind
    /// Handles a call; returns the content of the response.
    let handle: nonisolated(nonsending) @Sendable (SessionCall, SessionContext) async throws -> CallContent

    /// A method that replies to a request.
    public static func unary<Request: DelimitedMessage, Reply: DelimitedMessage>(
        _ name: String,
        _ handler:
            nonisolated(nonsending) @escaping @Sendable (
                _ request: Request, _ context: SessionContext
            ) async throws -> Reply
    ) -> SessionMethod {
        SessionMethod(name: name, kind: .unary) { call, context in
            let request = try call.request(as: Request.self, context)
            return try CallContent(try await handler(request, context))
        }
    }

    /// A method that sends messages until it returns.
    public static func stream<Request: DelimitedMessage, Message: DelimitedMessage>(
        _ name: String,
        _ handler:
            nonisolated(nonsending) @escaping @Sendable (
                _ request: Request, _ stream: SessionStreamWriter<Message>, _ context: SessionContext
            ) async throws -> Void
    ) -> SessionMethod {
        SessionMethod(name: name, kind: .stream) { call, context in
            let request = try call.request(as: Request.self, context)
            try await handler(request, SessionStreamWriter(context: context), context)
            return .bytes([])
        }
    }

    /// A method that takes messages and does not reply. Those of one session are handled one after the other, in order.
    public static func push<Message: DelimitedMessage>(
        _ name: String,
        _ handler:
            nonisolated(nonsending) @escaping @Sendable (
                _ message: Message, _ context: SessionContext
            ) async throws -> Void
    ) -> SessionMethod {
        SessionMethod(name: name, kind: .push) { call, context in
            try await handler(try call.request(as: Message.self, context), context)
            return .bytes([])
        }
    }
}

/// Whom a handler works for.
public struct SessionContext: Sendable {
    /// `package.Service/Method`.
    public let method: String
    /// What goes with the request: made into a dictionary each time that it is asked for.
    public var metadata: SessionMetadata { lazyMetadata.value }
    let lazyMetadata: LazyMetadata
    /// The time at which the client stops to wait, on the server's clock; nil: it waits as long as it takes. The handler is
    /// cancelled then.
    public let deadline: MonotonicTime?
    /// The session that the request came in.
    public let session: SessionServerEnd
    /// The server, which knows the other sessions.
    public var server: SessionServer { session.server }
    /// Who the client is, as `SessionServerConfiguration.authenticate` found out when it connected last; nil when nothing was.
    public var identity: SessionIdentity? { session.identity }
    /// The request that pushes of a stream belong to; nil for a push.
    let request: IncomingRequest?

    /// How long the client waits yet, at least 0; nil: as long as it takes.
    public var timeRemaining: Duration? { deadline.map { max($0 - session.engine.clock.now, .zero) } }
}

/// Where a method sends the messages of a stream.
public struct SessionStreamWriter<Message: DelimitedMessage>: Sendable {
    let context: SessionContext

    /// Sends a message. Returns when it is accepted; waits while too much is kept for the client. When the client does not
    /// wait for the stream any more, messages are dropped, and the handler's task is cancelled.
    ///
    /// - Parameter stage: `processed` waits until whoever iterates has asked for the next message, so that the handler goes at
    ///   their pace, or has left.
    /// - Throws: `SessionError`: `cancelled`, `messageRefused`, or why the session has ended; until it is processed also
    ///   `notWaitedFor`, and those of `SessionPushStage`.
    public nonisolated(nonsending) func send(
        _ message: Message,
        delivery: SessionDelivery = .reliable,
        until stage: SessionPushStage = .accepted
    ) async throws(SessionError) {
        let payload = OutgoingPayload.push(method: "", metadata: [:], payload: try CallContent(message).bytes)
        try payload.check(limit: context.session.frameLimit)
        try await context.session.engine.push(payload, of: context.request, delivery, until: stage)
    }
}

extension SessionMethod {
    /// Stands for one that the server does not have.
    static func unimplemented(_ name: String) -> SessionMethod {
        SessionMethod(name: name, kind: .unary) { _, _ in
            // The name is the client's, and may be long.
            throw SessionStatus(.unimplemented, "There is no method \(name.escaped(limit: 100)) to ask.")
        }
    }
}

extension SessionCall {
    fileprivate func request<Request: DelimitedMessage>(
        as type: Request.Type,
        _ context: SessionContext
    ) throws -> Request {
        do {
            return try content.decoded(as: type, context.session.decodingOptions)
        } catch {
            throw SessionStatus(.invalidArgument, "The request is no \(Request.self): \(error.message)")
        }
    }
}
