import LifelineCore

@testable import Lifeline

/// A situation with one special condition. It is tested only with the events for which that matters.
enum MachineNarrowSituation: String, CaseIterable, Sendable {
    /// A client with one thing under way: request r1, which the peer has processed and which ends at 500 ms; a push
    /// that is sent, unsent, sent with a key, unsent with a key, or waits for credit; a push of the peer that is not
    /// processed, or processed but not acknowledged.
    case awaiting, sent, unsent, sentWithKey, unsentWithKey, withoutCredit, unprocessed, untold
    /// A client whose request r2 has a part that waits for credit, and behind it its end.
    case partWithoutCredit
    /// The peer has just announced that it shuts down, and nothing is under way.
    case toLeave
    /// Closing, with one thing left: a push to be sent at most once; a request that was not sent, which ends at 500 ms;
    /// a push that expires at 100 ms; request 7 of the peer, for which it does not wait.
    case closingPush, closingRequest, closingExpiring, closingRunning
    /// Like `closingRequest` and `closingExpiring`, in a session that the peer never knew.
    case newClosingRequest, newClosingExpiring
    /// A client's second session, which has received a push, with the receipt of a push of the first session.
    case renewed
    /// Busy, while the server's sessions keep as much as they may; and with 72 bytes more, but no request.
    case serverFull, serverNearlyFull
    /// The client is about to be sent away for that reason; and has been sent away.
    case serverSendingAway, serverSentAway
    /// One request may run, and one is running.
    case serverWithoutRoom
    /// A part of a response waits for credit.
    case serverPartWithoutCredit

    var isServer: Bool { rawValue.hasPrefix("server") }

    func makeEnd() -> MachineMatrixEnd {
        let end = isServer ? serverEnd() : clientEnd()
        if rawValue.lowercased().contains("closing") { end.machine.close(now: .ms(0), into: &end.actions) }
        end.actions = []
        end.waiting = 1
        return end
    }

    private func clientEnd() -> MachineMatrixEnd {
        let end = MachineMatrixEnd(.client)
        let now = MonotonicTime.ms(0)
        let isNew = rawValue.hasPrefix("new")
        if !isNew { end.open() }
        func push(_ delivery: SessionDelivery = .reliable, size: Int = 1) {
            _ = end.machine.push(
                "m",
                end.content(50, size: size),
                delivery,
                isObserved: true,
                now: now,
                into: &end.actions
            )
        }
        switch self {
        case .awaiting, .closingRequest, .newClosingRequest:
            end.request(10, deadline: .ms(500), now: now)
            guard self == .awaiting else { break }
            end.forget(now: now)
            end.receive(HostileFrame.acknowledgement(3), now: now)
            end.progress = OpeningProgress(processed: 3, received: 3, urgent: 0)
        case .unsent: push()
        case .sent:
            push()
            end.forget(now: now)
        case .unsentWithKey: push(.replaceable(key: "k"))
        case .sentWithKey:
            push(.replaceable(key: "k"))
            end.forget(now: now)
            _ = end.machine.push(
                "m",
                end.content(51),
                .replaceable(key: "k"),
                isObserved: true,
                now: now,
                into: &end.actions
            )
        case .withoutCredit, .partWithoutCredit: end.useCredit(ofPart: self == .partWithoutCredit, now: now)
        case .unprocessed, .untold, .renewed:
            end.receive(HostileFrame.push(size: 1), now: now)
            end.forget(now: now)
            if self == .untold { end.machine.finish(end.receipts[0], now: now) }
            if self == .renewed {
                end.connect(now: now)
                end.forget(now: now)
                end.welcome(.test(2), isResumed: false, now: now)
                end.receive(HostileFrame.method(1, "p"), now: now)
                end.receive(HostileFrame.push(size: 1), now: now)
            }
        case .toLeave: end.receive(HostileFrame.goodbye(2), now: now)
        case .closingPush: push(.atMostOnce)
        case .closingExpiring, .newClosingExpiring: push(.expiring(after: .milliseconds(100)))
        case .closingRunning:
            end.receive(HostileFrame.request(7), now: now)
            end.receive(HostileFrame.ending(.cancel, 7), now: now)
            end.forget(now: now)
        default: break
        }
        return end
    }

    private func serverEnd() -> MachineMatrixEnd {
        switch self {
        case .serverWithoutRoom:
            var options = SessionOptions()
            options.maximumRunningCount = 1
            let end = MachineMatrixEnd(.server, options)
            end.open()
            end.receive(HostileFrame.request(7), now: .ms(0))
            end.forget(now: .ms(0))
            return end
        case .serverPartWithoutCredit:
            let end = MachineMatrixEnd(.server)
            end.open(MachineMatrixEnd.largeTerms)
            end.receive(HostileFrame.request(7), now: .ms(0))
            end.useCreditOfResponse(now: .ms(0))
            return end
        default: break
        }
        let end = MachineMatrixEnd(.server)
        var terms = MachineMatrixEnd.terms
        // So that the largest response is refused only because of memory.
        terms.maximumFrameLength = 6_000
        end.beBusy(terms)
        let isNearlyFull = self == .serverNearlyFull
        end.machine.allowance.byteCount = end.machine.keptByteCount + (isNearlyFull ? 72 : 0)
        if isNearlyFull { end.machine.allowance.handlerCount = 2 }
        end.machine.allowance.pause = .milliseconds(700)
        if self == .serverSendingAway || self == .serverSentAway {
            end.receive(HostileFrame.push(size: 2), now: .ms(1))
        }
        if self == .serverSentAway { end.forget(now: .ms(1)) }
        return end
    }
}

extension MachineMatrixEnd {
    /// The window has room for more than the credit.
    static let largeTerms = SessionTerms(
        window: SessionWindow(frameCount: 100, byteCount: 1 << 20),
        credit: 64 << 10,
        maximumRequestCount: 10,
        maximumFrameLength: 1 << 20
    )

    /// Uses up the credit of pushes, or of the parts of request r2, and adds one that waits.
    fileprivate func useCredit(ofPart: Bool, now: MonotonicTime) {
        connect(now: now)
        forget(now: now)
        welcome(.test(1), isResumed: true, progress: progress, terms: Self.largeTerms, now: now)
        if ofPart {
            request(10, now: now)
            request(20, hasParts: true, now: now)
            _ = machine.sendPart(of: calls[1], content(40, size: 70_000), now: now, into: &actions)
            _ = machine.sendPart(of: calls[1], content(41), isObserved: true, now: now, into: &actions)
            _ = machine.endParts(of: calls[1], now: now, into: &actions)
        } else {
            _ = machine.push("m", content(50, size: 70_000), now: now, into: &actions)
            _ = machine.push("m", content(51), isObserved: true, now: now, into: &actions)
        }
        progress.received = 3
        forget(now: now)
    }

    /// Uses up the credit of the parts of the response to request 7, and adds one that waits.
    fileprivate func useCreditOfResponse(now: MonotonicTime) {
        forget(now: now)
        guard let request = running[7] else { return }
        for (number, size) in [(40, 70_000), (41, 1)] {
            let content = content(UInt8(number), size: size)
            _ = machine.sendPart(ofResponseTo: request, content, isObserved: number == 41, now: now, into: &actions)
        }
        forget(now: now)
    }
}
