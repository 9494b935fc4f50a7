/// The deadlines of the requests that wait. A deadline whose request has ended is left in the heap until it comes to the
/// front or those like it outweigh the others, so that to end a request costs constant time on average.
@usableFromInline
struct RequestDeadlines: Sendable {
    private var heap = DeadlineHeap()

    @usableFromInline init() {}

    /// Places that deadlines take up.
    @usableFromInline var keptCount: Int { heap.count }

    /// The earliest deadline. Exact after `tidy`.
    @usableFromInline var next: MonotonicTime? { heap.first?.deadline }

    @usableFromInline
    mutating func insert(_ deadline: MonotonicTime, id: UInt64) {
        heap.insert(.init(deadline: deadline, id: id))
    }

    /// Takes out a request whose deadline has come: the earliest first, maybe one that has ended.
    @usableFromInline
    mutating func takeDue(now: MonotonicTime) -> UInt64? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        heap.removeFirst()
        return first.id
    }

    @usableFromInline
    mutating func removeAll() {
        heap = DeadlineHeap()
    }

    /// Lets go of deadlines whose requests have ended, so that the first one counts, and memory follows what waits.
    ///
    /// - Parameters:
    ///   - waitingCount: how many requests wait.
    ///   - deadline: the deadline of the request with an id if it waits, else nil.
    @usableFromInline
    mutating func tidy(waitingCount: Int, deadline: (UInt64) -> MonotonicTime?) {
        // 32 so that a small heap is not built anew at every other request.
        if heap.count > 2 * waitingCount + 32 {
            heap = DeadlineHeap(heap.elements.filter { deadline($0.id) != nil })
        }
        while let first = heap.first, deadline(first.id) == nil { heap.removeFirst() }
    }
}
