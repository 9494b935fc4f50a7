import LifelineMessages
import TestProtos
import Testing

/// Every field of every kind, at the ends of its range, encoded and decoded.
@Suite struct GeneratedCodeRoundTripTests {
    private func expectRoundTrip<M: Message>(_ message: M, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let bytes = try message.serializedBytes()
        let decoded = try M(serializedBytes: bytes)
        #expect(decoded == message, sourceLocation: sourceLocation)
        #expect(decoded.unknownFields == [], sourceLocation: sourceLocation)
        #expect(try decoded.serializedBytes() == bytes, sourceLocation: sourceLocation)
        #expect(decoded.textFormatString() == message.textFormatString(), sourceLocation: sourceLocation)
        #expect(decoded.hashValue == message.hashValue, sourceLocation: sourceLocation)
    }

    private let text = "NUL \0, é, 😀, \u{FFFD}"
    private let bytes = [UInt8](UInt8.min...UInt8.max)

    @Test func singularFieldsAtTheirLowest() throws {
        let message = Test_Scalars_Proto3_Singular.with {
            $0.aDouble = -.greatestFiniteMagnitude
            $0.aFloat = -.greatestFiniteMagnitude
            $0.aInt32 = .min
            $0.aInt64 = .min
            $0.aUint32 = .min
            $0.aUint64 = .min
            $0.aSint32 = .min
            $0.aSint64 = .min
            $0.aFixed32 = .min
            $0.aFixed64 = .min
            $0.aSfixed32 = .min
            $0.aSfixed64 = .min
            $0.aBool = true
            $0.aString = text
            $0.aBytes = bytes
            $0.aColor = .lowest
            $0.aPoint.x = .min
        }
        try expectRoundTrip(message)
        let decoded = try Test_Scalars_Proto3_Singular(serializedBytes: message.serializedBytes())
        #expect(decoded.aDouble == -.greatestFiniteMagnitude)
        #expect(decoded.aFloat == -.greatestFiniteMagnitude)
        #expect(decoded.aInt32 == .min)
        #expect(decoded.aInt64 == .min)
        #expect(decoded.aUint32 == .min)
        #expect(decoded.aUint64 == .min)
        #expect(decoded.aSint32 == .min)
        #expect(decoded.aSint64 == .min)
        #expect(decoded.aFixed32 == .min)
        #expect(decoded.aFixed64 == .min)
        #expect(decoded.aSfixed32 == .min)
        #expect(decoded.aSfixed64 == .min)
        #expect(decoded.aBool)
        #expect(decoded.aString == text)
        #expect(decoded.aBytes == bytes)
        #expect(decoded.aColor == .lowest)
        #expect(decoded.aPoint.x == .min)
    }

    @Test func singularFieldsAtTheirHighest() throws {
        let message = Test_Scalars_Proto3_Singular.with {
            $0.aDouble = .greatestFiniteMagnitude
            $0.aFloat = .greatestFiniteMagnitude
            $0.aInt32 = .max
            $0.aInt64 = .max
            $0.aUint32 = .max
            $0.aUint64 = .max
            $0.aSint32 = .max
            $0.aSint64 = .max
            $0.aFixed32 = .max
            $0.aFixed64 = .max
            $0.aSfixed32 = .max
            $0.aSfixed64 = .max
            $0.aBool = true
            $0.aString = text
            $0.aBytes = bytes
            $0.aColor = .highest
            $0.aPoint.x = .max
        }
        try expectRoundTrip(message)
        let decoded = try Test_Scalars_Proto3_Singular(serializedBytes: message.serializedBytes())
        #expect(decoded.aDouble == .greatestFiniteMagnitude)
        #expect(decoded.aFloat == .greatestFiniteMagnitude)
        #expect(decoded.aInt32 == .max)
        #expect(decoded.aInt64 == .max)
        #expect(decoded.aUint32 == .max)
        #expect(decoded.aUint64 == .max)
        #expect(decoded.aSint32 == .max)
        #expect(decoded.aSint64 == .max)
        #expect(decoded.aFixed32 == .max)
        #expect(decoded.aFixed64 == .max)
        #expect(decoded.aSfixed32 == .max)
        #expect(decoded.aSfixed64 == .max)
        #expect(decoded.aBool)
        #expect(decoded.aString == text)
        #expect(decoded.aBytes == bytes)
        #expect(decoded.aColor == .highest)
        #expect(decoded.aPoint.x == .max)
    }

