internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// The actions of the machine, as the user of an end is told of them.
extension SessionRecord {
    /// The events at the same time as an action.
    private struct Occasion {
        /// The session is lost, and another one follows.
        var isLoss = false
        /// The session ends with something left to do.
        var isEnd = false
    }

    func told(_ actions: [SessionMachine.Action]) {
        var occasion = Occasion()
        for action in actions {
            switch action {
            case .sessionLost: occasion.isLoss = true
            // Nothing is left to do then, so that nothing ends with the session.
            case .ended(.closed): break
            case .ended: occasion.isEnd = true
            default: break
            }
        }
        if occasion.isLoss { sessionLost() }
        for action in actions { told(action, occasion) }
        if occasion.isLoss || occasion.isEnd {
            demand(running.allSatisfy(\.isCancelled), "a handler was not told that the session is lost")
        }
        guard isOver else { return }
        demand(openCalls.isEmpty, "requests \(openCalls.sorted()) did not end with the session")
        demand(waiting.isEmpty, "messages \(waiting.sorted()) wait for a session that has ended")
    }

    private func told(_ action: SessionMachine.Action, _ occasion: Occasion) {
        switch action {
        case .arrived(let arrival): told(arrival)
        case .requestEnded(let request):
            guard let index = running.firstIndex(where: { $0.request == request }) else {
                return fail("\(name): the end came of a request that has no handler")
            }
            demand(!running[index].hasEnded, "the end of \(running[index].number) came twice")
            running[index].hasEnded = true
            endedParts[running[index].number] = reliableCounts[.requestParts(running[index].number)] ?? 0
        case .accepted(let id):
            demand(waiting.remove(id) != nil, "message \(id) was accepted, and did not wait")
            let isPush = numbers[id].flatMap { sent[$0]?.stream.isPushes } ?? false
            demand(!isPush || !end.isLeaving, "push \(id) was accepted, though the peer leaves")
        case .messageEnded(let id, let outcome): messageEnded(id, outcome, occasion)
        case .leftOver(let message, let isObserved): leftOver(message, isObserved: isObserved, occasion)
        case .durableCallEnded: fail("\(name): a durable call ends, and none was made")
        case .failed(let id, let code, _): failed(id, code, occasion)
        case .refuse(let request, let method, let refusal): refused(request, method, refusal)
        case .cancelRequest(let request):
            guard let index = running.firstIndex(where: { $0.request == request }) else {
                return fail("\(name): a request was cancelled that has no handler")
            }
            demand(!running[index].isCancelled, "request \(running[index].number) was cancelled twice")
            running[index].isCancelled = true
            ended.insert(running[index].number)
        case .method(let number, let method):
            demand(number == peerMethods.count + 1, "method \(method) has the number \(number)")
            peerMethods[number] = method
        case .opened(let credentials, let isResumed):
            demand(isResumed == (session == credentials.id), "it goes on with another session")
            session = credentials.id
        case .sessionLost(.forgotten), .peerLeaving, .notWelcomed, .sayGoodbye, .closeConnection: break
        case .sessionLost(let loss): fail("\(name): the session is lost, as \(loss)")
        case .accused(let goodbye): fail("\(name): the peer says that it broke the rules: \(goodbye.message)")
        case .violated(let violation): fail("\(name): the peer broke the rules: \(violation.message)")
        case .ended(let reason):
            demand(!isOver, "it ended twice")
            isOver = true
            demand(isRight(reason), "it ended as \(reason)")
        }
    }

    private func told(_ arrival: SessionMachine.Arrival) {
        switch arrival {
        case .push(let message, let receipt): cameIn(.pushes(methodName(message)), message, receipt)
        case .request(let request, let message, let deadline): began(request, message, deadline)
        case .response(let id, let message, _): completed(id, message)
        case .requestPart(let request, let message, let receipt):
            guard let index = running.firstIndex(where: { $0.request == request }) else {
                return fail("\(name): a part came of a request that has no handler")
            }
            let task = running[index]
            demand(!task.isCancelled && !task.hasEnded, "a part of \(task.number) came after its end")
            demand(task.kind.hasRequestParts, "a part of \(task.number) came, which has none")
            cameIn(.requestParts(task.number), message, receipt)
        case .responsePart(let id, let message, let receipt, _):
            guard let number = numberByRequest[id] else { return fail("\(name): a part came of no request") }
            demand(openCalls.contains(number), "a part of \(number) came after its end")
            demand(calls[number]?.kind.hasResponseParts == true, "a part of \(number) came, which has none")
            cameIn(.responseParts(number), message, receipt)
        case .reply: fail("\(name): a reply to a durable call came, and none was made")
        }
    }

