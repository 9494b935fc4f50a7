internal import LifelineCore
internal import LifelineProtos
internal import LifelineRuntime
internal import LifelineTransport
internal import LifelineWellKnownTypes

// What users of this side do.
extension SessionEngine {
    /// Asks, and waits for the response.
    ///
    /// - Parameter inbox: where pushes that belong to the request go; nil when it is to have none.
    nonisolated(nonsending) func request(
        _ payload: OutgoingPayload,
        timeout: Duration?,
        inbox: SessionInbox? = nil
    ) async throws(SessionError) -> Lifeline_Session_V1_Response {
        let call = PendingCall(payload, inbox: inbox)
        let outcome = await withTaskCancellationHandler {
            await PendingCall.outcome { begin(call, $0, timeout: timeout) }
        } onCancel: {
            cancel(call)
        }
        let response = try outcome.get()
        guard response.status == 0 else { throw SessionError(status: SessionStatus(response)) }
        return response
    }

    /// Apart for the reason that `accept` is.
    @inline(never)
    private func begin(_ call: PendingCall, _ continuation: PendingCall.Continuation, timeout: Duration?) {
        let error = change(isOneOfMany: true) { state, now -> SessionError? in
            if call.isCancelled { return .cancelled }
            let deadline = timeout.map { now + $0.clamped(atLeast: .zero) }
            take(state.machine.lacking(toSend: .outgoing(call.payload)), in: &state)
            do throws(RequestError) {
                let id = try state.machine.request(.outgoing(call.payload), call, deadline: deadline, now: now)
                call.began(as: id, continuation)
                return nil
            } catch {
                return SessionError(error, state.machine.endReason)
            }
        }
        if let error { continuation.resume(returning: .failure(error)) }
    }

    private func cancel(_ call: PendingCall) {
        change { state, now in
            guard let id = call.cancelled() else { return }
            let (cancelled, actions) = state.machine.cancelRequest(id, now: now)
            if let cancelled { state.effects.append(.resolve(cancelled, .failure(.cancelled))) }
            run(actions, in: &state)
        }
    }

    /// The number of a push, and what its sender waits for where it has no room yet.
    private typealias AcceptedPush = (number: Machine.Number, admission: Latch<SessionError?>?)

    /// Sends a push: returns when it is accepted, or processed. What is dropped, as its delivery asks for, or since
    /// nobody waits for it any more, counts as accepted.
    ///
    /// - Parameter request: the peer's request that it belongs to; nil: none.
    nonisolated(nonsending) func push(
        _ payload: OutgoingPayload,
        of request: IncomingRequest? = nil,
        _ delivery: SessionDelivery,
        until stage: SessionPushStage
    ) async throws(SessionError) {
        if Task.isCancelled { throw .cancelled }
        let processing: Latch<SessionError?>? = stage == .processed ? Latch() : nil
        guard let (number, admission) = try accept(payload, of: request, delivery, processing) else { return }
        if let admission { try await waitForAdmission(admission, number) }
        guard let processing else { return }
        let error: SessionError?
        do {
            error = try await processing.wait()
        } catch {
            // It stays accepted.
            throw .cancelled
        }
        if let error { throw error }
    }

    /// Has the machine take a push: nil when that drops it. Never a part of the function that waits, as its task would
    /// have room for all of this until the end.
    @inline(never)
    private func accept(
        _ payload: OutgoingPayload,
        of request: IncomingRequest?,
        _ delivery: SessionDelivery,
        _ processing: Latch<SessionError?>?
    ) throws(SessionError) -> AcceptedPush? {
        let isTracked = request == nil
        return try change(isOneOfMany: true) { state, now -> Result<AcceptedPush?, SessionError> in
            if delivery.isAtMostOnce, !state.machine.hasRoom(forPush: .outgoing(payload)) {
                offerHeld(&state, now: now)
            }
            take(state.machine.lacking(toSend: .outgoing(payload)), in: &state)
            let (offer, actions) = state.machine.push(
                .outgoing(payload),
                of: request,
                delivery,
                isObserved: isTracked || processing != nil,
                now: now
            )
            defer { run(actions, in: &state) }
            switch offer {
            case .closed:
                return .failure(state.machine.endReason.map { SessionError($0) } ?? .sessionEnded)
            case .tooLong(let limit):
                return .failure(.messageRefused(RequestError.messageRefused(limit: limit)))
            case .exhausted:
                return .failure(.serverExhausted)
            case .dropped:
                state.statistics.droppedPushCount += 1
                guard processing != nil else { return .success(nil) }
                let isWaitedFor = request.map { state.machine.isWaitedFor($0) } ?? true
                return .failure(isWaitedFor ? SessionError(.dropped) ?? .sessionEnded : .notWaitedFor)
            case .accepted(let number, let isAdmitted):
                let admission: Latch<SessionError?>? = isAdmitted ? nil : Latch()
                if isTracked || !isAdmitted || processing != nil {
                    state.pushes[number] = PendingPush(
                        payload: payload,
                        delivery: delivery,
                        isTracked: isTracked,
                        admission: admission,
                        processing: processing
                    )
                }
                return .success((number, admission))
            }
        }.get()
    }

