public import LifelineCore

/// One step of a client's connection, and what is known with it.
public struct ClientEvent: Sendable {
    /// The step: from which state to which, why, and when the next attempt is due.
    public let transition: ConnectionTransition

    /// When a connection ended with this step: how many messages `send` had accepted on it. Nil when none ended.
    public let acceptedMessageCount: Int?

    /// When a connection ended with this step: how many messages that `send` had accepted on it never left, or were not
    /// acknowledged by the peer's TCP. Nil when no connection ended, and where the system cannot tell: over
    /// TLS, WebSocket and through a proxy among others.
    ///
    /// The count is exact in that every other message has reached the peer's system. Whether the peer's program read it
    /// there, no connection can know. Nor that a message which counts does not arrive: its acknowledgement may be what
    /// was lost, and packets that wait in this system for a link leave when it is back, after the connection was given
    /// up.
    public let undeliveredMessageCount: Int?

    /// How many steps between the event before and this one the subscriber was too slow to see: they are not kept any
    /// more.
    public let missedCount: Int

    /// How many messages had been received when the step was made.
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
    /// One line: the transition and what is known with it.
    public var description: String {
        var text = "\(transition)"
        if let undeliveredMessageCount { text += ", \(undeliveredMessageCount) messages undelivered" }
        if missedCount > 0 { text += ", after \(missedCount) steps not seen" }
        return text
    }
}

/// The steps of a client's connection, for any number of subscribers.
///
/// Each iteration begins with the newest step there is, which tells the state, and goes on with every later one. It
/// ends after the client has closed, and when the task that iterates is cancelled. Nothing is kept for a subscriber:
/// who falls more than 100 steps behind is told how many were missed.
public struct ClientEvents: AsyncSequence, Sendable {
    let history: ClientHistory

    /// Begins with the newest step there is.
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

        /// Goes on behind a step that was peeked at.
        mutating func skip(_ event: ClientEvent) {
            cursor = event.transition.number + 1
        }
    }
}
