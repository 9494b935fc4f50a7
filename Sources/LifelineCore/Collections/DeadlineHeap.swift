/// Deadlines of which the earliest can be found and taken out: a binary heap. Equal ones come in the order of their
/// ids.
///
/// A deadline that does not count any more stays until it is the first, or until those like it outweigh the others, so
/// that ending something costs constant time on average. For that, call `compact` after something has ended.
@usableFromInline
package struct DeadlineHeap: Sendable {
    private struct Element: Comparable, Sendable {
        let deadline: MonotonicTime
        let id: UInt64

        static func < (first: Element, second: Element) -> Bool {
            (first.deadline, first.id) < (second.deadline, second.id)
        }
    }

    private var elements: [Element] = []

    @usableFromInline package init() {}

    /// How many deadlines take up memory.
    @usableFromInline package var count: Int { elements.count }

    /// The earliest deadline, or after `compact`, the earliest that counts.
    @usableFromInline package var next: MonotonicTime? { elements.first?.deadline }

    @usableFromInline
    package mutating func insert(_ deadline: MonotonicTime, id: UInt64) {
        let element = Element(deadline: deadline, id: id)
        var place = elements.count
        elements.append(element)
        while place > 0 {
            let parent = (place - 1) / 2
            guard element < elements[parent] else { break }
            elements[place] = elements[parent]
            place = parent
        }
        elements[place] = element
    }

    /// Takes out the earliest deadline if it has come, and returns its id, which may not count any more.
    @usableFromInline
    package mutating func takeDue(now: MonotonicTime) -> UInt64? {
        guard let first = elements.first, first.deadline <= now else { return nil }
        removeFirst()
        return first.id
    }

    /// Takes out deadlines that do not count any more: the first ones, and all once they are the most.
    ///
    /// - Parameters:
    ///   - liveCount: how many deadlines count.
    ///   - isLive: whether the deadline of an id counts.
    @usableFromInline
    package mutating func compact(liveCount: Int, isLive: (UInt64) -> Bool) {
        // 32 so that a small heap is not built anew at every other end.
        if elements.count > 2 * liveCount + 32 {
            // An ascending array is a heap.
            elements = elements.filter { isLive($0.id) }.sorted()
        }
        while let first = elements.first, !isLive(first.id) { removeFirst() }
    }

    private mutating func removeFirst() {
        let element = elements.removeLast()
        if elements.isEmpty { return }
        var place = 0
        while true {
            var child = 2 * place + 1
            guard child < elements.count else { break }
            if child + 1 < elements.count, elements[child + 1] < elements[child] { child += 1 }
            guard elements[child] < element else { break }
            elements[place] = elements[child]
            place = child
        }
        elements[place] = element
    }
}
