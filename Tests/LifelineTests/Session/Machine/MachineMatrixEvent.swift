import Lifeline
import LifelineCore

/// The events of a machine, each at 10 ms.
enum MachineMatrixEvent: String, CaseIterable, Sendable {
    // Connections: one that begins a session; one that resumes it; one whose peer reports too much progress, or less
    // than before; one that has the number of the current one, or an older one; and one whose peer says that the
    // session is over.
    case connected, resumedAgain, resumedTooFar, resumedBack, connectedTooLate, connectedEarlier, versionTooHigh
    case overAtOnce
    case disconnected, otherDisconnected, otherFrame, otherNoFrame

    // The end of an offer, with and without room, and a connection that refuses it.
    case offered, offeredWithoutRoom, sendingFailed

    // Frames without a place: kinds 1 to 7, a later one, and none.
    case hello, welcomeNew, welcomeAgain, welcomeOther, welcomeVersion, ping, pong
    case acknowledged, acknowledgedRange, acknowledgedUrgent, acknowledgedTooMuch, acknowledgedTooMuchUrgent
    case creditForMethod, creditForRequest, creditForResponse, creditForNothing
    case goodbyeClosed, goodbyeDraining, goodbyeReplaced, goodbyeRefused, goodbyeVersion, goodbyeViolation
    case goodbyeFull, goodbyeUnknown
    case unknown, empty, severalKinds, noFrame

    // Frames of the ordinary lane: of requests that are under way, of others, and of none.
    case push, pushWithoutMethod, request, requestWithParts, sameRequest, part, partOfUnary, latePart, end, endOfUnary
    case lateEnd, responsePart, lateResponsePart, response, responseToUnsent, lateResponse, method, sameMethod, blank
    case unknownOrdinary

    // Frames of the urgent lane.
    case urgentResponse, lateUrgentResponse, cancel, cancelOfStream, lateCancel, unknownUrgent

    // Frames that are sent at most once.
    case unplacedPush, unplacedPart, unplacedLatePart, unplacedResponsePart

    // The calls of the user. A large push is longer than the peer's frames.
    case sendPush, sendLarge, sendAtMostOnce, sendKeyed, sendExpiring, sendToOtherMethod, withdraw
    case sendRequest, sendRequestWithParts, sendPart, sendPartAtMostOnce, sendPartOfUnary, endParts
    case cancelSent, cancelStream, cancelUnsent
    case sendResponsePart, respond, respondBehindPart, respondTooMuch, finish

    case timer, laterTimer, lateTimer
    // Only a server drains.
    case drain, drainLater, drainByNow, close, closeSoon, closeByNow
    case abandon, expire, makeWay, shutDown, misconfigure

    /// The time at which timers fire: exactly when their event is due.
    var time: MonotonicTime? {
        switch self {
        case .timer: .ms(500)
        case .laterTimer: .ms(2_001)
        case .lateTimer: .ms(10_001)
        default: nil
        }
    }
}

extension MachineMatrixEnd {
    private typealias Frame = HostileFrame

    /// Applies an event, and returns the actions.
    func apply(_ event: MachineMatrixEvent) -> String {
        actions = []
        let result = perform(event)
        let line = takeLine()
        return [result, line].filter { !$0.isEmpty }.joined(separator: "; ")
    }

    private func perform(_ event: MachineMatrixEvent) -> String {
        if let frame = frame(of: event) {
            receive(frame, now: now)
            return ""
        }
        switch event {
        case .connected, .resumedAgain, .resumedTooFar, .resumedBack, .connectedTooLate, .connectedEarlier,
            .versionTooHigh, .overAtOnce, .disconnected, .otherDisconnected, .otherFrame, .otherNoFrame:
            return performOfConnection(event)
        case .welcomeNew: welcome(.test(2), isResumed: false, terms: smallerTerms, now: now)
        case .welcomeAgain: welcome(.test(1), isResumed: true, progress: progress, now: now)
        case .welcomeOther: welcome(.test(2), isResumed: true, now: now)
        case .welcomeVersion: welcome(.test(1), isResumed: false, version: 2, now: now)
        case .noFrame:
            machine.receivedViolation(.undecodable(""), over: machine.connectionID, now: now, into: &actions)
        case .sendingFailed: machine.sendingFailed(into: &actions)
        case .timer, .laterTimer, .lateTimer: machine.timerFired(now: event.time ?? now, into: &actions)
        case .drain where role == .client, .drainLater where role == .client, .drainByNow where role == .client: break
        case .drain: machine.drain(SessionDrain(pause: .seconds(1), deadline: .ms(900)))
        case .drainLater: machine.drain(SessionDrain(pause: .seconds(1), deadline: .ms(1_100)))
        case .drainByNow:
            machine.drain(SessionDrain(pause: .seconds(1), deadline: now))
            machine.timerFired(now: now, into: &actions)
        case .close: machine.close(now: now, into: &actions)
        case .closeSoon: machine.close(by: .ms(900), now: now, into: &actions)
        case .closeByNow: machine.close(by: now, now: now, into: &actions)
        case .abandon: machine.end(.abandoned, now: now, into: &actions)
        case .expire: machine.end(.expired, now: now, into: &actions)
        case .makeWay: machine.end(.madeWay, now: now, into: &actions)
        case .shutDown: machine.end(.shutDown, now: now, into: &actions)
        case .misconfigure:
            let error = ConnectionError(code: .invalidConfiguration, message: "")
            machine.end(.misconfigured(error), now: now, into: &actions)
        default: return performOfUser(event)
        }
        return ""
    }

