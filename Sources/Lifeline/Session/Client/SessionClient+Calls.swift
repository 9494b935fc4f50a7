internal import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

// What generated clients use.
extension SessionClient {
    /// Asks, and waits for the reply. Without a connection it waits for one, within its timeout. Cancelling the task
    /// cancels the handler, too.
    ///
    /// A `durable` call is stored before it is sent, and outlives the session and the processes of both sides. Where
    /// the server has a store, too, it is answered once, and what a handler writes with `context.transaction` of
    /// `LifelineStore` happens once. Once it is stored, a timeout, or cancelling the task, ends the waiting alone: the
    /// call goes on, and its reply comes to `lateReplies`.
    ///
    /// - Parameters:
    ///   - method: `package.Service/Method`.
    ///   - timeout: how long it may take from now on; nil: as long as it likes. Default: 30 s. Values below 0 count as
    ///     0, those over 365 days as 365 days.
    ///   - delivery: `reliable` or `durable`; nil: `SessionClientConfiguration.defaultDelivery`. Default: nil.
    /// - Throws: `SessionError`: `status` when the handler ended it so, `timedOut`, `cancelled`, `sessionLost`,
    ///   `tooManyInFlight`, `messageRefused`, `malformedMessage`, or why the session has ended: `closedLocally`,
    ///   `closedByPeer`, `refused`, `replaced`, `versionMismatch`; of a durable call `noStore` and `storeFailed`, never
    ///   `sessionLost`, and `messageKept` when the client is closed before the reply has come.
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

    /// Tells the server something. Returns when it is accepted; waits while too much is kept for the server, while the
    /// server has not taken enough pushes of the method, and while the server goes away.
    ///
    /// - Parameters:
    ///   - delivery: what is promised of it; nil: `SessionClientConfiguration.defaultDelivery`. Default: nil.
    ///   - stage: `processed` waits until the server has processed it, and throws when it does not come to that.
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

    /// Asks for messages. Each iteration is a call of its own, which begins with it; see `SessionStream`.
    ///
    /// - Parameter timeout: how long the stream may take from the beginning of an iteration on; nil: as long as it
    ///   likes.
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

    /// Sends messages, and waits for the reply to them.
    ///
    /// - Parameters:
    ///   - timeout: how long all of it may take from now on; nil: as long as it likes. Default: nil.
    ///   - send: sends the messages; they end when it returns. It runs in a task of its own, which is cancelled when
    ///     the handler has replied before that.
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

    /// Sends messages, and takes those that answer them, side by side.
    ///
    /// Returns when `receive` has. If the handler has not returned by then, it is cancelled.
    ///
    /// - Parameters:
    ///   - timeout: how long all of it may take from now on; nil: as long as it likes. Default: nil.
    ///   - send: sends the messages; they end when it returns. It runs in a task of its own, which is cancelled when
    ///     the handler has returned before that.
    ///   - receive: takes the handler's messages, which end when that returns.
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
            // Messages that nobody takes any more must not use up the credit.
            engine.close(inbox)
        }
        // Cancelled when this returns or throws.
        async let _: Void = run(call, inbox, send, failure)
        let messages = SessionMessages<Message>(engine: engine, inbox: inbox, options: configuration.decodingOptions)
        let result: Result
        do {
            result = try await receive(messages)
        } catch let error as SessionError where error.code == .cancelled {
            // An error of `send` cancels the call, and so ends the messages.
            throw failure.withLockedValue { $0 } ?? error
        }
        if let failure = failure.withLockedValue({ $0 }) { throw failure }
        return result
    }

    /// Makes a call both ways. Its end is that of the messages that answer it.
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

    /// Makes a call, and has its messages sent meanwhile.
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
                // Unblocks `send` where no interceptor has made the call.
                start.open(with: nil)
            }
            do {
                while let ended = try await group.next() {
                    if let reply = ended { return reply }
                }
            } catch is CancellationError where Task.isCancelled {
                // `send` may have heard of the cancellation first.
            }
            throw SessionError.cancelled
        }
    }

    /// The pushes of a method, over all connections and sessions. From this call on they are kept until somebody takes
    /// them, within `SessionClientConfiguration.limits`; where nobody will, `SessionPushes.stop()` ends that.
    ///
    /// Pushes that came before this call are lost to it; the log says so. To miss none, make a `SessionClient`, ask for
    /// its pushes, and then `run()` it.
    public func pushes<Message: DelimitedMessage>(
        _ method: String,
        of: Message.Type = Message.self
    ) -> SessionPushes<Message> {
        SessionPushes(client: self, inbox: engine.registerInbox(for: method), method: method)
    }

    /// Notes from now on the place of the newest push that comes of a group.
    package func follow(_ group: String) -> GroupFollowing { engine.follow(group) }

    /// A group is about to be followed no more: say `unfollow`.
    package func beginUnfollowing(_ group: String) { engine.beginUnfollowing(group) }

    /// A group is followed no more.
    package func unfollow(_ group: String) { engine.unfollow(group) }

    /// The place of the newest push of a group that has come since it is followed, in whatever session; nil: none has.
    package func newestPlace(in group: String) -> String? { engine.newestPlace(in: group) }

    /// Makes a call by way of the interceptors.
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

    /// - Parameter stage: that of the call before interceptors changed it.
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
            // An interceptor may have made it so.
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
    /// - Throws: `messageRefused` where the call cannot be made with its delivery.
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

    /// The replies to durable calls of a method that no task waits for: of calls that an earlier process has made, and
    /// of those whose tasks were cancelled or have timed out. From this call on they are kept until somebody takes them:
    /// the server's store has those that are more than `SessionLimits.maximumUnreadByteCount`, and the replies to other
    /// calls of the method wait behind them. Before it, half as many are kept; what comes then is dropped, and logged.
    public func lateReplies<Reply: DelimitedMessage>(
        to method: String,
        of: Reply.Type = Reply.self
    ) -> SessionLateReplies<Reply> {
        SessionLateReplies(client: self, inbox: engine.registerReplyInbox(for: method), method: method)
    }
}

extension SessionCall.Kind {
    /// Whether a request has its messages in parts.
    var hasParts: Bool { self == .clientStream || self == .bothWays }
}
