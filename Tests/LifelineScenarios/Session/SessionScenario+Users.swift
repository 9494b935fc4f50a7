internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// What users do, and what they are told.
extension SessionScenario {
    /// A side that somebody uses: the client, or one of the server's sessions.
    func randomRecord() -> SessionRecord {
        guard below(2) == 0, !liveRecords.isEmpty else { return clientRecord }
        // Mostly the one that the client knows.
        return below(5) == 0 ? liveRecords[below(liveRecords.count)] : liveRecords[liveRecords.count - 1]
    }

    func push(from record: SessionRecord) {
        // Users wait until they are admitted; there are a few of them.
        guard record.waitingPushers.count < 4 else { return }
        let delivery: SessionDelivery =
            switch below(8) {
            case 0: .atMostOnce
            case 1: .expiring(after: .milliseconds(below(300)))
            case 2: .replaceable(key: "\(below(2))", timeToLive: below(2) == 0 ? nil : .milliseconds(below(300)))
            default: .reliable
            }
        lastNumber += 1
        let (number, method) = (lastNumber, "m\(below(2))")
        let payload = OutgoingPayload.push(
            method: method,
            metadata: randomMetadata(),
            payload: SessionNote(number, fillerCount: below(largestFiller)).payload
        )
        let frameLength = SessionPayload.outgoing(payload).maximumFrameLength
        record.end.push(payload, delivery, now: now) { offer in
            note("\(record.name) pushes \(number), \(payload.byteCount) bytes, \(delivery): \(offer)")
            if case .tooLong = offer {
                record.demand(frameLength > record.peerFrameLimit, "push \(number) is refused as too long")
            }
            if case .exhausted = offer {
                result.totals.exhaustedPushes += 1
                record.demand(record.end.budget != nil, "push \(number) is refused, though there is no budget")
            }
            guard case .accepted(let id, let isAdmitted) = offer else { return }
            let sent = SessionRecord.Sent(delivery: delivery, method: method, frameLength: frameLength)
            record.accepted(number, sent, as: id, isAdmitted: isAdmitted)
        }
    }

    func withdraw(from record: SessionRecord) {
        guard let id = record.withdrawable.randomElement(using: &random) else { return }
        record.end.withdraw(id, now: now) { isWithdrawn in
            guard isWithdrawn else { return }
            note("\(record.name) withdraws message \(id)")
            record.withdrew(id)
        }
    }

    func request(from record: SessionRecord) {
        lastNumber += 1
        let number = lastNumber
        let deadline = below(2) == 0 ? nil : now + .milliseconds(below(500))
        let payload = OutgoingPayload.request(
            method: "r\(below(2))",
            metadata: randomMetadata(),
            payload: SessionNote(number, fillerCount: below(largestFiller)).payload
        )
        let frameLength = SessionPayload.outgoing(payload).maximumFrameLength
        do {
            // What is told of it comes after it is known here.
            let id = try record.end.request(payload, number, deadline: deadline, now: now)
            note("\(record.name) asks \(number), serial \(UInt32(truncatingIfNeeded: id))")
            let sent = SessionRecord.Sent(
                delivery: .reliable,
                method: payload.method,
                frameLength: frameLength,
                deadline: deadline
            )
            record.asked(number, sent, as: id)
        } catch {
            note("\(record.name) cannot ask: \(error.code)")
            let isRight =
                error.code == .tooManyInFlight
                || error.code == .messageRefused && frameLength > record.peerFrameLimit
                || error.code == .notSent && (record.isOver || record.isClosing)
            record.demand(isRight, "a request is refused: \(error.code)")
        }
    }

    func cancel(from record: SessionRecord) {
        guard let (number, id) = record.openRequests.min(by: { $0.key < $1.key }) else { return }
        note("\(record.name) cancels \(number)")
        record.end.cancelRequest(id, now: now) { waiter in
            record.demand(
                waiter == number,
                "request \(number) was cancelled, and \(String(describing: waiter)) told of it"
            )
            record.requestEnded(number, .cancelled)
        }
    }

    /// A handler of a request goes on: it sends a part of the response, or the response, or both.
    func respond(at record: SessionRecord) {
        if !record.running.isEmpty { respond(at: record, to: below(record.running.count)) }
    }

