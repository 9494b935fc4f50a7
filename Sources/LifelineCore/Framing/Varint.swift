/// Unsigned LEB128 of 32 bits: seven bits a byte, the lowest first, the top bit set on every byte but the last.
package enum Varint {
    /// The bytes that the longest accepted encoding takes.
    package static let maximumLength = 5

    /// What stands at a place in a run of bytes.
    package enum Decoded: Equatable {
        /// A whole varint of `length` bytes. A longer form than needed (`80 00`) is accepted, as protobuf parsers do.
        case value(UInt32, length: Int)
        /// The bytes end inside the varint.
        case incomplete
        /// The fifth byte has bits past the 32nd, or announces a sixth.
        case malformed
    }

    /// Reads the varint that starts at `offset`, which must not be past the end of `bytes`.
    package static func decode(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) -> Decoded {
        let available = min(bytes.count - offset, maximumLength)
        var value: UInt32 = 0
        for index in 0..<max(available, 0) {
            let byte = bytes[offset + index]
            // Four bits are left for the fifth byte; above them are bits 33 to 35 and the mark of a sixth byte.
            if index == maximumLength - 1, byte > 0x0F { return .malformed }
            value |= UInt32(byte & 0x7F) &<< UInt32(7 * index)
            if byte < 0x80 { return .value(value, length: index + 1) }
        }
        return .incomplete
    }

    /// The bytes that the shortest encoding of `value` takes: 1 to 5.
    package static func encodedLength(of value: UInt32) -> Int {
        // Seven payload bits a byte; zero takes one byte as well.
        (max(1, UInt32.bitWidth - value.leadingZeroBitCount) + 6) / 7
    }

    /// Writes the shortest encoding of `value` to `destination`, which must have room for it; returns its length.
    @discardableResult
    package static func encode(_ value: UInt32, into destination: UnsafeMutableRawBufferPointer) -> Int {
        var rest = value
        var length = 0
        while rest >= 0x80 {
            destination[length] = UInt8(truncatingIfNeeded: rest) | 0x80
            rest >>= 7
            length += 1
        }
        destination[length] = UInt8(truncatingIfNeeded: rest)
        return length + 1
    }
}
