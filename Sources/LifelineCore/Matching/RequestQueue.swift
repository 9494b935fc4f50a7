/// The requests that wait for answers which say nothing of what they answer: the first answer belongs to the first
/// request.
///
/// The peer is expected to answer in order, each request once. A request whose waiter is gone, at its deadline or by being
/// cancelled, therefore keeps its place until its answer comes, which is dropped and counted: else the next request would
/// be given that answer. Such places count as requests that wait. When the peer leaves a request without an answer for
/// good, those behind it never get theirs; then they time out one by one, until no more can be begun, and only a new
/// connection helps.
///
/// A request can name the kind of its answer. Then what comes in is its answer only if it is of that kind, so that pushes
/// can come in between; with no kind, the first thing that comes in is. What answers nothing is a push.
///
/// Each request that was begun ends exactly once, as in a `RequestTable`. Every event costs constant time on average, a
/// deadline logarithmic time. Memory follows the requests that wait.
package struct RequestQueue<Waiter: Sendable, Kind: Equatable & Sendable>: Sendable {
    /// The number of a request: ascending by one.
    package typealias ID = UInt64

    private struct Entry {
        /// Nil when it has ended, and only keeps its place.
        var waiter: Waiter?
        let answerKind: Kind?
        let deadline: MonotonicTime?
    }

    /// How many requests may wait at once, those that only keep their places included.
    package let maximumCount: Int
    /// By their numbers; the first of them is `firstID`.
    private var entries: [Entry] = []
    private var firstID: ID = 1
    /// Those before it in `entries` have had their answers.
    private var head = 0
    private var deadlines = RequestDeadlines()
    /// How many requests have waiters.
    package private(set) var count = 0
    /// Answers to requests that had ended.
    package private(set) var lateResponseCount = 0

    /// Makes an empty queue. A limit below 1 counts as 1.
    package init(maximumCount: Int) {
        self.maximumCount = max(maximumCount, 1)
    }

    /// When `timerFired` is to be called; nil: not until there was another event.
    package var nextDeadline: MonotonicTime? { deadlines.next }

    /// Answers that are still to come, those of requests that have ended included.
    package var expectedCount: Int { entries.count - head }

    /// Places that requests and their deadlines take up: what a test bounds.
    package var keptEntryCount: Int { max(entries.count, deadlines.keptCount) }

    /// A request is sent after those before it.
    ///
    /// - Parameters:
    ///   - waiter: what waits for the answer.
    ///   - answerKind: the kind of its answer; nil: any.
    ///   - deadline: when it stops to wait; nil: never.
    /// - Throws: `RequestError` `tooManyInFlight`; then the waiter is not kept.
    package mutating func began(
        _ waiter: Waiter,
        answerKind: Kind?,
        deadline: MonotonicTime?
    ) throws(RequestError) -> ID {
        guard expectedCount < maximumCount else { throw .tooManyInFlight(limit: maximumCount) }
        let id = firstID + ID(entries.count)
        entries.append(Entry(waiter: waiter, answerKind: answerKind, deadline: deadline))
        if let deadline { deadlines.insert(deadline, id: id) }
        count += 1
        return id
    }

    /// What to do with what came in.
    package enum ReceivedAction {
        /// The request has ended: hand it to its waiter.
        case answer(ID, Waiter)
        /// Drop it. The request had ended, and the answer was counted as late.
        case dropLate
        /// It is a push.
        case push
    }

    /// Something of a kind came in.
    package mutating func received(_ kind: Kind) -> ReceivedAction {
        guard head < entries.count else { return .push }
        if let expected = entries[head].answerKind, expected != kind { return .push }
        let waiter = entries[head].waiter
        let id = firstID + ID(head)
        entries[head].waiter = nil
        head += 1
        defer { tidy() }
        guard let waiter else {
            lateResponseCount += 1
            return .dropLate
        }
        count -= 1
        return .answer(id, waiter)
    }

    /// Whoever asked gives it up: its place remains. Returns the waiter; nil when the request has ended.
    package mutating func cancelled(_ id: ID) -> Waiter? {
        defer { tidy() }
        return end(id)
    }

    /// `nextDeadline` has come; calling it early does no harm. Returns what ends with it, the earliest deadline first.
    /// Their places remain.
    package mutating func timerFired(now: MonotonicTime) -> [EndedRequest<Waiter>] {
        var ended: [EndedRequest<Waiter>] = []
        while let id = deadlines.takeDue(now: now) {
            if let waiter = end(id) { ended.append(EndedRequest(id: id, waiter: waiter, code: .timedOut)) }
        }
        tidy()
        return ended
    }

    /// The connection is lost, and with it all requests, the oldest first, and all places.
    package mutating func connectionLost() -> [EndedRequest<Waiter>] {
        let lost = entries.indices.compactMap { index in
            entries[index].waiter.map { EndedRequest(id: firstID + ID(index), waiter: $0, code: .connectionLost) }
        }
        firstID += ID(entries.count)
        entries = []
        head = 0
        count = 0
        deadlines.removeAll()
        return lost
    }
}

// Entries and their places.
extension RequestQueue {
    private mutating func end(_ id: ID) -> Waiter? {
        guard id >= firstID, id - firstID < ID(entries.count) else { return nil }
        let index = Int(id - firstID)
        guard let waiter = entries[index].waiter else { return nil }
        entries[index].waiter = nil
        count -= 1
        return waiter
    }

    /// Lets go of what has had its answer when that outweighs the rest.
    private mutating func tidy() {
        deadlines.tidy(waitingCount: count) { [entries, firstID] id in
            guard id >= firstID else { return nil }
            let entry = entries[Int(id - firstID)]
            return entry.waiter == nil ? nil : entry.deadline
        }
        // 32 so that a short queue is not moved at every other answer.
        if head > expectedCount + 32 || head == entries.count {
            entries.removeFirst(head)
            firstID += ID(head)
            head = 0
            // Given back when a burst is over, kept while requests come and go.
            if entries.isEmpty, entries.capacity > 1024 { entries = [] }
        }
    }
}
