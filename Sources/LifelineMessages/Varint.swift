/// Writes `value` in base 128, least significant group first, to memory with room for ten bytes. Returns the length.
@inlinable
func writeVarint(_ value: UInt64, to memory: UnsafeMutableRawBufferPointer) -> Int {
    var (end, rest) = (0, value)
    while rest >= 0x80 {
        memory[end] = UInt8(truncatingIfNeeded: rest) | 0x80
        end += 1
        rest >>= 7
    }
    memory[end] = UInt8(truncatingIfNeeded: rest)
    return end + 1
}
