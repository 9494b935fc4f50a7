package import LifelineCore

// Messages that have to wait, and their way into the log.
extension SessionMachine {
    /// Gives up a message that waits. Returns false when it is in the log, or has ended.
    package mutating func withdraw(_ number: UInt64, now: MonotonicTime, into actions: inout [Action]) -> Bool {
        if durability?.outbox.withdraw(number) != nil {
            endIfDone(now: now, into: &actions)
            return true
        }
        guard waiting[number]?.isAwaited == true, let message = waiting.remove(number) else { return false }
        forgetWaiting(message)
        waiting.makeReady(message.scope)
        admitWaiting(now: now, into: &actions)
        endIfDone(now: now, into: &actions)
        return true
    }

    mutating func wait(
        _ message: OutgoingMessage,
        _ content: Content,
        _ delivery: SessionDelivery,
        isObserved: Bool,
        deadline: MonotonicTime?,
        isAccepted: Bool = false
    ) -> Offer {
        // Only room is missing: its turn comes when there is room.
        let waitsForRoom = hasCredit(message) && !isHeld(message.scope, serial: message.serial)
        var message = waitingMessage(message, content, delivery, isObserved: isObserved, deadline: deadline)
        message.isAwaited = !isAccepted
        waiting.append(message)
        noteWaiting(message)
        if waitsForRoom { waiting.makeReady(message.scope) }
        return isAccepted ? .accepted(number: message.number) : .waits(number: message.number)
    }

    mutating func waitingMessage(
        _ message: OutgoingMessage,
        _ content: Content,
        _ delivery: SessionDelivery,
        isObserved: Bool,
        deadline: MonotonicTime?
    ) -> WaitingMessage {
        WaitingMessage(
            kind: message.kind,
            scope: message.scope,
            number: takeNumber(),
            serial: message.serial,
            method: message.method == 0 ? "" : methods.name(message.method),
            fields: [UInt8](content.fields),
            payload: [UInt8](content.payload),
            delivery: delivery,
            isObserved: isObserved,
            deadline: deadline
        )
    }

    mutating func noteWaiting(_ message: WaitingMessage) {
        if let deadline = message.deadline, message.kind != .request {
            waitingDeadlines.insert(deadline, id: message.number)
            compactWaitingDeadlines()
        }
        if let key = message.delivery.key {
            newestByKey[ScopedKey(scope: message.scope, key: key)] = .waiting(number: message.number)
        }
    }

    /// Notes that a message no longer waits.
    mutating func forgetWaiting(_ message: WaitingMessage) {
        if message.deadline != nil { compactWaitingDeadlines() }
        guard let key = message.delivery.key.map({ ScopedKey(scope: message.scope, key: $0) }) else { return }
        if case .waiting(message.number)? = newestByKey[key] { newestByKey[key] = nil }
    }

    private mutating func compactWaitingDeadlines() {
        let waiting = waiting
        waitingDeadlines.compact(liveCount: waiting.count) { waiting[$0] != nil }
    }

    /// Moves waiting messages into the log, as far as there is credit and room for them.
    mutating func admitWaiting(now: MonotonicTime, into actions: inout [Action]) {
        guard !waiting.isEmpty, !life.isOver else { return }
        while let scope = waiting.takeReady() {
            guard let message = waiting.first(of: scope) else { continue }
            if isHeld(scope, serial: message.serial) { continue }
            guard hasRoom(for: message.cost) else {
                waiting.makeReady(scope)
                return
            }
            guard admit(message, now: now, into: &actions) else { continue }
            waiting.makeReady(scope)
        }
    }

