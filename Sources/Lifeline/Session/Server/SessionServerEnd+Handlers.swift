internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import Logging

// Handlers.
extension SessionServerEnd {
    /// Handles a request, and responds to it.
    nonisolated(nonsending) func handle(_ request: InboundRequest) async {
        let found = request.method.map { methods[$0] }
        // Interceptors also see requests that no method handles.
        let taking = found.flatMap { $0.takes(request) ? $0 : nil }
        let method = taking ?? .unimplemented(request.name)
        let context = context(of: request, method)
        do {
            let reply: SessionReply
            if interceptors.isEmpty {
                reply = SessionReply(payload: try await method.handle(request.payload, context))
            } else {
                reply = try await intercept(
                    request.payload,
                    method,
                    context,
                    isImplemented: taking != nil,
                    delivery: request.request.isDurable ? .durable : .reliable
                )
            }
            respond(to: request.request, of: method.name, with: .success(reply))
        } catch {
            // The server shuts down, or the client has begun another session, which receives the call again.
            if request.request.isDurable, Task.isCancelled { return engine.abandon(request.request) }
            respond(to: request.request, of: method.name, with: .failure(error))
        }
    }

    /// Handles a call or a push through the interceptors.
    @inline(never)
    private nonisolated(nonsending) func intercept(
        _ payload: [UInt8],
        _ method: SessionMethod,
        _ context: SessionContext,
        isImplemented: Bool = true,
        delivery: SessionDelivery = .reliable
    ) async throws -> SessionReply {
        let call = SessionCall(
            method.name,
            method.kind,
            metadata: context.metadata,
            timeout: context.deadline.map { $0 - engine.clock.now },
            delivery: delivery,
            isImplemented: isImplemented,
            payload: payload
        )
        return try await interceptors[...].make(call, session: self) { call in
            var context = context
            context.metadata = call.metadata
            return SessionReply(payload: try await method.handle(call.payload, context))
        }
    }

    private func context(of request: InboundRequest, _ method: SessionMethod) -> SessionContext {
        SessionContext(
            method: method.name,
            metadata: request.metadata,
            deadline: request.deadline,
            durableMessage: request.request.isDurable ? engine.durableCall(request.request) : nil,
            session: self,
            request: request.request,
            parts: request.parts
        )
    }

    func answer(_ request: InboundRequest) -> EncodedContent {
        guard let method = request.method.map({ methods[$0] }), let handle = method.handleNow else {
            preconditionFailure("A request is for a handler that waits.")
        }
        let context = context(of: request, method)
        return content(
            of: Result {
                try request.payload.withUnsafeBytes { SessionReply(payload: try handle($0, context)) }
            },
            method.name
        )
    }

    func handle(_ pushes: SessionInbox.Run, of method: Int) {
        let method = methods[method]
        let context = pushContext(method)
        for index in pushes.head..<pushes.entries.count {
            let metadata = pushes.metadata(index)
            do {
                _ = try pushes.withPayload(index) { payload in
                    if metadata.isEmpty, storeID == nil { return try method.handleNow?(payload, context) }
                    let durable = engine.durableMessage(pushes.session, pushes.entries[index].place)
                    return try method.handleNow?(payload, context.with(metadata, durable))
                }
            } catch {
                pushFailed(method.name, error)
            }
        }
    }

    /// Never inlined into the function that waits for the handler, whose task would keep the memory for all of this
    /// meanwhile.
    @inline(never)
    private func respond(
        to request: IncomingRequest,
        of method: String,
        with result: Result<SessionReply, any Error>
    ) {
        engine.respond(to: request, content(of: result, method))
    }

    /// Returns the encoded reply, or the status that replaces it.
    private func content(of result: Result<SessionReply, any Error>, _ method: String) -> EncodedContent {
        do {
            let reply = try result.get()
            let content = try EncodedContent(.response, reply.metadata, payload: reply.payload)
            try content.check(frameLimit: frameLimit)
            return content
        } catch {
            return content(of: status(of: error, method), method)
        }
    }

    /// Returns the encoded status, or a shorter one if no frame can carry it.
    private func content(of status: SessionStatus, _ method: String) -> EncodedContent {
        do throws(SessionError) {
            let content = try EncodedContent(status)
            try content.check(frameLimit: frameLimit)
            return content
        } catch {
            warn("A status cannot be sent", method, error)
            return EncodedContent(unchecked: SessionStatus(.internal, "The status \(status.code) cannot be sent."))
        }
    }

    private func pushContext(_ method: SessionMethod) -> SessionContext {
        SessionContext(
            method: method.name,
            metadata: [:],
            deadline: nil,
            session: self,
            request: nil,
            parts: nil
        )
    }

    nonisolated(nonsending) func handlePushes(of method: SessionMethod, from inbox: SessionInbox) async {
        let context = pushContext(method)
        if interceptors.isEmpty {
            await method.handlePushes?(inbox, context)
            return
        }
        let reader = InboxReader<RawMessage>(engine, inbox, decodingOptions)
        while (try? await reader.hasNext()) == true {
            do {
                let message = try reader.messageInHand()
                _ = try await intercept(message.bytes, method, reader.context(context))
            } catch {
                if Task.isCancelled, reader.giveBack() { return }
                pushFailed(method.name, error)
            }
        }
    }

    /// Logs that a push could not be decoded, or that its handler failed.
    func pushFailed(_ method: String, _ error: any Error) { warn("The handler of a push failed", method, error) }

    /// Logs an error. The name of the method, and parts of the error's text, may come from the client.
    @inline(never)
    private func warn(_ message: Logger.Message, _ method: String, _ error: any Error) {
        let error = "\(error)".escaped()
        logger.warning(message, metadata: ["method": "\(method.escaped(limit: 100))", "error": "\(error)"])
    }

    /// Returns the status that a client receives for an error.
    private func status(of error: any Error, _ method: String) -> SessionStatus {
        switch error {
        case let status as SessionStatus where status.code != .ok: return status
        case is CancellationError where engine.isMoving:
            return SessionStatus(.unavailable, "The server goes away. Call again.")
        case is CancellationError: return SessionStatus(.cancelled)
        case let error as SessionError where error.code == .cancelled: return status(of: CancellationError(), method)
        case let error as SessionError where error.code == .serverExhausted:
            return SessionStatus(.resourceExhausted, error.message)
        case let error as SessionError where error.code == .messageRefused:
            warn("A reply cannot be sent", method, error)
            return SessionStatus(.internal, "The reply cannot be sent.")
        case let error as SessionError where error.code == .malformedMessage:
            return SessionStatus(.invalidArgument, error.message)
        default:
            warn("A handler failed", method, error)
            return SessionStatus(.unknown)
        }
    }
}
