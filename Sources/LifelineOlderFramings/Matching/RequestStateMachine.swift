package import Lifeline
package import LifelineCore

/// The requests of one client over all its connections, from their beginning to their end. It uses no channel, lock,
/// task or clock. `RequestTable` keeps the waiters, `AnswerMatching` finds the request that a message answers.
///
/// Each request ends exactly once: with its answer, or with a `RequestError`. It is first begun, then accepted (a
/// connection will write it), then written; the last two may be reported in either order, because they come from
/// different threads. Requests that a lost connection had accepted or written are lost with it. Requests that no
/// connection has accepted go over the next one.
///
/// Between `connectionBegan` and the end of its input, a connection may deliver answers.
package struct RequestStateMachine<Waiter: Sendable, ConnectionID: Comparable & Sendable>: Sendable {
    /// The ascending number of a request, which is never used again.
    package typealias ID = RequestTable<Waiter>.ID

    private var table: RequestTable<Waiter>
    private var matching: AnswerMatching
    private let takesPushes: Bool
    /// The serials of requests that no connection has accepted yet, as far as is known.
    private var unsent: Set<UInt32> = []
    /// Whether a connection is read, so that answers may come.
    private var isReceiving = false
    /// The reason why the last connection is no longer read.
    private var cause: ConnectionError?
    /// The last connection that is over; earlier ones are over, too.
    private var closedConnection: ConnectionID?
    /// The deadline that the driver's timer is set to, if any.
    private var armedDeadline: MonotonicTime?
    /// The reason why no more requests can begin.
    private var closeReason: ConnectionError?
    /// The number of pushes that were dropped because they are not taken.
    package private(set) var droppedPushCount = 0

    /// Makes a machine without requests.
    ///
    /// - Parameters:
    ///   - maximumCount: the most requests that may wait for their answers, including places in the matching. A limit
    ///     below 1 counts as 1.
    ///   - takesPushes: whether pushes are taken.
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

    /// The number of requests that wait for their answers.
    package var waitingCount: Int { table.count }
    /// The number of answers to requests that had ended.
    package var lateAnswerCount: Int { table.lateResponseCount }
    /// The number of answers to unknown requests.
    package var unknownAnswerCount: Int { table.unknownResponseCount }

    /// A request that has ended without its answer.
    package struct Ended: Sendable {
        /// The waiter for the answer: resume it with the error.
        package let waiter: Waiter
        /// The reason why there is no answer.
        package let error: RequestError
    }

    // MARK: Requests

    /// The steps for a request that has begun.
    package struct BeginAction: Equatable, Sendable {
        /// The request's number.
        package let id: ID
        /// Send it with this serial.
        package let serial: UInt32
        /// Whether to set the timer, to the time that `timerWillBeSet()` returns.
        package let setsTimer: Bool
    }

    /// Begins a request.
    ///
    /// - Parameters:
    ///   - answerType: the type of the answer, if answers have types; nil for any.
    ///   - reserved: a serial that the request must not have.
    /// - Throws: `RequestError` `tooManyInFlight`, or `notSent` after `closed`; then the waiter is not kept.
    package mutating func began(
        _ waiter: Waiter,
        answerType: String? = nil,
        deadline: MonotonicTime,
        avoiding reserved: UInt32? = nil
    ) throws(RequestError) -> BeginAction {
        if let closeReason { throw .notSent(closeReason) }
        // Places without a waiter, of unanswered requests or of sends on their way, also count.
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

    /// Notes that a connection, which may be over by now, has accepted the request.
    ///
    /// - Parameter connection: the connection; nil if unknown.
    package mutating func accepted(_ id: ID, by connection: ConnectionID?) -> Ended? {
        let serial = RequestTable<Waiter>.serial(of: id)
        unsent.remove(serial)
        guard let connection, let closedConnection, connection <= closedConnection else { return nil }
        matching.gaveUp(serial: serial)
        return end(id, .connectionLost(cause))
    }

    /// Notes that no connection has accepted the request, and none will.
    package mutating func sendFailed(_ id: ID, _ reason: any Error) -> Ended? {
        let serial = RequestTable<Waiter>.serial(of: id)
        unsent.remove(serial)
        matching.gaveUp(serial: serial)
        // The send, which waits for room or a connection, is cancelled at the same time as its request.
        if reason is CancellationError { return end(id, .cancelled) }
        // The sender's timer may be a little ahead of this one.
        let isLate = (reason as? ConnectionError)?.code == .sendTimedOut
        return end(id, isLate ? .timedOut : .notSent(reason))
    }

    /// Cancels a request for its caller.
    package mutating func cancelled(_ id: ID) -> Ended? {
        end(id, .cancelled)
    }

    /// Closes the machine, and ends all waiting requests. Those that no connection has accepted were not sent.
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

    /// Notes that the driver sets its timer. Returns the time to set, if any.
    package mutating func timerWillBeSet() -> MonotonicTime? {
        armedDeadline = table.nextDeadline
        return armedDeadline
    }

    /// Handles the timer; calling this early does no harm.
    package mutating func timerFired(now: MonotonicTime) -> [Ended] {
        table.timerFired(now: now).map { Ended(waiter: $0.waiter, error: .timedOut) }
    }

    // MARK: The connection

    /// Notes that a connection begins; the one before has ended.
    package mutating func connectionBegan() {
        isReceiving = true
    }

    /// Notes that a request is being written, after earlier ones.
    package mutating func wrote(serial: UInt32) -> [Ended] {
        unsent.remove(serial)
        matching.wrote(serial: serial)
        // The peer has ended its side, while this side still writes accepted requests.
        return isReceiving ? [] : loseSent(cause)
    }

    /// The handling of a received message.
    package enum ReceivedAction: Sendable {
        /// Pass it to its waiter.
        case answer(Waiter)
        /// Drop it: it was counted.
        case drop
        /// It is a push: pass it on.
        case push
    }

    /// Receives a message.
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

    /// Notes that no more messages come on this connection. Called before its close.
    package mutating func inputEnded(_ end: InputEndReason) -> [Ended] {
        isReceiving = false
        switch end {
        case .regular(let reason):
            cause = reason
            return loseSent(reason)
        case .failed(let reason):
            // The connection still accepts messages for a moment, but a repeated request must not use it. Its close
            // ends the waiting requests.
            cause = reason
            return []
        }
    }

    /// Notes that a connection, or an attempt to make it, is over.
    package mutating func connectionClosed(_ id: ConnectionID) -> [Ended] {
        isReceiving = false
        closedConnection = id
        return loseSent(cause)
    }

    /// Ends sent requests, for which no more answers come. Those that no connection has accepted go over the next one.
    private mutating func loseSent(_ cause: ConnectionError?) -> [Ended] {
        matching.connectionLost(keeping: unsent)
        let lost = table.connectionLost { unsent.contains(RequestTable<Waiter>.serial(of: $0)) }
        return lost.map { Ended(waiter: $0.waiter, error: .connectionLost(cause)) }
    }
}