    /// A String that is wrongly marked as ASCII counts a UTF-16 unit for each byte.
    @Test func textOfEveryLengthIsToldFromASCII() {
        for (length, position) in (16...40).flatMap({ length in (0..<length).map { (length, $0) } }) {
            let after = String(repeating: "b", count: length - 1 - position)
            let text = String(repeating: "a", count: position) + "é" + after
            let message = Test_Scalars_Proto3_Singular.with { $0.aString = text }
            #expect(message.aString == text)
            #expect(message.aString.utf16.count == length)
        }
    }

    @Test func repeatedFieldsPacked() throws {
        let message = Test_Scalars_Proto3_Packed.with {
            $0.someDouble = [.nan, -0.0, .infinity, .leastNonzeroMagnitude]
            $0.someFloat = [.nan, -0.0, .infinity, .leastNonzeroMagnitude]
            $0.someInt32 = [.min, 0, 1, .max]
            $0.someInt64 = [.min, 0, 1, .max]
            $0.someUint32 = [.min, 0, 1, .max]
            $0.someUint64 = [.min, 0, 1, .max]
            $0.someSint32 = [.min, 0, 1, .max]
            $0.someSint64 = [.min, 0, 1, .max]
            $0.someFixed32 = [.min, 0, 1, .max]
            $0.someFixed64 = [.min, 0, 1, .max]
            $0.someSfixed32 = [.min, 0, 1, .max]
            $0.someSfixed64 = [.min, 0, 1, .max]
            $0.someBool = [true, false, true]
            $0.someString = [text, "", text]
            $0.someBytes = [bytes, [], bytes]
            $0.somePoint = [.with { $0.label = text }, .init()]
            $0.someColor = [.lowest, .UNRECOGNIZED(-2), .highest]
        }
        try expectRoundTrip(message)
        #expect(message.someUint64 == [.min, 0, 1, .max])
    }

    @Test func repeatedFieldsUnpacked() throws {
        let message = Test_Scalars_Proto3_Unpacked.with {
            $0.someDouble = [.nan, -0.0, .infinity, .leastNonzeroMagnitude]
            $0.someFloat = [.nan, -0.0, .infinity, .leastNonzeroMagnitude]
            $0.someInt32 = [.min, 0, 1, .max]
            $0.someInt64 = [.min, 0, 1, .max]
            $0.someUint32 = [.min, 0, 1, .max]
            $0.someUint64 = [.min, 0, 1, .max]
            $0.someSint32 = [.min, 0, 1, .max]
            $0.someSint64 = [.min, 0, 1, .max]
            $0.someFixed32 = [.min, 0, 1, .max]
            $0.someFixed64 = [.min, 0, 1, .max]
            $0.someSfixed32 = [.min, 0, 1, .max]
            $0.someSfixed64 = [.min, 0, 1, .max]
            $0.someBool = [true, false, true]
            $0.someColor = [.lowest, .UNRECOGNIZED(-2), .highest]
        }
        try expectRoundTrip(message)
        #expect(message.someUint64 == [.min, 0, 1, .max])
    }

    @Test func packedAndUnpackedAreReadAlike() throws {
        let unpacked = Test_Scalars_Proto3_Unpacked.with {
            $0.someSint32 = [-1, 1]
            $0.someDouble = [1, 2]
            $0.someColor = [.red, .UNRECOGNIZED(9)]
        }
        let packed = try Test_Scalars_Proto3_Packed(serializedBytes: unpacked.serializedBytes())
        #expect(packed.someSint32 == [-1, 1] && packed.someDouble == [1, 2])
        #expect(packed.someColor == [.red, .UNRECOGNIZED(9)])
        #expect(try packed.serializedBytes().count < unpacked.serializedBytes().count)
        #expect(try Test_Scalars_Proto3_Unpacked(serializedBytes: packed.serializedBytes()) == unpacked)
    }

