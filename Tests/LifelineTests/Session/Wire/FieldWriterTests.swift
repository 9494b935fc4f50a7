import Lifeline
import LifelineCore
import Testing

@Suite struct FieldWriterTests {
    /// The bytes that are written to memory.
    private func memory(_ write: (inout FieldWriter) -> Void) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 64) { memory, count in
            guard let start = memory.baseAddress else { return }
            var writer = FieldWriter(UnsafeMutableRawPointer(start))
            write(&writer)
            count = writer.position - UnsafeMutableRawPointer(start)
        }
    }

    @Test func numbersAreWrittenToMemory() {
        for value in [0, 1, 127, 128, 300, 1 << 32, .max] as [UInt64] {
            #expect(memory { $0.varint(value) } == Varint.encoded(value))
            #expect(FieldWriter.length(of: value) == Varint.encoded(value).count)
            #expect(wireBytes { FieldWriter.appendVarint(value, to: &$0) } == Varint.encoded(value))
        }
        #expect(memory { $0.tag(.delimited(50)) } == [0x92, 0x03])
        #expect(memory { $0.paddedVarint(0) } == [0x80, 0x80, 0x80, 0x80, 0])
        #expect(memory { $0.paddedVarint(.max) } == [0xFF, 0xFF, 0xFF, 0xFF, 0x0F])
        let bytes = memory { writer in
            [UInt8]([1, 2]).withUnsafeBytes { writer.bytes($0) }
            writer.bytes(UnsafeRawBufferPointer(start: nil, count: 0))
        }
        #expect(bytes == [1, 2])
    }

    @Test func fieldsAreAppended() {
        #expect(wireBytes { FieldWriter.appendField(1, 0, to: &$0) } == [])
        #expect(wireBytes { FieldWriter.appendField(1, 300, to: &$0) } == [0x08, 0xAC, 0x02])
        #expect(wireBytes { FieldWriter.appendField(2, [], to: &$0) } == [0x12, 0])
        #expect(wireBytes { FieldWriter.appendField(2, "ë", to: &$0) } == [0x12, 2, 0xC3, 0xAB])
        for count in [0, 127, 128, 20_000] {
            let content = [UInt8](repeating: 1, count: count)
            let message = wireBytes { FieldWriter.appendMessage(1, to: &$0) { $0 += content } }
            #expect(message == [0x0A] + Varint.encoded(UInt64(count)) + content)
            let frame = wireBytes { FieldWriter.appendFrame(.cancel, to: &$0) { $0 += content } }
            let rest = [0x8A, 0x02] + Varint.encoded(UInt64(count)) + content
            #expect(frame == Varint.encoded(UInt64(rest.count)) + rest)
        }
    }

    @Test func metadataIsSortedByKey() throws {
        var bytes: [UInt8] = []
        FieldWriter.metadataFields(["b": "", "a": "x"], field: 2, into: &bytes)
        #expect(bytes == [0x12, 6, 0x0A, 1, 0x61, 0x12, 1, 0x78, 0x12, 5, 0x0A, 1, 0x62, 0x12, 0])
        let pairs = (0..<50).map { ("key \($0)", String(repeating: "ß", count: $0 * 5)) }
        let metadata = Dictionary(uniqueKeysWithValues: pairs)
        bytes = []
        FieldWriter.metadataFields(metadata, field: 5, into: &bytes)
        try withMessage(.request, bytes) {
            #expect($0.metadata == metadata && $0.metadataByteCount == bytes.count && $0.metadataCount == 50)
        }
    }

    @Test func theStatusOfAResponseIsRead() throws {
        #expect(wireBytes { FieldWriter.statusFields(status: 0, message: "", details: [], into: &$0) } == [])
        let details: [(typeURL: String, value: [UInt8])] = [("t", [1]), ("", [])]
        let bytes = wireBytes { FieldWriter.statusFields(status: 5, message: "m", details: details, into: &$0) }
        #expect(bytes == [0x10, 5, 0x1A, 1, 0x6D, 0x22, 6, 0x0A, 1, 0x74, 0x12, 1, 1, 0x22, 0])
        try withMessage(.response, bytes) {
            #expect($0.status == 5 && $0.textString == "m" && $0.details.map(\.typeURL) == ["t", ""])
            #expect($0.details.map(\.value) == [[1], []])
        }
    }
}
