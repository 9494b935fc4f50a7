internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport

// Calls, pushes and responses of this side.
extension SessionEngine {
    /// Sends a request, and waits for the response.
    ///
    /// - Parameters:
    ///   - content: has no payload if parts follow.
    ///   - inbox: receives the parts of the response; nil if it may have none.
    ///   - start: tells the sender of the request's parts that the call has begun; nil if the request has none.
    nonisolated(nonsending) func request(
        _ method: String,
        _ content: EncodedContent,
        timeout: Duration?,
        inbox: SessionInbox? = nil,
        start: CallStart? = nil
    ) async throws(SessionError) -> SessionReply {
        let call = PendingCall(method, payload: content.payload, inbox: inbox, start: start)
        let outcome = await withTaskCancellationHandler {
            await PendingCall.outcome { begin(call, content, $0, timeout: timeout) }
        } onCancel: {
            cancel(call)
        }
        return try outcome.get()
    }

    /// Not inlined, for the reason that `accept` is not.
    @inline(never)
    private func begin(
        _ call: PendingCall,
        _ content: EncodedContent,
        _ continuation: PendingCall.Continuation,
        timeout: Duration?
    ) {
        let result = change(isOneOfMany: true) { state, now -> Result<SessionMachine.RequestID, SessionError> in
            if call.isCancelled { return .failure(.cancelled) }
            let deadline = timeout.map { now + $0.clamped(atLeast: .zero) }
            take(state.machine.lacking(toSend: content.byteCount), in: &state)
            do throws(RequestError) {
                let id = try content.withContent { (content) throws(RequestError) in
                    try state.machine.request(
                        call.method,
                        content,
                        hasParts: call.start != nil,
                        deadline: deadline,
                        asker: call,
                        now: now
                    )
                }
                call.began(as: id, continuation)
                return .success(id)
            } catch {
                return .failure(SessionError(error, state.machine.endReason))
            }
        }
        switch result {
        case .success(let id): call.start?.open(with: id)
        case .failure(let error): continuation.resume(returning: .failure(error))
        }
    }

    /// Makes a durable call, and waits for the reply.
    ///
    /// - Parameter content: the content of a push.
    nonisolated(nonsending) func callDurably(
        _ method: String,
        _ content: EncodedContent,
        timeout: Duration?
    ) async throws(SessionError) -> SessionReply {
        let call = PendingCall(method, payload: content.payload, inbox: nil, start: nil, isDurable: true)
        let outcome = await withTaskCancellationHandler {
            await PendingCall.outcome { beginDurably(call, content, $0, timeout: timeout) }
        } onCancel: {
            cancel(call)
        }
        return try outcome.get()
    }

    private func beginDurably(
        _ call: PendingCall,
        _ content: EncodedContent,
        _ continuation: PendingCall.Continuation,
        timeout: Duration?
    ) {
        let refusal = change(isOneOfMany: true) { state, now -> SessionError? in
            if call.isCancelled { return .cancelled }
            take(state.machine.lacking(toSend: content.byteCount), in: &state)
            let offer = content.withContent {
                state.machine.callDurably(
                    call.method,
                    $0,
                    deadline: timeout.map { now + $0.clamped(atLeast: .zero) },
                    asker: call
                )
            }
            guard case .waits(let number) = offer else { return failure(of: offer, state) }
            call.began(as: number, continuation)
            return nil
        }
        if let refusal { continuation.resume(returning: .failure(refusal)) }
    }

    private func cancel(_ call: PendingCall) {
        change { state, now in
            guard let id = call.cancelled() else { return }
            let isCancelled =
                call.isDurable
                ? state.machine.cancelDurableCall(id, now: now, into: &state.actions)
                : state.machine.cancelRequest(id, now: now, into: &state.actions)
            if isCancelled { state.effects.append(.resolve(call, .failure(.cancelled))) }
        }
    }

    /// The kind of a message that is not a request.
    enum Target {
        case push(method: String)
        case part(of: SessionMachine.RequestID)
        case partOfResponse(to: IncomingRequest)

        var isPart: Bool { if case .push = self { false } else { true } }
    }

    /// A message whose sender has to wait, and its number.
    private struct Wait {
        let number: UInt64
        let message: PendingMessage
    }

