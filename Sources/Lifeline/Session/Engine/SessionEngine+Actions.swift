internal import LifelineCore
internal import LifelineRuntime

// Carries out the decisions of the machine.
extension SessionEngine {
    /// The news of one event that the owner is told together.
    private struct Digest {
        var loss: SessionLoss?
        var inDoubt: [SessionMessageInDoubt] = []
        var refused: [SessionMessageInDoubt] = []
        var expired: [SessionMessageInDoubt] = []
    }

    /// The largest capacity for actions that is kept between events.
    private static var keptActionCount: Int { 64 }

    /// Turns actions into effects. Call it while the frame that they borrow is valid.
    @inline(__always)
    func run(_ state: inout State, now: MonotonicTime) {
        if !state.actions.isEmpty { runActions(&state, now: now) }
    }

    @inline(never)
    private func runActions(_ state: inout State, now: MonotonicTime) {
        var digest = Digest()
        var actions: [SessionMachine.Action] = []
        // Some actions cause others.
        while !state.actions.isEmpty {
            swap(&actions, &state.actions)
            for action in actions { run(action, &digest, &state, now: now) }
            actions.removeAll(keepingCapacity: actions.capacity <= Self.keptActionCount)
        }
        swap(&actions, &state.actions)
        tellLoss(&digest, in: &state)
        if !digest.refused.isEmpty { state.effects.append(.tell(.refused(digest.refused))) }
        if !digest.expired.isEmpty { state.effects.append(.tell(.expired(digest.expired))) }
    }

    private func tellLoss(_ digest: inout Digest, in state: inout State) {
        if let loss = digest.loss { state.effects.append(.tell(.lost(SessionError(loss), digest.inDoubt))) }
        (digest.loss, digest.inDoubt) = (nil, [])
    }

    /// Hands over a message of a received frame.
    @inline(__always)
    func take(_ arrival: SessionMachine.Arrival, _ state: inout State, now: MonotonicTime) {
        switch arrival {
        case .push(let message, let receipt):
            state.statistics.receivedPushCount += 1
            deliver(message, receipt, &state, now: now)
        case .request(let request, let message, let deadline):
            begin(request, message, deadline, &state, now: now)
        case .response(_, let message, let asker):
            if let call = PendingCall.of(asker) { state.effects.append(.resolve(call, PendingCall.Outcome(message))) }
        case .requestPart(let request, let message, let receipt):
            state.statistics.receivedPushCount += 1
            deliver(message, receipt, to: state.requestInboxes[request.count], &state, now: now)
        case .responsePart(let id, let message, let receipt, let asker):
            state.statistics.receivedPushCount += 1
            deliver(message, of: id, asker, receipt, &state, now: now)
        case .reply(let message, let receipt, let asker):
            state.statistics.receivedPushCount += 1
            deliverReply(message, receipt, asker, &state, now: now)
        }
    }

