/// Deadlines of which the earliest can be found and taken out: a binary heap. Equal ones come in the order of their ids.
package struct DeadlineHeap: Sendable {
    package struct Element: Comparable, Sendable {
        package let deadline: MonotonicTime
        package let id: UInt64

        package init(deadline: MonotonicTime, id: UInt64) {
            self.deadline = deadline
            self.id = id
        }

        package static func < (first: Element, second: Element) -> Bool {
            (first.deadline, first.id) < (second.deadline, second.id)
        }
    }

    package private(set) var elements: [Element]

    package init(_ elements: [Element] = []) {
        // An ascending array is a heap.
        self.elements = elements.sorted()
    }

    package var count: Int { elements.count }

    /// The earliest.
    package var first: Element? { elements.first }

    package mutating func insert(_ element: Element) {
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

    /// Takes the earliest out, which there must be.
    package mutating func removeFirst() {
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