    @Test func packedIsDeclaredTheOtherWayRoundInProto2() throws {
        let unpacked = Test_Scalars_Proto2_Unpacked.with { $0.someInt32 = [1, 2] }
        #expect(try unpacked.serializedBytes() == [0x18, 1, 0x18, 2])
        let packed = Test_Scalars_Proto2_Packed.with { $0.someInt32 = [1, 2] }
        #expect(try packed.serializedBytes() == [0x1A, 2, 1, 2])
    }

    @Test func mapsOfEveryValue() throws {
        let message = Test_Scalars_Proto3_MapValues.with {
            $0.byDouble = [.min: -.greatestFiniteMagnitude, 0: 0, .max: .greatestFiniteMagnitude]
            $0.byFloat = [.min: -.greatestFiniteMagnitude, 0: 0, .max: .greatestFiniteMagnitude]
            $0.byInt32 = [.min: .min, 0: 0, .max: .max]
            $0.byInt64 = [.min: .min, 0: 0, .max: .max]
            $0.byUint32 = [.min: .min, 0: 0, .max: .max]
            $0.byUint64 = [.min: .min, 0: 0, .max: .max]
            $0.bySint32 = [.min: .min, 0: 0, .max: .max]
            $0.bySint64 = [.min: .min, 0: 0, .max: .max]
            $0.byFixed32 = [.min: .min, 0: 0, .max: .max]
            $0.byFixed64 = [.min: .min, 0: 0, .max: .max]
            $0.bySfixed32 = [.min: .min, 0: 0, .max: .max]
            $0.bySfixed64 = [.min: .min, 0: 0, .max: .max]
            $0.byBool = [1: true, 2: false]
            $0.byString = [1: text, 2: ""]
            $0.byBytes = [1: bytes, 2: []]
            $0.byColor = [1: .highest, 2: .unspecified, 3: .UNRECOGNIZED(5)]
            $0.byPoint = [1: .with { $0.label = text }, 2: .init()]
        }
        try expectRoundTrip(message)
        #expect(message.bySfixed64[.min] == .min && message.byFloat[.max] == .greatestFiniteMagnitude)
        #expect(message.byBytes[1] == bytes && message.byPoint[1]?.label == text)
        #expect(message.byColor[3] == .UNRECOGNIZED(5) && message.byColor[4] == nil)
    }

    @Test func mapsOfEveryKey() throws {
        let message = Test_Scalars_Proto3_MapKeys.with {
            $0.ofInt32 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofInt64 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofUint32 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofUint64 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofSint32 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofSint64 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofFixed32 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofFixed64 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofSfixed32 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofSfixed64 = [.min: "lowest", 0: "zero", .max: "highest"]
            $0.ofBool = [true: "yes", false: "no"]
            $0.ofString = [text: text, "": "empty"]
        }
        try expectRoundTrip(message)
        #expect(message.ofInt32[.max] == "highest" && message.ofInt32[7] == nil)
        #expect(message.ofInt64[.max] == "highest" && message.ofInt64[7] == nil)
        #expect(message.ofUint32[.max] == "highest" && message.ofUint32[7] == nil)
        #expect(message.ofUint64[.max] == "highest" && message.ofUint64[7] == nil)
        #expect(message.ofSint32[.max] == "highest" && message.ofSint32[7] == nil)
        #expect(message.ofSint64[.max] == "highest" && message.ofSint64[7] == nil)
        #expect(message.ofFixed32[.max] == "highest" && message.ofFixed32[7] == nil)
        #expect(message.ofFixed64[.max] == "highest" && message.ofFixed64[7] == nil)
        #expect(message.ofSfixed32[.max] == "highest" && message.ofSfixed32[7] == nil)
        #expect(message.ofSfixed64[.max] == "highest" && message.ofSfixed64[7] == nil)
        #expect(message.ofBool[false] == "no")
        #expect(message.ofString[text] == text)
    }

