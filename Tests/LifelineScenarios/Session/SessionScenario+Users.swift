internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// The users, who push, read, and are told of actions.
extension SessionScenario {
    typealias Stream = SessionRecord.Stream

    /// Whether the messages of a stream are seldom read.
    private static func isSlow(_ stream: Stream) -> Bool {
        switch stream {
        case .pushes: stream == slowStream
        case .requestParts(let number), .responseParts(let number): number % 3 == 0
        }
    }

    static let slowStream = Stream.pushes(slowMethod)
    private static let slowMethod = "test.Pushes/Slow"
    private static let pushMethods = ["test.Pushes/A", "test.Pushes/B", slowMethod]

    /// A side that somebody uses: the client, or one of the server's sessions.
    func randomRecord() -> SessionRecord {
        guard below(2) == 0, !liveRecords.isEmpty else { return clientRecord }
        // Mostly the one that the client knows.
        return below(5) == 0 ? liveRecords[below(liveRecords.count)] : liveRecords[liveRecords.count - 1]
    }

    func randomFiller() -> Int {
        below(3) == 0 ? below(min(sizes.largestFiller, 60)) : below(sizes.largestFiller)
    }

    func randomMetadata() -> [String: String] { below(8) == 0 ? ["name": "\(below(1_000))"] : [:] }

    func randomDelivery() -> SessionDelivery {
        switch below(8) {
        case 0: .atMostOnce
        case 1: .expiring(after: .milliseconds(below(300)))
        case 2: .replaceable(key: "\(below(2))", timeToLive: below(2) == 0 ? nil : .milliseconds(below(300)))
        default: .reliable
        }
    }

    func push(from record: SessionRecord) {
        // Users wait until their messages are accepted; there are a few of them.
        guard record.waiting.count < 8 else { return }
        push(Self.pushMethods[below(Self.pushMethods.count)], from: record)
    }

    /// Pushes messages that are not read, until they wait.
    func fillSlowStream(from record: SessionRecord) {
        for _ in 0..<200
        where record.end.machine.life.canSend && !record.isClosing && record.waitingCount(of: Self.slowStream) == 0 {
            push(Self.slowMethod, .reliable, from: record)
        }
    }

    private func push(_ method: String, _ delivery: SessionDelivery? = nil, from record: SessionRecord) {
        lastNumber += 1
        let number = lastNumber
        var content = SessionNote(number, fillerCount: randomFiller()).content
        FieldWriter.metadataFields(randomMetadata(), field: 2, into: &content.fields)
        send(number, content, .pushes(method), delivery, from: record) { content, delivery, isObserved, offered in
            record.end.push(method, content, delivery, isObserved: isObserved, now: now, offered: offered)
        }
    }

    typealias Offered = (SessionMachine.Offer) -> Void

    func send(
        _ number: Int,
        _ content: End.Content,
        _ stream: Stream,
        _ chosen: SessionDelivery? = nil,
        from record: SessionRecord,
        isHeld: Bool = false,
        _ body: (End.Content, SessionDelivery, _ isObserved: Bool, Offered) -> Void
    ) {
        let delivery = chosen ?? randomDelivery()
        // The connection takes them all at once.
        if delivery.isAtMostOnce, record.openAtMostOnce.count >= 4 { return }
        // All of those are counted.
        let isObserved = delivery.isAtMostOnce || below(4) > 0
        let sent = SessionRecord.Sent(
            stream: stream,
            delivery: delivery,
            isObserved: isObserved,
            byteCount: content.byteCount
        )
        let isLeaving = record.end.isLeaving
        let waitsForCredit = record.end.hasRoom(for: content.byteCount) && !isHeld && !isLeaving
        body(content, delivery, isObserved) { offer in
            note("\(record.name) sends \(number) in \(stream), \(content.byteCount) bytes, \(delivery): \(offer)")
            if case .exhausted = offer { result.totals.exhaustedPushes += 1 }
            if case .accepted = offer, stream.isPushes, delivery.key == nil {
                record.demand(!isLeaving, "push \(number) was accepted, though the peer leaves")
            }
            if case .waits = offer {
                result.totals.waits += 1
                if waitsForCredit {
                    let isUsed = record.usedCredit(stream) >= SessionTerms.smallestCredit
                    record.demand(isUsed, "message \(number) waits, though there is credit")
                }
                if waitsForCredit, stream.isPushes { result.totals.creditWaits += 1 }
                if waitsForCredit, !stream.isPushes { result.totals.partCreditWaits += 1 }
                if isHeld { result.totals.heldParts += 1 }
            }
            _ = record.offered(number, sent, offer)
        }
    }

