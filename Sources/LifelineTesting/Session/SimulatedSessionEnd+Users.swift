package import Lifeline
package import LifelineCore

// The requests of users. The closures are told the result before anything that follows from it.
extension SimulatedSessionEnd {
    package func push(
        _ method: String,
        _ content: Content,
        _ delivery: SessionDelivery,
        isObserved: Bool,
        now: MonotonicTime,
        offered: (SessionMachine.Offer) -> Void
    ) {
        if isPlain(delivery, isObserved), sentPlain(content, { machine.pushPlain(method, $0) }, offered) {
            return pump(now: now)
        }
        send(content, now: now, offered) { content, actions in
            machine.push(method, content, delivery, isObserved: isObserved, now: now, into: &actions)
        }
    }

    /// Sends a part of a request of this side's.
    package func sendPart(
        of request: SessionMachine.RequestID,
        _ content: Content,
        _ delivery: SessionDelivery,
        isObserved: Bool,
        now: MonotonicTime,
        offered: (SessionMachine.Offer) -> Void
    ) {
        if isPlain(delivery, isObserved), sentPlain(content, { machine.sendPlainPart(of: request, $0) }, offered) {
            return pump(now: now)
        }
        send(content, now: now, offered) { content, actions in
            machine.sendPart(of: request, content, delivery, isObserved: isObserved, now: now, into: &actions)
        }
    }

    /// Sends a part of the response to a request of the peer's.
    package func sendPart(
        ofResponseTo request: IncomingRequest,
        _ content: Content,
        _ delivery: SessionDelivery,
        isObserved: Bool,
        now: MonotonicTime,
        offered: (SessionMachine.Offer) -> Void
    ) {
        if isPlain(delivery, isObserved),
            sentPlain(content, { machine.sendPlainPart(ofResponseTo: request, $0) }, offered)
        {
            return pump(now: now)
        }
        send(content, now: now, offered) { content, actions in
            machine.sendPart(ofResponseTo: request, content, delivery, isObserved: isObserved, now: now, into: &actions)
        }
    }

    /// Whether a message may go the short way: half of those do that have nothing special.
    private func isPlain(_ delivery: SessionDelivery, _ isObserved: Bool) -> Bool {
        delivery == .reliable && !isObserved && Bool.random(using: &ways)
    }

    private func sentPlain(
        _ content: Content,
        _ send: (SessionMachine.Content) -> Bool,
        _ offered: (SessionMachine.Offer) -> Void
    ) -> Bool {
        guard content.borrowed(send) else { return false }
        plainCount += 1
        offered(.accepted(number: 0))
        return true
    }

    private func send(
        _ content: Content,
        now: MonotonicTime,
        _ offered: (SessionMachine.Offer) -> Void,
        _ body: (SessionMachine.Content, inout [SessionMachine.Action]) -> SessionMachine.Offer
    ) {
        take(machine.lacking(toSend: content.byteCount))
        var actions: [SessionMachine.Action] = []
        offered(content.borrowed { body($0, &actions) })
        perform(actions, now: now)
    }

    /// The last part of a request of this side's was sent.
    package func endParts(of request: SessionMachine.RequestID, now: MonotonicTime, ended: (Bool) -> Void) {
        var actions: [SessionMachine.Action] = []
        ended(machine.endParts(of: request, now: now, into: &actions))
        perform(actions, now: now)
    }

    package func request(
        _ method: String,
        _ content: Content,
        hasParts: Bool,
        deadline: MonotonicTime?,
        now: MonotonicTime,
        asked: (SessionMachine.RequestID) -> Void
    ) throws(RequestError) {
        take(machine.lacking(toSend: content.byteCount))
        let result = content.borrowed { content in
            Result { () throws(RequestError) in
                try machine.request(method, content, hasParts: hasParts, deadline: deadline, now: now)
            }
        }
        asked(try result.get())
        pump(now: now)
    }

    package func cancelRequest(_ id: SessionMachine.RequestID, now: MonotonicTime, cancelled: (Bool) -> Void) {
        var actions: [SessionMachine.Action] = []
        cancelled(machine.cancelRequest(id, now: now, into: &actions))
        perform(actions, now: now)
    }

    package func respond(
        to request: IncomingRequest,
        _ content: Content,
        now: MonotonicTime,
        offered: (SessionMachine.ResponseOffer) -> Void
    ) {
        take(machine.lacking(toSend: content.byteCount))
        var actions: [SessionMachine.Action] = []
        offered(content.borrowed { machine.respond(to: request, $0, now: now, into: &actions) })
        perform(actions, now: now)
    }

    package func withdraw(_ number: UInt64, now: MonotonicTime, withdrawn: (Bool) -> Void) {
        var actions: [SessionMachine.Action] = []
        withdrawn(machine.withdraw(number, now: now, into: &actions))
        perform(actions, now: now)
    }

    /// A push or a part that came in was processed.
    package func finish(_ receipt: SessionMachine.Receipt, now: MonotonicTime) {
        machine.finish(receipt, now: now)
        pump(now: now)
    }

    package func close(by deadline: MonotonicTime? = nil, now: MonotonicTime) {
        var actions: [SessionMachine.Action] = []
        machine.close(by: deadline, now: now, into: &actions)
        perform(actions, now: now)
    }

    package func end(_ reason: SessionEndReason, now: MonotonicTime) {
        var actions: [SessionMachine.Action] = []
        machine.end(reason, now: now, into: &actions)
        perform(actions, now: now)
    }

    package func drain(_ drain: SessionDrain, now: MonotonicTime) {
        machine.drain(drain)
        pump(now: now)
    }
}
