internal import LifelineCore
internal import LifelineProtos
internal import LifelineRuntime

// What the machine decided.
extension SessionEngine {
    /// Turns actions into effects.
    func run(_ actions: [Machine.Action], in state: inout State) {
        if actions.isEmpty { return }
        if actions.count == 1, let effect = Self.effect(of: actions[0]) { return state.effects.append(effect) }
        runAll(actions, in: &state)
    }

    /// What most events come to, looked at first: that takes less than half of what any other takes.
    @inline(__always)
    private static func effect(of action: borrowing Machine.Action) -> Effect? {
        switch action {
        case .complete(let call, .response(let response)): .resolve(call, .success(response))
        case .beginRequest(let request, let deadline, .request(let content)):
            .begin(request, deadline: deadline, content)
        default: nil
        }
    }

    private func runAll(_ actions: [Machine.Action], in state: inout State) {
        var loss: SessionLoss?
        var (inDoubt, refused): ([SessionMessageInDoubt], [SessionMessageInDoubt]) = ([], [])
        let end = state.machine.endReason.map { SessionError($0) }
        for action in actions {
            if let effect = Self.effect(of: action) {
                state.effects.append(effect)
                continue
            }
            switch action {
            case .opened(let credentials, let isResumed):
                if let loss { state.effects.append(.tell(.lost(SessionError(loss), inDoubt))) }
                (loss, inDoubt) = (nil, [])
                state.statistics.openingCount += 1
                if !isResumed { state.statistics.sessionCount += 1 }
                state.effects.append(.tell(.opened(credentials.id, isResumed: isResumed)))
            case .sessionLost(let reason):
                loss = reason
            case .messageEnded(let number, let outcome):
                if let message = ended(number, outcome, end, in: &state) {
                    if outcome == .refused { refused.append(message) } else { inDoubt.append(message) }
                }
            case .admitted(let numbers):
                for number in numbers { admitted(number, in: &state) }
            case .complete(let call, _):
                // Nothing else completes a request.
                state.effects.append(.resolve(call, .failure(.sessionLost)))
            case .fail(let call, let code):
                if code == .sessionLost { inDoubt.append(SessionMessageInDoubt(call.payload, .reliable, .inDoubt)) }
                state.effects.append(.resolve(call, .failure(SessionError(code, end))))
            case .deliverPush(let serial, .push(let push), let receipt):
                state.statistics.receivedPushCount += 1
                state.effects.append(.deliver(push, receipt, state.machine.waiter(serial: serial)))
            case .deliverPush(_, _, let receipt):
                state.machine.finish(receipt, now: clock.now)
            case .beginRequest(let request, _, _):
                // Does not happen: only a request begins one.
                state.effects.append(.refuse(request, .tooManyRunning))
            case .refuseRequest(let request, _, let refusal):
                if refusal != .closing { state.statistics.refusedRequestCount += 1 }
                state.effects.append(.refuse(request, refusal))
            case .cancelRequest(let request):
                state.effects.append(.cancel(request))
            case .peerLeaving(let pause):
                state.effects.append(.tell(.peerLeaving(pause: pause)))
            case .accused(let goodbye):
                state.effects.append(.tell(.peerAccused(SessionError(goodbye, byPeer: true))))
            case .notWelcomed:
                // Its connection is cut, which says so.
                break
            case .violated(let violation):
                state.effects.append(.tell(.peerViolated(violation.message)))
            case .sayGoodbye(let id, let goodbye):
                if let connection = state.connection(id) { Self.say(goodbye, on: connection) }
            case .closeConnection(let id, .endSending):
                // At once, so that it comes before a close by the owner, who may be told next that the session is over.
                state.connection(id)?.perform(.endSending)
            case .closeConnection(let id, let closing):
                if let connection = state.connection(id) { state.effects.append(.close(connection, closing)) }
            case .ended(let reason):
                state.effects.append(.tell(.ended(reason, inDoubt + refused)))
                // Nothing of messages comes after the end, which tells all of it.
                (loss, inDoubt, refused) = (nil, [], [])
            }
        }
        if let loss { state.effects.append(.tell(.lost(SessionError(loss), inDoubt))) }
        if !refused.isEmpty { state.effects.append(.tell(.refused(refused))) }
    }

