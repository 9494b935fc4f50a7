/// Elements under ascending numbers, which come in at the end and leave from anywhere, mostly from the front.
///
/// To append and to remove take constant time on average, at worst logarithmic to find the number. Memory follows the
/// elements that are left, wherever the others left.
///
/// All of it can be inlined: other modules specialize it.
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

    /// From `head` on; the first is one that is left, if any is.
    @usableFromInline var slots: [Slot] = []
    @usableFromInline var head = 0
    /// How many are left.
    @usableFromInline package internal(set) var count = 0

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { count == 0 }
    /// The first that is left.
    @inlinable
    package var first: (number: UInt64, element: Element)? {
        readFirst { $0 }.map { (slots[head].number, $0) }
    }
    /// The numbers of those that are left, in order.
    @inlinable
    package var numbers: [UInt64] { slots[head...].compactMap { $0.element == nil ? nil : $0.number } }

    /// The numbers of those that are left in a range, in order. They are found by binary search.
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

    /// Those that are left, in order.
    @inlinable
    package var elements: [Element] { slots[head...].compactMap(\.element) }

    /// The element of a number; nil where it has left.
    @inlinable
    package subscript(number: UInt64) -> Element? { slot(of: number).flatMap { slots[$0].element } }

    /// Adds an element, whose number is above all that were there.
    @inlinable
    package mutating func append(_ number: UInt64, _ element: Element) {
        slots.append(Slot(number: number, element: element))
        count += 1
    }

    /// Changes the element of a number where it is left.
    @inlinable
    package mutating func update(_ number: UInt64, _ change: (inout Element) -> Void) {
        if let slot = slot(of: number), slots[slot].element != nil { change(&slots[slot].element!) }
    }

    /// What `body` finds in the first that is left, which need not be copied for it; nil where there is none.
    @inlinable
    package func readFirst<Result>(_ body: (Element) -> Result) -> Result? {
        head < slots.count ? slots[head].element.map(body) : nil
    }

    /// Takes an element out; nil where it has left already.
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
        // Looked at where they are: `slots.last` would be a copy.
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
            // For a few, less work than `removeAll`.
            while !slots.isEmpty { slots.removeLast() }
            return
        }
        // 32 so that a short queue is not moved at every other element.
        guard slots.count > 2 * count + 32 || count == 0 else { return }
        head = 0
        // Kept while elements come and go, given back when a burst is over.
        if slots.capacity > 8 * count + 1024 {
            slots = slots.filter { $0.element != nil }
        } else {
            slots.removeAll { $0.element == nil }
        }
    }
}
