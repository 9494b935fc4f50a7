internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// Calls of all kinds, on both sides of them.
extension SessionScenario {
    func request(from record: SessionRecord) {
        guard let kind = SessionCallKind.allCases.randomElement(using: &random) else { return }
        request(kind, timeout: below(2) == 0 ? nil : .milliseconds(below(sizes.isRoomy ? 5_000 : 500)), from: record)
    }

    /// A call both ways of which nobody reads anything. Returns its number; nil when it cannot be asked.
    func askUnread(from record: SessionRecord) -> Int? {
        request(.bothWays, timeout: nil, from: record)
        let number = lastNumber
        guard record.openCalls.contains(number) else { return nil }
        let stream = Stream.requestParts(number)
        for _ in 0..<200 where record.openCalls.contains(number) && record.waitingCount(of: stream) == 0 {
            sendPart(of: number, .reliable, from: record)
        }
        return number
    }

    /// The handler of such a call sends parts that nobody reads, until they wait.
    func fillResponse(to running: SessionRecord.Running, at record: SessionRecord) -> Bool {
        let stream = Stream.responseParts(running.number)
        guard record.waitingCount(of: stream) == 0 else { return false }
        for _ in 0..<200 where record.waitingCount(of: stream) == 0 {
            sendPart(ofResponseTo: running, .reliable, at: record)
        }
        return true
    }

    private func request(_ kind: SessionCallKind, timeout: Duration?, from record: SessionRecord) {
        lastNumber += 1
        let (number, deadline) = (lastNumber, timeout.map { now + $0 })
        let content = kind.request(number, metadata: randomMetadata(), fillerCount: randomFiller())
        let (isLeaving, waitingCount) = (record.end.isLeaving, record.end.machine.waitingCount)
        do {
            try record.end.request(
                kind.method,
                content,
                hasParts: kind.hasRequestParts,
                deadline: deadline,
                now: now
            ) { id in
                note("\(record.name) asks \(number), serial \(UInt32(truncatingIfNeeded: id)), \(kind)")
                let call = SessionRecord.Call(
                    kind: kind,
                    id: id,
                    deadline: deadline,
                    byteCount: content.byteCount,
                    hasEnded: !kind.hasRequestParts
                )
                record.asked(number, call)
                let isHeld = record.end.machine.waitingCount > waitingCount
                record.demand(!isLeaving || isHeld, "request \(number) is begun, though the peer leaves")
                if isHeld { result.totals.heldRequests += 1 }
                if isHeld, isLeaving { record.heldCalls.insert(number) }
            }
        } catch {
            note("\(record.name) cannot ask: \(error.code)")
            let isRight =
                error.code == .tooManyInFlight
                || error.code == .messageRefused && record.isTooLong(content.byteCount)
                || error.code == .notSent && (record.isOver || record.isClosing)
            record.demand(isRight, "a request is refused: \(error.code)")
        }
    }

    /// The asker of a request with parts goes on.
    func goOnAsking(from record: SessionRecord) {
        let open = record.openCalls.filter { record.calls[$0]?.hasEnded == false }
        if let number = open.sorted().randomElement(using: &random) { goOnAsking(number, from: record) }
    }

    func goOnAsking(_ number: Int, from record: SessionRecord) {
        guard let call = record.calls[number], !call.hasEnded else { return }
        if below(isQuiet ? 2 : sizes.isRoomy ? 20 : 4) == 0 {
            record.calls[number]?.hasEnded = true
            note("\(record.name) ends the parts of \(number)")
            record.end.endParts(of: call.id, now: now) { isEnded in
                record.demand(isEnded, "the parts of \(number) cannot end")
            }
            return
        }
        if record.waitingCount(of: .requestParts(number)) < 2 { sendPart(of: number, randomDelivery(), from: record) }
    }