    /// Moves the first message of a scope into the log. Returns false if it has no credit.
    private mutating func admit(
        _ message: WaitingMessage,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> Bool {
        // The limit of method names may be reached.
        if !message.method.isEmpty, methodNumber(message.method) == nil {
            waiting.removeFirst(of: message.scope)
            refused(message, now: now, into: &actions)
            return true
        }
        guard log(message, now: now) else { return false }
        waiting.removeFirst(of: message.scope)
        forgetWaiting(message)
        if let key = message.delivery.key.map({ ScopedKey(scope: message.scope, key: $0) }) {
            newestByKey[key] = .logged(place: ordinary.next - 1)
        }
        if message.isAwaited, message.number != 0 { actions.append(.accepted(number: message.number)) }
        return true
    }

    /// Moves a waiting message into the log. Returns false if it has no credit.
    mutating func log(_ message: WaitingMessage, now: MonotonicTime) -> Bool {
        switch message.kind {
        case .requestEnd:
            appendEnd(serial: message.serial)
            return true
        case .request:
            logRequest(message, now: now)
            return true
        default:
            var outgoing = OutgoingMessage(kind: message.kind, scope: message.scope, serial: message.serial)
            // The method had a number, but in a session that was lost.
            if !message.method.isEmpty { outgoing.method = methodNumber(message.method) ?? 0 }
            return message.fields.withUnsafeBytes { fields in
                message.payload.withUnsafeBytes { payload in
                    let frame = OutboundFrame(outgoing, Content(fields: fields, payload: payload))
                    guard hasCredit(outgoing) else { return false }
                    let isSpecial =
                        message.deadline != nil || message.delivery.key != nil || message.isObserved
                        || message.durable != 0 || message.answers != nil
                    if isSpecial {
                        let key = message.delivery.key.map { ScopedKey(scope: message.scope, key: $0) }
                        append(
                            frame,
                            outgoing,
                            MessageDetails(
                                number: message.number,
                                scope: message.scope,
                                delivery: message.delivery,
                                deadline: message.deadline,
                                key: key,
                                isObserved: message.isObserved,
                                durable: message.durable,
                                mayHaveCome: message.mayHaveCome,
                                answers: message.answers
                            )
                        )
                    } else {
                        append(frame, outgoing, tag: OutboundLog.Tag(.plain))
                    }
                    return true
                }
            }
        }
    }

    /// Refuses a message that was accepted for another session and cannot be sent in this one.
    mutating func refused(_ message: WaitingMessage, now: MonotonicTime, into actions: inout [Action]) {
        forgetWaiting(message)
        finishedDurable(message.durable, isLeftOut: true, now: now)
        endRefusedCall(message, into: &actions)
        if let call = message.answers { finish(call, now: now) }
        let isTold = message.number != 0 && (message.isAwaited || message.isObserved)
        switch message.kind {
        case .request: refuseRequest(message.serial, into: &actions)
        // Without one of its parts the call would be a different one, unnoticed.
        case .requestPart where !isTold: refuseRequest(message.serial, into: &actions)
        default: tellEnd(message, .refused, into: &actions)
        }
    }

    private mutating func refuseRequest(_ serial: UInt32, into actions: inout [Action]) {
        guard let id = requests.id(serial: serial), let request = requests.cancelled(id) else { return }
        giveUp(serial, request, into: &actions)
        actions.append(.failed(id, .messageRefused, asker: request.asker))
    }

    /// Reports the outcome of a message that waits, or was carried over. An accepted push is reported with its content,
    /// even if its sender waits until it is processed.
    func tellEnd(_ message: WaitingMessage, _ outcome: SessionDeliveryOutcome, into actions: inout [Action]) {
        let isWaitedFor = message.number != 0 && (message.isAwaited || message.isObserved)
        if message.durable != 0, outcome == .unsent {
            // The message is in the store, so it is neither lost nor in doubt.
            if isWaitedFor { actions.append(.messageEnded(number: message.number, .kept)) }
            return
        }
        if isWaitedFor { actions.append(.messageEnded(number: message.number, outcome)) }
        if message.kind == .push, !message.isAwaited {
            actions.append(
                .leftOver(
                    SessionMessageInDoubt(
                        method: message.method,
                        delivery: message.delivery,
                        payload: message.payload,
                        outcome: outcome
                    ),
                    isObserved: isWaitedFor
                )
            )
        }
    }

    /// Returns whether no message of a scope may begin now, because the peer goes away. Parts of begun requests still
    /// go on.
    func isHeld(_ scope: MessageScope, serial: UInt32) -> Bool {
        switch scope {
        case .pushes, .requests: life.isLeaving
        case .requestParts: requests.waiter(serial: serial)?.place == 0
        case .responseParts: false
        }
    }
}
