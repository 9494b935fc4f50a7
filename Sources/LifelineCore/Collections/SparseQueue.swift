/// A queue of elements with ascending numbers. They are added at the end, and removed from anywhere, mostly from the
/// front.
///
/// Appending and removing take constant time on average; finding a number takes logarithmic time at worst. Memory is
/// proportional to the present elements, wherever others were removed.
///
/// Everything can be inlined, so that other modules specialize it.
@usableFromInline
package struct SparseQueue<Element: Sendable>: Sendable {
    @usableFromInline
    struct Slot: Sendable {
        @usableFromInline let number: UInt64
        @usableFromInline var element: Element?

        @inlinable
        init(number: UInt64, element: Element) {
            self.number = number
            self.element = element
        }
    }

    /// The slots in use are those from `head` on. The first of them has an element, if any has.
    @usableFromInline var slots: [Slot] = []
    @usableFromInline var head = 0
    /// The number of present elements.
    @usableFromInline package internal(set) var count = 0

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { count == 0 }
    /// The first present element.
    @inlinable
    package var first: (number: UInt64, element: Element)? {
        readFirst { $0 }.map { (slots[head].number, $0) }
    }
    /// The numbers of the present elements, in order.
    @inlinable
    package var numbers: [UInt64] { slots[head...].compactMap { $0.element == nil ? nil : $0.number } }

    /// The numbers of the present elements in a range, in order. They are found by binary search.
    @inlinable
    package func numbers(in range: ClosedRange<UInt64>) -> [UInt64] {
        var numbers: [UInt64] = []
        var slot = firstSlot(from: range.lowerBound)
        while slot < slots.count, slots[slot].number <= range.upperBound {
            if slots[slot].element != nil { numbers.append(slots[slot].number) }
            slot += 1
        }
        return numbers
    }

    /// The present elements, in order.
    @inlinable
    package var elements: [Element] { slots[head...].compactMap(\.element) }

    /// The element with a number; nil if it is not present.
    @inlinable
    package subscript(number: UInt64) -> Element? { slot(of: number).flatMap { slots[$0].element } }

    /// Adds an element, whose number must be above all earlier ones.
    @inlinable
    package mutating func append(_ number: UInt64, _ element: Element) {
        slots.append(Slot(number: number, element: element))
        count += 1
    }

    /// Changes the element with a number, if it is present.
    @inlinable
    package mutating func update(_ number: UInt64, _ change: (inout Element) -> Void) {
        if let slot = slot(of: number), slots[slot].element != nil { change(&slots[slot].element!) }
    }

    /// Returns the result of `body` for the first present element, which is not copied; nil if there is none.
    @inlinable
    package func readFirst<Result>(_ body: (Element) -> Result) -> Result? {
        head < slots.count ? slots[head].element.map(body) : nil
    }

    /// Removes an element; returns nil if it is not present.
    @inlinable
    @discardableResult
    package mutating func remove(_ number: UInt64) -> Element? {
        guard let slot = slot(of: number), let element = slots[slot].element.take() else { return nil }
        count -= 1
        while head < slots.count, slots[head].element == nil { head += 1 }
        compact()
        return element
    }

    @inlinable
    func slot(of number: UInt64) -> Int? {
        let (low, high) = (head, slots.count - 1)
        // Accessed in place: `slots.last` would be a copy.
        guard low <= high, slots[low].number <= number, number <= slots[high].number else { return nil }
        if slots[low].number == number { return low }
        let slot = firstSlot(from: number)
        return slots[slot].number == number ? slot : nil
    }

    /// The first slot whose number is the given one or above; `slots.count` if there is none.
    @inlinable
    func firstSlot(from number: UInt64) -> Int {
        var (low, high) = (head, slots.count)
        while low < high {
            let middle = (low + high) / 2
            if slots[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    @inlinable
    mutating func compact() {
        if count == 0, slots.count <= 32, slots.capacity <= 1024 {
            head = 0
            // For a few elements, this is less work than `removeAll`.
            while !slots.isEmpty { slots.removeLast() }
            return
        }
        // 32, so that a short queue is not moved at every other element.
        guard slots.count > 2 * count + 32 || count == 0 else { return }
        head = 0
        // Memory is kept while elements come and go, and freed when a burst is over.
        if slots.capacity > 8 * count + 1024 {
            slots = slots.filter { $0.element != nil }
        } else {
            slots.removeAll { $0.element == nil }
        }
    }
}
