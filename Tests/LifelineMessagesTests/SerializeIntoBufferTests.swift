import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import TestProtos
import Testing

/// `serialize(intoEndOf:)` writes into the caller's memory, and changes nothing else there.
@Suite struct SerializeIntoBufferTests {
    /// The additional room that a buffer needs, as the method's documentation says.
    private static let surplus = 88

    /// The bytes at the end of a buffer of `room` bytes, between two others that must not change.
    private func encode(
        _ message: some Message,
        room: Int,
        delimited: Bool = false,
        partial: Bool = false
    ) throws -> [UInt8]? {
        let guardSize = 128
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: room + 2 * guardSize, alignment: 8)
        defer { memory.deallocate() }
        for position in memory.indices { memory[position] = Self.pattern(position) }
        let buffer = UnsafeMutableRawBufferPointer(rebasing: memory[guardSize..<(guardSize + room)])
        let encoded = try message.serialize(intoEndOf: buffer, delimited: delimited, partial: partial)
        let outside = [memory[..<guardSize], memory[(guardSize + room)...]]
        for part in outside {
            #expect(part.indices.allSatisfy { part[$0] == Self.pattern($0) }, "written outside a buffer of \(room)")
        }
        guard let encoded else { return nil }
        #expect(encoded.endIndex == buffer.endIndex)
        return Array(encoded)
    }

    private static func pattern(_ position: Int) -> UInt8 { UInt8(truncatingIfNeeded: position &* 31 &+ 7) }

    /// For every size of buffer: the bytes of `serializedBytes`, or nothing if the additional room is missing.
    private func expectRightBytes(of message: some Message, delimited: Bool, name: String) throws {
        let bytes = try message.serializedBytes()
        let expected = delimited ? try message.withDelimitedBytes { Array($0) } : bytes
        #expect(expected.suffix(bytes.count) == bytes[...])
        for room in 0...(expected.count + Self.surplus + 1) {
            let encoded = try encode(message, room: room, delimited: delimited)
            let isAllowedToFail = room < expected.count + Self.surplus
            #expect(encoded == expected || encoded == nil && isAllowedToFail, "\(name) in \(room) bytes")
        }
    }

    @Test(arguments: MessageCorpus.all.indices, [false, true])
    func everySizeOfBufferIsSafe(index: Int, delimited: Bool) throws {
        let (name, message) = MessageCorpus.all[index]
        try expectRightBytes(of: message, delimited: delimited, name: name)
    }

    @Test(arguments: [false, true]) func theSurplusSufficesForTextOfAnyLength(delimited: Bool) throws {
        for length in Array(0...200) + [16_380, 16_383, 16_384, 70_000] {
            let text = String(repeating: "t", count: length)
            let messages: [any Message] = [
                Google_Protobuf_StringValue(text),
                ChatMessage.with { $0.author.name = text },
                ChatMessage.with { $0.headers = [text: text] },
                Test_Scalars_Proto3_Packed.with { $0.someString = [text, text] },
                Test_Scalars_Many_ManyFields.with { $0.highest = [UInt8](text.utf8) },
            ]
            for message in messages { try expectRightBytesInTheDocumentedRoom(of: message, delimited: delimited) }
        }
    }

    private func expectRightBytesInTheDocumentedRoom(of message: some Message, delimited: Bool) throws {
        let expected = try delimited ? message.withDelimitedBytes { Array($0) } : message.serializedBytes()
        #expect(try encode(message, room: expected.count + Self.surplus, delimited: delimited) == expected)
        if expected.count > 0 {
            #expect(try encode(message, room: expected.count - 1, delimited: delimited) == nil)
        }
    }

    @Test func theSurplusSufficesForLists() throws {
        for count in 0...70 {
            let message = Test_Scalars_Proto3_Packed.with {
                $0.someInt32 = .init(repeating: -1, count: count)
                $0.someDouble = .init(repeating: 1, count: count)
                $0.someBool = .init(repeating: true, count: count)
                $0.someColor = .init(repeating: .lowest, count: count)
                $0.somePoint = .init(repeating: .init(), count: count)
            }
            try expectRightBytesInTheDocumentedRoom(of: message, delimited: true)
            let unpacked = Test_Scalars_Proto3_Unpacked.with {
                $0.someInt64 = .init(repeating: -1, count: count)
                $0.someFloat = .init(repeating: 1, count: count)
            }
            try expectRightBytesInTheDocumentedRoom(of: unpacked, delimited: true)
        }
    }

    @Test func unknownFieldsAreWrittenToo() throws {
        let unknown: [UInt8] = [0xFA, 7, 100] + [UInt8](repeating: 5, count: 100) + [0xF8, 6, 1]
        let message = try ChatMessage(serializedBytes: [0x22, 1, 0x61] + unknown)
        try expectRightBytes(of: message, delimited: true, name: "unknown fields")
    }

    @Test(arguments: [(125, 1), (126, 2), (16_380, 2), (16_381, 3)])
    func theLengthStandsInFront(size: Int, prefixCount: Int) throws {
        let message = Google_Protobuf_BytesValue([UInt8](repeating: 7, count: size))
        let count = try message.serializedBytes().count
        let encoded = try #require(try encode(message, room: count + 200, delimited: true))
        #expect(encoded.count == count + prefixCount)
        var length = 0
        for (index, byte) in encoded.prefix(prefixCount).enumerated() {
            length |= Int(byte & 0x7F) << (7 * index)
            #expect((byte >= 0x80) == (index < prefixCount - 1))
        }
        #expect(length == count)
    }

    @Test func noMemoryIsTooLittle() throws {
        let nothing = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        #expect(try ValueSemanticsTests.sample().serialize(intoEndOf: nothing) == nil)
        // An empty message has no bytes: either answer is right.
        #expect(try ChatMessage().serialize(intoEndOf: nothing)?.isEmpty ?? true)
    }

    @Test func requiredFieldsAreCheckedFirst() throws {
        let message = Test_Scalars_Proto2_Required.with { $0.aInt32 = 1 }
        let error = #expect(throws: MessageError.self) { try encode(message, room: 200) }
        #expect(error?.code == .missingRequiredField)
        #expect(throws: MessageError.self) { try encode(message, room: 0) }
        #expect(try encode(message, room: 200, partial: true) == [0x18, 1])
    }

    @Test func tooDeepIsAnErrorAndNotAWantOfRoom() throws {
        var message = ChatMessage()
        for _ in 0..<1_001 { message = .with { $0.replyTo = message } }
        let error = #expect(throws: MessageError.self) { try encode(message, room: 10_000) }
        #expect(error?.code == .tooDeep)
    }
}
