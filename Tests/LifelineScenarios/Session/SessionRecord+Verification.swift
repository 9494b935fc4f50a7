internal import Lifeline
internal import LifelineTesting

// The checks at the end of a story.
extension SessionRecord {
    /// Describes something that has not come to its end yet; nil when nothing is left.
    ///
    /// - Parameter unread: whether nobody reads a stream at present.
    func unfinished(besides unread: (Stream) -> Bool = { _ in false }, _ unreadCall: Int? = nil) -> String? {
        for (number, call) in calls where call.result == nil && number != unreadCall {
            return "call \(number), \(call)"
        }
        for (number, handler) in handlers where !handler.hasEnded && !handler.isDead && number != unreadCall {
            return "the handler of \(number), \(handler)"
        }
        for (number, message) in messages where !isSettled(message) && !unread(message.stream) {
            return "message \(number), \(message)"
        }
        return nil
    }

    private func isSettled(_ message: Message) -> Bool {
        if isDead(message.sender) { return true }
        guard let end = message.end else { return false }
        guard message.stream.isPushes, end == .accepted, message.delivery == .reliable, message.leftOver == nil else {
            return true
        }
        return message.hasCome && message.isFinished
    }

    private func isDead(_ sender: Sender) -> Bool {
        if case .server(let session) = sender { deadSessions.contains(session) } else { false }
    }

    /// Checks the outcomes of everything.
    func verify() {
        var newest: [Stream: [String: Int]] = [:]
        for (number, message) in messages {
            guard let key = message.delivery.key else { continue }
            newest[message.stream, default: [:]][key] = max(number, newest[message.stream]?[key] ?? 0)
        }
        for (number, message) in messages where !isDead(message.sender) {
            verify(number, message)
            guard message.end == .failed(.messageReplaced), let key = message.delivery.key else { continue }
            demand(newest[message.stream]?[key] != number, "message \(number) is replaced by nothing")
        }
        // The newest value of a key comes, unless its sender was told something else.
        for (stream, keys) in newest where stream.isPushes {
            for number in keys.values {
                guard let message = messages[number], message.end == .accepted, message.leftOver == nil else {
                    continue
                }
                if isDead(message.sender) || message.delivery.timeToLive != nil { continue }
                demand(message.hasCome, "push \(number), \(message), is the newest of its key, and is lost")
            }
        }
        for (number, call) in calls { verify(number, call) }
        for (sender, time, text) in excesses {
            guard case .client(let run) = sender else { continue }
            let isLost = losses[run]?.contains { time <= $0 && $0 <= time + (settings.slack ?? .seconds(10)) } ?? false
            demand(isLost, text)
        }
        for claim in claims where !isDead(claim.sender) {
            // Other users of the session learn of it a little later.
            let latest = claim.toldAt + .seconds(settings.slack == nil ? 10 : 1)
            let isRight: Bool
            switch claim.sender {
            case .client(let run):
                let isLost = losses[run]?.contains { claim.sentAt <= $0 && $0 <= latest } ?? false
                isRight = claim.isLoss && isLost || runEnds[run].map { $0 <= latest } ?? false
            case .server(let session): isRight = serverSessionEnds[session].map { $0 <= latest } ?? false
            }
            demand(isRight, "the session goes on, and \(claim.text)")
        }
    }

    private func verify(_ number: Int, _ message: Message) {
        switch message.end {
        case nil: fail("message \(number), \(message), has no outcome")
        case .processed?:
            // Nothing confirms those that are sent at most once, and parts of a call that has ended are dropped.
            guard message.stream.isPushes, !message.delivery.isAtMostOnce else { break }
            demand(message.isFinished, "push \(number) is reported as processed, and is not")
        case .accepted?:
            guard message.stream.isPushes, message.delivery == .reliable, message.leftOver == nil else { break }
            demand(message.isFinished, "push \(number), \(message), is lost without a report")
        case .failed?: break
        }
    }

    private func verify(_ number: Int, _ call: Call) {
        let handler = handlers[number]
        guard let result = call.result, let endedAt = call.endedAt else { return fail("call \(number) has not ended") }
        if let handler, !handler.isDead { demand(handler.hasEnded, "the handler of \(number) has not ended") }
        switch result {
        case .replied: demand(handler != nil, "call \(number) has a reply, and did not begin")
        case .status(.resourceExhausted): break
        case .status(.aborted): demand(handler != nil, "call \(number) was aborted, and did not begin")
        case .status(.cancelled), .status(.unavailable): break
        case .status(let code): demand(code == .internal && handler != nil, "call \(number) ended with \(code)")
        case .failed(.timedOut):
            let isInTime = call.timeout.map { call.startedAt + $0 <= endedAt } ?? false
            demand(isInTime, "call \(number), \(call), timed out too early")
        case .failed(.cancelled): demand(call.isCancelled, "call \(number) ended as cancelled, but was not cancelled")
        case .failed(.tooManyInFlight): demand(handler == nil, "call \(number) was not sent, and began")
        case .failed(.messageRefused):
            let isTooLong = isTooLong(call.byteCount) || call.kind.hasRequestParts
            demand(isTooLong, "call \(number) is refused, but is not too long")
        case .failed(.sessionLost):
            let isLost = losses[call.run]?.contains { $0 >= call.startedAt } ?? false
            demand(isLost || runEnds[call.run] != nil, "call \(number) lost its session, which was not lost")
        case .failed(.closedLocally), .failed(.closedByPeer):
            demand(runEnds[call.run] != nil, "call \(number) has lost its client, which goes on")
        case .failed(let code): fail("call \(number) ended with \(code)")
        }
    }

    // MARK: Counting

    func count(_ end: SendEnd, _ message: Message) {
        let isPart = !message.stream.isPushes
        switch end {
        case .accepted: break
        case .processed:
            if isPart, message.delivery.isAtMostOnce { totals.partsSentAtMostOnce += 1 }
        case .failed(.messageExpired):
            totals.expiredMessages += 1
            if isPart { totals.expiredParts += 1 }
        case .failed(.messageReplaced):
            totals.replacedMessages += 1
            if isPart { totals.replacedParts += 1 }
        case .failed(.messageRefused): totals.refusedMessages += 1
        case .failed(.messageInDoubt): totals.doubtfulMessages += 1
        case .failed(.messageDropped): totals.droppedMessages += 1
        case .failed(.messageUnsent): totals.unsentMessages += 1
        case .failed(.cancelled): if !message.isObserved { totals.withdrawnMessages += 1 }
        case .failed(.notWaitedFor): totals.lateMessages += 1
        case .failed(.serverExhausted): totals.exhaustedPushes += 1
        case .failed: break
        }
    }

    func count(_ result: Call.Result, _ call: Call) {
        totals.requests += 1
        switch result {
        case .replied:
            switch call.kind {
            case .unary: totals.unaryCalls += 1
            case .serverStream: totals.serverStreams += 1
            case .clientStream: totals.clientStreams += 1
            case .bothWays: totals.callsBothWays += 1
            }
            if call.kind.hasRequestParts, !call.hasSentParts { totals.earlyResponses += 1 }
        case .status(.resourceExhausted): totals.refusedRequests += 1
        case .status: break
        case .failed(.cancelled):
            totals.cancelledRequests += 1
            if call.partCount > 0, !call.hasSentParts { totals.callsCancelledMidway += 1 }
        case .failed(.timedOut): totals.timedOutRequests += 1
        case .failed(.messageRefused): totals.refusedMessages += 1
        case .failed: break
        }
    }
}
