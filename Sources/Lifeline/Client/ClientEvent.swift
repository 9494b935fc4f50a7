public import LifelineCore

/// One step of a client's connection, with the counts that are known then.
public struct ClientEvent: Sendable {
    /// The step: from which state to which, why, and when the next attempt is due.
    public let transition: ConnectionTransition

    /// The number of messages that `send` had accepted on the connection that ended with this step. Nil when none
    /// ended.
    public let acceptedMessageCount: Int?

    /// The number of messages that `send` had accepted on the connection that ended with this step, and that never left
    /// or were not acknowledged by the peer's TCP. Nil when no connection ended, and where the system cannot tell, for
    /// example over TLS, over WebSocket and through a proxy.
    ///
    /// Every message that is not counted has reached the peer's system. No connection can know whether the peer's
    /// program has read it there. A message that is counted may still arrive: perhaps only its acknowledgement was
    /// lost. Packets that wait in this system for a link leave when the link is back, after the connection was given
    /// up.
    public let undeliveredMessageCount: Int?

    /// The number of steps before this one that the subscriber was too slow to see, and that are no longer kept.
    public let missedCount: Int

    /// The number of messages that had been received when the step was made.
    let messagesBefore: Int

    package init(
        transition: ConnectionTransition,
        acceptedMessageCount: Int? = nil,
        undeliveredMessageCount: Int? = nil,
        missedCount: Int = 0,
        messagesBefore: Int = 0
    ) {
        self.transition = transition
        self.acceptedMessageCount = acceptedMessageCount
        self.undeliveredMessageCount = undeliveredMessageCount
        self.missedCount = missedCount
        self.messagesBefore = messagesBefore
    }
}

extension ClientEvent: CustomStringConvertible {
    /// One line: the transition and its counts.
    public var description: String {
        var text = "\(transition)"
        if let undeliveredMessageCount { text += ", \(undeliveredMessageCount) messages undelivered" }
        if missedCount > 0 { text += ", after \(missedCount) steps not seen" }
        return text
    }
}

/// The steps of a client's connection, for any number of subscribers.
///
/// Each iteration begins with the newest step, which tells the state, and goes on with every later one. It ends after
/// the client has closed, and when the task that iterates is cancelled. The client keeps the last 100 steps for all
/// subscribers together. A subscriber that falls further behind learns how many steps it has missed.
public struct ClientEvents: AsyncSequence, Sendable {
    let history: ClientHistory

    /// Begins with the newest step.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(history: history, cursor: history.newestNumber)
    }

    /// Begins with the step of this number, which may not have been made yet.
    func makeAsyncIterator(from number: UInt64) -> AsyncIterator {
        AsyncIterator(history: history, cursor: number)
    }

    /// Hands out one step at a time.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        fileprivate let history: ClientHistory
        /// The number of the next step.
        fileprivate var cursor: UInt64

        /// The next step; nil at the end.
        public nonisolated(nonsending) mutating func next() async -> ClientEvent? {
            await next(endsWhenCancelled: true)
        }

        /// The next step; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> ClientEvent? {
            await next()
        }

        /// The next step, whether or not the task is cancelled; nil at the end.
        nonisolated(nonsending) mutating func nextUninterrupted() async -> ClientEvent? {
            await next(endsWhenCancelled: false)
        }

        private nonisolated(nonsending) mutating func next(endsWhenCancelled: Bool) async -> ClientEvent? {
            while true {
                switch history.event(at: cursor) {
                case .event(let event):
                    skip(event)
                    return event
                case .end:
                    return nil
                case .notYet where endsWhenCancelled:
                    guard await history.wait(for: cursor) else { return nil }
                case .notYet:
                    await history.waitUninterrupted(for: cursor)
                }
            }
        }

        /// The step that is next, if there is one already. It stays the next one until `skip`.
        func peek() -> ClientEvent? {
            if case .event(let event) = history.event(at: cursor) { event } else { nil }
        }

        /// Moves on past a step that was peeked at.
        mutating func skip(_ event: ClientEvent) {
            cursor = event.transition.number + 1
        }
    }
}