    /// Sends a push or a part. Returns when it is accepted, or processed. A dropped message counts as accepted: its
    /// delivery allows it, or the peer no longer waits for it.
    @inline(__always)  // Most messages need not wait, and a function that waits costs as much as all the rest.
    nonisolated(nonsending) func send(
        _ target: Target,
        _ content: EncodedContent,
        _ delivery: SessionDelivery,
        until stage: SessionPushStage
    ) async throws(SessionError) {
        if Task.isCancelled { throw .cancelled }
        if delivery.isPlain, stage == .accepted, acceptPlain(target, content) { return }
        guard let wait = try accept(target, content, delivery, until: stage) else { return }
        try await self.wait(wait)
    }

    private nonisolated(nonsending) func wait(_ wait: Wait) async throws(SessionError) {
        let message = wait.message
        let error = await withTaskCancellationHandler {
            await withQuickContinuation { (sender: PendingMessage.Continuation) in
                let isParked = state.withLock { _ in message.park(sender) }
                if !isParked { sender.resume(returning: message.error) }
            }
        } onCancel: {
            cancel(wait)
        }
        if let error { throw error }
    }

    private func cancel(_ wait: Wait) {
        change { state, now in
            // An accepted message stays accepted, although its sender no longer waits for it to be processed. While a
            // message is being stored, the outcome is unknown, so its sender still waits for it.
            guard let message = state.messages[wait.number], message === wait.message else { return }
            guard message.isAccepted || state.machine.withdraw(wait.number, now: now, into: &state.actions) else {
                message.isCancelled = true
                return
            }
            state.messages[wait.number] = nil
            end(message, with: .cancelled, in: &state)
        }
    }

    /// Ends the waiting of a message's sender.
    func end(_ message: PendingMessage, with error: SessionError?, in state: inout State) {
        if let sender = message.end(error) { state.effects.append(.resume(sender, error)) }
    }

    /// Gives the machine a message of the plain kind while the connection is about to ask for frames. Nothing else has
    /// to happen then, whatever the time is. Returns false if the message needs more.
    @inline(never)
    private func acceptPlain(_ target: Target, _ content: EncodedContent) -> Bool {
        content.withContent { content in
            state.withLock { state in
                guard state.outlet?.offersLater == true else { return false }
                return switch target {
                case .push(let method): state.machine.pushPlain(method, content)
                case .part(let request): state.machine.sendPlainPart(of: request, content)
                case .partOfResponse(let request): state.machine.sendPlainPart(ofResponseTo: request, content)
                }
            }
        }
    }

    /// Gives the machine a message. Returns nil if the sender need not wait. Never inlined into the function that
    /// waits, whose task would keep the memory for all of this until the end.
    @inline(never)
    private func accept(
        _ target: Target,
        _ content: EncodedContent,
        _ delivery: SessionDelivery,
        until stage: SessionPushStage
    ) throws(SessionError) -> Wait? {
        let isObserved = stage == .processed
        return try change(isOneOfMany: true) { state, now -> Result<Wait?, SessionError> in
            // Deferred frames go first: at-most-once messages are dropped behind a full buffer.
            if delivery.isAtMostOnce { offerHeld(&state, now: now) }
            take(state.machine.lacking(toSend: content.byteCount), in: &state)
            let offer = content.withContent { content in
                switch target {
                case .push(let method) where delivery.isDurable:
                    state.machine.pushDurable(
                        method,
                        content,
                        deadline: delivery.timeToLive.map { now + $0 },
                        isObserved: isObserved
                    )
                case .push(let method):
                    state.machine.push(
                        method,
                        content,
                        delivery,
                        isObserved: isObserved,
                        now: now,
                        into: &state.actions
                    )
                case .part(let request):
                    state.machine.sendPart(
                        of: request,
                        content,
                        delivery,
                        isObserved: isObserved,
                        now: now,
                        into: &state.actions
                    )
                case .partOfResponse(let request):
                    state.machine.sendPart(
                        ofResponseTo: request,
                        content,
                        delivery,
                        isObserved: isObserved,
                        now: now,
                        into: &state.actions
                    )
                }
            }
            return answer(offer, target, isObserved: isObserved, &state)
        }.get()
    }