    private func run(
        _ action: SessionMachine.Action,
        _ digest: inout Digest,
        _ state: inout State,
        now: MonotonicTime
    ) {
        switch action {
        case .arrived(let arrival): take(arrival, &state, now: now)
        case .requestEnded(let request): finish(state.requestInboxes[request.count], .success(()), &state)
        case .accepted(let number): accepted(number, in: &state)
        case .messageEnded(let number, let outcome): ended(number, outcome, in: &state)
        case .leftOver(let message, let isObserved):
            if !isObserved { count(message.outcome, in: &state) }
            switch message.outcome {
            // Durable messages of a lost session are sent again, so these have expired.
            case .expired where message.delivery.isDurable, .inDoubt where message.delivery.isDurable:
                digest.expired.append(message)
            case .inDoubt, .unsent: digest.inDoubt.append(message)
            case .refused: digest.refused.append(message)
            case .processed, .sent, .expired, .replaced, .dropped, .kept, .notStored: break
            }
        case .durableCallEnded(let asker, let outcome):
            guard let call = PendingCall.of(asker) else { return }
            state.effects.append(.resolve(call, .failure(failure(ofDurableCall: outcome, state))))
        case .failed(_, let code, let asker):
            guard let call = PendingCall.of(asker) else { return }
            if code == .sessionLost {
                digest.inDoubt.append(
                    SessionMessageInDoubt(
                        method: call.method,
                        delivery: .reliable,
                        payload: call.payload,
                        outcome: .inDoubt
                    )
                )
            }
            let end = state.machine.endReason.map { SessionError($0) }
            state.effects.append(.resolve(call, .failure(SessionError(code, end))))
        case .refuse(let request, _, let refusal):
            if refusal != .closing { state.statistics.refusedRequestCount += 1 }
            refuse(request, refusal, &state, now: now)
        case .cancelRequest(let request):
            // First, so that a handler whose messages end finds its task cancelled.
            state.effects.append(.cancel(request))
            finish(state.requestInboxes[request.count], .failure(.cancelled), &state)
        case .method(_, let name):
            addRoute(name, &state)
        case .opened(let credentials, let isResumed):
            tellLoss(&digest, in: &state)
            state.statistics.openingCount += 1
            if !isResumed { state.statistics.sessionCount += 1 }
            state.effects.append(.tell(.opened(credentials.id, isResumed: isResumed)))
        case .sessionLost(let reason):
            digest.loss = reason
            loseInbound(&state)
        case .peerLeaving(let pause):
            state.effects.append(.tell(.peerLeaving(pause: pause)))
        case .accused(let goodbye):
            state.effects.append(.tell(.peerAccused(SessionError(goodbye, byPeer: true))))
        case .notWelcomed:
            // The connection is aborted with an error that says so.
            break
        case .violated(let violation):
            state.effects.append(.tell(.peerViolated(violation.message)))
        case .sayGoodbye(let id, let goodbye):
            if let connection = state.connection(id) { Self.say(goodbye, on: connection) }
        case .closeConnection(let id, .endSending):
            // At once, so that it comes before a close by the owner, which may learn next that the session is over.
            state.connection(id)?.perform(.endSending)
        case .closeConnection(let id, let closing):
            if let connection = state.connection(id) { state.effects.append(.close(connection, closing)) }
        case .ended(let reason):
            finishInboxes(reason, &state)
            state.effects.append(.tell(.ended(reason, digest.inDoubt + digest.refused + digest.expired)))
            // The end reports all remaining messages, so nothing is reported of them after it.
            digest = Digest()
        }
    }

    /// - Parameter outcome: nil if the caller's time was over.
    private func failure(ofDurableCall outcome: SessionDeliveryOutcome?, _ state: borrowing State) -> SessionError {
        let end = state.machine.endReason.map { SessionError($0) }
        guard let outcome else { return SessionError(.timedOut, end) }
        if outcome == .unsent { return end ?? .sessionEnded }
        return SessionError(outcome, cause: outcome == .notStored ? state.storeError : end) ?? .sessionEnded
    }

    /// Adds a method to which the peer has given the next number.
    func addRoute(_ name: String, _ state: inout State) {
        let (method, name) = (findMethod?(name), ExactName(name))
        state.routes.append(Route(name: name, method: method, inbox: state.pushInboxes[name]))
    }

    /// Begins to handle held durable calls of the peer, as many as may run.
    @inline(never)
    func beginCalls(_ state: inout State, now: MonotonicTime) {
        while state.machine.hasHeldCalls {
            take(state.machine.lackingToBeginCall, in: &state)
            let (routes, executor) = (state.routes, state.outlet?.executor)
            var begun: InboundRequest?
            let hasBegun = state.machine.beginHeldCall(now: now) { request, message in
                let route = routes[Int(message.method) - 1]
                begun = InboundRequest(request, message, route, deadline: nil, parts: nil, executor: executor)
            }
            guard hasBegun, let begun else { return }
            state.effects.append(.begin(begun))
        }
    }

