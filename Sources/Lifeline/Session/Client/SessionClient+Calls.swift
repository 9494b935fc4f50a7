internal import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

// The methods that generated clients use.
extension SessionClient {
    /// Makes a call, and waits for the reply. Without a connection it waits for one, within its timeout. Cancelling the
    /// task also cancels the handler.
    ///
    /// A `durable` call is stored before it is sent, and outlives the session and the processes of both sides. If the
    /// server has a store too, the call is answered once, and a handler's writes with `context.transaction` of
    /// `LifelineStore` happen once. After the call is stored, a timeout or cancelling the task only ends the waiting:
    /// the call goes on, and its reply comes to `lateReplies`.
    ///
    /// - Parameters:
    ///   - method: `package.Service/Method`.
    ///   - timeout: the time that the call may take from now on; nil for no limit. Default: 30 s. Values below 0 count
    ///     as 0, those over 365 days as 365 days.
    ///   - delivery: `reliable` or `durable`; nil: `SessionClientConfiguration.defaultDelivery`. Default: nil.
    /// - Throws: `SessionError`: `status` when the handler ended the call with one, `timedOut`, `cancelled`,
    ///   `sessionLost`, `tooManyInFlight`, `messageRefused`, `malformedMessage`, or the reason for the end of the
    ///   session: `closedLocally`, `closedByPeer`, `refused`, `replaced`, `versionMismatch`; for a durable call
    ///   `noStore` and `storeFailed`, never `sessionLost`, and `messageKept` when the client is closed before the reply
    ///   has come.
    public nonisolated(nonsending) func call<Request: DelimitedMessage, Reply: DelimitedMessage>(
        _ method: String,
        _ request: Request,
        returning: Reply.Type = Reply.self,
        timeout: Duration? = .seconds(30),
        delivery: SessionDelivery? = nil,
        metadata: SessionMetadata = [:]
    ) async throws(SessionError) -> Reply {
        let call = SessionCall(
            method,
            .unary,
            metadata: metadata,
            timeout: timeout,
            delivery: delivery ?? configuration.defaultDelivery,
            payload: try request.sessionPayload()
        )
        let reply = try await make(call, nil)
        return try Reply(sessionPayload: reply.payload, configuration.decodingOptions)
    }

    /// Pushes a message to the server. Returns when it is accepted. Waits while too many messages are kept for the
    /// server, while the server has not taken enough pushes of the method, and while the server goes away.
    ///
    /// - Parameters:
    ///   - delivery: the guarantees for the delivery; nil: `SessionClientConfiguration.defaultDelivery`. Default: nil.
    ///   - stage: `processed` waits until the server has processed the push, and throws if that does not happen.
    /// - Throws: `SessionError`: `cancelled`, `messageRefused`, or the reason for the end of the session; for a durable
    ///   push `noStore` and `storeFailed`; with the stage `processed` also those of `SessionPushStage`; also errors of
    ///   an interceptor. With the stage `accepted`, a message that its delivery drops later causes no error.
    public nonisolated(nonsending) func push<Message: DelimitedMessage>(
        _ method: String,
        _ message: Message,
        delivery: SessionDelivery? = nil,
        until stage: SessionPushStage = .accepted,
        metadata: SessionMetadata = [:]
    ) async throws(SessionError) {
        let delivery = delivery ?? configuration.defaultDelivery
        let payload = try message.sessionPayload()
        if delivery.isDurable { try await waitForStore() }
        if interceptors.isEmpty {
            let content = try EncodedContent(.push, metadata, payload: payload)
            try content.check(frameLimit: configuration.client.connection.sessionFrameLimit)
            return try await engine.send(.push(method: method), content, delivery, until: stage)
        }
        let call = SessionCall(
            method,
            .push,
            metadata: metadata,
            delivery: delivery,
            until: stage,
            payload: payload
        )
        _ = try await make(call, nil)
    }

    /// Requests a stream of messages. Each iteration makes its own call when it begins; see `SessionStream`.
    ///
    /// - Parameter timeout: the time that the stream may take from the beginning of an iteration; nil for no limit.
    public func stream<Request: DelimitedMessage, Message: DelimitedMessage>(
        _ method: String,
        _ request: Request,
        of: Message.Type = Message.self,
        timeout: Duration? = nil,
        metadata: SessionMetadata = [:]
    ) -> SessionStream<Message> {
        let call = Result { () throws(SessionError) in
            SessionCall(
                method,
                .stream,
                metadata: metadata,
                timeout: timeout,
                payload: try request.sessionPayload()
            )
        }
        return SessionStream(client: self, call: call)
    }

