/// A queue: elements are added at the end and removed at the front, and each has an ascending number.
///
/// Every operation takes constant time on average, and memory is proportional to the present elements. A removed
/// element is released at once.
///
/// Everything can be inlined, so that other modules specialize it.
@usableFromInline
package struct FIFO<Element: Sendable>: Sendable {
    /// The number of the first element, or of the next one to add if there is none.
    @usableFromInline package internal(set) var firstNumber: UInt64
    /// The slots of the elements. Those before `head` are nil, the others are not.
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0
    /// The number of slots that an empty queue keeps memory for.
    @usableFromInline let keptCapacity: Int

    /// - Parameter keptCapacity: the number of slots that memory is kept for. More memory is freed when a burst is
    ///   over.
    @inlinable
    package init(firstNumber: UInt64 = 0, keptCapacity: Int = 1024) {
        self.firstNumber = firstNumber
        self.keptCapacity = keptCapacity
    }

    @inlinable package var count: Int { elements.count - head }
    @inlinable package var isEmpty: Bool { head == elements.count }
    /// The number of the next element to add.
    @inlinable package var nextNumber: UInt64 { firstNumber + UInt64(count) }
    /// The numbers of the present elements.
    @inlinable package var numbers: Range<UInt64> { firstNumber..<nextNumber }
    @inlinable package var first: Element? { isEmpty ? nil : elements[head] }

    /// The element with a number, which must be present.
    @inlinable
    package subscript(number: UInt64) -> Element {
        get { elements[head + Int(number - firstNumber)]! }
        _modify { yield &elements[head + Int(number - firstNumber)]! }
    }

    @inlinable
    package mutating func append(_ element: Element) {
        elements.append(element)
    }

    /// Removes the first element, which must exist.
    @inlinable
    @discardableResult
    package mutating func removeFirst() -> Element {
        let element = elements[head].take()!
        head += 1
        firstNumber += 1
        compact()
        return element
    }

    /// Removes the first element, if there is one.
    @inlinable
    package mutating func popFirst() -> Element? {
        isEmpty ? nil : removeFirst()
    }

    /// Removes and returns all elements.
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
        // 32, so that a short queue is not moved at every other element.
        guard head > count + 32 || isEmpty else { return }
        if isEmpty, elements.capacity > keptCapacity {
            elements = []
        } else if isEmpty, head <= 32 {
            // For a few elements, this is less work than `removeFirst`.
            while !elements.isEmpty { elements.removeLast() }
        } else {
            elements.removeFirst(head)
        }
        head = 0
    }
}