    private var now: MonotonicTime { .ms(10) }

    private var smallerTerms: SessionTerms {
        var terms = Self.terms
        (terms.maximumFrameLength, terms.maximumRequestCount) = (4_096, 1)
        return terms
    }

    private func performOfConnection(_ event: MachineMatrixEvent) -> String {
        let present = machine.connectionID
        func come(over id: UInt64, _ hello: ClientOpening, isResumed: Bool = true) -> String {
            if role == .client {
                machine.connected(over: id, now: now, into: &actions)
                return ""
            }
            let refusal = machine.opened(
                by: hello,
                .test(isResumed ? 1 : 2),
                isResumed: isResumed,
                over: id,
                now: now,
                into: &actions
            )
            return refusal.map { "refused: \($0.code.map { "\($0)" } ?? "?")" } ?? ""
        }
        func resume(_ progress: OpeningProgress) -> String {
            let hello = ClientOpening.test(.test(1), progress: progress, terms: Self.terms)
            let refusal = come(over: present + 1, hello)
            guard role == .client else { return refusal }
            let parts = [takeLine(), settle(now: now)].filter { !$0.isEmpty }
            welcome(.test(1), isResumed: true, progress: progress, now: now)
            return parts.joined(separator: " ")
        }
        let hello = ClientOpening.test(.test(1), progress: progress, terms: Self.terms)
        switch event {
        // A server's machine has one session.
        case .connected where role == .server && machine.wasOpened: return ""
        case .connected: return come(over: present + 1, .test(terms: Self.terms), isResumed: false)
        case .resumedAgain: return resume(progress)
        case .resumedTooFar: return resume(OpeningProgress(processed: 99, received: 99, urgent: 0))
        case .resumedBack: return resume(OpeningProgress(processed: progress.processed, received: 0, urgent: 0))
        case .connectedTooLate: return come(over: present, hello)
        case .connectedEarlier: return come(over: max(present, 1) - 1, hello)
        case .versionTooHigh:
            guard role == .server else { return "" }
            var hello = hello
            (hello.minimumVersion, hello.maximumVersion) = (2, 3)
            return come(over: present + 1, hello)
        case .overAtOnce:
            let refusal = come(over: present + 1, hello)
            receive(Frame.goodbye(1), now: now)
            return refusal
        case .disconnected: machine.disconnected(present, now: now, into: &actions)
        case .otherDisconnected: machine.disconnected(present &- 1, now: now, into: &actions)
        case .otherFrame: receive(Frame.goodbye(1), over: present + 1, now: now)
        default: machine.receivedViolation(.undecodable(""), over: present + 1, now: now, into: &actions)
        }
        return ""
    }

