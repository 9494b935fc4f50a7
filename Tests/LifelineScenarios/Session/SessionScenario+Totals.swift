internal import Lifeline
internal import LifelineTesting

extension SessionScenario {
    /// The events of one or many stories.
    package struct Totals: Sendable, Equatable {
        package var scenarios = 0
        package var (connections, cutFrames, resumes, newSessions, lostSessions) = (0, 0, 0, 0, 0)
        package var (expiredSessions, shutDowns, kills, clientRuns) = (0, 0, 0, 0)
        /// Hellos that a newer one had overtaken, and connections on which no answer to the hello came.
        package var (overtakenHellos, lateWelcomes) = (0, 0)
        /// Connections that a newer one replaced, and those that were told that the server goes away, or has no room.
        package var (replacedConnections, drainings, sentAwayClients) = (0, 0, 0)
        package var (messages, requestParts, responseParts) = (0, 0, 0)
        /// Messages by what their senders were told.
        package var (expiredMessages, replacedMessages, refusedMessages, doubtfulMessages) = (0, 0, 0, 0)
        package var (droppedMessages, unsentMessages, withdrawnMessages, exhaustedPushes) = (0, 0, 0, 0)
        package var leftOverPushes = 0
        /// Parts that were not reliable ones, by what became of them, and parts that came too late for their calls.
        package var (expiredParts, replacedParts, partsSentAtMostOnce, lateMessages) = (0, 0, 0, 0)
        /// Sends that waited, and those of them that had used up their credit.
        package var (waits, creditWaits, partCreditWaits) = (0, 0, 0)
        /// Streams that nobody read, and that held up nothing else.
        package var (unreadStreams, unreadPartStreams) = (0, 0)
        package var (requests, refusedRequests, cancelledRequests, timedOutRequests) = (0, 0, 0, 0)
        /// Calls that were answered, by their kinds.
        package var (unaryCalls, serverStreams, clientStreams, callsBothWays) = (0, 0, 0, 0)
        /// Calls that were answered, or cancelled, before the last part of the request was sent.
        package var (earlyResponses, callsCancelledMidway) = (0, 0)
        /// Frames that were sent again, and blanks in the places of others; acknowledgements with ranges, and grants.
        package var (resentFrames, blanks, acknowledgedRanges, grants) = (0, 0, 0, 0)
        package var bytes = 0

        package init() {}

        private static let fields: [any WritableKeyPath<Self, Int> & Sendable] = [
            \.scenarios, \.connections, \.cutFrames, \.resumes, \.newSessions, \.lostSessions,
            \.expiredSessions, \.shutDowns, \.kills, \.clientRuns, \.overtakenHellos, \.lateWelcomes,
            \.replacedConnections, \.drainings, \.sentAwayClients, \.messages, \.requestParts, \.responseParts,
            \.expiredMessages, \.replacedMessages, \.refusedMessages, \.doubtfulMessages, \.droppedMessages,
            \.unsentMessages, \.withdrawnMessages, \.exhaustedPushes, \.leftOverPushes, \.expiredParts,
            \.replacedParts, \.partsSentAtMostOnce, \.lateMessages, \.waits, \.creditWaits, \.partCreditWaits,
            \.unreadStreams, \.unreadPartStreams, \.requests, \.refusedRequests, \.cancelledRequests,
            \.timedOutRequests, \.unaryCalls, \.serverStreams, \.clientStreams, \.callsBothWays, \.earlyResponses,
            \.callsCancelledMidway, \.resentFrames, \.blanks, \.acknowledgedRanges, \.grants, \.bytes,
        ]

        package static func += (sum: inout Self, other: Self) {
            for field in fields { sum[keyPath: field] += other[keyPath: field] }
        }
    }
}
