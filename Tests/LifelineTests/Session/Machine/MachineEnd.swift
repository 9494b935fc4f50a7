import LifelineCore

@testable import Lifeline

/// One end of a session in a story: its machine and its user. It checks the actions of the machine.
final class MachineEnd {
    /// A message that this end was asked to send, and its outcome.
    struct Sent {
        var method: String
        var delivery: SessionDelivery
        /// The outcome that its sender got; nil: none yet.
        var outcome: SessionDeliveryOutcome?
        var isLost = false
        /// Whether its sender waits until it is processed.
        var isObserved = false
        /// Whether it no longer waits for credit or room.
        var isAccepted = false
        /// Whether it was reported as left over, with its content.
        var isLeftOver = false
    }

    /// A received message that is not consumed.
    struct Unread {
        let source: String
        let id: UInt32
        let receipt: SessionMachine.Receipt
    }

    struct Call {
        let kind: String
        var partsToSend: Int
        var hasEnded: Bool
        var responseParts: [UInt32] = []
        var sentParts: [UInt32] = []
        var isCancelled = false
        let id: UInt32
    }

    struct Work {
        let request: IncomingRequest
        let kind: String
        let id: UInt32
        var partsToSend: Int
        var requestParts: [UInt32] = []
        var hasEnded: Bool
        var isCancelled = false
        /// The part that its handler waits to send.
        var waitingPart: UInt64?
    }

    let name: String
    var machine: SessionMachine
    var actions: [SessionMachine.Action] = []
    var failure: String?

    var nextID: UInt32 = 1
    var sent: [UInt32: Sent] = [:]
    /// The messages that wait or are observed, by their numbers.
    var idByNumber: [UInt64: UInt32] = [:]
    var waitingIDs: Set<UInt32> = []
    var waitingParts: Set<UInt64> = []
    var received: [String: [UInt32]] = [:]
    var unread: [Unread] = []
    var calls: [SessionMachine.RequestID: Call] = [:]
    var endedCallCount = 0
    var work: [Work] = []
    var peerMethods: [UInt32: String] = [:]
    var openedCount = 0
    var lostCount = 0
    var credentials: SessionCredentials?
    var closings: [(UInt64, SessionClosing)] = []
    var isOver = false
    /// Whether it tries to send messages the short way first, as the engine does.
    var takesShortWay = true
    /// Whether it reports several messages at once as processed.
    var finishesRuns = false
    /// The number of messages that were sent the short way.
    private(set) var plainCount = 0

    init(_ name: String, _ role: SessionRole, _ options: SessionOptions) {
        self.name = name
        machine = SessionMachine(role: role, options: options)
    }

    /// Takes over the session of another end, at another server.
    init(_ snapshot: SessionSnapshot, of other: MachineEnd, _ options: SessionOptions, now: MonotonicTime) {
        name = other.name
        machine = SessionMachine(snapshot, options: options)
        machine.takePromises(of: snapshot, now: now)
        (nextID, received, sent) = (other.nextID, other.received, other.sent)
        (takesShortWay, finishesRuns) = (other.takesShortWay, other.finishesRuns)
        for (index, method) in snapshot.peerMethods.enumerated() { peerMethods[UInt32(index + 1)] = method.name }
        // Observed messages have numbers, in order.
        var number: UInt64 = 0
        func takeNumber(_ payload: UnsafeRawBufferPointer) {
            number += 1
            idByNumber[number] = Self.id(payload)
        }
        for frame in snapshot.ordinary.frames {
            guard case .special = frame.role else { continue }
            frame.bytes.withUnsafeBytes { bytes in
                if let message = SessionMachine.parsed(bytes)?.1 { takeNumber(message.payload) }
            }
        }
        for push in snapshot.waiting { push.payload.withUnsafeBytes { takeNumber($0) } }
        // The outcome `kept` told their senders that they go on.
        for (id, message) in sent where message.outcome == .kept { sent[id]?.outcome = nil }
    }

    func fail(_ text: String) { if failure == nil { failure = "\(name): \(text)" } }

