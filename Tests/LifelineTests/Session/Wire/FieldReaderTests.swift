import Lifeline
import LifelineCore
import Testing

@Suite struct FieldReaderTests {
    /// Skips all fields, and returns their numbers; nil if the bytes are malformed.
    private func fields(_ bytes: [UInt8]) -> [UInt32]? {
        bytes.withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            var numbers: [UInt32] = []
            while let tag = reader.next() {
                numbers.append(tag.number)
                reader.skip(tag)
            }
            return reader.hasFailed ? nil : numbers
        }
    }

    private func varint(_ bytes: [UInt8]) -> UInt64? {
        bytes.withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            let value = reader.varint()
            return reader.hasFailed || !reader.isAtEnd ? nil : value
        }
    }

    @Test func varintsOfEveryLengthAreRead() {
        for shift in 0..<UInt64(64) {
            for value in [1 << shift, (1 << shift) - 1, ~0 >> shift] as [UInt64] {
                #expect(varint(Varint.encoded(value)) == value)
            }
        }
        #expect(varint([0x80, 0x80, 0x00]) == 0)
        #expect(varint([UInt8](repeating: 0x80, count: 9) + [0x7F]) == 1 << 63)
    }

    @Test func malformedVarintsFail() {
        #expect(varint([]) == nil)
        for count in 1...12 { #expect(varint([UInt8](repeating: 0x80, count: count)) == nil) }
        #expect(varint([UInt8](repeating: 0x80, count: 10) + [0]) == nil)
    }

    @Test func everyWireTypeIsSkipped() {
        let group: [UInt8] = [0x33, 0x08, 0x05, 0x3B, 0x12, 0x01, 0x34, 0x3C, 0x34]
        let bytes: [UInt8] = [0x08, 0x80, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1A, 2, 0xFF, 0xFF, 0x25, 1, 2, 3, 4]
        #expect(fields(bytes + group + [0x38, 0x00]) == [1, 2, 3, 4, 6, 7])
        // The highest number, and a tag that is longer than necessary.
        #expect(fields(Varint.encoded(UInt64(UInt32.max) & ~7) + [0]) == [(1 << 29) - 1])
        #expect(fields([0x88, 0x80, 0x00, 0x01]) == [1])
        #expect(fields([]) == [])
    }

    @Test func malformedFieldsFail() {
        let malformed: [[UInt8]] = [
            [0x00, 0x00], [0x07], [0x02, 0x00],  // Number 0.
            Varint.encoded(1 << 32) + [0],  // A number of 30 bits.
            [0x0E], [0x0F], [0x0E, 0x00], [0x0F, 0x00],  // Wire types 6 and 7.
            [0x0C], [0x08, 0x01, 0x0C],  // The end of a group that has not begun.
            [0x0B], [0x0B, 0x14], [0x0B, 0x08], [0x0B, 0x13, 0x0C],  // Groups with no end or another group's.
            [0x08], [0x08, 0x80], [0x09, 1, 2, 3, 4, 5, 6, 7], [0x0D, 1, 2, 3],  // Truncated fields.
            [0x0A, 0x01], [0x0A, 0x80], [0x0A] + Varint.encoded(.max), [0x0A] + Varint.encoded(1 << 63),
            [0x80], [0x80, 0x80],
        ]
        for bytes in malformed {
            #expect(fields(bytes) == nil, "\(bytes)")
            #expect(fields([0x08, 0x01] + bytes) == nil, "\(bytes)")
        }
    }

    @Test func groupsAreNested100Deep() {
        func nested(_ depth: Int) -> [UInt8] {
            [UInt8](repeating: 0x0B, count: depth) + [UInt8](repeating: 0x0C, count: depth)
        }
        #expect(fields(nested(100)) == [1])
        #expect(fields(nested(101)) == nil)
        #expect(fields(nested(100_000)) == nil)
    }

    @Test func nothingIsReadAfterAFailure() {
        [UInt8]([0x0A, 0x09, 0x08, 0x01]).withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            #expect(reader.next() == .delimited(1))
            #expect(reader.bytesValue().isEmpty && reader.hasFailed && reader.isAtEnd)
            #expect(reader.next() == nil && reader.varint() == 0 && reader.bytesValue().isEmpty)
            #expect(throws: SessionViolation.undecodable("It is no protobuf message.")) { try reader.finish() }
        }
    }

    @Test func textsMustBeUTF8() {
        func isUTF8(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes(\.isUTF8) }
        #expect(isUTF8([]) && isUTF8([UInt8]("Eight888".utf8)) && isUTF8([UInt8]("Zwölf Boxkämpfer 🥊".utf8)))
        for bad in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xC3], [0xF4, 0x90, 0x80, 0x80]] as [[UInt8]] {
            for count in 0...17 {
                #expect(!isUTF8([UInt8](repeating: 0x61, count: count) + bad))
                #expect(!isUTF8(bad + [UInt8](repeating: 0x61, count: count)))
            }
        }
    }

    @Test func pairsMustBeUTF8WhereTheyAreTexts() throws {
        func pair(_ bytes: [UInt8], isText: Bool) throws -> [[UInt8]] {
            try bytes.withUnsafeBytes {
                let pair = try FieldPair(parsing: $0, isText: isText)
                return [[UInt8](pair.first), [UInt8](pair.second)]
            }
        }
        #expect(try pair([], isText: true) == [[], []])
        // The last value counts, and other fields are skipped.
        let bytes: [UInt8] = [0x12, 1, 0x61, 0x0A, 1, 0x62, 0x08, 5, 0x10, 5, 0x12, 1, 0x63, 0x1A, 1, 0xFF]
        #expect(try pair(bytes, isText: true) == [[0x62], [0x63]])
        #expect(try pair([0x12, 1, 0xFF], isText: false) == [[], [0xFF]])
        #expect(throws: SessionViolation.self) { try pair([0x12, 1, 0xFF], isText: true) }
        #expect(throws: SessionViolation.self) { try pair([0x0A, 1, 0xFF], isText: false) }
    }
}
