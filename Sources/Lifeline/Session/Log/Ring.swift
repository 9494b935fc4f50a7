/// A queue of trivial values under ascending numbers, in one circular buffer.
///
/// Every operation takes constant time on average. A buffer of more than 8,192 elements shrinks when elements are
/// removed; a smaller one only in `giveBackMemory`.
package struct Ring<Element: BitwiseCopyable>: ~Copyable {
    /// The number of elements for which an empty ring may always keep memory.
    private static var keptCapacity: Int { 64 }
    /// The number of elements for which an empty ring may keep memory until `giveBackMemory`.
    private static var spareCapacity: Int { 8_192 }
    /// Enough for a session that has one call now and then.
    private static var smallestCapacity: Int { 4 }

    /// The number of the first element, or of the next one if there is none.
    package private(set) var first: UInt64
    /// The number of the next element.
    package private(set) var next: UInt64
    /// The element with number `n` is at `n & (capacity - 1)`. Nil while the capacity is 0.
    private var base: UnsafeMutablePointer<Element>?
    /// A power of two, or 0.
    private var capacity = 0

    package init(nextNumber: UInt64 = 0) {
        (first, next) = (nextNumber, nextNumber)
    }

    deinit { base?.deallocate() }

    @inline(__always) package var count: Int { Int(truncatingIfNeeded: next &- first) }
    @inline(__always) package var isEmpty: Bool { first == next }
    package var bytesHeld: Int { capacity * MemoryLayout<Element>.stride }

    /// The element with a number from `first` to below `next`.
    package subscript(number: UInt64) -> Element {
        @inline(__always) get { pointer(to: number).pointee }
        @inline(__always) _modify { yield &pointer(to: number).pointee }
    }

    @inline(__always)
    package mutating func append(_ element: Element) {
        if count == capacity { move(toCapacity: max(Self.smallestCapacity, 2 * capacity)) }
        next &+= 1
        pointer(to: next &- 1).initialize(to: element)
    }

    /// Removes the first element, which must exist.
    @inline(__always)
    package mutating func removeFirst() {
        precondition(!isEmpty, "An empty ring has no first element.")
        first &+= 1
        // An eighth, so that a ring whose count varies is not moved each time.
        if capacity > Self.spareCapacity, count &* 8 < capacity { shrink() }
    }

    /// Whether so few elements are left that part of the memory should be given back.
    @inline(__always) package var isSparse: Bool { capacity > Self.keptCapacity && count &* 8 < capacity }

    /// Frees the memory that the elements do not need.
    package mutating func giveBackMemory() {
        if isSparse { shrink() }
    }

    /// Removes all elements. The next one gets the given number.
    package mutating func removeAll(nextNumber: UInt64) {
        (first, next) = (nextNumber, nextNumber)
        if capacity > Self.keptCapacity { shrink() }
    }

    @inline(__always)
    private func pointer(to number: UInt64) -> UnsafeMutablePointer<Element> {
        precondition(number &- first < next &- first, "The ring has no element with this number.")
        return base.unsafelyUnwrapped + Int(truncatingIfNeeded: number) & (capacity &- 1)
    }

    @inline(never)
    private mutating func shrink() {
        guard !isEmpty else {
            base?.deallocate()
            (base, capacity) = (nil, 0)
            return
        }
        var smaller = capacity
        while smaller > Self.keptCapacity, count * 4 < smaller { smaller /= 2 }
        move(toCapacity: smaller)
    }

    /// Moves the elements, which must fit, to a new buffer.
    @inline(never)
    private mutating func move(toCapacity newCapacity: Int) {
        let newBase = UnsafeMutablePointer<Element>.allocate(capacity: newCapacity)
        var number = first
        while number != next {
            (newBase + Int(truncatingIfNeeded: number) & (newCapacity - 1)).initialize(to: self[number])
            number &+= 1
        }
        base?.deallocate()
        (base, capacity) = (newBase, newCapacity)
    }
}

/// @unchecked Sendable, because only the ring owns the buffer behind its pointer.
extension Ring: @unchecked Sendable where Element: Sendable {}
