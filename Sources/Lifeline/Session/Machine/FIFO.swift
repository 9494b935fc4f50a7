/// Elements that come in at the end and leave at the front, each under the number at which it came in.
///
/// Every operation takes constant time on average, and memory follows the elements that are left: one that has left is let go
/// of at once, however large it is.
package struct FIFO<Element: Sendable>: Sendable {
    /// The number of the first element that is left, or of the next one to come in.
    package private(set) var firstNumber: UInt64
    /// Nil where one has left: all before `head`, and none behind.
    private var elements: [Element?] = []
    private var head = 0

    package init(firstNumber: UInt64) {
        self.firstNumber = firstNumber
    }

    package var count: Int { elements.count - head }
    package var isEmpty: Bool { head == elements.count }
    /// The number of the next element to come in.
    package var nextNumber: UInt64 { firstNumber + UInt64(count) }
    /// The numbers of the elements that are left.
    package var numbers: Range<UInt64> { firstNumber..<nextNumber }
    /// Places that are taken up: what a test bounds.
    var keptCount: Int { elements.count }
    /// Places that memory is held for: what a test bounds.
    var capacity: Int { elements.capacity }
    var first: Element? { isEmpty ? nil : elements[head] }

    /// The element of a number that is left.
    package subscript(number: UInt64) -> Element {
        get { elements[head + Int(number - firstNumber)]! }
        _modify { yield &elements[head + Int(number - firstNumber)]! }
    }

    package mutating func append(_ element: Element) {
        elements.append(element)
    }

    /// Takes the first element out, which there must be.
    @discardableResult
    package mutating func removeFirst() -> Element {
        let element = elements[head].take()!
        head += 1
        firstNumber += 1
        tidy()
        return element
    }

    private mutating func tidy() {
        // 32 so that a short queue is not moved at every other element.
        guard head > count + 32 || isEmpty else { return }
        if isEmpty, elements.capacity > 1024 {
            // Kept while elements come and go, given back when a burst is over.
            elements = []
        } else if isEmpty, head <= 32 {
            // Of a few, less work than `removeFirst`.
            while !elements.isEmpty { elements.removeLast() }
        } else {
            elements.removeFirst(head)
        }
        head = 0
    }
}