    private func frame(of event: MachineMatrixEvent) -> [UInt8]? {
        let number: UInt8 = 60
        func payload(_ field: UInt32) -> [UInt8] { Frame.bytes(field, [number]) }
        func part(_ kind: FrameKind, _ serial: UInt64) -> [UInt8] {
            Frame.of(kind, Frame.number(1, serial), payload(2))
        }
        func answer(_ kind: FrameKind, _ serial: UInt64) -> [UInt8] {
            Frame.of(kind, Frame.number(1, serial), payload(6))
        }
        return switch event {
        case .hello: Frame.of(.hello)
        case .ping: Frame.of(.ping, Frame.number(1, 1))
        case .pong: Frame.of(.pong, Frame.number(1, 1))
        case .acknowledged: Frame.acknowledgement(progress.processed + 1)
        case .acknowledgedRange: Frame.acknowledgement(progress.processed, [1, 1])
        case .acknowledgedUrgent: Frame.acknowledgement(0, urgent: 1)
        case .acknowledgedTooMuch: Frame.acknowledgement(.max)
        case .acknowledgedTooMuchUrgent: Frame.acknowledgement(0, urgent: .max)
        case .creditForMethod: Frame.credit(1, 1, 1 << 20)
        case .creditForRequest: Frame.credit(2, 2, 1 << 20)
        case .creditForResponse: Frame.credit(3, 7, 1 << 20)
        case .creditForNothing: Frame.credit(1, 0, 1 << 20)
        case .goodbyeClosed: Frame.goodbye(1)
        case .goodbyeDraining: Frame.goodbye(2)
        case .goodbyeReplaced: Frame.goodbye(3)
        case .goodbyeRefused: Frame.goodbye(4)
        case .goodbyeVersion: Frame.goodbye(5)
        case .goodbyeViolation: Frame.goodbye(6)
        case .goodbyeFull: Frame.goodbye(7)
        case .goodbyeUnknown: Frame.goodbye(99)
        case .unknown: Frame.of(FrameKind(rawValue: 51))
        case .empty: []
        case .severalKinds: Frame.of(.blank) + Frame.of(.blank)
        case .push: Frame.of(.push, Frame.number(1, 1), payload(3))
        case .pushWithoutMethod: Frame.of(.push, Frame.number(1, 9), payload(3))
        case .request: Frame.request(9)
        case .requestWithParts: Frame.request(9, hasParts: true)
        case .sameRequest: Frame.request(7)
        case .part: part(.requestPart, 8)
        case .partOfUnary: part(.requestPart, 7)
        case .latePart: part(.requestPart, 99)
        case .end: Frame.ending(.requestEnd, 8)
        case .endOfUnary: Frame.ending(.requestEnd, 7)
        case .lateEnd: Frame.ending(.requestEnd, 99)
        case .responsePart: part(.responsePart, 1)
        case .lateResponsePart: part(.responsePart, 99)
        case .response: answer(.response, 1)
        case .responseToUnsent: answer(.response, 3)
        case .lateResponse: answer(.response, 99)
        case .method: Frame.method(2, "q")
        case .sameMethod: Frame.method(2, "p")
        case .blank: Frame.of(.blank)
        case .unknownOrdinary: Frame.of(FrameKind(rawValue: 31))
        case .urgentResponse: answer(.urgentResponse, 2)
        case .lateUrgentResponse: answer(.urgentResponse, 99)
        case .cancel: Frame.ending(.cancel, 7)
        case .cancelOfStream: Frame.ending(.cancel, 8)
        case .lateCancel: Frame.ending(.cancel, 99)
        case .unknownUrgent: Frame.of(FrameKind(rawValue: 47))
        case .unplacedPush: Frame.of(.unplacedPush, Frame.number(1, 1), payload(3))
        case .unplacedPart: part(.unplacedRequestPart, 8)
        case .unplacedLatePart: part(.unplacedRequestPart, 7)
        case .unplacedResponsePart: part(.unplacedResponsePart, 1)
        default: nil
        }
    }

    private func performOfUser(_ event: MachineMatrixEvent) -> String {
        func push(_ delivery: SessionDelivery = .reliable, _ method: String = "m", size: Int = 1) -> String {
            self.push(70, size: size, delivery, method: method, now: now)
        }
        func part(_ index: Int, _ delivery: SessionDelivery = .reliable) -> String {
            guard calls.indices.contains(index) else { return "" }
            let offer = machine.sendPart(of: calls[index], content(70), delivery, now: now, into: &actions)
            return line(offer)
        }
        func cancel(_ index: Int) -> String {
            guard calls.indices.contains(index) else { return "" }
            return machine.cancelRequest(calls[index], now: now, into: &actions) ? "cancelled" : ""
        }
        switch event {
        case .sendPush: return push()
        case .sendLarge: return push(size: 4_900)
        case .sendAtMostOnce: return push(.atMostOnce)
        case .sendKeyed: return push(.replaceable(key: "k"))
        case .sendExpiring: return push(.expiring(after: .milliseconds(5)))
        case .sendToOtherMethod: return push(.reliable, "n")
        case .withdraw: return machine.withdraw(waiting, now: now, into: &actions) ? "withdrawn" : ""
        case .sendRequest: return request(70, now: now)
        case .sendRequestWithParts: return request(70, hasParts: true, now: now)
        case .sendPart: return part(1)
        case .sendPartAtMostOnce: return part(1, .atMostOnce)
        case .sendPartOfUnary: return part(0)
        case .endParts:
            return calls.count > 1 && machine.endParts(of: calls[1], now: now, into: &actions) ? "ended" : ""
        case .cancelSent: return cancel(0)
        case .cancelStream: return cancel(1)
        case .cancelUnsent: return cancel(2)
        case .sendResponsePart: return sendAnswerPart(71, to: 7, now: now)
        case .respond: return respond(to: 7, 70, now: now)
        case .respondBehindPart:
            return [sendAnswerPart(71, to: 7, now: now), respond(to: 7, 70, now: now)].filter { !$0.isEmpty }.joined(
                separator: ", "
            )
        case .respondTooMuch: return respond(to: 7, 70, size: 5_000, now: now)
        case .finish:
            if let receipt = receipts.first { machine.finish(receipt, now: now) }
            return ""
        // Everything is offered after each event.
        default: return ""
        }
    }
}
