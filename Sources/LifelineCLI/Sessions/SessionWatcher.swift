internal import Lifeline
internal import LifelineCore
internal import Synchronization

/// Follows a session: reports lost and restored connections to the user, and messages in doubt when the session is
/// lost. Gives up when no connection can be expected.
final class SessionWatcher: Sendable {
    private struct State {
        /// The number of ended connections over which the server had welcomed the session.
        var endCount = 0
        /// The last time at which the session had a connection, or the start.
        var lastContact = ContinuousClock.now
        /// The reason why there is no connection.
        var lastReason: TransitionReason?
        /// Whether an attempt to make another one has failed since.
        var hasAttemptFailed = false
        /// Whether the session is about to end, so that the server may end the connection first.
        var isLeaving = false
        var undelivered: SessionMessageInDoubt?
        /// The line about a missing network, to print if the client still waits for one a second later. At first it
        /// always waits, until it has checked.
        var firstWait: String?
    }

    private let client: SessionClient
    private let endpoint: Endpoint
    private let connectionEvents: ClientEvents.AsyncIterator
    private let sessionEvents: SessionEvents.AsyncIterator
    private let timeout: Duration
    private let isQuiet: Bool
    private let state = Mutex(State())

    /// Make it before the client runs, so that it misses no step.
    init(
        client: SessionClient,
        endpoint: Endpoint,
        timeout: Duration,
        isQuiet: Bool
    ) {
        self.client = client
        self.endpoint = endpoint
        connectionEvents = client.events.makeAsyncIterator()
        sessionEvents = client.sessionEvents.makeAsyncIterator()
        self.timeout = timeout
        self.isQuiet = isQuiet
    }

    /// Returns the numbers of messages, by their methods, in words.
    private func describe(_ messages: [SessionMessageInDoubt]) -> String {
        let counts = Dictionary(grouping: messages, by: \.method).mapValues(\.count)
        return counts.sorted { $0.key < $1.key }.map { "\($0.value) of \($0.key)" }.joined(separator: ", ")
    }

    /// The first message that was in doubt when a session was lost, or when the last one had ended.
    var undelivered: SessionMessageInDoubt? { state.withLock { $0.undelivered } }

    /// Notes that the session is about to be closed.
    func willLeave() { state.withLock { $0.isLeaving = true } }

    /// Follows the connection to its end.
    func watchConnection() async throws(CommandFailure) {
        var events = connectionEvents
        var lastNews: ConnectionTransition?
        while let event = await events.next() {
            let transition = event.transition
            state.withLock { $0.firstWait = nil }
            if transition.to == .gaveUp { throw failure(for: transition.reason) }
            guard transition.isFailure else { continue }
            let openingCount = lostContact(by: transition)
            if transition.reason.code == .protocolViolation, openingCount == 0 { throw failure(for: transition.reason) }
            try checkTimeout()
            if transition.reason.code == .closedByPeer, state.withLock({ $0.isLeaving }) { continue }
            let words = transition.words(after: lastNews)
            lastNews = transition
            if transition.from == .idle, transition.to == .waitingForNetwork {
                state.withLock { $0.firstWait = words }
            } else {
                tell(words)
            }
        }
    }

    /// Checks every second whether there has been no connection for too long, or there is still no network.
    func watchTimeout() async throws {
        while true {
            try await Task.sleep(for: .seconds(1))
            if let words = state.withLock({ $0.firstWait.take() }) { tell(words) }
            try checkTimeout()
        }
    }

    /// Follows the session to its end.
    func watchSession() async {
        var events = sessionEvents
        var isFirst = true
        while let event = await events.next() {
            if event.missedCount > 0 {
                tell("\(event.missedCount) changes of the session came too fast to be followed")
            }
            switch event.kind {
            case .opened(_, let isResumed):
                if isResumed || !isFirst { tell(isResumed ? "the session goes on" : "a new session has begun") }
                isFirst = false
            case .lost(let inDoubt):
                keep(inDoubt)
                let words = inDoubt.isEmpty ? "nothing" : describe(inDoubt)
                tell(Self.words(ofLoss: event.reason, inDoubt: words))
            case .refused(let messages):
                keep(messages)
                tell("the server takes no messages of such a length; not sent: \(describe(messages))")
            case .expired(let messages):
                keep(messages)
                tell("messages have expired: \(describe(messages))")
            case .ended(_, let inDoubt):
                // The caller of the command gets the reason.
                keep(inDoubt)
            }
        }
    }

