/// Splits bytes of whole frames, prefixes included, into runs of whole frames.
package enum FrameRuns {
    /// Returns the length of the next run: as many frames as fit into `maximumLength`, but at least one. Returns the
    /// length of all `bytes` if they fit, or have no whole frame.
    package static func nextLength(in bytes: UnsafeRawBufferPointer, maximumLength: Int) -> Int {
        guard bytes.count > maximumLength else { return bytes.count }
        var end = 0
        while case .value(let length, let prefixLength) = Varint.decode(bytes, at: end) {
            let next = end + prefixLength + Int(length)
            if next > bytes.count { break }
            if next > maximumLength { return end == 0 ? next : end }
            end = next
        }
        return end == 0 ? bytes.count : end
    }
}