    private func isRight(_ reason: SessionEndReason) -> Bool {
        switch reason {
        // Handlers may end as it does, but none may run.
        case .closed: isClosing && running.isEmpty
        case .abandoned: isAbandoned || closeDeadline != nil
        case .expired, .shutDown: end.side == .server
        case .saidByPeer(let goodbye): goodbye.code == .closed
        case .madeWay, .begunAgain, .moved, .storeDamaged, .misconfigured, .violated: false
        }
    }

    private func sessionLost() {
        lossCount += 1
        // Handlers go on with what came, which changes nothing any more.
        stale += unread.map(\.receipt)
        finished.formUnion(unread.map(\.number))
        (unread, unreadCosts, peerMethods) = ([], [:], [:])
    }

    private func methodName(_ message: InboundMessage) -> String { peerMethods[message.method] ?? "" }

    // MARK: What it sent

    private func messageEnded(_ id: UInt64, _ outcome: SessionDeliveryOutcome, _ occasion: Occasion) {
        waiting.remove(id)
        guard let number = numbers[id], let message = sent[number] else {
            return fail("\(name): message \(id) ended as \(outcome), and is none")
        }
        openAtMostOnce.remove(number)
        demand(outcomes.updateValue(outcome, forKey: number) == nil, "message \(number) ended twice, as \(outcome)")
        let isRight =
            switch outcome {
            case .processed: message.isObserved && !message.delivery.isAtMostOnce
            case .sent, .dropped: message.isObserved && message.delivery.isAtMostOnce
            case .expired: message.delivery.timeToLive != nil
            case .replaced: message.delivery.key != nil
            case .refused: isTooLong(message.byteCount)
            case .inDoubt: (occasion.isLoss || occasion.isEnd) && !message.delivery.isAtMostOnce
            // Parts end with their request.
            case .unsent: occasion.isEnd || !message.stream.isPushes
            case .kept, .notStored: false
            }
        demand(isRight, "message \(number), \(message), ended as \(outcome)")
    }

    /// An accepted push ended. Of one that is observed, its end was told before.
    private func leftOver(_ message: SessionMessageInDoubt, isObserved: Bool, _ occasion: Occasion) {
        leftOverCount += 1
        guard let note = message.payload.withUnsafeBytes({ SessionNote($0) }), let push = sent[note.number] else {
            return fail("\(name): a push is left over that nobody has sent")
        }
        demand(
            push.stream == .pushes(message.method) && push.isObserved == isObserved,
            "push \(note.number) is left over"
        )
        demand(push.delivery == message.delivery, "push \(note.number) is left over as \(message.delivery)")
        let told = outcomes.updateValue(message.outcome, forKey: note.number)
        demand(told == (isObserved ? message.outcome : nil), "push \(note.number) ended twice, or otherwise")
        let isRight =
            switch message.outcome {
            case .inDoubt: occasion.isLoss || occasion.isEnd
            case .unsent: occasion.isEnd
            case .refused: isTooLong(push.byteCount)
            // Of one that was carried over to another session.
            case .expired: push.delivery.timeToLive != nil
            case .replaced: push.delivery.key != nil
            case .processed, .sent, .dropped, .kept, .notStored: false
            }
        demand(isRight, "push \(note.number) is left over as \(message.outcome)")
    }

    // MARK: Its calls