    /// Sends messages, and waits for one reply.
    ///
    /// - Parameters:
    ///   - timeout: the time that the whole call may take from now on; nil for no limit. Default: nil.
    ///   - send: sends the messages, which end when it returns. It runs in its own task, which is cancelled if the
    ///     handler replies before that.
    /// - Throws: `SessionError` as `call` does; what `send` throws, which cancels the call.
    public nonisolated(nonsending) func clientStream<Request: DelimitedMessage, Reply: DelimitedMessage>(
        _ method: String,
        of: Request.Type = Request.self,
        returning: Reply.Type = Reply.self,
        timeout: Duration? = nil,
        metadata: SessionMetadata = [:],
        _ send: @escaping @Sendable (SessionStreamWriter<Request>) async throws -> Void
    ) async throws -> Reply {
        let call = SessionCall(method, .clientStream, metadata: metadata, timeout: timeout, payload: [])
        let parts = CallParts(inbox: nil, start: CallStart())
        let reply = try await sending(parts, send) { () async throws(SessionError) in try await self.make(call, parts) }
        return try Reply(sessionPayload: reply.payload, configuration.decodingOptions)
    }

    /// Sends messages and receives messages at the same time.
    ///
    /// Returns when `receive` returns. If the handler has not returned by then, it is cancelled.
    ///
    /// - Parameters:
    ///   - timeout: the time that the whole call may take from now on; nil for no limit. Default: nil.
    ///   - send: sends the messages, which end when it returns. It runs in its own task, which is cancelled if the
    ///     handler returns before that.
    ///   - receive: receives the handler's messages, which end when the handler returns.
    /// - Throws: `SessionError` as `call` does; what `send` and `receive` throw, which cancels the call.
    public nonisolated(nonsending) func bothWays<Request: DelimitedMessage, Message: DelimitedMessage, Result>(
        _ method: String,
        sending: Request.Type = Request.self,
        receiving: Message.Type = Message.self,
        timeout: Duration? = nil,
        metadata: SessionMetadata = [:],
        _ send: @escaping @Sendable (SessionStreamWriter<Request>) async throws -> Void,
        receive: nonisolated(nonsending) (SessionMessages<Message>) async throws -> Result
    ) async throws -> Result {
        let call = SessionCall(method, .bothWays, metadata: metadata, timeout: timeout, payload: [])
        let inbox = SessionInbox()
        let failure = NIOLockedValueBox<(any Error)?>(nil)
        defer {
            // Messages that nobody will take must not use up the credit.
            engine.close(inbox)
        }
        // Cancelled when this returns or throws.
        async let _: Void = run(call, inbox, send, failure)
        let messages = SessionMessages<Message>(engine: engine, inbox: inbox, options: configuration.decodingOptions)
        let result: Result
        do {
            result = try await receive(messages)
        } catch let error as SessionError where error.code == .cancelled {
            // An error of `send` cancels the call, which ends the messages.
            throw failure.withLockedValue { $0 } ?? error
        }
        if let failure = failure.withLockedValue({ $0 }) { throw failure }
        return result
    }

    /// Makes a call with messages both ways. It ends when the handler's messages end.
    private nonisolated(nonsending) func run<Request: DelimitedMessage>(
        _ call: SessionCall,
        _ inbox: SessionInbox,
        _ send: @escaping @Sendable (SessionStreamWriter<Request>) async throws -> Void,
        _ failure: NIOLockedValueBox<(any Error)?>
    ) async {
        let parts = CallParts(inbox: inbox, start: CallStart())
        do {
            _ = try await sending(parts, send) { () async throws(SessionError) in try await self.make(call, parts) }
            engine.finish(inbox, .success(()))
        } catch let error as SessionError {
            engine.finish(inbox, .failure(error))
        } catch {
            failure.withLockedValue { $0 = error }
            engine.finish(inbox, .failure(.cancelled))
        }
    }

    /// Makes a call, and sends its messages meanwhile.
    private nonisolated(nonsending) func sending<Request: DelimitedMessage>(
        _ parts: CallParts,
        _ send: @escaping @Sendable (SessionStreamWriter<Request>) async throws -> Void,
        _ make: @escaping @Sendable () async throws(SessionError) -> SessionReply
    ) async throws -> SessionReply {
        let start = parts.start ?? CallStart()
        let writer = SessionStreamWriter<Request>(
            engine: engine,
            target: .request(start),
            frameLimit: configuration.client.connection.sessionFrameLimit
        )
        return try await withThrowingTaskGroup(of: SessionReply?.self) { [engine] group in
            group.addTask { try await make() }
            group.addTask {
                try await send(writer)
                if let id = await start.wait() { engine.endParts(of: id) }
                return nil
            }
            defer {
                group.cancelAll()
                // Unblocks `send` if no interceptor has made the call.
                start.open(with: nil)
            }
            do {
                while let ended = try await group.next() {
                    if let reply = ended { return reply }
                }
            } catch is CancellationError where Task.isCancelled {
                // `send` may have seen the cancellation first.
            }
            throw SessionError.cancelled
        }
    }

