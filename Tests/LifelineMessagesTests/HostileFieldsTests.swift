import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import TestProtos
import Testing

/// Fields that do not match their message type, in every place and kind, by the exact rules of the encoding.
@Suite(.timeLimit(.minutes(5))) struct HostileFieldsTests {
    private typealias Singular = Test_Scalars_Proto3_Singular

    private func code<M: Message>(_ bytes: [UInt8], as _: M.Type) -> MessageError.Code? {
        do throws(MessageError) {
            _ = try M(serializedBytes: bytes)
            return nil
        } catch {
            return error.code
        }
    }

    private static func tag(_ number: Int, _ wireType: Int) -> [UInt8] { varint(UInt64(number << 3 | wireType)) }

    private static func varint(_ value: UInt64) -> [UInt8] {
        value < 128 ? [UInt8(value)] : [UInt8(value % 128 + 128)] + varint(value / 128)
    }

    /// The content after a tag of each wire type.
    private static let payloads: [(wireType: Int, bytes: [UInt8])] = [
        (0, [1]), (1, [1, 2, 3, 4, 5, 6, 7, 8]), (2, [2, 8, 1]), (5, [1, 2, 3, 4]),
    ]

    // MARK: Tags

    @Test(arguments: 0..<8) func fieldNumber0IsRefused(wireType: Int) {
        let rest: [UInt8] = [2, 8, 1, 0, 0, 0, 0, 0, 0]
        #expect(code([UInt8(wireType)] + rest, as: Singular.self) == .invalidTag)
        #expect(code([0x18, 1, UInt8(wireType)] + rest, as: Singular.self) == .invalidTag)
        #expect(code([0x80 | UInt8(wireType), 0] + rest, as: Singular.self) == .invalidTag, "in two bytes")
        // In a submessage, a map entry, and a group.
        #expect(code([0x8A, 1, 10, UInt8(wireType)] + rest, as: Singular.self) == .invalidTag)
        #expect(code([0x32, 10, UInt8(wireType)] + rest, as: ChatMessage.self) == .invalidTag)
        #expect(code([0xFB, 7, UInt8(wireType)] + rest, as: Singular.self) == .invalidTag)
    }

    @Test(arguments: [6, 7], [1, 14, 15, 16, 17, 18, 2_047, 2_048, 536_870_911]) func wireTypes6And7AreRefused(
        wireType: Int,
        number: Int
    ) {
        #expect(code(Self.tag(number, wireType) + [0, 0, 0, 0], as: Singular.self) == .invalidTag)
    }

    /// A tag may have more bytes than it needs, but not more than five.
    @Test(arguments: 1...10) func tagsInMoreBytesThanTheyNeed(count: Int) throws {
        let padded = [0x98] + [UInt8](repeating: 0x80, count: max(count - 2, 0)) + [0]
        let bytes = (count == 1 ? [0x18] : padded) + [7]
        if count <= 5 {
            #expect(try Singular(serializedBytes: bytes) == .with { $0.aInt32 = 7 })
        } else {
            #expect(code(bytes, as: Singular.self) == .invalidTag)
        }
    }

    @Test func theHighestFieldNumber() throws {
        let highest: [UInt8] = [0xF8, 0xFF, 0xFF, 0xFF, 0x0F, 1]
        #expect(try Singular(serializedBytes: highest).unknownFields == highest)
        #expect(code([0xF8, 0xFF, 0xFF, 0xFF, 0x1F, 1], as: Singular.self) == .invalidTag)
        #expect(code([0x98, 0x80, 0x80, 0x80, 0x10, 7], as: Singular.self) == .invalidTag, "not field 3 by overflow")
    }

    // MARK: Wire types

    /// A field of every kind with every other wire type is unknown: it is kept, but the property does not read it.
    @Test(arguments: 1...17) func otherWireTypesAreUnknown(number: Int) throws {
        // In the order of the fields 1 to 17.
        let expected = [1, 5, 0, 0, 0, 0, 0, 0, 5, 1, 5, 1, 0, 2, 2, 0, 2][number - 1]
        for (wireType, payload) in Self.payloads where wireType != expected {
            let bytes = Self.tag(number, wireType) + payload
            let message = try Singular(serializedBytes: bytes)
            #expect(message.unknownFields == bytes)
            #expect(try message.serializedBytes() == bytes)
            let optional = try Test_Scalars_Proto2_Singular(serializedBytes: bytes)
            #expect(optional.unknownFields == bytes)
            let member = try Test_Scalars_Proto3_Choice(serializedBytes: bytes)
            #expect(member.unknownFields == bytes && member.value == nil)
            // Lists of numbers may be packed; other lists have the encoding of singular fields.
            guard wireType != 2 else { continue }
            let list = try Test_Scalars_Proto3_Packed(serializedBytes: bytes)
            #expect(list.unknownFields == bytes)
            #expect(list.withoutUnknownFields == .init())
        }
    }

    @Test(arguments: 1...17) func knownFieldsAsGroupsAreUnknown(number: Int) throws {
        let bytes = Self.tag(number, 3) + [0x18, 1] + Self.tag(number, 4)
        #expect(try Singular(serializedBytes: bytes).unknownFields == bytes)
        #expect(try Test_Scalars_Proto3_Packed(serializedBytes: bytes).unknownFields == bytes)
        #expect(try Test_Scalars_Proto3_MapValues(serializedBytes: bytes).unknownFields == bytes)
    }

    @Test(arguments: 1...17) func mapsOfOtherWireTypesAreUnknown(number: Int) throws {
        for (wireType, payload) in Self.payloads where wireType != 2 {
            let bytes = Self.tag(number, wireType) + payload
            #expect(try Test_Scalars_Proto3_MapValues(serializedBytes: bytes).unknownFields == bytes)
        }
    }

    /// Unknown fields inside a map entry are dropped, because the entry is not visible as a message.
    @Test func unknownFieldsInAMapsEntry() throws {
        let entry: [UInt8] = [0x0A, 1, 0x61, 0x18, 5, 0x08, 9, 0x12, 1, 0x62, 0x1B, 0x20, 1, 0x1C]
        let message = try ChatMessage(serializedBytes: [0x32, UInt8(entry.count)] + entry)
        #expect(message.headers == ["a": "b"])
        #expect(code([0x32, 2, 0x1B, 0x24], as: ChatMessage.self) == .unmatchedGroup)
        #expect(code([0x32, 1, 0x1B], as: ChatMessage.self) == .truncated)
    }

    // MARK: Unknown groups

    @Test(
        arguments: [
            ("empty", [0xFB, 7, 0xFC, 7], nil),
            ("in itself, of the same number", [0xFB, 7, 0xFB, 7, 0xFC, 7, 0xFC, 7], nil),
            ("of different numbers", [0xFB, 7, 0xF3, 7, 0xF4, 7, 0xFC, 7], nil),
            ("crossed", [0xFB, 7, 0xF3, 7, 0xFC, 7, 0xF4, 7], .unmatchedGroup),
            ("ended twice", [0xFB, 7, 0xFC, 7, 0xFC, 7], .unmatchedGroup),
            ("without end", [0xFB, 7], .truncated),
            ("without end, with a field", [0xFB, 7, 0x18, 1], .truncated),
            ("inner one without end", [0xFB, 7, 0xF3, 7, 0xFC, 7], .unmatchedGroup),
            ("cut inside a field", [0xFB, 7, 0x72, 5, 0x61], .truncated),
            ("with a field of too great a length", [0xFB, 7, 0x72, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0xFC, 7], .truncated),
            ("with field number 0", [0xFB, 7, 0x00, 1, 0xFC, 7], .invalidTag),
            ("with wire type 7", [0xFB, 7, 0x1F, 0xFC, 7], .invalidTag),
            ("with text that is not UTF-8", [0xFB, 7, 0x72, 1, 0xFF, 0xFC, 7], nil),
            ("begun in a submessage", [0x8A, 1, 2, 0xFB, 7, 0xFC, 7], .truncated),
            ("ended in a submessage", [0xFB, 7, 0x8A, 1, 2, 0xFC, 7], .truncated),
            ("ended only in a submessage", [0x8A, 1, 2, 0xFC, 7], .unmatchedGroup),
        ] as [(String, [UInt8], MessageError.Code?)]
    ) func groups(name: String, bytes: [UInt8], error: MessageError.Code?) throws {
        #expect(code(bytes, as: Singular.self) == error)
        if error == nil { #expect(try Singular(serializedBytes: bytes).serializedBytes() == bytes) }
    }

    // MARK: Varints

    @Test func varintsOfTenBytes() throws {
        let nine = [UInt8](repeating: 0xFF, count: 9)
        for (number, last) in [(3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1), (13, 1), (16, 1), (200, 1)]
            as [(Int, UInt8)]
        {
            let tag = Self.tag(number, 0)
            #expect(code(tag + nine + [last], as: Singular.self) == nil)
            for tenth: UInt8 in [2, 3, 0x40, 0x7F, 0x80, 0xFF] {
                #expect(code(tag + nine + [tenth, 0, 0], as: Singular.self) == .malformedVarint, "field \(number)")
                #expect(code(tag + nine + [tenth], as: Singular.self) != nil)
            }
            #expect(code(tag + nine, as: Singular.self) == .truncated)
        }
        let message = try Singular(
            serializedBytes: [0x18] + nine + [1, 0x28] + nine + [1, 0x30] + nine + [1, 0x68] + nine + [1]
        )
        #expect(message.aInt32 == -1 && message.aUint32 == .max && message.aUint64 == .max && message.aBool)
    }

    @Test func varintsInLists() {
        let over = [UInt8](repeating: 0xFF, count: 9) + [2]
        #expect(code([0x1A, 11, 1] + over, as: Test_Scalars_Proto3_Packed.self) == .malformedVarint)
        #expect(code([0x1A, 11] + over + [1], as: Test_Scalars_Proto3_Packed.self) == .malformedVarint)
        #expect(code([0x6A, 10] + over, as: Test_Scalars_Proto3_Packed.self) == .malformedVarint)
        #expect(code([0x18] + over, as: Test_Scalars_Proto3_Packed.self) == .malformedVarint)
        #expect(code([0x1A, 2, 1, 0x80], as: Test_Scalars_Proto3_Packed.self) != nil, "cut by the list's end")
        #expect(code([0x1A, 2, 1, 0x80, 0x18, 1], as: Test_Scalars_Proto3_Packed.self) != nil)
    }

    /// Padding zeros in a varint are no error, and a number that is too wide loses its upper bits.
    @Test(arguments: 1...10) func varintsInMoreBytesThanTheyNeed(count: Int) throws {
        let five = count == 1 ? [5] : [0x85] + [UInt8](repeating: 0x80, count: count - 2) + [0]
        for (field, expected) in [
            (3, Singular.with { $0.aInt32 = 5 }), (4, .with { $0.aInt64 = 5 }), (6, .with { $0.aUint64 = 5 }),
            (7, .with { $0.aSint32 = -3 }), (8, .with { $0.aSint64 = -3 }), (13, .with { $0.aBool = true }),
        ] {
            #expect(try Singular(serializedBytes: Self.tag(field, 0) + five) == expected)
        }
        #expect(try Singular(serializedBytes: [0x72] + five + Array("hello".utf8)).aString == "hello")
    }

    @Test func upperBitsAreLost() throws {
        let wide = Self.varint(0x1234_5678_0000_0007)
        let message = try Singular(serializedBytes: [0x18] + wide + [0x28] + wide + [0x38] + wide + [0x80, 1] + wide)
        #expect(message.aInt32 == 7 && message.aUint32 == 7 && message.aSint32 == -4)
        #expect(message.aColor.rawValue == 7)
        // A bool is true if any bit is set, including upper ones.
        #expect(try Singular(serializedBytes: [0x68] + Self.varint(1 << 63)).aBool)
        #expect(try Test_Scalars_Proto3_Packed(serializedBytes: [0x6A, 10] + Self.varint(1 << 63)).someBool == [true])
    }

    // MARK: Lengths

    @Test(arguments: [
        ("string", 14), ("bytes", 15), ("submessage", 17), ("list", 3), ("fixed-size list", 1), ("unknown", 200),
    ]) func lengthsThatReachTooFar(name: String, number: Int) {
        let tag = Self.tag(number, 2)
        for length in [1, 2, 127, 128, 1 << 14, 1 << 21, 1 << 31, 1 << 32, 1 << 62, 1 << 63, .max - 8, .max] as [UInt64]
        {
            for bytes in [tag + Self.varint(length), [0x8A, 1, 0] + tag + Self.varint(length)] {
                #expect(code(bytes, as: Singular.self) == .truncated, "\(name) of \(length)")
                #expect(code(bytes, as: Test_Scalars_Proto3_Packed.self) != nil, "\(name) of \(length)")
                #expect(code(bytes, as: Test_Scalars_Proto3_MapValues.self) == .truncated, "\(name) of \(length)")
            }
        }
        #expect(code(tag + [UInt8](repeating: 0xFF, count: 9) + [2], as: Singular.self) == .malformedVarint)
        #expect(code(tag + [UInt8](repeating: 0x80, count: 10) + [1], as: Singular.self) == .malformedVarint)
    }

    /// The content has to end at its length, although further bytes follow.
    @Test func nothingReachesBeyondItsMessage() {
        let behind = [UInt8](repeating: 0x08, count: 40)
        #expect(code([0x8A, 1, 1, 0x08] + behind, as: Singular.self) == .truncated)
        #expect(code([0x8A, 1, 2, 0x08, 0x80] + behind, as: Singular.self) == .truncated)
        #expect(code([0x8A, 1, 1, 0x88] + behind, as: Singular.self) == .truncated)
        #expect(code([0x8A, 1, 2, 0x1A, 5] + behind, as: Singular.self) == .truncated)
        #expect(code([0x32, 2, 0x0A, 5] + behind, as: ChatMessage.self) == .truncated)
        #expect(code([0x0A, 7] + behind, as: Test_Scalars_Proto3_Packed.self) == .invalidLength)
    }
}

extension Message {
    fileprivate var withoutUnknownFields: Self {
        var message = self
        message.removeUnknownFields()
        return message
    }
}
