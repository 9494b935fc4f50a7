package import Lifeline
package import LifelineCore

/// The requests of one client over all its connections, from being begun to their ends. Knows no channel, no lock, no
/// task and no clock. `RequestTable` keeps the waiters, `AnswerMatching` tells which request a message answers.
///
/// Each request ends exactly once: with its answer, or with a `RequestError`. It goes the way begun, accepted (a
/// connection will write it), written; the last two may be told in either order, as they come from different threads. A
/// connection that is lost takes along what it had accepted or written. What no connection has accepted goes over the
/// next one.
///
/// Between `connectionBegan` and the end of its input, a connection brings answers.
package struct RequestStateMachine<Waiter: Sendable, ConnectionID: Comparable & Sendable>: Sendable {
    /// The number of a request: ascending, never used again.
    package typealias ID = RequestTable<Waiter>.ID

    private var table: RequestTable<Waiter>
    private var matching: AnswerMatching
    private let takesPushes: Bool
    /// The serials of requests that no connection has taken yet, as far as is known.
    private var unsent: Set<UInt32> = []
    /// Whether a connection is read: answers may come.
    private var isReceiving = false
    /// Why the last one is not read any more.
    private var cause: ConnectionError?
    /// The last connection that is over; those before it are, too.
    private var closedConnection: ConnectionID?
    /// What the driver's timer is set to; nil: to nothing.
    private var armedDeadline: MonotonicTime?
    /// Why nothing can be begun any more.
    private var closeReason: ConnectionError?
    /// Pushes that were dropped because nobody takes them.
    package private(set) var droppedPushCount = 0

    /// Makes a machine without requests.
    ///
    /// - Parameters:
    ///   - maximumCount: how many requests may wait for their answers, places that the matching holds included. A limit
    ///     below 1 counts as 1.
    ///   - takesPushes: whether pushes are for anybody.
    package init(
        _ matching: AnswerMatching,
        maximumCount: Int,
        takesPushes: Bool,
        serials: ClosedRange<UInt32> = FixedHeader.serials
    ) {
        self.matching = matching
        self.takesPushes = takesPushes
        table = RequestTable(maximumCount: maximumCount, serials: serials)
    }

    /// Requests that wait for their answers.
    package var waitingCount: Int { table.count }
    /// Answers to requests that had ended.
    package var lateAnswerCount: Int { table.lateResponseCount }
    /// Answers to requests that nobody had made.
    package var unknownAnswerCount: Int { table.unknownResponseCount }

    /// A request that has ended without its answer.
    package struct Ended: Sendable {
        /// What waited for the answer: hand it the error.
        package let waiter: Waiter
        /// Why there is none.
        package let error: RequestError
    }

    // MARK: Asking

    /// What to do for a request that has begun.
    package struct BeginAction: Equatable, Sendable {
        /// The request's number.
        package let id: ID
        /// Send it with this serial.
        package let serial: UInt32
        /// Set the timer: `timerWillBeSet()` tells to when.
        package let setsTimer: Bool
    }

    /// Somebody asks.
    ///
    /// - Parameters:
    ///   - answerType: the type of the answer, where answers have types; nil: any.
    ///   - reserved: a serial that the request must not have.
    /// - Throws: `RequestError` `tooManyInFlight`, or `notSent` after `closed`; then the waiter is not kept.
    package mutating func began(
        _ waiter: Waiter,
        answerType: String? = nil,
        deadline: MonotonicTime,
        avoiding reserved: UInt32? = nil
    ) throws(RequestError) -> BeginAction {
        if let closeReason { throw .notSent(closeReason) }
        // Places that nobody waits at are held by a peer that does not answer, or by sends on their way: they count.
        guard max(unsent.count, matching.heldCount) < table.maximumCount else {
            throw .tooManyInFlight(limit: table.maximumCount)
        }
        let id = try table.began(waiter, deadline: deadline, avoiding: reserved)
        let serial = RequestTable<Waiter>.serial(of: id)
        unsent.insert(serial)
        matching.began(serial: serial, answerType: answerType)
        return BeginAction(id: id, serial: serial, setsTimer: armTimer())
    }

    /// Whether the timer has to be set to an earlier time.
    private mutating func armTimer() -> Bool {
        guard let next = table.nextDeadline, armedDeadline.map({ next < $0 }) ?? true else { return false }
        armedDeadline = next
        return true
    }

    /// A connection has accepted the request: maybe one that is over by now.
    ///
    /// - Parameter connection: which one; nil: that is not known.
    package mutating func accepted(_ id: ID, by connection: ConnectionID?) -> Ended? {
        let serial = RequestTable<Waiter>.serial(of: id)
        unsent.remove(serial)
        guard let connection, let closedConnection, connection <= closedConnection else { return nil }
        matching.gaveUp(serial: serial)
        return end(id, .connectionLost(cause))
    }

    /// No connection has accepted the request, and none will.
    package mutating func sendFailed(_ id: ID, _ reason: any Error) -> Ended? {
        let serial = RequestTable<Waiter>.serial(of: id)
        unsent.remove(serial)
        matching.gaveUp(serial: serial)
        // Who waits for room, or for a connection, learns of being cancelled at the same time as who asked.
        if reason is CancellationError { return end(id, .cancelled) }
        // The timer of who sends may be a little ahead of this one.
        let isLate = (reason as? ConnectionError)?.code == .sendTimedOut
        return end(id, isLate ? .timedOut : .notSent(reason))
    }

    /// Whoever asked gives it up.
    package mutating func cancelled(_ id: ID) -> Ended? {
        end(id, .cancelled)
    }

    /// The client is closed for good, with all that waits. What no connection has taken was not sent.
    package mutating func closed(_ reason: ConnectionError) -> [Ended] {
        closeReason = reason
        let lost = loseSent(reason)
        unsent = []
        matching.connectionLost(keeping: unsent)
        return lost + table.connectionLost().map { Ended(waiter: $0.waiter, error: .notSent(reason)) }
    }

    private mutating func end(_ id: ID, _ error: RequestError) -> Ended? {
        table.cancelled(id).map { Ended(waiter: $0, error: error) }
    }

    // MARK: Time

    /// The driver sets its timer. Returns to when; nil: to nothing.
    package mutating func timerWillBeSet() -> MonotonicTime? {
        armedDeadline = table.nextDeadline
        return armedDeadline
    }

    /// The timer has come, or was woken; calling it early does no harm.
    package mutating func timerFired(now: MonotonicTime) -> [Ended] {
        table.timerFired(now: now).map { Ended(waiter: $0.waiter, error: .timedOut) }
    }

    // MARK: The connection

    /// A connection begins; the one before has ended.
    package mutating func connectionBegan() {
        isReceiving = true
    }

    /// A request is being written, after those before it.
    package mutating func wrote(serial: UInt32) -> [Ended] {
        unsent.remove(serial)
        matching.wrote(serial: serial)
        // The peer has ended its side, and this one still writes what it had accepted.
        return isReceiving ? [] : loseSent(cause)
    }

    /// What to do with a message that came in.
    package enum ReceivedAction: Sendable {
        /// Hand it to who waits for it.
        case answer(Waiter)
        /// Drop it: it was counted.
        case drop
        /// It is a push: hand it on.
        case push
    }

    /// A message came in.
    package mutating func received(_ head: AnswerHead) -> ReceivedAction {
        guard let serial = matching.received(head) else {
            if takesPushes { return .push }
            droppedPushCount += 1
            return .drop
        }
        guard case .answer(_, let waiter) = table.receivedResponse(serial: serial) else { return .drop }
        unsent.remove(serial)
        return .answer(waiter)
    }

    /// No more messages come on this connection: told before its close.
    package mutating func inputEnded(_ end: InputEndReason) -> [Ended] {
        isReceiving = false
        switch end {
        case .regular(let reason):
            cause = reason
            return loseSent(reason)
        case .failed(let reason):
            // It takes messages yet, for a moment; who asks again shall not ask it. Its close ends what waits.
            cause = reason
            return []
        }
    }

    /// A connection, or an attempt to make it, is over.
    package mutating func connectionClosed(_ id: ConnectionID) -> [Ended] {
        isReceiving = false
        closedConnection = id
        return loseSent(cause)
    }

    /// No answers come any more to what was sent. What no connection has taken goes over the next one.
    private mutating func loseSent(_ cause: ConnectionError?) -> [Ended] {
        matching.connectionLost(keeping: unsent)
        let lost = table.connectionLost { unsent.contains(RequestTable<Waiter>.serial(of: $0)) }
        return lost.map { Ended(waiter: $0.waiter, error: .connectionLost(cause)) }
    }
}