    private nonisolated(nonsending) func waitForAdmission(
        _ admission: Latch<SessionError?>,
        _ number: Machine.Number
    ) async throws(SessionError) {
        let error = await withTaskCancellationHandler {
            await admission.waitUninterrupted()
        } onCancel: {
            change { state, now in
                // One that was admitted meanwhile is accepted, though whoever waits may not have heard of it.
                guard state.pushes[number]?.admission != nil else { return }
                let (isWithdrawn, actions) = state.machine.withdraw(number, now: now)
                if isWithdrawn {
                    state.pushes[number] = nil
                    state.effects.append(.admit(admission, .cancelled))
                } else if let push = state.pushes[number] {
                    // An older one was given up for it, so that it is accepted, though it has no room.
                    state.pushes[number] = push.isTracked || push.processing != nil ? push.admitted : nil
                    state.effects.append(.admit(admission, nil))
                }
                run(actions, in: &state)
            }
        }
        if let error { throw error }
    }

    /// A push that came in is processed.
    func finish(_ receipt: Receipt) {
        change(isOneOfMany: true) { state, now in state.machine.finish(receipt, now: now) }
    }

    /// Ends a request of the peer's without a reply.
    func respond(to request: IncomingRequest, _ status: SessionStatus) {
        respond(to: request, OutgoingPayload.response(status, metadata: [:], payload: []))
    }

    /// Ends a request of the peer's.
    func respond(to request: IncomingRequest, _ response: OutgoingPayload) {
        change(isOneOfMany: true) { state, now in
            take(state.machine.lacking(toSend: .outgoing(response)), in: &state)
            run(state.machine.respond(to: request, .outgoing(response), now: now).1, in: &state)
        }
    }

    /// Ends a request of the peer's that is not handled.
    func refuse(_ request: IncomingRequest, _ refusal: RequestRefusal) {
        change(isOneOfMany: true) { state, now in
            take(state.machine.lacking(toSend: .refusal(refusal)), in: &state)
            run(state.machine.refuse(request, refusal, now: now), in: &state)
        }
    }

    /// Ends the session when everything that was accepted is processed, and every request has ended; after `timeout` at
    /// the latest. Takes no more messages from now on.
    func close(within timeout: Duration? = nil) {
        change { state, now in
            offerHeld(&state, now: now)
            let deadline = timeout.map { now + $0.clamped(atLeast: .zero) }
            run(state.machine.close(by: deadline, now: now), in: &state)
        }
    }

    /// Ends the session at once.
    func end(_ reason: SessionEndReason) {
        change { state, now in
            offerHeld(&state, now: now)
            run(state.machine.end(reason, now: now), in: &state)
        }
    }

    /// Tells the peer that this side goes away, and that it is to come back after a pause: once nothing waits to be
    /// sent, and at the deadline at the latest.
    func drain(pause: Duration, by deadline: MonotonicTime) {
        change { state, _ in state.machine.drain(pause: pause, by: deadline) }
    }
}

extension SessionStatus {
    init(_ response: Lifeline_Session_V1_Response) {
        self.init(
            Code(rawValue: response.status),
            response.message,
            details: response.details.map { Detail(typeURL: $0.typeURL, value: $0.value) }
        )
    }
}

extension SessionError {
    init(status: SessionStatus) {
        let message =
            status.message.isEmpty ? "The handler ended the request with \(status.code)." : status.message.escaped()
        self.init(code: .status, message: message, status: status)
    }
}