    /// The pushes of a method, over all connections and sessions. From this call on they are kept until a loop takes
    /// them, within `SessionClientConfiguration.limits`. If no loop will take them, call `SessionPushes.stop()`.
    ///
    /// Pushes that arrived before this call are lost, and logged. To miss none, make a `SessionClient`, ask for its
    /// pushes, and then `run()` it.
    public func pushes<Message: DelimitedMessage>(
        _ method: String,
        of: Message.Type = Message.self
    ) -> SessionPushes<Message> {
        SessionPushes(client: self, inbox: engine.registerInbox(for: method), method: method)
    }

    /// Starts to remember the place of the newest received push of a group.
    package func follow(_ group: String) -> GroupFollowing { engine.follow(group) }

    /// Prepares to stop following a group. `unfollow` completes it.
    package func beginUnfollowing(_ group: String) { engine.beginUnfollowing(group) }

    /// Stops following a group.
    package func unfollow(_ group: String) { engine.unfollow(group) }

    /// Returns the place of the newest push of a group since it is followed, in any session; nil if none has arrived.
    package func newestPlace(in group: String) -> String? { engine.newestPlace(in: group) }

    /// Makes a call through the interceptors.
    @inline(__always)  // A function that waits costs 400 instructions, which every call would pay.
    nonisolated(nonsending) func make(
        _ call: SessionCall,
        _ parts: CallParts?
    ) async throws(SessionError) -> SessionReply {
        let stage = call.stage
        if interceptors.isEmpty { return try await send(call, until: stage, parts) }
        return try await interceptors[...].make(call) { (call) async throws(SessionError) in
            try await self.send(call, until: stage, parts)
        }
    }

    /// - Parameter stage: the stage of the push before interceptors changed it.
    @inline(__always)
    private nonisolated(nonsending) func send(
        _ call: SessionCall,
        until stage: SessionPushStage,
        _ parts: CallParts?
    ) async throws(SessionError) -> SessionReply {
        let limit = configuration.client.connection.sessionFrameLimit
        if call.kind == .push {
            let content = try EncodedContent(.push, call.metadata, payload: call.payload)
            try content.check(frameLimit: limit)
            // An interceptor may have made it durable.
            if call.delivery.isDurable { try await waitForStore() }
            try await engine.send(.push(method: call.method), content, call.delivery, until: stage)
            return SessionReply(payload: [])
        }
        if call.delivery != .reliable { return try await sendDurably(call) }
        if let parts { try parts.checkUnused(engine) }
        let content = try EncodedContent(.request, call.metadata, payload: call.payload)
        try content.check(frameLimit: limit)
        return try await engine.request(
            call.method,
            content,
            timeout: call.timeout,
            inbox: parts?.inbox,
            start: call.kind.hasParts ? parts?.start : nil
        )
    }
}

extension SessionClient {
    /// - Throws: `messageRefused` when the call cannot be made with its delivery.
    @inline(never)
    private nonisolated(nonsending) func sendDurably(_ call: SessionCall) async throws(SessionError) -> SessionReply {
        guard call.kind == .unary, call.delivery == .durable else {
            throw SessionError(
                code: .messageRefused,
                message:
                    "A call with one reply is reliable or durable, and other calls are reliable. Deliveries with a "
                    + "key or a time to live, and at most once, are for pushes."
            )
        }
        let content = try EncodedContent(.push, call.metadata, payload: call.payload)
        try content.check(frameLimit: configuration.client.connection.sessionFrameLimit)
        try await waitForStore()
        return try await engine.callDurably(call.method, content, timeout: call.timeout)
    }

    /// The replies to durable calls of a method that no task waits for: calls of an earlier process, and calls whose
    /// tasks were cancelled or have timed out. From this call on the replies are kept until a loop takes them. Replies
    /// beyond `SessionLimits.maximumUnreadByteCount` stay in the server's store, and replies to other calls of the
    /// method wait behind them. Before this call, half as many are kept; further ones are dropped, and logged.
    public func lateReplies<Reply: DelimitedMessage>(
        to method: String,
        of: Reply.Type = Reply.self
    ) -> SessionLateReplies<Reply> {
        SessionLateReplies(client: self, inbox: engine.registerReplyInbox(for: method), method: method)
    }
}

extension SessionCall.Kind {
    /// Whether the request consists of several messages.
    var hasParts: Bool { self == .clientStream || self == .bothWays }
}