    private func sendPart(of number: Int, _ delivery: SessionDelivery, from record: SessionRecord) {
        guard let call = record.calls[number] else { return }
        let stream = Stream.requestParts(number)
        lastNumber += 1
        let part = lastNumber
        let content = SessionNote(
            part,
            extra: number,
            isReliable: delivery == .reliable,
            fillerCount: randomFiller()
        ).content
        // Its request waits, too.
        let isHeld = record.end.isLeaving && record.end.machine.waitingCount > record.waiting.count
        send(part, content, stream, delivery, from: record, isHeld: isHeld) { content, delivery, isObserved, offered in
            record.end.sendPart(of: call.id, content, delivery, isObserved: isObserved, now: now) { offer in
                let isDropped = if case .dropped = offer { !delivery.isAtMostOnce } else { false }
                record.demand(!isDropped, "part \(part) of \(number) is dropped, which is open")
                offered(offer)
                if case .dropped = offer { return }
                record.calls[number]?.partCount += 1
            }
        }
    }

    func cancel(from record: SessionRecord) {
        guard let number = record.openCalls.sorted().randomElement(using: &random), let call = record.calls[number]
        else { return }
        note("\(record.name) cancels \(number)")
        record.end.cancelRequest(call.id, now: now) { isCancelled in
            record.demand(isCancelled, "request \(number) cannot be cancelled")
            if !call.hasEnded, call.partCount > 0 { result.totals.callsCancelledMidway += 1 }
            record.callEnded(number, .cancelled)
        }
    }

    /// A handler of a request goes on: it sends a part of the response, or the response, or both.
    func respond(at record: SessionRecord) {
        if !record.running.isEmpty { respond(at: record, to: below(record.running.count)) }
    }

    func respond(at record: SessionRecord, to index: Int) {
        let running = record.running[index]
        let stream = Stream.responseParts(running.number)
        if running.kind.hasResponseParts, below(4) > 0, record.waitingCount(of: stream) < 2 {
            sendPart(ofResponseTo: running, randomDelivery(), at: record)
            if below(sizes.isRoomy ? 20 : 4) > 0 { return }
        }
        guard index < record.running.count, record.running[index].number == running.number else { return }
        // Mostly it waits for its parts, and for those that come.
        if !isQuiet, below(4) > 0, !running.hasEnded || record.waitingCount(of: stream) > 0 { return }
        let taken = record.takeRunning(at: index)
        let count = record.reliableSentCount(stream, besidesWaiting: true)
        let content = SessionNote(taken.number, extra: count, fillerCount: randomFiller()).content
        note("\(record.name) responds to \(taken.number)")
        record.end.respond(to: taken.request, content, now: now) { offer in
            switch offer {
            case .accepted: record.demand(!taken.isCancelled, "a response to \(taken.number) was accepted")
            case .notWaitedFor: record.demand(taken.isCancelled, "nobody waits for a response to \(taken.number)")
            case .refused(let refusal):
                let isRight =
                    switch refusal {
                    case .responseTooLarge: record.isTooLong(content.byteCount)
                    case .serverMemory: record.end.budget != nil
                    case .tooManyResponses: true
                    default: false
                    }
                record.demand(isRight, "the response to \(taken.number) is refused: \(refusal)")
            }
            if case .refused = offer { result.totals.refusedResponses += 1 } else { return }
            refuse(taken.request, at: record)
        }
    }

    private func sendPart(
        ofResponseTo running: SessionRecord.Running,
        _ delivery: SessionDelivery,
        at record: SessionRecord
    ) {
        lastNumber += 1
        let part = lastNumber
        let content = SessionNote(
            part,
            extra: running.number,
            isReliable: delivery == .reliable,
            fillerCount: randomFiller()
        ).content
        send(part, content, .responseParts(running.number), delivery, from: record) {
            content,
            delivery,
            isObserved,
            offered in
            record.end.sendPart(
                ofResponseTo: running.request,
                content,
                delivery,
                isObserved: isObserved,
                now: now
            ) { offer in
                let isDropped = if case .dropped = offer { !delivery.isAtMostOnce } else { false }
                record.demand(!isDropped || running.isCancelled, "a part of \(running.number) is dropped")
                offered(offer)
            }
        }
    }

    /// Responds with a failure, which always has room.
    func refuse(_ request: IncomingRequest, at record: SessionRecord) {
        var content = End.Content()
        FieldWriter.statusFields(status: 8, message: "refused", details: [], into: &content.fields)
        record.end.respond(to: request, content, now: now) { offer in
            if case .refused(let refusal) = offer { record.demand(false, "a failure is refused: \(refusal)") }
        }
    }
}