    @Test func everyMemberOfAOneof() throws {
        typealias Choice = Test_Scalars_Proto3_Choice
        let values: [Choice.OneOf_Value] = [
            .aDouble(-.greatestFiniteMagnitude), .aFloat(-.greatestFiniteMagnitude), .aInt32(.min), .aInt64(.min),
            .aUint32(.max), .aUint64(.max), .aSint32(.max), .aSint64(.max),
            .aFixed32(.max), .aFixed64(.max), .aSfixed32(.max), .aSfixed64(.max),
            .aBool(true), .aBool(false), .aString(text), .aString(""), .aBytes(bytes), .aBytes([]),
            .aColor(.lowest), .aPoint(.with { $0.x = 1 }), .aPoint(.init()), .anotherPoint(.with { $0.y = 2 }),
            .nested(.with { $0.value = .nested(.with { $0.aInt32 = 3 }) }),
        ]
        var message = Choice()
        for value in values {
            message.value = value
            #expect(message.value == value)
            try expectRoundTrip(message)
            #expect(try Choice(serializedBytes: message.serializedBytes()).value == value)
        }
        // From each to each, through the same storage.
        for first in values {
            for second in values {
                message.value = first
                message.value = second
                #expect(message.value == second)
            }
        }
        message.value = nil
        #expect(message == Choice())
    }

    @Test func membersOfAOneofReadAsTheirDefaultsUnlessTheyAreSet() {
        var message = Test_Scalars_Proto3_Choice.with { $0.aUint64 = .max }
        #expect(message.aString == "" && message.aBytes == [] && message.aPoint == .init() && message.aDouble == 0)
        message.aPoint.x = 4
        #expect(message.value == .aPoint(.with { $0.x = 4 }) && message.aUint64 == 0 && message.anotherPoint.x == 0)
        message.anotherPoint.y += 1
        #expect(message.value == .anotherPoint(.with { $0.y = 1 }))
        message.nested.nested.aString = "deep"
        #expect(message.nested.nested.value == .aString("deep"))
        message.aString += "!"
        #expect(message.value == .aString("!"))
    }

    @Test func theLastMemberOfAOneofOnTheWireCounts() throws {
        let point = Test_Scalars_Proto3_Choice.with { $0.aPoint.x = 1 }
        let number = Test_Scalars_Proto3_Choice.with { $0.aInt32 = 2 }
        let both = try point.serializedBytes() + number.serializedBytes()
        #expect(try Test_Scalars_Proto3_Choice(serializedBytes: both).value == .aInt32(2))
        let other = Test_Scalars_Proto3_Choice.with { $0.aPoint.y = 3 }
        let merged = try point.serializedBytes() + other.serializedBytes()
        let expected = Test_Scalars_Proto3_Point.with { ($0.x, $0.y) = (1, 3) }
        #expect(try Test_Scalars_Proto3_Choice(serializedBytes: merged).value == .aPoint(expected))
    }

    @Test func aOneofThatBeginsWithBytesInProto2() throws {
        var message = Test_Scalars_Proto2_Choice.with { $0.aDouble = .pi }
        #expect(message.firstIsBytes == [])
        message.firstIsBytes = bytes
        try expectRoundTrip(message)
        message.aLevel = .low
        #expect(message.value == .aLevel(.low))
        try expectRoundTrip(message)
    }

    @Test func manyFieldsAndHighNumbers() throws {
        let message = Test_Scalars_Many_ManyFields.with {
            $0.field1 = .pi
            $0.field75 = bytes
            $0.field149 = text
            $0.field150 = bytes
            $0.beyondTwoByteTags = -1
            $0.beforeReserved = text
            $0.afterReserved = [.min, .max]
            $0.highest = [1]
        }
        try expectRoundTrip(message)
        #expect(try message.serializedBytes().suffix(7) == [0xFA, 0xFF, 0xFF, 0xFF, 0x0F, 1, 1])
    }
}
