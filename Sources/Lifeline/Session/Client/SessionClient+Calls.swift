internal import LifelineCore
public import LifelineMessages
internal import LifelineProtos

// What generated clients use.
extension SessionClient {
    /// Asks, and waits for the reply. Without a connection it waits for one, within its timeout. Cancelling the task cancels
    /// the handler, too.
    ///
    /// - Parameters:
    ///   - method: `package.Service/Method`.
    ///   - timeout: how long it may take from now on; nil: as long as it likes. Default: 30 s. Values below 0 count as 0,
    ///     those over 365 days as 365 days.
    /// - Throws: `SessionError`: `status` when the handler ended it so, `timedOut`, `cancelled`, `sessionLost`,
    ///   `tooManyInFlight`, `messageRefused`, `malformedMessage`, or why the session has ended: `closedLocally`,
    ///   `closedByPeer`, `refused`, `replaced`, `versionMismatch`.
    public nonisolated(nonsending) func call<Request: DelimitedMessage, Reply: DelimitedMessage>(
        _ method: String,
        _ request: Request,
        returning: Reply.Type = Reply.self,
        timeout: Duration? = .seconds(30),
        metadata: SessionMetadata = [:]
    ) async throws(SessionError) -> Reply {
        let call = SessionCall(
            method,
            .unary,
            metadata: metadata,
            timeout: timeout,
            content: try CallContent(request)
        )
        let reply = try await make(call, inbox: nil)
        return try decode(reply.content, as: Reply.self)
    }

    /// Tells the server something. Returns when it is accepted; waits while too much is kept for the server.
    ///
    /// - Parameter stage: `processed` waits until the server has processed it, and throws when it does not come to that.
    /// - Throws: `SessionError`: `cancelled`, `messageRefused`, or why the session has ended; until it is processed also those
    ///   of `SessionPushStage`; also what an interceptor throws. What its delivery drops is no error otherwise.
    public nonisolated(nonsending) func push<Message: DelimitedMessage>(
        _ method: String,
        _ message: Message,
        delivery: SessionDelivery = .reliable,
        until stage: SessionPushStage = .accepted,
        metadata: SessionMetadata = [:]
    ) async throws(SessionError) {
        let call = SessionCall(
            method,
            .push,
            metadata: metadata,
            delivery: delivery,
            until: stage,
            content: try CallContent(message)
        )
        _ = try await make(call, inbox: nil)
    }

    /// Asks for messages. Each iteration is a call of its own, which begins with it; see `SessionStream`.
    ///
    /// - Parameter timeout: how long the stream may take from the beginning of an iteration on; nil: as long as it likes.
    public func stream<Request: DelimitedMessage, Message: DelimitedMessage>(
        _ method: String,
        _ request: Request,
        of: Message.Type = Message.self,
        timeout: Duration? = nil,
        metadata: SessionMetadata = [:]
    ) -> SessionStream<Message> {
        let call = Result { () throws(SessionError) in
            SessionCall(method, .stream, metadata: metadata, timeout: timeout, content: try CallContent(request))
        }
        return SessionStream(client: self, call: call)
    }

    /// The pushes of a method, over all connections and sessions. From this call on they are kept until somebody takes them,
    /// within `SessionClientConfiguration.limits`; where nobody will, `SessionPushes.stop()` ends that.
    public func pushes<Message: DelimitedMessage>(
        _ method: String,
        of: Message.Type = Message.self
    ) -> SessionPushes<Message> {
        SessionPushes(client: self, inbox: clientEnd.registerInbox(for: method), method: method)
    }

    /// Makes a call by way of the interceptors.
    @inline(__always)  // A function that waits costs 400 instructions, which every call would pay.
    nonisolated(nonsending) func make(
        _ call: SessionCall,
        inbox: SessionInbox?
    ) async throws(SessionError) -> SessionReply {
        let stage = call.stage
        if interceptors.isEmpty { return try await send(call, until: stage, inbox: inbox) }
        return try await interceptors[...].make(call) { (call) async throws(SessionError) in
            try await self.send(call, until: stage, inbox: inbox)
        }
    }

    @inline(__always)
    /// - Parameter stage: that of the call before interceptors changed it.
    private nonisolated(nonsending) func send(
        _ call: SessionCall,
        until stage: SessionPushStage,
        inbox: SessionInbox?
    ) async throws(SessionError) -> SessionReply {
        if let inbox, inbox.hasBegun {
            throw SessionError(
                code: .messageRefused,
                message: "A stream that has brought messages is not made again: they would come twice."
            )
        }
        let payload = call.content.bytes
        if call.kind == .push {
            let push = OutgoingPayload.push(method: call.method, metadata: call.metadata, payload: payload)
            try push.check(limit: configuration.client.connection.maximumFrameLength)
            try await engine.push(push, call.delivery, until: stage)
            return SessionReply()
        }
        let request = OutgoingPayload.request(method: call.method, metadata: call.metadata, payload: payload)
        try request.check(limit: configuration.client.connection.maximumFrameLength)
        let response = try await engine.request(request, timeout: call.timeout, inbox: inbox)
        return SessionReply(content: .response(response))
    }

    func decode<Message: DelimitedMessage>(
        _ content: CallContent,
        as type: Message.Type
    ) throws(SessionError) -> Message {
        do {
            return try content.decoded(as: type, configuration.decodingOptions)
        } catch {
            throw SessionError(
                code: .malformedMessage,
                message: "The server's message is no \(Message.self).",
                cause: error
            )
        }
    }
}

extension OutgoingPayload {
    /// - Throws: `messageRefused` when no frame can carry it, or it has more metadata than a message may have.
    func check(limit: Int) throws(SessionError) {
        if exceedsLimits {
            throw SessionError(
                code: .messageRefused,
                message:
                    "The message has more than \(SessionPayload.maximumEntryCount) entries of metadata or details, or its "
                    + "metadata counts for more than \(SessionPayload.maximumMetadataByteCount >> 10) KiB, with 64 bytes for "
                    + "each entry. Send what is more in the message itself."
            )
        }
        let length = maximumFrameLength
        guard length > limit else { return }
        throw SessionError(
            code: .messageRefused,
            message:
                "The message takes up to \(length) bytes on the wire, more than ConnectionConfiguration.maximumFrameLength, "
                + "\(limit). Send less at once, or raise the limit on both sides."
        )
    }
}
