/// The sends that wait for a connection, first in, first out. It keeps their sizes and deadlines, not their bytes.
///
/// Each send that waits ends in exactly one `Ended`. While there is a connection, the driver hands over one send at a
/// time: it takes `next()`, offers it to the connection, and reports `handedOver` or `handOverFailed`. When nothing
/// waits, a send goes straight to the connection, and the queue is not involved.
///
/// Each event takes constant time on average; keeping a deadline takes logarithmic time.
package struct SendQueue: Sendable {
    /// The ascending number of a send that waits.
    package typealias ID = UInt64

    /// The outcome of a send that waited.
    package enum Outcome: Equatable, Sendable {
        /// A connection accepted it.
        case sent
        /// The time to live was over.
        case dropped
        /// The sender gave it up.
        case cancelled
        /// The send failed; see `SendQueue.error(for:)`.
        case failed(ConnectionError.Code)
    }

    /// The end of a send that waited.
    package struct Ended: Equatable, Sendable {
        package let id: ID
        package let outcome: Outcome

        package init(id: ID, outcome: Outcome) {
            self.id = id
            self.outcome = outcome
        }
    }

    private enum State {
        /// Sends wait. Can go to: ready, closed.
        case unready
        /// Sends are handed over. Can go to: unready, closed.
        case ready
        /// Nothing more is accepted. Can go to: no other state.
        case closed(ConnectionError)
    }

    private struct Entry {
        let byteCount: Int
        let policy: SendPolicy.Kind
        let deadline: MonotonicTime?
    }

    private let maximumCount: Int
    private let maximumByteCount: Int
    private var state = State.unready
    private var entries = SparseQueue<Entry>()
    /// Has at least one deadline of each entry that has one and is not in hand.
    private var deadlines = DeadlineHeap()
    private var lastID: ID = 0
    /// The send that is being offered to a connection, and whether its sender has given it up meanwhile.
    private(set) var inHand: (id: ID, isCancelled: Bool)?
    /// The number of entries that may not wait without a connection.
    private var impatientCount = 0
    /// The number of waiting sends, including the one in hand.
    package var count: Int { entries.count }
    /// The number of bytes of the waiting sends.
    package private(set) var byteCount = 0

    package init(_ configuration: SendQueueConfiguration) {
        maximumCount = max(configuration.maximumMessageCount, 0)
        maximumByteCount = max(configuration.maximumByteCount, 0)
    }

    /// The time at which to call `timerFired`; nil to wait for another event.
    package var nextDeadline: MonotonicTime? { deadlines.next }

    /// Whether a send goes straight to the connection.
    package var sendsNow: Bool {
        if case .ready = state { count == 0 } else { false }
    }

    /// The handling of a send.
    package enum OfferAction: Equatable {
        /// Offer it to the connection.
        case sendNow
        /// Keep it under this number until it ends.
        case wait(ID)
        /// The send fails; see `error(for:)`.
        case fail(ConnectionError.Code)
    }

    /// Offers a message with its length.
    package mutating func offered(byteCount: Int, policy: SendPolicy, now: MonotonicTime) -> OfferAction {
        switch state {
        case .closed(let reason): return .fail(reason.code)
        case .ready where count == 0: return .sendNow
        case .unready where policy == .fail: return .fail(.notConnected)
        case .ready, .unready: break
        }
        let byteCount = max(byteCount, 0)
        // Written so that the sum does not overflow.
        guard count < maximumCount, byteCount <= maximumByteCount - self.byteCount else { return .fail(.sendQueueFull) }
        lastID += 1
        append(byteCount: byteCount, policy: policy.kind, now: now)
        return .wait(lastID)
    }

    /// Notes that there is a connection: take `next()` until it is nil, and again after each hand-over.
    package mutating func becameReady() {
        if case .unready = state { state = .ready }
    }

    /// Notes that the connection is lost. Sends that may not wait fail. The one in hand remains in hand until its
    /// hand-over is reported.
    package mutating func becameUnready() -> [Ended] {
        guard case .ready = state else { return [] }
        state = .unready
        var ended: [Ended] = []
        if impatientCount > 0 {
            for id in entries.numbers where id != inHand?.id && entries[id]?.policy == .fail {
                if let end = end(id, .failed(.notConnected)) { ended.append(end) }
            }
        }
        compact()
        return ended
    }

    /// Returns the next send to offer to the connection, which is then in hand; nil while one is in hand, and when none
    /// waits. Call `timerFired` before, so that nothing is sent after its deadline.
    package mutating func next() -> ID? {
        guard case .ready = state, inHand == nil, let id = entries.first?.number else { return nil }
        inHand = (id, isCancelled: false)
        compact()
        return id
    }

    /// Notes that the connection accepted the send in hand. Returns nil when it is not in hand.
    package mutating func handedOver(_ id: ID) -> Ended? {
        guard inHand?.id == id else { return nil }
        inHand = nil
        defer { compact() }
        return end(id, .sent)
    }

    /// Notes that the connection will never accept the send in hand, because it failed or the send was withdrawn. The
    /// send waits again, in its old place, and nil is returned, unless there is a reason to end it.
    ///
    /// When the connection failed, call `becameUnready` first; otherwise the send would be offered to the same
    /// connection again.
    package mutating func handOverFailed(_ id: ID) -> Ended? {
        guard let (held, isCancelled) = inHand, held == id, let entry = entries[id] else { return nil }
        inHand = nil
        defer { compact() }
        if isCancelled { return end(id, .cancelled) }
        switch state {
        case .closed(let reason): return end(id, .failed(reason.code))
        case .unready where entry.policy == .fail: return end(id, .failed(.notConnected))
        case .unready, .ready: break
        }
        // The earlier deadline may have been removed meanwhile.
        if let deadline = entry.deadline { deadlines.insert(deadline, id: id) }
        return nil
    }

    /// The steps when the sender of a message gives it up.
    package enum CancelAction: Equatable {
        /// The send has ended now.
        case end(Ended)
        /// The send is in hand: withdraw it from the connection, then report how the hand-over ended.
        case withdraw
        /// Nothing: the send has already ended.
        case none
    }

    /// Cancels a send for its sender.
    package mutating func cancelled(_ id: ID) -> CancelAction {
        if inHand?.id == id {
            inHand = (id, isCancelled: true)
            return .withdraw
        }
        guard let ended = end(id, .cancelled) else { return .none }
        compact()
        return .end(ended)
    }

    /// Notes that `nextDeadline` has passed; calling this early does no harm. Returns the sends that end with it, the
    /// earliest deadline first.
    package mutating func timerFired(now: MonotonicTime) -> [Ended] {
        var ended: [Ended] = []
        while let id = deadlines.takeDue(now: now) {
            guard id != inHand?.id, let entry = entries[id] else { continue }
            let outcome: Outcome = if case .drop = entry.policy { .dropped } else { .failed(.sendTimedOut) }
            if let end = end(id, outcome) { ended.append(end) }
        }
        compact()
        return ended
    }

    /// Closes the queue: there will be no more connections. All waiting sends fail, in order, except the send in hand,
    /// which ends when its hand-over is reported. Only the first reason counts.
    package mutating func closed(_ reason: ConnectionError) -> [Ended] {
        if case .closed = state { return [] }
        state = .closed(reason)
        var ended: [Ended] = []
        ended.reserveCapacity(count)
        for id in entries.numbers where id != inHand?.id {
            if let end = end(id, .failed(reason.code)) { ended.append(end) }
        }
        compact()
        return ended
    }

    /// Returns the error that a send fails with.
    package func error(for code: ConnectionError.Code) -> ConnectionError {
        if case .closed(let reason) = state, reason.code == code { return reason }
        return switch code {
        case .notConnected: .notConnected
        case .sendTimedOut: .sendTimedOut
        case .sendQueueFull: .sendQueueFull(count: maximumCount, byteCount: maximumByteCount)
        default: ConnectionError(code: code, message: "The message was not sent.")
        }
    }
}

// Entries and their places.
extension SendQueue {
    private mutating func append(byteCount: Int, policy: SendPolicy.Kind, now: MonotonicTime) {
        let deadline: MonotonicTime? =
            switch policy {
            case .wait(let limit), .drop(let limit): now + limit
            case .fail: nil
            }
        entries.append(lastID, Entry(byteCount: byteCount, policy: policy, deadline: deadline))
        if let deadline { deadlines.insert(deadline, id: lastID) }
        if policy == .fail { impatientCount += 1 }
        self.byteCount += byteCount
    }

    /// Ends a send; returns nil if it has ended before.
    private mutating func end(_ id: ID, _ outcome: Outcome) -> Ended? {
        guard let entry = entries.remove(id) else { return nil }
        if entry.policy == .fail { impatientCount -= 1 }
        byteCount -= entry.byteCount
        return Ended(id: id, outcome: outcome)
    }

    private mutating func compact() {
        deadlines.compact(liveCount: count) { [entries, inHand] id in id != inHand?.id && entries[id] != nil }
    }
}
