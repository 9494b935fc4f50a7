internal import LifelineCore

// Fields of protobuf messages, written by hand where a generated message would copy a payload twice more.

enum WireType: UInt64 {
    case varint = 0
    case lengthDelimited = 2
}

extension OutputSpan<UInt8> {
    mutating func appendVarint(_ value: UInt64) {
        precondition(Varint.encodedLength(of: value) <= freeCapacity)
        withUnsafeMutableBufferPointer { memory, count in
            if let start = memory.baseAddress { count += Varint.encode(value, to: start + count) }
        }
    }

    mutating func appendTag(_ field: UInt32, _ type: WireType) {
        appendVarint(UInt64(field) << 3 | type.rawValue)
    }

    /// A number; one that is 0 is left out, as it would be read so.
    mutating func appendField(_ field: UInt32, _ value: UInt64) {
        guard value != 0 else { return }
        appendTag(field, .varint)
        appendVarint(value)
    }

    mutating func appendField(_ field: UInt32, _ value: Span<UInt8>) {
        appendTag(field, .lengthDelimited)
        appendVarint(UInt64(value.count))
        append(copying: value)
    }

    mutating func append(copying bytes: Span<UInt8>) {
        precondition(bytes.count <= freeCapacity)
        bytes.withUnsafeBytes { bytes in
            withUnsafeMutableBufferPointer { memory, count in
                guard let start = memory.baseAddress, let source = bytes.baseAddress else { return }
                UnsafeMutableRawPointer(start + count).copyMemory(from: source, byteCount: bytes.count)
                count += bytes.count
            }
        }
    }
}

extension [UInt8] {
    mutating func appendField(_ field: UInt32, _ value: UInt64) {
        append(addingCapacity: Self.fieldLength(field, value)) { $0.appendField(field, value) }
    }

    mutating func appendField(_ field: UInt32, _ value: Span<UInt8>) {
        append(addingCapacity: Self.fieldLength(field, byteCount: value.count)) { $0.appendField(field, value) }
    }

    /// How many bytes `appendField` appends for a number.
    static func fieldLength(_ field: UInt32, _ value: UInt64) -> Int {
        value == 0 ? 0 : Varint.encodedLength(of: UInt64(field) << 3) + Varint.encodedLength(of: value)
    }

    /// The same for so many bytes.
    static func fieldLength(_ field: UInt32, byteCount: Int) -> Int {
        Varint.encodedLength(of: UInt64(field) << 3) + Varint.encodedLength(of: UInt64(byteCount)) + byteCount
    }
}
