/// Elements that come in at the end and leave at the front, each under the number at which it came in.
///
/// Every operation takes constant time on average, and memory follows the elements that are left: one that has left is
/// let go of at once, however large it is.
///
/// All of it can be inlined: other modules specialize it.
@usableFromInline
package struct FIFO<Element: Sendable>: Sendable {
    /// The number of the first element that is left, or of the next one to come in.
    @usableFromInline package internal(set) var firstNumber: UInt64
    /// Nil where one has left: all before `head`, and none behind.
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0
    /// How many places an empty queue keeps memory for.
    @usableFromInline let keptCapacity: Int

    /// - Parameter keptCapacity: how many places memory is kept for while elements come and go. More is given back when
    ///   a burst is over.
    @inlinable
    package init(firstNumber: UInt64 = 0, keptCapacity: Int = 1024) {
        self.firstNumber = firstNumber
        self.keptCapacity = keptCapacity
    }

    @inlinable package var count: Int { elements.count - head }
    @inlinable package var isEmpty: Bool { head == elements.count }
    /// The number of the next element to come in.
    @inlinable package var nextNumber: UInt64 { firstNumber + UInt64(count) }
    /// The numbers of the elements that are left.
    @inlinable package var numbers: Range<UInt64> { firstNumber..<nextNumber }
    @inlinable package var first: Element? { isEmpty ? nil : elements[head] }

    /// The element of a number that is left.
    @inlinable
    package subscript(number: UInt64) -> Element {
        get { elements[head + Int(number - firstNumber)]! }
        _modify { yield &elements[head + Int(number - firstNumber)]! }
    }

    @inlinable
    package mutating func append(_ element: Element) {
        elements.append(element)
    }

    /// Takes the first element out, which there must be.
    @inlinable
    @discardableResult
    package mutating func removeFirst() -> Element {
        let element = elements[head].take()!
        head += 1
        firstNumber += 1
        compact()
        return element
    }

    /// Takes the first element out, if there is one.
    @inlinable
    package mutating func popFirst() -> Element? {
        isEmpty ? nil : removeFirst()
    }

    /// Takes all elements out, and returns them.
    @inlinable
    package mutating func removeAll() -> [Element] {
        defer {
            firstNumber = nextNumber
            (elements, head) = ([], 0)
        }
        return elements[head...].compactMap(\.self)
    }

    @inlinable
    mutating func compact() {
        // 32 so that a short queue is not moved at every other element.
        guard head > count + 32 || isEmpty else { return }
        if isEmpty, elements.capacity > keptCapacity {
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