    // MARK: Actions of the user

    func payload(_ id: UInt32, _ size: Int) -> [UInt8] {
        withUnsafeBytes(of: id.littleEndian) { [UInt8]($0) } + [UInt8](repeating: 7, count: size)
    }

    static func id(_ payload: UnsafeRawBufferPointer) -> UInt32 {
        payload.count < 4 ? 0 : payload.loadUnaligned(as: UInt32.self).littleEndian
    }

    func push(_ method: String, size: Int, _ delivery: SessionDelivery, isObserved: Bool, now: MonotonicTime) {
        let id = nextID
        nextID += 1
        let offer: SessionMachine.Offer = payload(id, size).withUnsafeBytes { payload in
            let content = SessionMachine.Content(payload: payload)
            let isPlain = delivery == .reliable && !isObserved
            if isPlain, sentPlain({ machine.pushPlain(method, content) }) { return .accepted(number: 0) }
            return machine.push(method, content, delivery, isObserved: isObserved, now: now, into: &actions)
        }
        var message = Sent(method: method, delivery: delivery, isObserved: isObserved)
        switch offer {
        case .accepted(let number):
            message.isAccepted = true
            if number != 0 { idByNumber[number] = id }
        case .waits(let number):
            idByNumber[number] = id
            waitingIDs.insert(id)
        case .dropped: message.outcome = .dropped
        case .closed, .exhausted: message.outcome = .unsent
        case .tooLong, .badMethod, .notDurable: fail("a push was refused: \(offer)")
        }
        sent[id] = message
    }

    private func sentPlain(_ send: () -> Bool) -> Bool {
        guard takesShortWay, send() else { return false }
        plainCount += 1
        return true
    }

    /// Calls a method of the kind `unary`, `server` (stream), `client` (stream) or `both` (ways).
    func ask(_ kind: String, parts: Int, size: Int, timeout: Duration?, now: MonotonicTime) {
        let id = nextID
        nextID += 1
        let hasParts = kind == "client" || kind == "both"
        let bytes = hasParts ? [] : payload(id, size)
        // If there is no payload, the method name carries the request's number.
        do {
            let request = try bytes.withUnsafeBytes { bytes in
                try machine.request(
                    "t.S/\(kind)",
                    SessionMachine.Content(payload: bytes),
                    hasParts: hasParts,
                    deadline: timeout.map { now + $0 },
                    now: now
                )
            }
            calls[request] = Call(kind: kind, partsToSend: hasParts ? parts : 0, hasEnded: !hasParts, id: id)
        } catch {
            guard let error = error as? RequestError else { return fail("\(error)") }
            if error.code != .tooManyInFlight && error.code != .notSent { fail("a request was refused: \(error)") }
        }
    }

    func goOnAsking(_ request: SessionMachine.RequestID, size: Int, now: MonotonicTime) {
        guard let call = calls[request], !call.hasEnded, !call.isCancelled else { return }
        if call.partsToSend == 0 {
            calls[request]?.hasEnded = true
            _ = machine.endParts(of: request, now: now, into: &actions)
            return
        }
        let id = nextID
        nextID += 1
        let offer: SessionMachine.Offer = payload(id, size).withUnsafeBytes { payload in
            let content = SessionMachine.Content(payload: payload)
            if sentPlain({ machine.sendPlainPart(of: request, content) }) { return .accepted(number: 0) }
            return machine.sendPart(of: request, content, now: now, into: &actions)
        }
        calls[request]?.partsToSend -= 1
        switch offer {
        case .accepted, .waits: calls[request]?.sentParts.append(id)
        case .dropped, .closed, .exhausted: break
        default: fail("a part was refused: \(offer)")
        }
    }