    func respond(at record: SessionRecord, to index: Int) {
        let running = record.running[index]
        if below(3) == 0, record.waitingPushers.count < 6 {
            let part = running.partCount + 1
            // Every other part may be replaced by a later one.
            let delivery = part % 2 == 0 ? SessionDelivery.reliable : .replaceable(key: "part")
            let payload = OutgoingPayload.push(
                method: "",
                metadata: [:],
                payload: SessionNote(running.number, part: part, fillerCount: below(largestFiller)).payload
            )
            record.end.push(payload, of: running.request, delivery, now: now) { offer in
                note("\(record.name) sends part \(part) of \(running.number): \(offer)")
                guard case .accepted(let id, let isAdmitted) = offer else { return }
                result.totals.parts += 1
                record.acceptedPart(at: index, isReliable: part % 2 == 0, as: id, isAdmitted: isAdmitted)
            }
            if below(2) == 0 { return }
        }
        guard index < record.running.count, record.running[index].number == running.number else { return }
        let taken = record.takeRunning(at: index)
        let payload = OutgoingPayload.response(
            SessionStatus(.ok),
            metadata: randomMetadata(),
            payload: SessionNote(taken.number, part: taken.reliablePartCount, fillerCount: below(largestFiller)).payload
        )
        note("\(record.name) responds to \(taken.number)")
        record.end.respond(to: taken.request, payload, now: now)
    }

    /// A handler of a push is done.
    func process(at record: SessionRecord) {
        if below(4) == 0, let receipt = record.takeStale() { record.end.finish(receipt, now: now) }
        guard !record.unprocessed.isEmpty else { return }
        let message = record.takeUnprocessed(at: below(record.unprocessed.count))
        note("\(record.name) has processed \(message.isPart ? "a part of " : "")\(message.number)")
        record.end.finish(message.receipt, now: now)
        // Saying it twice changes nothing.
        if below(4) == 0 { record.end.finish(message.receipt, now: now) }
    }

    /// An end has decided something.
    func acted(_ actions: [End.Machine.Action], _ record: SessionRecord) {
        if isTracing { for action in actions { note("\(record.name): \(Self.line(action))") } }
        record.told(actions)
        for action in actions {
            switch action {
            case .refuseRequest(let request, _, let refusal): record.end.refuse(request, refusal, now: now)
            case .peerLeaving(let pause):
                guard record === clientRecord else { break }
                awayUntil = now + pause
                if pause == Self.budgetPause { result.totals.sentAwayClients += 1 }
            case .notWelcomed: result.totals.lateWelcomes += 1
            case .sayGoodbye: result.totals.replacedConnections += 1
            case .closeConnection(_, .inOrder):
                if record === clientRecord, !record.isOver { result.totals.leftConnections += 1 }
            case .ended(let end):
                if case .abandoned = end, !record.isAbandoned { result.totals.overdueClosings += 1 }
                liveRecords.removeAll { $0 === record }
            default: break
            }
        }
    }

    /// The server has begun a session.
    func began(_ end: End) {
        if isDraining { failure.note("a session begins at a server that goes away") }
        let record = SessionRecord(
            end,
            "server \(serverRecords.count + 1)",
            peerUnderstates: client.understatesReceived,
            peerFrameLimit: client.options.maximumFrameLength,
            fail: failure.note
        )
        end.understatesReceived = serverUnderstates
        serverRecords.append(record)
        liveRecords.append(record)
        end.onActions = { [unowned self, unowned record] in acted($0, record) }
    }

    private func randomMetadata() -> SessionMetadata { below(8) == 0 ? ["name": "\(below(1_000))"] : [:] }

    private static func line(_ action: End.Machine.Action) -> String {
        switch action {
        case .deliverPush(let serial, let content, let receipt):
            let note = SessionNote(content)
            return "push \(note?.number ?? -1) part \(note?.part ?? -1) of serial \(serial) came, \(receipt)"
        case .beginRequest(let request, _, let content):
            return "begin request \(SessionNote(content)?.number ?? -1), serial \(request.serial)"
        case .refuseRequest(let request, let content, let refusal):
            return "refuse request \(SessionNote(content)?.number ?? -1), serial \(request.serial): \(refusal)"
        case .complete(let number, _): return "request \(number) has its response"
        case .fail(let number, let code): return "request \(number) fails: \(code)"
        case .messageEnded(let id, let outcome): return "message \(id) is \(outcome)"
        case .admitted(let ids): return "messages \(ids) are admitted"
        default: return "\(action)"
        }
    }
}
