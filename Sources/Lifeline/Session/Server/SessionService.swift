public import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport

/// A group of methods that a server offers its clients. Generated handler protocols are services. A type that conforms
/// to two of them defines `methods` itself: `chatV1RoomMethods + chatV2RoomMethods`, for example.
public protocol SessionService: Sendable {
    /// The methods. Their names must differ from those of the server's other services.
    var methods: [SessionMethod] { get }

    /// Called once for each session that has begun, or has come from another server of the fleet. The call comes before
    /// anything that arrives over the session is handled, and before `SessionServerConfiguration.whenOpened`, whose
    /// rules it follows. Default: does nothing.
    func sessionOpened(_ session: SessionServerEnd)

    /// Called once for each begun session that is over, or continues at another server of the fleet. The call comes
    /// after `SessionServerConfiguration.whenEnded`. Handlers of the session may still run. Default: does nothing.
    func sessionEnded(_ session: SessionServerEnd)
}

extension SessionService {
    public func sessionOpened(_ session: SessionServerEnd) {}
    public func sessionEnded(_ session: SessionServerEnd) {}
}

/// The name of a service's method, and the function that handles it.
///
/// An error of the function ends a request with a status: a `SessionStatus` is sent as it is, a `CancellationError`
/// becomes `cancelled`, and any other error becomes `unknown`. The client learns nothing more of such an error, and the
/// server's logger receives all of it. A request that is cancelled before its handler begins is not handled.
public struct SessionMethod: Sendable {
    /// `package.Service/Method`.
    public let name: String
    /// The method's shape.
    public let kind: SessionCall.Kind
    /// The type of the messages that the method receives.
    public let requestType: any DelimitedMessage.Type
    /// The type of the messages that it replies with; nil for a push.
    public let replyType: (any DelimitedMessage.Type)?
    /// Handles a call. Returns the encoded reply.
    let handle: nonisolated(nonsending) @Sendable ([UInt8], SessionContext) async throws -> [UInt8]
    /// Handles the pushes of a session until there are no more; nil for other kinds.
    var handlePushes: (nonisolated(nonsending) @Sendable (SessionInbox, SessionContext) async -> Void)?
    /// Handles a request or a push without waiting. Returns the encoded reply. Nil if the handler waits.
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

    /// Makes a method that replies to a request.
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

    /// Makes a method that replies to a request at once, because its handler does not wait. If handlers run on the
    /// event loop (`HandlerExecutor.eventLoop`) and the server has no interceptors, the handler runs on the thread that
    /// has read the request. It then costs a quarter less than a handler that may wait. A closure without `await` is
    /// such a handler.
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

    /// Makes a method that sends messages until its handler returns.
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

    /// Makes a method that receives messages, and sends one reply to all of them.
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

    /// Makes a method that receives messages, and sends messages until its handler returns.
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

    /// Makes a method that receives messages and does not reply. It handles those of one session one at a time, in
    /// order.
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

    /// Makes a push method whose handler does not wait; see the synchronous `unary`.
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

/// The context of a handler's call: its metadata, its deadline and its session.
public struct SessionContext: Sendable {
    /// `package.Service/Method`.
    public let method: String
    /// The metadata of the request or the push.
    public internal(set) var metadata: SessionMetadata
    /// The time at which the client stops waiting, on the server's clock; nil if it waits without a limit. The handler
    /// is cancelled then.
    public let deadline: MonotonicTime?
    /// The push or the call as the server's store has it; nil if it is not durable, or the server has no store.
    public internal(set) var durableMessage: SessionDurableMessage?
    /// The session of the request or the push.
    public let session: SessionServerEnd
    /// The server, which has the other sessions.
    public var server: SessionServer { session.server }
    /// The client's identity, as `SessionServerConfiguration.authenticate` returned it at the last connection, if any.
    public var identity: SessionIdentity? { session.identity }
    /// The request for the parts of a response; nil for a push.
    let request: IncomingRequest?
    /// The parts of the request; nil if it has none.
    let parts: SessionInbox?

    func with(_ metadata: SessionMetadata, _ durableMessage: SessionDurableMessage?) -> SessionContext {
        var context = self
        (context.metadata, context.durableMessage) = (metadata, durableMessage)
        return context
    }

    /// The time that the client still waits, at least 0; nil for no limit.
    public var timeRemaining: Duration? { deadline.map { max($0 - session.engine.clock.now, .zero) } }
}

extension InboxReader {
    /// Returns the context of the present message.
    ///
    /// - Parameter context: the part that all messages of the method share.
    @inline(__always)
    func context(_ context: SessionContext) -> SessionContext {
        let metadata = metadata
        if metadata.isEmpty, context.session.storeID == nil { return context }
        return context.with(metadata, durableMessage)
    }
}

extension SessionContext {
    /// Returns the writer for the messages of a response.
    fileprivate func writer<Message>() throws -> SessionStreamWriter<Message> {
        guard let request else { throw SessionStatus(.internal, "A push has no response.") }
        return SessionStreamWriter(
            engine: session.engine,
            target: .response(request),
            frameLimit: session.frameLimit
        )
    }

    /// Returns the message of a request.
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

    /// Returns the messages of a request that is a stream.
    fileprivate func messages<Message>() throws -> SessionMessages<Message> {
        guard let parts else {
            throw SessionStatus(.unimplemented, "The method takes a stream of messages, and a single one came.")
        }
        return SessionMessages(engine: session.engine, inbox: parts, options: session.decodingOptions)
    }
}

extension SessionMethod {
    /// Returns a method that stands for one that the server does not have.
    static func unimplemented(_ name: String) -> SessionMethod {
        SessionMethod(name, .unary, RawMessage.self, RawMessage.self) { _, _ in
            // The name comes from the client, and may be long.
            throw SessionStatus(.unimplemented, "No method \(name.escaped(limit: 100)) takes such calls.")
        }
    }

    /// Returns whether the method takes such a request. A push method takes none, and a durable call has one message
    /// and one reply.
    func takes(_ request: InboundRequest) -> Bool {
        kind != .push && (kind == .unary || !request.request.isDurable)
    }
}
