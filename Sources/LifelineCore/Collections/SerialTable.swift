/// A table of values by 32-bit numbers, like a dictionary, but without the cost of its hash function.
///
/// The slot of a number is the top of its product with a factor near the golden section, which spreads consecutive
/// numbers (Knuth, The Art of Computer Programming, volume 3, section 6.4). Each table has its own random factor, so
/// that a peer that chooses the numbers cannot choose colliding ones. After a taken slot the next one is tried. At most
/// half of the slots are taken, so that operations take constant time on average. Memory is proportional to the largest
/// number of values since the table was last empty.
///
/// Everything can be inlined, so that other modules specialize it.
@usableFromInline
package struct SerialTable<Value: Sendable>: Sendable {
    @usableFromInline
    struct Slot: Sendable {
        @usableFromInline var key: UInt32 = 0
        @usableFromInline var value: Value?

        @inlinable init() {}
    }

    /// The slots. Their number is a power of two, or 0.
    @usableFromInline var slots: [Slot] = []
    /// The shift that turns a product into the index of a slot.
    @usableFromInline var shift: UInt32 = 32
    @usableFromInline let factor: UInt32
    @usableFromInline package internal(set) var count = 0

    @inlinable package init() { factor = 0x9E37_79B1 &+ 2 &* UInt32.random(in: 0..<1 << 20) }

    @inlinable package var isEmpty: Bool { count == 0 }

    /// All elements, in the order of their numbers.
    package var elements: [(key: UInt32, value: Value)] {
        slots.compactMap { slot in slot.value.map { (slot.key, $0) } }.sorted { $0.key < $1.key }
    }

    /// The value of a number; nil if there is none. Setting nil removes it.
    @inlinable
    package subscript(key: UInt32) -> Value? {
        get { index(of: key).flatMap { slots[$0].value } }
        _modify {
            if let index = index(of: key) {
                defer { if slots[index].value == nil { close(index) } }
                yield &slots[index].value
            } else {
                var value: Value?
                defer { if let value { insert(key, value) } }
                yield &value
            }
        }
    }

    /// Adds a value for a number that has none. Returns false if it has one.
    @inlinable
    package mutating func insertNew(_ key: UInt32, _ value: Value) -> Bool {
        if index(of: key) != nil { return false }
        insert(key, value)
        return true
    }

    @inlinable
    @discardableResult
    package mutating func removeValue(forKey key: UInt32) -> Value? {
        guard let index = index(of: key) else { return nil }
        let value = slots[index].value
        close(index)
        return value
    }

    // MARK: Slots

    @inlinable
    @inline(__always)
    func firstIndex(of key: UInt32) -> Int { Int(truncatingIfNeeded: (key &* factor) &>> shift) }

    @inlinable
    func index(of key: UInt32) -> Int? {
        if count == 0 { return nil }
        var index = firstIndex(of: key)
        while slots[index].value != nil {
            if slots[index].key == key { return index }
            index = (index &+ 1) & (slots.count &- 1)
        }
        return nil
    }

    @inlinable
    mutating func insert(_ key: UInt32, _ value: Value) {
        if 2 &* count >= slots.count { grow() }
        var index = firstIndex(of: key)
        while slots[index].value != nil { index = (index &+ 1) & (slots.count &- 1) }
        slots[index].key = key
        slots[index].value = value
        count += 1
    }

    /// Frees a slot, and moves later values up that could not get a slot nearer to their own.
    @inlinable
    mutating func close(_ free: Int) {
        count -= 1
        if count == 0, slots.count > 64 {
            (slots, shift) = ([], 32)
            return
        }
        var free = free
        slots[free].value = nil
        var index = (free &+ 1) & (slots.count &- 1)
        while slots[index].value != nil {
            let distance = (index &- firstIndex(of: slots[index].key)) & (slots.count &- 1)
            if distance >= (index &- free) & (slots.count &- 1) {
                slots[free].key = slots[index].key
                slots[free].value = slots[index].value.take()
                free = index
            }
            index = (index &+ 1) & (slots.count &- 1)
        }
    }

    @inlinable
    @inline(never)
    mutating func grow() {
        let older = slots
        slots = Array(repeating: Slot(), count: max(8, 2 * older.count))
        shift = 32 - UInt32(slots.count.trailingZeroBitCount)
        count = 0
        for slot in older {
            if let value = slot.value { insert(slot.key, value) }
        }
    }
}