    private func begin(
        _ request: IncomingRequest,
        _ message: InboundMessage,
        _ deadline: MonotonicTime?,
        _ state: inout State,
        now: MonotonicTime
    ) {
        let route = state.routes[Int(message.method) - 1]
        let parts = message.hasParts ? SessionInbox() : nil
        if let parts { state.requestInboxes.append(request.count, parts) }
        let executor = state.outlet?.executor
        let inbound = InboundRequest(
            request,
            message,
            route,
            deadline: deadline,
            parts: parts,
            executor: executor
        )
        // A request of a method that takes pushes is refused by its handler's task, like one of an unknown method.
        if let method = route.method, method.isSynchronous, !method.takesPushes, parts == nil {
            state.synchronousWork.append(.request(inbound))
        } else {
            state.effects.append(.begin(inbound))
        }
    }

    private func refuse(
        _ request: IncomingRequest,
        _ refusal: RequestRefusal,
        _ state: inout State,
        now: MonotonicTime
    ) {
        let content = EncodedContent(unchecked: SessionStatus(refusal))
        take(state.machine.lacking(toSend: content.byteCount), in: &state)
        respond(to: request, content, &state, now: now)
    }

    /// Sends the response, or the reason why there is no room for it.
    func respond(to request: IncomingRequest, _ content: EncodedContent, _ state: inout State, now: MonotonicTime) {
        closeParts(of: request, &state, now: now)
        let offer = content.withContent {
            state.machine.respond(to: request, $0, now: now, into: &state.actions)
        }
        guard case .refused(let refusal) = offer else { return }
        _ = EncodedContent(unchecked: SessionStatus(refusal)).withContent {
            state.machine.respond(to: request, $0, now: now, into: &state.actions)
        }
    }

    private func count(_ outcome: SessionDeliveryOutcome, in state: inout State) {
        switch outcome {
        case .expired: state.statistics.expiredMessageCount += 1
        case .replaced: state.statistics.replacedMessageCount += 1
        case .dropped: state.statistics.droppedPushCount += 1
        case .refused: state.statistics.refusedMessageCount += 1
        case .processed, .sent, .inDoubt, .unsent, .kept, .notStored: break
        }
    }

    private func ended(_ number: UInt64, _ outcome: SessionDeliveryOutcome, in state: inout State) {
        count(outcome, in: &state)
        guard let message = state.messages.removeValue(forKey: number) else { return }
        let end = state.machine.endReason.map { SessionError($0) }
        // A part ends when its request has ended.
        let isNotWaitedFor = message.isPart && outcome == .unsent && end == nil
        var error: SessionError?
        if !message.isAccepted {
            error =
                switch outcome {
                case .unsent: isNotWaitedFor ? nil : end ?? .sessionEnded
                case .refused: .messageRefused(nil)
                case .notStored: SessionError(outcome, cause: state.storeError)
                default: nil
                }
        }
        if message.isObserved, error == nil {
            let cause: (any Error)? =
                switch outcome {
                case .unsent, .kept: end
                case .notStored: state.storeError
                default: nil
                }
            error = isNotWaitedFor ? .notWaitedFor : SessionError(outcome, cause: cause)
        }
        self.end(message, with: error, in: &state)
    }

    private func accepted(_ number: UInt64, in state: inout State) {
        guard let message = state.messages[number] else { return }
        message.isAccepted = true
        if message.isObserved, !message.isCancelled { return }
        state.messages[number] = nil
        end(message, with: message.isObserved ? .cancelled : nil, in: &state)
    }
}

extension PendingCall.Outcome {
    /// Makes the outcome of a request from its response, or of a durable call from its reply.
    init(_ response: InboundMessage) {
        guard response.status == 0 else {
            self = .failure(SessionError(status: SessionStatus(response)))
            return
        }
        self = .success(SessionReply(metadata: response.metadata, payload: [UInt8](response.payload)))
    }
}

extension SessionStatus {
    init(_ response: InboundMessage) {
        self.init(
            Code(rawValue: response.status),
            response.textString,
            details: response.details.map { Detail(typeURL: $0.typeURL, value: $0.value) }
        )
    }
}
