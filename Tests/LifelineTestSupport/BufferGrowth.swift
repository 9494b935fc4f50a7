/// Follows the capacity of a buffer that gets one byte after the other. Each growth is an allocation that moves the
/// earlier bytes.
package struct BufferGrowth {
    package private(set) var allocationCount = 0
    package private(set) var movedByteCount = 0
    private var capacity = 0
    private var byteCount = 0

    package init() {}

    /// Records the capacity of the buffer after a further byte.
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