    func goOnAnswering(_ index: Int, size: Int, now: MonotonicTime) {
        var task = work[index]
        let hasRequestParts = task.kind == "client" || task.kind == "both"
        if !task.isCancelled {
            if task.kind == "client", !task.hasEnded { return }
            if let part = task.waitingPart, waitingParts.contains(part) { return }
            if task.partsToSend > 0 {
                let id = nextID
                nextID += 1
                let offer: SessionMachine.Offer = payload(id, size).withUnsafeBytes { payload in
                    let content = SessionMachine.Content(payload: payload)
                    if sentPlain({ machine.sendPlainPart(ofResponseTo: task.request, content) }) {
                        return .accepted(number: 0)
                    }
                    return machine.sendPart(ofResponseTo: task.request, content, now: now, into: &actions)
                }
                if case .waits(let number) = offer {
                    waitingParts.insert(number)
                    task.waitingPart = number
                }
                task.partsToSend -= 1
                work[index] = task
                return
            }
            if hasRequestParts, !task.hasEnded { return }
        }
        // The answer is the number of received parts, or the request's own number.
        let answer = hasRequestParts ? UInt32(task.requestParts.count) : task.id
        work.remove(at: index)
        if task.isCancelled { return respond(to: task.request, status: 14, now: now) }
        let offer = payload(answer, size).withUnsafeBytes {
            machine.respond(to: task.request, SessionMachine.Content(payload: $0), now: now, into: &actions)
        }
        if case .refused(let refusal) = offer {
            let small = payload(answer, 0)
            let again = small.withUnsafeBytes {
                machine.respond(to: task.request, SessionMachine.Content(payload: $0), now: now, into: &actions)
            }
            if case .refused = again { fail("a small response was refused: \(refusal)") }
        }
    }

    private func respond(to request: IncomingRequest, status: UInt8, now: MonotonicTime) {
        let fields: [UInt8] = [0x10, status]
        _ = fields.withUnsafeBytes { fields in
            machine.respond(
                to: request,
                SessionMachine.Content(fields: fields, payload: UnsafeRawBufferPointer(start: nil, count: 0)),
                now: now,
                into: &actions
            )
        }
    }

    func read(_ index: Int, now: MonotonicTime) {
        // Messages of one source are handled in order.
        let source = unread[index].source
        guard let first = unread.firstIndex(where: { $0.source == source }) else { return }
        let item = unread.remove(at: first)
        var receipt = item.receipt
        // Adds the messages that directly follow, as an inbox does.
        while let next = unread.dropFirst(first).first, next.receipt.source == receipt.source, receipt.place != 0,
            next.receipt.session == receipt.session, next.receipt.place == receipt.place + UInt64(receipt.count),
            finishesRuns
        {
            receipt = receipt.with(
                place: receipt.place,
                count: receipt.count + 1,
                cost: receipt.cost + next.receipt.cost
            )
            unread.remove(at: first)
        }
        machine.finish(receipt, now: now)
    }

    func receive(_ frame: UnsafeRawBufferPointer, over connection: UInt64, now: MonotonicTime) {
        let arrival = machine.receive(frame, over: connection, now: now, into: &actions)
        if let arrival { actions.append(.arrived(arrival)) }
    }

    // MARK: Actions of the machine

    func run(now: MonotonicTime) {
        while !actions.isEmpty {
            let pending = actions
            actions = []
            for action in pending { run(action, now: now) }
        }
    }

