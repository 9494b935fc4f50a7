public import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport

/// What a server does for its clients: methods, by name. Generated handler protocols are services. A type that conforms
/// to two of them says `methods` itself: `chatV1RoomMethods + chatV2RoomMethods`, for example.
public protocol SessionService: Sendable {
    /// The methods. Those of all of a server's services have different names.
    var methods: [SessionMethod] { get }

    /// A session has begun, or has come from another server of the fleet: called once for each, before anything that
    /// comes over it is handled, and before `SessionServerConfiguration.whenOpened`, whose rules it follows. Default:
    /// nothing.
    func sessionOpened(_ session: SessionServerEnd)

    /// A session that has begun is over, or goes on at another server of the fleet: called once for each, after
    /// `SessionServerConfiguration.whenEnded`. Handlers of it may still run. Default: nothing.
    func sessionEnded(_ session: SessionServerEnd)
}

extension SessionService {
    public func sessionOpened(_ session: SessionServerEnd) {}
    public func sessionEnded(_ session: SessionServerEnd) {}
}

/// A method of a service, by its name, and the function that handles it.
///
/// What the function throws ends a request with a status: a `SessionStatus` as it is, a `CancellationError` as
/// `cancelled`, all else as `unknown`, of which the client learns nothing more, and the server's logger everything. A
/// request that is cancelled before its handler has begun is not handed to it.
public struct SessionMethod: Sendable {
    /// `package.Service/Method`.
    public let name: String
    /// Its shape.
    public let kind: SessionCall.Kind
    /// The type of the messages that it takes.
    public let requestType: any DelimitedMessage.Type
    /// The type of the messages that it answers with; nil for a push.
    public let replyType: (any DelimitedMessage.Type)?
    /// Handles a call; returns the encoded reply.
    let handle: nonisolated(nonsending) @Sendable ([UInt8], SessionContext) async throws -> [UInt8]
    /// Handles the pushes of a session until there are no more; nil for another kind.
    var handlePushes: (nonisolated(nonsending) @Sendable (SessionInbox, SessionContext) async -> Void)?
    /// Handles a request or a push without waiting; returns the encoded reply. Nil where the handler waits.
    var handleNow: (@Sendable (UnsafeRawBufferPointer, SessionContext) throws -> [UInt8])?

    private init(
        _ name: String,
        _ kind: SessionCall.Kind,
        _ requestType: any DelimitedMessage.Type,
        _ replyType: (any DelimitedMessage.Type)?,
        handle: nonisolated(nonsending) @escaping @Sendable ([UInt8], SessionContext) async throws -> [UInt8]
    ) {
        (self.name, self.kind) = (name, kind)
        (self.requestType, self.replyType) = (requestType, replyType)
        self.handle = handle
    }

    /// A method that replies to a request.
    public static func unary<Request: DelimitedMessage, Reply: DelimitedMessage>(
        _ name: String,
        _ handler:
            nonisolated(nonsending) @escaping @Sendable (
                _ request: Request, _ context: SessionContext
            ) async throws -> Reply
    ) -> SessionMethod {
        SessionMethod(name, .unary, Request.self, Reply.self) { payload, context in
            let request: Request = try context.request(payload)
            return try await handler(request, context).sessionPayload()
        }
    }

    /// A method that replies to a request at once: its handler does not wait. It runs on the thread that has read the
    /// request, where that is where handlers run (`HandlerExecutor.eventLoop`) and the server has no interceptors. This
    /// costs a quarter less than a handler that may wait. A closure without `await` is such a handler.
    public static func unary<Request: DelimitedMessage, Reply: DelimitedMessage>(
        _ name: String,
        _ handler: @escaping @Sendable (_ request: Request, _ context: SessionContext) throws -> Reply
    ) -> SessionMethod {
        synchronous(name, .unary, Request.self, Reply.self) { payload, context in
            try handler(try context.request(payload), context).sessionPayload()
        }
    }

    private static func synchronous(
        _ name: String,
        _ kind: SessionCall.Kind,
        _ requestType: any DelimitedMessage.Type,
        _ replyType: (any DelimitedMessage.Type)?,
        _ handler: @escaping @Sendable (UnsafeRawBufferPointer, SessionContext) throws -> [UInt8]
    ) -> SessionMethod {
        var method = SessionMethod(name, kind, requestType, replyType) { payload, context in
            try payload.withUnsafeBytes { try handler($0, context) }
        }
        method.handleNow = handler
        return method
    }

    /// A method that sends messages until it returns.
    public static func stream<Request: DelimitedMessage, Message: DelimitedMessage>(
        _ name: String,
        _ handler:
            nonisolated(nonsending) @escaping @Sendable (
                _ request: Request, _ stream: SessionStreamWriter<Message>, _ context: SessionContext
            ) async throws -> Void
    ) -> SessionMethod {
        SessionMethod(name, .stream, Request.self, Message.self) { payload, context in
            let request: Request = try context.request(payload)
            try await handler(request, try context.writer(), context)
            return []
        }
    }

    /// A method that takes messages, and replies to all of them.
    public static func clientStream<Request: DelimitedMessage, Reply: DelimitedMessage>(
        _ name: String,
        _ handler:
            nonisolated(nonsending) @escaping @Sendable (
                _ requests: SessionMessages<Request>, _ context: SessionContext
            ) async throws -> Reply
    ) -> SessionMethod {
        SessionMethod(name, .clientStream, Request.self, Reply.self) { _, context in
            try await handler(try context.messages(), context).sessionPayload()
        }
    }