    /// Returns the words for a lost session.
    private static func words(ofLoss reason: SessionError?, inDoubt words: String) -> String {
        guard let reason, reason.code != .sessionLost else {
            return "the session was lost, as the server does not know it any more; in doubt: \(words)"
        }
        return "the session was lost; in doubt: \(words). \(reason.code): \(reason.message)"
    }

    private func keep(_ inDoubt: [SessionMessageInDoubt]) {
        state.withLock { $0.undelivered = $0.undelivered ?? inDoubt.first }
    }

    /// Notes that a connection has ended, or was not made.
    ///
    /// Counts whether the server had welcomed the session over it, because `watchSession` may learn that later.
    ///
    /// - Returns: how often the session has been welcomed until now.
    private func lostContact(by transition: ConnectionTransition) -> Int {
        let openingCount = client.statistics.openingCount
        state.withLock { state in
            let wasWelcome = transition.endsConnection && state.endCount < openingCount
            if wasWelcome { (state.endCount, state.lastContact) = (state.endCount + 1, .now) }
            state.hasAttemptFailed = !wasWelcome
            state.lastReason = transition.reason
        }
        return openingCount
    }

    private func checkTimeout() throws(CommandFailure) {
        let (isUsedUp, reason) = state.withLock { state in
            // The server has welcomed the session over a connection.
            if client.statistics.openingCount > state.endCount { return (false, state.lastReason) }
            // An attempt that neither fails nor succeeds has 10 s.
            let timeout = state.hasAttemptFailed ? self.timeout : max(self.timeout, .seconds(10))
            return (state.lastContact.duration(to: .now) >= timeout, state.lastReason)
        }
        if !isUsedUp { return }
        if let reason { throw failure(for: reason) }
        throw CommandFailure(
            status: .unavailable,
            message: "No connection to \(endpoint). It does not answer. Is that a server of sessions?"
        )
    }

    private func failure(for reason: TransitionReason) -> CommandFailure {
        let error = reason.error
        let status: CommandFailure.Status =
            switch (reason.code, error?.code) {
            case (.protocolViolation, _): .protocolBroken
            case (_, .invalidConfiguration?): .badData
            default: .unavailable
            }
        let advice = status == .protocolBroken ? " Is that a server of sessions?" : ""
        return CommandFailure(status: status, message: "No connection to \(endpoint). \(reason.words)\(advice)")
    }

    private func tell(_ line: String) {
        if !isQuiet { tellStep(line) }
    }
}

extension ConnectionTransition {
    /// Whether a connection has ended, or was not made, with this step. A long-lived connection is made again at once.
    fileprivate var isFailure: Bool {
        switch to {
        case .backingOff, .waitingForNetwork: true
        case .connecting: endsConnection
        case .idle, .ready, .draining, .closed, .gaveUp: false
        }
    }

    /// Whether there was a connection until this step.
    fileprivate var endsConnection: Bool { from == .ready || from == .draining }

    /// Returns the words for a missing connection.
    fileprivate func words(after last: ConnectionTransition?) -> String {
        let next =
            switch to {
            case .connecting: "trying again"
            case .waitingForNetwork: "waiting for a network"
            default: "trying again in \((nextAttempt.map { $0 - time } ?? .zero).inTenths) s"
            }
        if to == .waitingForNetwork, !endsConnection { return "there is no network that leads there; \(next)" }
        if endsConnection { return "the connection has ended; \(next). \(reason.words)" }
        return last?.reason == reason ? "still no connection; \(next)" : "no connection; \(next). \(reason.words)"
    }
}

extension TransitionReason {
    /// The error and the advice, without the cause.
    fileprivate var words: String {
        if let error { return error.message }
        return code == .closedByPeer ? "The server has ended it in order." : asError.message
    }
}