    func withdraw(from record: SessionRecord) {
        guard let id = record.waiting.sorted().randomElement(using: &random) else { return }
        record.end.withdraw(id, now: now) { isWithdrawn in
            record.demand(isWithdrawn, "message \(id) waits, and cannot be withdrawn")
            note("\(record.name) withdraws message \(id)")
            record.withdrew(id)
        }
    }

    // MARK: What came in

    /// A handler of a push or a part is done.
    func process(at record: SessionRecord) {
        if below(4) == 0, let receipt = record.stale.popLast() { record.end.finish(receipt, now: now) }
        guard !record.unread.isEmpty else { return }
        let index = below(record.unread.count)
        if Self.isSlow(record.unread[index].stream), below(12) > 0 { return }
        process(at: record, index)
    }

    func process(at record: SessionRecord, _ index: Int) {
        let message = record.takeUnread(at: index)
        note("\(record.name) has processed \(message.number) of \(message.stream)")
        record.end.finish(message.receipt, now: now)
    }

    /// An end has decided something.
    func acted(_ actions: [SessionMachine.Action], _ record: SessionRecord) {
        if isTracing { for action in actions { note("\(record.name): \(Self.line(action))") } }
        record.told(actions)
        for action in actions {
            switch action {
            case .refuse(let request, _, _): refuse(request, at: record)
            case .peerLeaving(let pause):
                guard record === clientRecord else { break }
                awayUntil = now + pause
                if pause == Self.budgetPause { result.totals.sentAwayClients += 1 }
            case .notWelcomed: result.totals.lateWelcomes += 1
            case .sayGoodbye: result.totals.replacedConnections += 1
            case .closeConnection(_, .inOrder):
                if record === clientRecord, !record.isOver { result.totals.leftConnections += 1 }
            case .ended(let reason):
                if case .abandoned = reason, !record.isAbandoned { result.totals.overdueClosings += 1 }
                liveRecords.removeAll { $0 === record }
            default: break
            }
        }
    }

    private static func line(_ action: SessionMachine.Action) -> String {
        switch action {
        case .arrived(.push(let message, let receipt)): "push \(number(message)) came, \(receipt)"
        case .arrived(.request(let request, let message, _)): "begin a request of method \(message.method), \(request)"
        case .arrived(.response(let id, let message, _)):
            "request \(id) has the response \(number(message)), \(message.status)"
        case .arrived(.requestPart(let request, let message, let receipt)):
            "part \(number(message)) of \(request) came, \(receipt)"
        case .arrived(.responsePart(let id, let message, let receipt, _)):
            "part \(number(message)) of the response to \(id) came, \(receipt)"
        default: "\(action)"
        }
    }

    private static func number(_ message: InboundMessage) -> Int { SessionNote(message.payload)?.number ?? -1 }
}

extension SimulatedSessionEnd {
    /// Whether the peer goes away, so that nothing is begun.
    var isLeaving: Bool { if case .leaving = machine.life.connection { true } else { false } }

    /// Whether a message has room in what is kept, so that it waits only for credit.
    func hasRoom(for byteCount: Int) -> Bool {
        let kept = machine.keptSize
        return machine.waitingCount == 0 && kept.frameCount + 1 < options.outboundLimit.frameCount
            && kept.byteCount + byteCount + 200 + SessionMachine.detailsOverhead <= options.outboundLimit.byteCount
    }
}
