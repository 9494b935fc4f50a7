/// The requests that were written and wait for answers which say nothing of what they answer: the first answer belongs to
/// the first request.
///
/// The peer is expected to answer in order, each request once. A request keeps its place until its answer comes, whether or
/// not anybody still waits for that: else the next request would be given it. When the peer leaves a request without an
/// answer for good, those behind it never get theirs; then they time out one by one, until no more can be begun, and only a
/// new connection helps.
///
/// A request can name the kind of its answer. Then what comes in is its answer only if it is of that kind, so that pushes
/// can come in between; with no kind, the first thing that comes in is. What answers nothing is a push.
///
/// Every event costs constant time on average. Memory follows the requests that wait.
package struct RequestQueue<Kind: Equatable & Sendable>: Sendable {
    private var entries: [(serial: UInt32, answerKind: Kind?)] = []
    /// Those before it in `entries` have had their answers.
    private var head = 0

    /// Makes an empty queue.
    package init() {}

    /// Answers that are still to come.
    package var count: Int { entries.count - head }

    /// Places that requests take up: what a test bounds.
    package var keptEntryCount: Int { entries.count }

    /// A request was written, after those before it.
    ///
    /// - Parameter answerKind: the kind of its answer; nil: any.
    package mutating func append(_ serial: UInt32, answerKind: Kind?) {
        entries.append((serial, answerKind))
    }

    /// Something of a kind came in. Returns the serial of the request that it answers; nil: it is a push.
    package mutating func received(_ kind: Kind) -> UInt32? {
        guard head < entries.count else { return nil }
        let (serial, answerKind) = entries[head]
        if let answerKind, answerKind != kind { return nil }
        head += 1
        // 32 so that a short queue is not moved at every other answer.
        if head > count + 32 || head == entries.count {
            entries.removeFirst(head)
            head = 0
            // Given back when a burst is over, kept while requests come and go.
            if entries.isEmpty, entries.capacity > 1024 { entries = [] }
        }
        return serial
    }

    /// The connection is lost, and with it all places.
    package mutating func removeAll() {
        entries = []
        head = 0
    }
}