    private func run(_ action: SessionMachine.Action, now: MonotonicTime) {
        if isOver, case .closeConnection = action {} else if isOver { return fail("something came behind the end") }
        switch action {
        case .arrived(let arrival): take(arrival)
        case .requestEnded(let request):
            if let index = work.firstIndex(where: { $0.request == request }) { work[index].hasEnded = true }
        case .accepted(let number):
            waitingParts.remove(number)
            // Parts have no entry.
            guard let id = idByNumber[number] else { return }
            sent[id]?.isAccepted = true
            if waitingIDs.remove(id) == nil { fail("message \(id) was accepted and does not wait") }
        case .messageEnded(let number, let outcome):
            waitingParts.remove(number)
            guard let id = idByNumber[number] else { return }
            waitingIDs.remove(id)
            if let before = sent[id]?.outcome { fail("message \(id) ended twice: \(before), \(outcome)") }
            sent[id]?.outcome = outcome
        case .leftOver(let message, _):
            let id = message.payload.withUnsafeBytes { Self.id($0) }
            guard let before = sent[id] else { return fail("message \(id) was never sent") }
            // The outcome of an observed message was reported before.
            if before.isLeftOver || before.outcome != (before.isObserved ? message.outcome : nil) {
                fail("message \(id) ended twice: \(before), \(message.outcome)")
            }
            sent[id]?.outcome = message.outcome
            sent[id]?.isLeftOver = true
        case .durableCallEnded: fail("a durable call ended, and none was made")
        case .failed(let id, _, _):
            guard calls.removeValue(forKey: id) != nil else { return fail("a call ended twice") }
            endedCallCount += 1
        case .refuse(let request, _, _):
            respond(to: request, status: 8, now: now)
        case .cancelRequest(let request):
            if let index = work.firstIndex(where: { $0.request == request }) { work[index].isCancelled = true }
        case .method(let number, let name): peerMethods[number] = name
        case .opened(let credentials, _):
            openedCount += 1
            self.credentials = credentials
        case .sessionLost:
            lostCount += 1
            peerMethods = [:]
        // Messages of the lost session are handled, and change nothing.
        case .closeConnection(let id, let closing): closings.append((id, closing))
        case .violated(let violation): fail("the peer broke the rules: \(violation.message)")
        case .accused(let goodbye): fail("was accused: \(goodbye.message)")
        case .peerLeaving, .notWelcomed, .sayGoodbye: break
        case .ended: isOver = true
        }
    }

    private func take(_ arrival: SessionMachine.Arrival) {
        switch arrival {
        case .push(let message, let receipt):
            let method = peerMethods[message.method] ?? "?"
            let id = Self.id(message.payload)
            received[method, default: []].append(id)
            unread.append(Unread(source: method, id: id, receipt: receipt))
        case .request(let request, let message, _):
            let kind = String((peerMethods[message.method] ?? "?").dropFirst(4))
            let hasParts = kind == "client" || kind == "both"
            if hasParts != message.hasParts { fail("parts_follow is wrong in \(kind)") }
            let parts = kind == "server" || kind == "both" ? 3 : 0
            work.append(
                Work(
                    request: request,
                    kind: kind,
                    id: Self.id(message.payload),
                    partsToSend: parts,
                    hasEnded: !hasParts
                )
            )
        case .response(let id, let message, _):
            guard let call = calls.removeValue(forKey: id) else { return fail("a call ended twice") }
            endedCallCount += 1
            let answer = Self.id(message.payload)
            if message.status == 0 {
                let expected =
                    call.sentParts.isEmpty && call.kind != "client" && call.kind != "both"
                    ? call.id : UInt32(call.sentParts.count)
                if answer != expected, call.hasEnded || call.kind == "unary" {
                    fail("\(call.kind) was answered with \(answer), not \(expected)")
                }
                let parts = call.kind == "server" || call.kind == "both" ? 3 : 0
                if call.responseParts.count != parts {
                    fail("\(call.kind) has \(call.responseParts.count) response parts, not \(parts)")
                }
            }
            if call.responseParts != call.responseParts.sorted() { fail("response parts are out of order") }
        case .requestPart(let request, let message, let receipt):
            let id = Self.id(message.payload)
            if let index = work.firstIndex(where: { $0.request == request }) {
                if work[index].hasEnded { fail("a part came behind the end") }
                if let last = work[index].requestParts.last, last >= id { fail("request parts are out of order") }
                work[index].requestParts.append(id)
            }
            unread.append(Unread(source: "request \(request.serial)", id: id, receipt: receipt))
        case .responsePart(let request, let message, let receipt, _):
            let id = Self.id(message.payload)
            if calls[request] == nil { fail("a response part of a call that has ended") }
            if let last = calls[request]?.responseParts.last, last >= id { fail("response parts are out of order") }
            calls[request]?.responseParts.append(id)
            unread.append(Unread(source: "response \(request)", id: id, receipt: receipt))
        case .reply: fail("a reply to a durable call came, and none was made")
        }
    }
}
