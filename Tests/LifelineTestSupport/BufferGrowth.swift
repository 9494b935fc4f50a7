/// Follows the capacity of a buffer that takes in one byte after the other. Each growth is an allocation, which moves
/// the bytes that came before.
package struct BufferGrowth {
    package private(set) var allocationCount = 0
    package private(set) var movedByteCount = 0
    private var capacity = 0
    private var byteCount = 0

    package init() {}

    /// A byte has come in, and the buffer has this capacity.
    package mutating func byteCame(capacity: Int) {
        if capacity > self.capacity {
            allocationCount += 1
            movedByteCount += byteCount
        }
        self.capacity = capacity
        byteCount += 1
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes lie within those of `other`.
    package func lies(within other: UnsafeRawBufferPointer) -> Bool {
        guard let start = baseAddress, let outer = other.baseAddress else { return isEmpty }
        return start >= outer && start + count <= outer + other.count
    }
}
