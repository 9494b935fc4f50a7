extension OutboundLog {
    /// The bytes of the frames, one after the other in a circular buffer.
    ///
    /// Positions count upwards without end; a byte is at its position modulo the capacity. A frame never wraps: one
    /// that does not fit before the end of the buffer goes to the start.
    struct Storage: ~Copyable {
        /// Enough for a session that has one small call now and then.
        private static let smallestCapacity = 128
        /// The capacity that an unused buffer may keep.
        private static let keptCapacity = 4 << 10
        /// The capacity that a buffer may keep until ``giveBackMemory()``, however few bytes are in use. New memory for
        /// each burst would cost more than the bytes: the system clears every page.
        private static let spareCapacity = 1 << 20
        /// Records have 32 bits for positions. With half of that, differences of positions are never ambiguous.
        private static let largestCapacity = 1 << 31

        private var base: UnsafeMutableRawPointer?
        /// A power of two, or 0.
        private(set) var capacity = 0
        /// The position of the first byte in use.
        private var head: UInt64 = 0
        /// The position after the last byte in use.
        private var end: UInt64 = 0

        init() {}

        deinit { base?.deallocate() }

        /// The position after the last byte in use, in the form of records.
        @inline(__always) var endPosition: UInt32 { UInt32(truncatingIfNeeded: end) }

        /// The index of a position in the buffer.
        @inline(__always) func index(of position: UInt32) -> Int { Int(position) & (capacity &- 1) }

        @inline(__always) func pointer(toIndex index: Int) -> UnsafeMutableRawPointer { base.unsafelyUnwrapped + index }

        @inline(__always) func pointer(to position: UInt32) -> UnsafeMutableRawPointer {
            pointer(toIndex: index(of: position))
        }

        /// Takes the next bytes into use, and returns their position.
        @inline(__always)
        mutating func append(_ byteCount: Int) -> UInt32 {
            let index = Int(truncatingIfNeeded: end) & (capacity &- 1)
            let used = Int(truncatingIfNeeded: end &- head)
            if index &+ byteCount > capacity || used &+ byteCount > capacity { makeRoom(for: byteCount) }
            let position = endPosition
            end &+= UInt64(truncatingIfNeeded: byteCount)
            return position
        }

        /// Skips to the start of the buffer if that is enough, and otherwise enlarges the buffer.
        @inline(never)
        private mutating func makeRoom(for byteCount: Int) {
            precondition(byteCount <= Self.largestCapacity, "The frame is too long.")
            var newCapacity = max(capacity, Self.smallestCapacity)
            while true {
                let lap = UInt64(newCapacity)
                let isBeforeEnd = Int(end % lap) + byteCount <= newCapacity
                let start = isBeforeEnd ? end : (end / lap + 1) * lap
                if Int(start - head) + byteCount <= newCapacity {
                    if newCapacity != capacity { move(toCapacity: newCapacity, start: head) }
                    return end = start
                }
                newCapacity *= 2
                precondition(newCapacity <= Self.largestCapacity, "More than 2 GiB of frames were not acknowledged.")
            }
        }

        /// Frees the bytes before a position.
        @inline(__always)
        mutating func removeBytes(before position: UInt32) {
            head &+= UInt64(position &- UInt32(truncatingIfNeeded: head))
        }

        /// Frees all bytes. The next ones go to the start of the buffer, which is likely to be in a cache.
        @inline(__always)
        mutating func removeAll() {
            (head, end) = (0, 0)
            if capacity > Self.spareCapacity { giveBackAll() }
        }

        /// Whether so little of the buffer is in use that part of it should be given back, soon.
        @inline(__always) var isSparse: Bool { isSparse(above: Self.keptCapacity) }

        /// Whether so little of the buffer is in use that it should shrink at once.
        @inline(__always) var isTooSparse: Bool { isSparse(above: Self.spareCapacity) }

        @inline(__always) private func isSparse(above limit: Int) -> Bool {
            capacity > limit && Int(truncatingIfNeeded: end &- head) &* 8 < capacity
        }

        /// Moves the bytes to the start of a smaller buffer, and returns how far their positions went down.
        mutating func shrink() -> UInt32 {
            let distance = head
            var newCapacity = capacity
            while newCapacity > Self.keptCapacity, Int(end - head) * 4 < newCapacity { newCapacity /= 2 }
            if head == end { giveBackAll() } else { move(toCapacity: newCapacity, start: 0) }
            return UInt32(truncatingIfNeeded: distance)
        }

        private mutating func giveBackAll() {
            base?.deallocate()
            (base, capacity) = (nil, 0)
            (head, end) = (0, 0)
        }

        /// Moves the bytes to a new buffer and to positions from `start` on.
        ///
        /// No frame wraps then: either the positions stay and the capacity grows, or they begin at 0.
        private mutating func move(toCapacity newCapacity: Int, start: UInt64) {
            let newBase = UnsafeMutableRawPointer.allocate(byteCount: newCapacity, alignment: 16)
            var source = head
            var target = start
            // In two pieces, if the bytes wrap around the end of the old buffer.
            while source < end {
                let index = Int(source % UInt64(capacity))
                let count = min(Int(end - source), capacity - index)
                (newBase + Int(target % UInt64(newCapacity)))
                    .copyMemory(from: pointer(toIndex: index), byteCount: count)
                source += UInt64(count)
                target += UInt64(count)
            }
            base?.deallocate()
            (base, capacity) = (newBase, newCapacity)
            (head, end) = (start, target)
        }
    }
}