    /// A method that takes messages, and sends messages until it returns.
    public static func bothWays<Request: DelimitedMessage, Message: DelimitedMessage>(
        _ name: String,
        _ handler:
            nonisolated(nonsending) @escaping @Sendable (
                _ requests: SessionMessages<Request>, _ stream: SessionStreamWriter<Message>, _ context: SessionContext
            ) async throws -> Void
    ) -> SessionMethod {
        SessionMethod(name, .bothWays, Request.self, Message.self) { _, context in
            try await handler(try context.messages(), try context.writer(), context)
            return []
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
        var method = SessionMethod(name, .push, Message.self, nil) { payload, context in
            try await handler(try context.request(payload), context)
            return []
        }
        method.handlePushes = pushLoop(handler)
        return method
    }

    /// The same with a handler that does not wait; see the synchronous `unary`.
    public static func push<Message: DelimitedMessage>(
        _ name: String,
        _ handler: @escaping @Sendable (_ message: Message, _ context: SessionContext) throws -> Void
    ) -> SessionMethod {
        var method = synchronous(name, .push, Message.self, nil) { payload, context in
            try handler(try context.request(payload), context)
            return []
        }
        method.handlePushes = pushLoop(handler)
        return method
    }

    private static func pushLoop<Message: DelimitedMessage>(
        _ handler:
            nonisolated(nonsending) @escaping @Sendable (
                _ message: Message, _ context: SessionContext
            ) async throws -> Void
    ) -> nonisolated(nonsending) @Sendable (SessionInbox, SessionContext) async -> Void {
        { inbox, context in
            let session = context.session
            let reader = InboxReader<Message>(session.engine, inbox, session.decodingOptions)
            while (try? await reader.hasNext()) == true {
                do {
                    let message = try reader.messageInHand()
                    try await handler(message, reader.context(context))
                } catch {
                    if Task.isCancelled, reader.giveBack() { return }
                    session.pushFailed(context.method, error)
                }
            }
        }
    }
}

/// The call that a handler serves: its metadata, its deadline and its session.
public struct SessionContext: Sendable {
    /// `package.Service/Method`.
    public let method: String
    /// Sent with the request, or with the push.
    public internal(set) var metadata: SessionMetadata
    /// The time at which the client stops to wait, on the server's clock; nil: it waits as long as it takes. The
    /// handler is cancelled then.
    public let deadline: MonotonicTime?
    /// The push, or the call, as the server's store knows it; nil where it is not durable, or the server has no store.
    public internal(set) var durableMessage: SessionDurableMessage?
    /// The session that the request came in.
    public let session: SessionServerEnd
    /// The server, which knows the other sessions.
    public var server: SessionServer { session.server }
    /// Who the client is, as `SessionServerConfiguration.authenticate` found out when it connected last; nil when
    /// nothing was.
    public var identity: SessionIdentity? { session.identity }
    /// The request that parts of a response belong to; nil for a push.
    let request: IncomingRequest?
    /// The parts of the request; nil where it has none.
    let parts: SessionInbox?

    func with(_ metadata: SessionMetadata, _ durableMessage: SessionDurableMessage?) -> SessionContext {
        var context = self
        (context.metadata, context.durableMessage) = (metadata, durableMessage)
        return context
    }

    /// How long the client waits yet, at least 0; nil: as long as it takes.
    public var timeRemaining: Duration? { deadline.map { max($0 - session.engine.clock.now, .zero) } }
}

extension InboxReader {
    /// The context of the message in hand.
    ///
    /// - Parameter context: what all messages of the method have in common.
    @inline(__always)
    func context(_ context: SessionContext) -> SessionContext {
        let metadata = metadata
        if metadata.isEmpty, context.session.storeID == nil { return context }
        return context.with(metadata, durableMessage)
    }
}

extension SessionContext {
    /// Where a handler sends the messages of its response.
    fileprivate func writer<Message>() throws -> SessionStreamWriter<Message> {
        guard let request else { throw SessionStatus(.internal, "A push has no response.") }
        return SessionStreamWriter(
            engine: session.engine,
            target: .response(request),
            frameLimit: session.frameLimit
        )
    }

    /// The message that a handler takes.
    fileprivate func request<Request: DelimitedMessage>(_ payload: [UInt8]) throws -> Request {
        try payload.withUnsafeBytes { try request($0) }
    }

    fileprivate func request<Request: DelimitedMessage>(_ payload: UnsafeRawBufferPointer) throws -> Request {
        if parts != nil {
            throw SessionStatus(.unimplemented, "The method takes a single message, and a stream of them came.")
        }
        do throws(SessionError) {
            return try Request(sessionPayload: payload, session.decodingOptions)
        } catch {
            let cause = (error.cause as? MessageError)?.message ?? ""
            throw SessionStatus(.invalidArgument, "The request is no \(Request.self): \(cause)")
        }
    }

    /// The messages that a handler takes.
    fileprivate func messages<Message>() throws -> SessionMessages<Message> {
        guard let parts else {
            throw SessionStatus(.unimplemented, "The method takes a stream of messages, and a single one came.")
        }
        return SessionMessages(engine: session.engine, inbox: parts, options: session.decodingOptions)
    }
}

extension SessionMethod {
    /// Stands for one that the server does not have.
    static func unimplemented(_ name: String) -> SessionMethod {
        SessionMethod(name, .unary, RawMessage.self, RawMessage.self) { _, _ in
            // The name is the client's, and may be long.
            throw SessionStatus(.unimplemented, "No method \(name.escaped(limit: 100)) takes such calls.")
        }
    }

    /// Whether a request can be one of it: pushes are not asked, and a durable call has one message and one reply.
    func takes(_ request: InboundRequest) -> Bool {
        kind != .push && (kind == .unary || !request.request.isDurable)
    }
}