    private func ended(
        _ number: Machine.Number,
        _ outcome: SessionDeliveryOutcome,
        _ end: SessionError?,
        in state: inout State
    ) -> SessionMessageInDoubt? {
        switch outcome {
        case .expired: state.statistics.expiredMessageCount += 1
        case .replaced: state.statistics.replacedMessageCount += 1
        case .dropped: state.statistics.droppedPushCount += 1
        case .refused: state.statistics.refusedMessageCount += 1
        case .processed, .sent, .inDoubt, .unsent: break
        }
        guard let push = state.pushes.removeValue(forKey: number) else { return nil }
        if let admission = push.admission {
            let error: SessionError? =
                switch outcome {
                case .unsent: end ?? .sessionEnded
                case .refused: .messageRefused(nil)
                default: nil
                }
            state.effects.append(.admit(admission, error))
        }
        if let processing = push.processing {
            state.effects.append(.admit(processing, SessionError(outcome, cause: outcome == .unsent ? end : nil)))
        }
        let isUnsent = outcome == .unsent || outcome == .refused
        guard push.isTracked, outcome == .inDoubt || (isUnsent && push.admission == nil) else { return nil }
        return SessionMessageInDoubt(push.payload, push.delivery, outcome)
    }

    private func admitted(_ number: Machine.Number, in state: inout State) {
        guard let push = state.pushes[number] else { return }
        if let admission = push.admission { state.effects.append(.admit(admission, nil)) }
        state.pushes[number] = push.isTracked || push.processing != nil ? push.admitted : nil
    }
}

extension SessionError {
    /// Why a session is over.
    init(_ end: SessionEndReason) {
        switch end {
        case .closed, .abandoned, .shutDown: self = .sessionEnded
        case .expired: self = .expired
        case .madeWay: self = .madeWay
        case .misconfigured(let error):
            self = SessionError(code: .closedLocally, message: error.message, cause: error)
        case .violated(let violation):
            self = SessionError(SessionGoodbye(.violation, violation.message), byPeer: false)
        case .saidByPeer(let goodbye):
            self = SessionError(goodbye, byPeer: true)
        }
    }

    /// Why a session is lost.
    init(_ loss: SessionLoss) {
        switch loss {
        case .forgotten: self = .sessionLost
        case .violated(let violation):
            self = SessionError(SessionGoodbye(.violation, violation.message), byPeer: false)
        case .accused(let goodbye): self = SessionError(goodbye, byPeer: true)
        }
    }

    /// - Parameter end: why the session has ended with it; nil where it has not.
    init(_ code: RequestError.Code, _ end: SessionError? = nil) {
        switch code {
        case .timedOut: self = .timedOut
        case .cancelled: self = .cancelled
        case .sessionLost: self = end.map { .endedInDoubt($0) } ?? .sessionLost
        case .tooManyInFlight: self = .tooManyInFlight(nil)
        case .messageRefused: self = .messageRefused(nil)
        default: self = end ?? .sessionEnded
        }
    }

    /// - Parameter end: why the session has ended; nil where it has not.
    init(_ error: RequestError, _ end: SessionEndReason?) {
        switch error.code {
        case .tooManyInFlight: self = .tooManyInFlight(error)
        case .messageRefused: self = .messageRefused(error)
        default: self = SessionError(error.code, end.map { SessionError($0) })
        }
    }

    /// What it means for a request that was sent.
    private static func endedInDoubt(_ end: SessionError) -> SessionError {
        SessionError(
            code: .sessionLost,
            message:
                "The session ended after the request was sent, so that nobody knows whether it was processed. "
                + "Ask again only if that does no harm.",
            cause: end
        )
    }

    static var timedOut: SessionError {
        SessionError(
            code: .timedOut,
            message:
                "No response came in time. The peer may have acted on the request; ask again only if that does no harm."
        )
    }

    static var cancelled: SessionError {
        SessionError(code: .cancelled, message: "The task was cancelled. What had been sent may have been acted on.")
    }

    static var sessionEnded: SessionError { SessionError(SessionGoodbye(.closed), byPeer: false) }

    static func messageRefused(_ cause: (any Error)?) -> SessionError {
        SessionError(
            code: .messageRefused,
            message: "The peer takes no frame of the message's length. Send less at once, or raise its limit.",
            cause: cause
        )
    }

    static func tooManyInFlight(_ cause: (any Error)?) -> SessionError {
        SessionError(
            code: .tooManyInFlight,
            message: "As many requests as may be are under way. Ask less at once.",
            cause: cause
        )
    }
}
