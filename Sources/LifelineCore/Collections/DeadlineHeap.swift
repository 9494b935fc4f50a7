/// A collection of deadlines, from which the earliest can be found and removed. Equal ones come in the order of their
/// ids.
///
/// Deadlines inserted in order, as most are, are kept in a queue; the others in a binary heap. An id has one deadline,
/// which may be inserted again.
///
/// A deadline that no longer counts stays until it is the first, or until such deadlines outnumber the others, so that
/// removal takes constant time on average. For that, call `compact` after a deadline has become invalid.
@usableFromInline
package struct DeadlineHeap: Sendable {
    private struct Element: Comparable, Sendable {
        let deadline: MonotonicTime
        let id: UInt64

        static func < (first: Element, second: Element) -> Bool {
            (first.deadline, first.id) < (second.deadline, second.id)
        }
    }

    /// The elements in order; the first one is at `head`.
    private var queue: [Element] = []
    private var head = 0
    private var heap: [Element] = []

    @usableFromInline package init() {}

    /// The number of deadlines that take up memory, including those removed from the queue.
    @usableFromInline package var count: Int { queue.count + heap.count }

    /// The earliest deadline, or after `compact`, the earliest that counts.
    @usableFromInline package var next: MonotonicTime? { first?.deadline }

    private var first: Element? {
        guard head < queue.count else { return heap.first }
        let first = queue[head]
        if let other = heap.first, other < first { return other }
        return first
    }

    @usableFromInline
    package mutating func insert(_ deadline: MonotonicTime, id: UInt64) {
        let element = Element(deadline: deadline, id: id)
        if let last = queue.last, element < last { return insertInHeap(element) }
        queue.append(element)
    }

    /// Removes the earliest deadline if it has passed, and returns its id, which may no longer count.
    @usableFromInline
    package mutating func takeDue(now: MonotonicTime) -> UInt64? {
        guard let first, first.deadline <= now else { return nil }
        remove(first)
        return first.id
    }

    /// Removes deadlines that no longer count: those at the front, and all once they are the majority.
    ///
    /// - Parameters:
    ///   - liveCount: the number of deadlines that count.
    ///   - isLive: returns whether the deadline of an id counts.
    @usableFromInline
    package mutating func compact(liveCount: Int, isLive: (UInt64) -> Bool) {
        // 32, so that a few deadlines are not filtered at every other removal.
        if count > 2 * liveCount + 32 {
            queue = queue[head...].filter { isLive($0.id) }
            head = 0
            // An ascending array is a heap.
            heap = heap.filter { isLive($0.id) }.sorted()
        }
        while let first, !isLive(first.id) { remove(first) }
    }

    /// Removes the first element.
    private mutating func remove(_ first: Element) {
        guard head < queue.count, queue[head].id == first.id else { return removeFirstOfHeap() }
        head += 1
        if head == queue.count {
            queue.removeAll(keepingCapacity: queue.capacity <= 64)
            head = 0
        } else if head > 64, 2 * head > queue.count {
            queue.removeFirst(head)
            head = 0
        }
    }

    private mutating func insertInHeap(_ element: Element) {
        var place = heap.count
        heap.append(element)
        while place > 0 {
            let parent = (place - 1) / 2
            guard element < heap[parent] else { break }
            heap[place] = heap[parent]
            place = parent
        }
        heap[place] = element
    }

    private mutating func removeFirstOfHeap() {
        let element = heap.removeLast()
        if heap.isEmpty { return }
        var place = 0
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1] < heap[child] { child += 1 }
            guard heap[child] < element else { break }
            heap[place] = heap[child]
            place = child
        }
        heap[place] = element
    }
}