    private func completed(_ id: SessionMachine.RequestID, _ message: InboundMessage) {
        guard let number = numberByRequest[id], let call = calls[number] else {
            return fail("\(name): a response came to no request")
        }
        if message.status == 0 {
            let note = SessionNote(message.payload)
            demand(note?.number == number, "request \(number) got the response \(String(describing: note))")
            let count = reliableCounts[.responseParts(number)] ?? 0
            demand(note?.extra == count, "the response of \(number) came after \(count) of \(note?.extra ?? 0) parts")
            answeredCounts[call.kind, default: 0] += 1
            if !call.hasEnded { earlyResponseCount += 1 }
        } else {
            demand(message.payload.isEmpty, "the response of \(number) is none")
        }
        callEnded(number, nil)
    }

    private func failed(_ id: SessionMachine.RequestID, _ code: RequestError.Code, _ occasion: Occasion) {
        guard let number = numberByRequest[id], let call = calls[number] else {
            return fail("\(name): no request ended with \(code)")
        }
        let isRight =
            switch code {
            case .timedOut: call.deadline != nil
            case .sessionLost: occasion.isLoss || occasion.isEnd
            case .notSent: occasion.isEnd
            // Or of a part that nobody observes.
            case .messageRefused: isTooLong(call.byteCount) || hasUnobservedPartThatIsTooLong(number)
            default: false
            }
        demand(isRight, "request \(number) ended with \(code)")
        callEnded(number, code)
    }

    private func hasUnobservedPartThatIsTooLong(_ number: Int) -> Bool {
        sent.values.contains { $0.stream == .requestParts(number) && !$0.isObserved && isTooLong($0.byteCount) }
    }

    // MARK: What came in

    private func cameIn(_ stream: Stream, _ message: InboundMessage, _ receipt: SessionMachine.Receipt) {
        guard let note = SessionNote(message.payload) else {
            return fail("\(name): a message came whose bytes are not its own")
        }
        switch stream {
        case .pushes(let method): demand(!method.isEmpty, "push \(note.number) has no method")
        case .requestParts(let request), .responseParts(let request):
            demand(note.extra == request, "a part of \(note.extra) came for \(request)")
        }
        came[stream, default: []].append(note.number)
        if note.isReliable { reliableCounts[stream, default: 0] += 1 }
        let isUnplaced = !(message.kind == .push || message.kind == .requestPart || message.kind == .responsePart)
        unread.append(Unread(receipt: receipt, number: note.number, stream: stream, isUnplaced: isUnplaced))
        guard !isUnplaced else { return }
        // The last one may exceed the credit.
        let cost = unreadCosts[stream, default: 0]
        demand(cost < end.options.inboundCredit, "\(cost) bytes of \(stream) came before \(note.number)")
        unreadCosts[stream] = cost + receipt.cost
    }

    private func began(_ request: IncomingRequest, _ message: InboundMessage, _ deadline: MonotonicTime?) {
        guard let kind = SessionCallKind(method: methodName(message)), let number = kind.number(of: message) else {
            return fail("\(name): a request came whose bytes are not its own")
        }
        begin(number)
        running.append(
            Running(
                request: request,
                number: number,
                kind: kind,
                byteCount: message.payload.count,
                deadline: deadline,
                hasEnded: !kind.hasRequestParts
            )
        )
    }

    private func begin(_ number: Int) {
        demand(begunSet.insert(number).inserted, "request \(number) began twice")
        begun.append(number)
    }

    private func refused(_ request: IncomingRequest, _ method: UInt32, _ refusal: RequestRefusal) {
        refusedCount += 1
        demand(peerMethods[method] != nil, "a request of no method is refused")
        switch refusal {
        case .closing: demand(isClosing, "a request is refused as if it were closing")
        case .tooManyRunning, .tooManyResponses: demand(!isClosing, "a request is refused though it closes")
        case .serverHandlers, .serverMemory:
            demand(!isClosing && end.budget != nil, "a request is refused as \(refusal)")
        case .tooManyEntries, .responseTooLarge: fail("\(name): a request is refused as \(refusal)")
        }
        guard let number = numberOfPeersRequest(request.serial) else {
            return fail("\(name): a request is refused that nobody has asked")
        }
        begin(number)
        ended.insert(number)
    }
}
