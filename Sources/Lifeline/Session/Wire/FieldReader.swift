/// Reads the fields of a protobuf message from borrowed bytes.
///
/// After `next()` has returned a tag, the caller reads the value with the method for the tag's wire type, or skips it.
/// Malformed bytes end the reading: `next()` returns nil, and `hasFailed` is set.
package struct FieldReader {
    /// A field's number and wire type.
    package struct Tag: Equatable, Sendable {
        /// The number times 8, plus the wire type.
        package let rawValue: UInt32

        @inline(__always) fileprivate init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        @inline(__always) package static func varint(_ number: UInt32) -> Tag { Tag(rawValue: number &<< 3) }
        @inline(__always) package static func delimited(_ number: UInt32) -> Tag { Tag(rawValue: number &<< 3 | 2) }

        @inline(__always) package var number: UInt32 { rawValue &>> 3 }
        @inline(__always) package var wireType: UInt32 { rawValue & 7 }
        @inline(__always) package var isDelimited: Bool { wireType == 2 }
    }

    /// The deepest nesting of groups, as in protobuf's own parsers.
    private static let maximumDepth = 100
    /// A bit for each wire type that a field can begin with: 0, 1, 2, 3 and 5.
    private static let fieldTypes: UInt32 = 0b10_1111
    private static let endOfGroup: UInt32 = 4

    private let start: UnsafeRawPointer
    private let count: Int
    private var offset = 0
    /// Whether the bytes are malformed. The values read when this became true are meaningless.
    package private(set) var hasFailed = false

    @inline(__always) package init(_ bytes: UnsafeRawBufferPointer) {
        // Without bytes the pointer is not used.
        start = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
        count = bytes.count
    }

    /// Whether nothing is left to read. After a failure nothing is left.
    @inline(__always) package var isAtEnd: Bool { offset == count }

    /// Returns the next field's tag; nil at the end of the message and after a failure.
    @inline(__always) package mutating func next() -> Tag? {
        guard offset < count else { return nil }
        guard let tag = readTag(), tag.wireType != Self.endOfGroup else {
            fail()
            return nil
        }
        return tag
    }

    /// Reads the value of a field of wire type 0.
    @inline(__always) package mutating func varint() -> UInt64 {
        if offset < count {
            let first = byte(at: offset)
            if first < 0x80 {
                offset &+= 1
                return UInt64(first)
            }
        }
        let (value, end) = Self.longVarint(start, count, at: offset)
        guard let end else {
            fail()
            return 0
        }
        offset = end
        return value
    }

    /// Reads the value of a `uint32`: the low 32 bits of a varint, as in any protobuf parser.
    @inline(__always) package mutating func uint32() -> UInt32 { UInt32(truncatingIfNeeded: varint()) }

    /// Reads the value of a field of wire type 2. The result points into the message.
    @inline(__always) package mutating func bytesValue() -> UnsafeRawBufferPointer {
        let length = varint()
        // A length that failed is 0, and nothing follows it.
        guard length <= UInt64(truncatingIfNeeded: count &- offset) else {
            fail()
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        let value = start + offset
        offset &+= Int(truncatingIfNeeded: length)
        return UnsafeRawBufferPointer(start: value, count: Int(truncatingIfNeeded: length))
    }

    /// Reads the value of a `string`.
    ///
    /// - Throws: `.undecodable` if the value is not UTF-8.
    @inline(__always) package mutating func text() throws(SessionViolation) -> UnsafeRawBufferPointer {
        let text = bytesValue()
        guard text.isUTF8 else { throw .undecodable("It has a text that is not UTF-8.") }
        return text
    }

    /// Skips the value of a field.
    @inline(__always) package mutating func skip(_ tag: Tag) { self = Self.skipping(tag, in: self) }

    /// Checks that nothing was malformed.
    @inline(__always) package func finish() throws(SessionViolation) {
        if hasFailed { throw .undecodable("It is no protobuf message.") }
    }

    /// Skips in a copy of the reader, so that the caller's reader can stay in registers.
    @inline(never) private static func skipping(_ tag: Tag, in reader: FieldReader) -> FieldReader {
        var reader = reader
        reader.skip(tag, depth: 0)
        return reader
    }

    private mutating func skip(_ tag: Tag, depth: Int) {
        switch tag.wireType {
        case 0: _ = varint()
        case 1: skip(byteCount: 8)
        case 2: _ = bytesValue()
        case 3: skipGroup(tag.number, depth: depth + 1)
        case 5: skip(byteCount: 4)
        default: fail()
        }
    }

    private mutating func skip(byteCount: Int) {
        guard byteCount <= count - offset else { return fail() }
        offset += byteCount
    }

    private mutating func skipGroup(_ number: UInt32, depth: Int) {
        guard depth <= Self.maximumDepth else { return fail() }
        while offset < count {
            guard let tag = readTag() else { return fail() }
            if tag.wireType == Self.endOfGroup {
                if tag.number != number { fail() }
                return
            }
            skip(tag, depth: depth)
            if hasFailed { return }
        }
        fail()
    }

    /// Returns nil, without failing, for a tag that no message has.
    @inline(__always) private mutating func readTag() -> Tag? {
        let value = varint()
        let types = Self.fieldTypes | 1 &<< Self.endOfGroup
        // A tag of more than 32 bits has a number above 2²⁹-1; one below 8 has the number 0.
        guard value >= 8, value <= UInt64(UInt32.max), types &>> UInt32(truncatingIfNeeded: value & 7) & 1 == 1 else {
            return nil
        }
        return Tag(rawValue: UInt32(truncatingIfNeeded: value))
    }

    @inline(__always) private mutating func fail() {
        hasFailed = true
        offset = count
    }

    @inline(__always) private func byte(at index: Int) -> UInt8 {
        assert(index < count)
        return start.load(fromByteOffset: index, as: UInt8.self)
    }

    /// Reads a varint of any length. Returns a nil end for one that is cut off or longer than 10 bytes.
    @inline(never) private static func longVarint(
        _ start: UnsafeRawPointer,
        _ count: Int,
        at offset: Int
    ) -> (value: UInt64, end: Int?) {
        var value: UInt64 = 0
        var index = offset
        let limit = min(count, offset &+ 10)
        while index < limit {
            let byte = start.load(fromByteOffset: index, as: UInt8.self)
            // The tenth byte's bits above the 64th are dropped, as in protobuf's own parsers.
            value |= UInt64(byte & 0x7F) &<< UInt64(truncatingIfNeeded: 7 &* (index &- offset))
            index &+= 1
            if byte < 0x80 { return (value, index) }
        }
        return (0, nil)
    }
}

/// The two fields of a metadata entry or a detail: 1 is a key or a type, 2 is a value.
package struct FieldPair {
    package private(set) var first = UnsafeRawBufferPointer(start: nil, count: 0)
    package private(set) var second = UnsafeRawBufferPointer(start: nil, count: 0)

    /// - Parameter isText: whether the second field must be UTF-8, as the first one must.
    package init(parsing bytes: UnsafeRawBufferPointer, isText: Bool) throws(SessionViolation) {
        var reader = FieldReader(bytes)
        while let tag = reader.next() {
            switch tag {
            case .delimited(1): first = try reader.text()
            case .delimited(2): second = isText ? try reader.text() : reader.bytesValue()
            default: reader.skip(tag)
            }
        }
        try reader.finish()
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes are UTF-8.
    package var isUTF8: Bool {
        var index = 0
        // Eight bytes at a time: most text is ASCII.
        while index + 8 <= count {
            guard loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0 else { break }
            index += 8
        }
        while index < count, self[index] < 0x80 { index += 1 }
        return index == count || String(validating: self[index...], as: UTF8.self) != nil
    }
}