    @inline(__always)
    private func answer(
        _ offer: SessionMachine.Offer,
        _ target: Target,
        isObserved: Bool,
        _ state: inout State
    ) -> Result<Wait?, SessionError> {
        switch offer {
        case .accepted(let number):
            return .success(isObserved ? keep(number, isAccepted: true, isObserved: true, target, &state) : nil)
        case .waits(let number):
            return .success(keep(number, isAccepted: false, isObserved: isObserved, target, &state))
        case .dropped:
            state.statistics.droppedPushCount += 1
            guard isObserved else { return .success(nil) }
            return .failure(isWaitedFor(target, state) ? SessionError(.dropped) ?? .sessionEnded : .notWaitedFor)
        case .tooLong, .exhausted, .badMethod, .notDurable, .closed:
            return .failure(failure(of: offer, state))
        }
    }

    /// Returns the reason why a message was refused.
    @inline(never)
    private func failure(of offer: SessionMachine.Offer, _ state: borrowing State) -> SessionError {
        switch offer {
        case .tooLong(let limit): .messageRefused(RequestError.messageRefused(limit: limit))
        case .exhausted: .serverExhausted
        case .badMethod: .badMethod
        case .notDurable: .noStore
        case .accepted, .waits, .dropped, .closed: state.machine.endReason.map { SessionError($0) } ?? .sessionEnded
        }
    }

    /// Sends a push if it can be accepted at once or dropped; returns false if its sender would have to wait.
    ///
    /// - Throws: the reason why the session refuses it.
    func offer(
        _ method: String,
        _ content: EncodedContent,
        _ delivery: SessionDelivery
    ) throws(SessionError) -> Bool {
        if delivery.isPlain, acceptPlain(.push(method: method), content) { return true }
        return try change(isOneOfMany: true) { state, now -> Result<Bool, SessionError> in
            if delivery.isAtMostOnce { offerHeld(&state, now: now) }
            take(state.machine.lacking(toSend: content.byteCount), in: &state)
            let offer = content.withContent {
                state.machine.push(method, $0, delivery, now: now, into: &state.actions)
            }
            switch offer {
            case .accepted:
                return .success(true)
            case .waits(let number):
                _ = state.machine.withdraw(number, now: now, into: &state.actions)
                return .success(false)
            case .dropped:
                state.statistics.droppedPushCount += 1
                return .success(true)
            case .tooLong, .exhausted, .badMethod, .notDurable, .closed:
                return .failure(failure(of: offer, state))
            }
        }.get()
    }

    private func isWaitedFor(_ target: Target, _ state: borrowing State) -> Bool {
        switch target {
        case .push: true
        case .part(let request): state.machine.isWaiting(for: request)
        case .partOfResponse(let request): state.machine.isWaitedFor(request)
        }
    }

    @inline(never)
    private func keep(
        _ number: UInt64,
        isAccepted: Bool,
        isObserved: Bool,
        _ target: Target,
        _ state: inout State
    ) -> Wait {
        let message = PendingMessage(isAccepted: isAccepted, isObserved: isObserved, isPart: target.isPart)
        state.messages[number] = message
        return Wait(number: number, message: message)
    }

    /// Ends the parts of a request of this side.
    func endParts(of request: SessionMachine.RequestID) {
        change(isOneOfMany: true) { state, now in
            _ = state.machine.endParts(of: request, now: now, into: &state.actions)
        }
    }

    /// Ends a request of the peer with its response.
    func respond(to request: IncomingRequest, _ content: EncodedContent) {
        change(isOneOfMany: true) { state, now in
            take(state.machine.lacking(toSend: content.byteCount), in: &state)
            respond(to: request, content, &state, now: now)
        }
    }

    /// Notes that the handler of a durable call of the peer has stopped before it was done.
    func abandon(_ request: IncomingRequest) {
        change { state, now in state.machine.abandoned(request, now: now, into: &state.actions) }
    }

    /// Ends the session when everything that was accepted is processed and every request has ended, and after `timeout`
    /// at the latest. Takes no more messages from now on.
    func close(within timeout: Duration? = nil) {
        change { state, now in
            offerHeld(&state, now: now)
            let deadline = timeout.map { now + $0.clamped(atLeast: .zero) }
            state.machine.close(by: deadline, now: now, into: &state.actions)
        }
    }

    /// Ends the session at once.
    func end(_ reason: SessionEndReason) {
        change { state, now in
            offerHeld(&state, now: now)
            state.machine.end(reason, now: now, into: &state.actions)
        }
    }

    /// Tells the peer that this side goes away.
    func drain(_ drain: SessionDrain) {
        change { state, _ in state.machine.drain(drain) }
    }
}
