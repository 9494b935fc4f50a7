internal import Glibc

/// Counts the memory that parsing takes from malloc. It needs the AllocationCounter library, loaded with LD_PRELOAD.
struct MemoryMeter {
    private let allocationCount: @convention(c) () -> UInt64
    private let heapInUse: @convention(c) () -> Int

    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    init() throws(Unusable) {
        // The counter is not linked, because it would slow down the timed passes. It is looked up among the loaded
        // libraries.
        guard
            let count = dlsym(nil, "allocation_counter_value"),
            let bytes = dlsym(nil, "allocation_counter_heap_bytes")
        else {
            throw Unusable(description: "The AllocationCounter library is not loaded: use Benchmarks/run")
        }
        // The declarations of allocation_counter.h.
        allocationCount = unsafeBitCast(count, to: (@convention(c) () -> UInt64).self)
        heapInUse = unsafeBitCast(bytes, to: (@convention(c) () -> Int).self)
        // Swift's own allocations have to be counted.
        let boxes = 100
        let counted = allocations { for _ in 0..<boxes { withExtendedLifetime(Box()) {} } }
        guard counted == boxes else {
            throw Unusable(description: "The allocation counter counts \(counted) of \(boxes) allocations")
        }
    }

    /// Calls of malloc and similar functions in `body`.
    func allocations(_ body: () throws -> Void) rethrows -> Int {
        let start = allocationCount()
        try body()
        return Int(allocationCount() - start)
    }

    /// Bytes of heap that `body` takes and keeps, including malloc's overhead for each allocation.
    func heapBytes(_ body: () throws -> Void) rethrows -> Int {
        let start = heapInUse()
        try body()
        return heapInUse() - start
    }
}

/// Not inlined, because the meter is checked with its allocation.
private final class Box {
    var value = 0
    @inline(never) @_optimize(none) init() {}
}
