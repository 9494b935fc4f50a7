internal import Lifeline
internal import LifelineTesting

extension SessionScenario {
    /// The events of one or many stories.
    package struct Totals: Sendable, Equatable {
        package var (scenarios, connections, cuts) = (0, 0, 0)
        /// Cuts with bytes of a frame on one side and the rest of it not.
        package var cutsWithinFrames = 0
        package var (resumes, lostSessions, expiredSessions, restarts) = (0, 0, 0, 0)
        /// Hellos that a newer one had overtaken, and connections on which no welcome came in time.
        package var (overtakenHellos, lateWelcomes) = (0, 0)
        package var (messages, requests, refusedRequests, cancelledRequests, timedOutRequests) = (0, 0, 0, 0, 0)
        /// Calls of each kind that were answered; of those with parts in the request, how many before the last of them
        /// was sent, and how many were cancelled then.
        package var (unaryCalls, serverStreams, clientStreams, callsBothWays) = (0, 0, 0, 0)
        package var (earlyResponses, callsCancelledMidway, refusedResponses) = (0, 0, 0)
        package var (requestParts, responseParts) = (0, 0)
        /// Parts that were not reliable ones, by what became of them.
        package var (expiredParts, replacedParts, partsSentAtMostOnce, unsentParts) = (0, 0, 0, 0)
        /// Requests, and parts of those, that waited as the server went away.
        package var (heldRequests, heldParts) = (0, 0)
        /// Pushes and parts that waited for credit, messages that waited for any reason, and those that their senders
        /// gave up.
        package var (creditWaits, partCreditWaits, waits, withdrawnMessages) = (0, 0, 0, 0)
        /// Streams that nobody read, and which held up nothing else.
        package var (unreadStreams, unreadPartStreams) = (0, 0)
        package var (expiredMessages, replacedMessages, refusedMessages, doubtfulMessages) = (0, 0, 0, 0)
        /// Messages that were to be sent at most once, and were not; and those that the session left unsent.
        package var (droppedMessages, unsentMessages, leftOverPushes) = (0, 0, 0)
        /// Frames that were sent again, and that came when they did not count any more; blanks in the places of others;
        /// acknowledgements with ranges, and grants of credit.
        package var (resentFrames, ignoredFrames, blanks, acknowledgedRanges, grants) = (0, 0, 0, 0, 0)
        /// Parts that came when their requests had ended.
        package var lateMessages = 0
        /// Connections that a newer one replaced, and those that a client left as the server goes away; sessions that
        /// took too long to close.
        package var (replacedConnections, leftConnections, overdueClosings) = (0, 0, 0)
        /// Pushes that a server refused, and clients that it sent away, as its sessions kept as much as they may.
        package var (exhaustedPushes, sentAwayClients) = (0, 0)
        /// Frames that connections refused, as they were about to be gone.
        package var failedSends = 0
        package var (bytes, steps) = (0, 0)

        package init() {}
    }

    func count() {
        for record in serverRecords + [clientRecord] { count(record) }
        for witness in witnesses {
            result.totals.resentFrames += witness.resentCount
            result.totals.blanks += witness.blankCount
            result.totals.acknowledgedRanges += witness.rangeCount
            result.totals.grants += witness.grantCount
        }
        result.totals.lostSessions = clientRecord.lossCount
    }

    private func count(_ record: SessionRecord) {
        result.totals.requests += record.calls.count
        result.totals.refusedRequests += record.refusedCount
        result.totals.failedSends += record.end.failedSendCount
        result.totals.ignoredFrames += record.end.ignoredFrameCount
        result.totals.lateMessages += record.end.machine.lateMessageCount
        result.totals.leftOverPushes += record.leftOverCount
        result.totals.withdrawnMessages += record.withdrawn.count
        result.totals.earlyResponses += record.earlyResponseCount
        result.totals.unaryCalls += record.answeredCounts[.unary] ?? 0
        result.totals.serverStreams += record.answeredCounts[.serverStream] ?? 0
        result.totals.clientStreams += record.answeredCounts[.clientStream] ?? 0
        result.totals.callsBothWays += record.answeredCounts[.bothWays] ?? 0
        for case let code? in record.results.values {
            if code == .cancelled { result.totals.cancelledRequests += 1 }
            if code == .timedOut { result.totals.timedOutRequests += 1 }
            if code == .messageRefused { result.totals.refusedMessages += 1 }
        }
        for (number, message) in record.sent { count(message, record.outcomes[number]) }
        result.totals.unsentMessages -= record.withdrawn.count
    }

    private func count(_ message: SessionRecord.Sent, _ outcome: SessionDeliveryOutcome?) {
        switch message.stream {
        case .pushes: result.totals.messages += 1
        case .requestParts: result.totals.requestParts += 1
        case .responseParts: result.totals.responseParts += 1
        }
        switch outcome {
        case .expired?: result.totals.expiredMessages += 1
        case .replaced?: result.totals.replacedMessages += 1
        case .refused?: result.totals.refusedMessages += 1
        case .inDoubt?: result.totals.doubtfulMessages += 1
        case .dropped?: result.totals.droppedMessages += 1
        case .unsent?: result.totals.unsentMessages += 1
        case .processed?, .sent?, .kept?, .notStored?, nil: break
        }
        if message.stream.isPushes { return }
        switch outcome {
        case .expired?: result.totals.expiredParts += 1
        case .replaced?: result.totals.replacedParts += 1
        case .sent?: result.totals.partsSentAtMostOnce += 1
        case .unsent?: result.totals.unsentParts += 1
        case .processed?, .dropped?, .refused?, .inDoubt?, .kept?, .notStored?, nil: break
        }
    }
}

extension SessionScenario.Totals {
    private static let fields: [any WritableKeyPath<Self, Int> & Sendable] = [
        \.scenarios, \.connections, \.cuts, \.cutsWithinFrames, \.resumes, \.lostSessions, \.expiredSessions,
        \.restarts, \.overtakenHellos, \.lateWelcomes, \.messages, \.requests, \.refusedRequests,
        \.cancelledRequests, \.timedOutRequests, \.unaryCalls, \.serverStreams, \.clientStreams, \.callsBothWays,
        \.earlyResponses, \.callsCancelledMidway, \.refusedResponses, \.requestParts, \.responseParts,
        \.expiredParts, \.replacedParts, \.partsSentAtMostOnce, \.unsentParts, \.heldRequests, \.heldParts,
        \.creditWaits, \.partCreditWaits, \.waits, \.withdrawnMessages, \.unreadStreams, \.unreadPartStreams,
        \.expiredMessages, \.replacedMessages, \.refusedMessages, \.doubtfulMessages, \.droppedMessages,
        \.unsentMessages, \.leftOverPushes, \.resentFrames, \.ignoredFrames, \.blanks, \.acknowledgedRanges,
        \.grants, \.lateMessages, \.replacedConnections, \.leftConnections, \.overdueClosings, \.exhaustedPushes,
        \.sentAwayClients, \.failedSends, \.bytes, \.steps,
    ]

    package static func += (sum: inout Self, other: Self) {
        for field in fields { sum[keyPath: field] += other[keyPath: field] }
    }
}
