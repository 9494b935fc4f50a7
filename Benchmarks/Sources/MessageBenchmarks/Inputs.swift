/// The inputs of a pass, passed without counting references, which would be measured, too.
final class Inputs<Value> {
    // A constant of an object with a known lifetime can be borrowed; an element of an array cannot.
    private final class Box {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private let boxes: [Unmanaged<Box>]

    init(_ values: [Value]) { boxes = values.map { .passRetained(Box($0)) } }
    deinit { for box in boxes { box.release() } }

    /// The sum of what `body` returns for each value.
    @inline(__always) func sum(_ body: (Value) throws -> UInt64) rethrows -> UInt64 {
        var sum: UInt64 = 0
        for box in boxes { sum &+= try box._withUnsafeGuaranteedRef { try body($0.value) } }
        return sum
    }
}
