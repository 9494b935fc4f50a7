/// Unsigned LEB128: seven bits a byte, the lowest first, the top bit set on every byte but the last.
@usableFromInline
package enum Varint {
    /// The length of the longest accepted encoding of a frame's length.
    package static let maximumLength = 5

    /// The result of decoding at an offset.
    package enum Decoded: Equatable {
        /// A whole varint of `length` bytes. A longer form than needed (`80 00`) is accepted, as in protobuf parsers.
        case value(UInt32, length: Int)
        /// The bytes end inside the varint.
        case incomplete
        /// The fifth byte has bits above the 32nd, or is followed by a sixth.
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

    /// Returns the length of the shortest encoding of `value`: 1 to 10 bytes.
    @inlinable
    package static func encodedLength(of value: UInt64) -> Int {
        // Seven payload bits for each byte; zero takes one byte as well.
        (UInt64.bitWidth - (value | 1).leadingZeroBitCount + 6) / 7
    }

    /// Writes the shortest encoding of `value` to memory that has room for it; returns its length.
    @inlinable
    @discardableResult
    package static func encode(_ value: UInt64, to memory: UnsafeMutableRawPointer) -> Int {
        var rest = value
        var end = memory
        while rest >= 0x80 {
            end.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, as: UInt8.self)
            end += 1
            rest &>>= 7
        }
        end.storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
        return end - memory + 1
    }

    /// Writes the shortest encoding of `value` to `memory`, which must have room for it; returns its length.
    @inlinable
    @discardableResult
    package static func encode(_ value: UInt64, into memory: UnsafeMutableRawBufferPointer) -> Int {
        precondition(encodedLength(of: value) <= memory.count)
        return memory.baseAddress.map { encode(value, to: $0) } ?? 0
    }

    /// Returns the shortest encoding of `value`.
    package static func encoded(_ value: UInt64) -> [UInt8] {
        let length = encodedLength(of: value)
        return [UInt8](unsafeUninitializedCapacity: length) { memory, count in
            if let start = memory.baseAddress { count = encode(value, to: start) }
        }
    }
}
