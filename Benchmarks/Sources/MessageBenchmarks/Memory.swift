internal import Glibc

/// Counts what parsing takes from malloc. It needs the AllocationCounter library, loaded with LD_PRELOAD.
struct MemoryMeter {
    private typealias Counter = @convention(c) () -> UInt64
    private let allocationCount: Counter

    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    init() throws(Unusable) {
        // The counter is not linked, lest it slow the timed passes down: look for it among what is loaded.
        guard let symbol = dlsym(nil, "allocation_counter_value") else {
            throw Unusable(description: "The AllocationCounter library is not loaded: use Benchmarks/run")
        }
        allocationCount = unsafeBitCast(symbol, to: Counter.self)
        // Whatever is counted comes from Swift's allocator, which has to be the counted one.
        let boxes = 100
        let counted = allocations { for _ in 0..<boxes { withExtendedLifetime(Box()) {} } }
        guard counted == boxes else {
            throw Unusable(description: "The allocation counter counts \(counted) of \(boxes) allocations")
        }
    }

    /// Calls of malloc and the like in `body`.
    func allocations(_ body: () throws -> Void) rethrows -> Int {
        let start = allocationCount()
        try body()
        return Int(allocationCount() - start)
    }

    /// Bytes of heap that `body` takes and keeps, with what malloc adds to each allocation.
    func heapBytes(_ body: () throws -> Void) rethrows -> Int {
        let start = heapInUse()
        try body()
        return heapInUse() - start
    }

    private func heapInUse() -> Int {
        let info = mallinfo2()
        // Large allocations are mappings of their own.
        return Int(info.uordblks + info.hblkhd)
    }
}

/// Not inlined away: its allocation is what the meter is checked with.
private final class Box {
    var value = 0
    @inline(never) @_optimize(none) init() {}
}
