import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import LifelineWellKnownTypes
import TestProtos
import Testing

/// Messages, lists and maps are equal if their encodings are, and then have equal hashes.
@Suite struct EqualityTests {
    private typealias Singular = Test_Scalars_Proto3_Singular
    private typealias Optional = Test_Scalars_Proto3_Optional
    private typealias Packed = Test_Scalars_Proto3_Packed
    private typealias Unpacked = Test_Scalars_Proto3_Unpacked
    private typealias MapValues = Test_Scalars_Proto3_MapValues
    private typealias Choice = Test_Scalars_Proto3_Choice

    private static let numbers: [Double] = [
        0, -0.0, 1, -1, .nan, -.nan, Double(nan: 5, signaling: false), .infinity, .leastNonzeroMagnitude,
    ]

    // MARK: Floating-point numbers

    private func expectEqualityByBits<M: Message>(
        _ make: (Double) -> M,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try expectEquality(Self.numbers, make, { $0.bitPattern }, sourceLocation)
    }

    private func expectEqualityByBits<M: Message>(
        ofFloat make: (Float) -> M,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try expectEquality(Self.numbers.map { Float($0) }, make, { $0.bitPattern }, sourceLocation)
    }

    private func expectEquality<Number, M: Message>(
        _ numbers: [Number],
        _ make: (Number) -> M,
        _ bits: (Number) -> some Equatable,
        _ sourceLocation: SourceLocation
    ) throws {
        for left in numbers {
            let message = make(left)
            let copy = try M(serializedBytes: message.serializedBytes())
            let comment: Comment = "\(left)"
            #expect(message == message && message == copy, comment, sourceLocation: sourceLocation)
            #expect(message.hashValue == copy.hashValue, comment, sourceLocation: sourceLocation)
            let set: Set = [message, copy, make(left)]
            #expect(set.count == 1 && set.contains(copy), comment, sourceLocation: sourceLocation)
            for right in numbers {
                let other = make(right)
                let isSame = bits(left) == bits(right)
                let comment: Comment = "\(left), \(right)"
                #expect((message == other) == isSame, comment, sourceLocation: sourceLocation)
                let haveSameBytes = try message.serializedBytes() == other.serializedBytes()
                #expect(haveSameBytes == isSame, comment, sourceLocation: sourceLocation)
                #expect(Set([message, other]).count == (isSame ? 1 : 2), comment, sourceLocation: sourceLocation)
            }
        }
    }

    @Test func singularNumbers() throws {
        try expectEqualityByBits { number in Singular.with { $0.aDouble = number } }
        try expectEqualityByBits(ofFloat: { number in Singular.with { $0.aFloat = number } })
        try expectEqualityByBits { number in Optional.with { $0.aDouble = number } }
        try expectEqualityByBits(ofFloat: { number in Optional.with { $0.aFloat = number } })
        try expectEqualityByBits { number in Test_Scalars_Proto2_Singular.with { $0.aDouble = number } }
        try expectEqualityByBits { Google_Protobuf_DoubleValue($0) }
        try expectEqualityByBits(ofFloat: { Google_Protobuf_FloatValue($0) })
    }

    /// Without presence, a negative zero is a value, and a positive one is none.
    @Test func zerosWithoutPresence() {
        #expect(Singular.with { $0.aDouble = 0 } == Singular())
        #expect(Singular.with { $0.aDouble = -0.0 } != Singular())
        #expect(Singular.with { $0.aFloat = -0.0 } != Singular())
        #expect(Optional.with { $0.aDouble = 0 } != Optional())
    }

    @Test func repeatedNumbers() throws {
        try expectEqualityByBits { number in Packed.with { $0.someDouble = [1, number] } }
        try expectEqualityByBits(ofFloat: { number in Packed.with { $0.someFloat = [number, 1, 2] } })
        try expectEqualityByBits { number in Unpacked.with { $0.someDouble = [1, number] } }
        try expectEqualityByBits(ofFloat: { number in Unpacked.with { $0.someFloat = [number] } })
    }

    @Test func numbersInMaps() throws {
        try expectEqualityByBits { number in MapValues.with { $0.byDouble = [1: number, 2: 0] } }
        try expectEqualityByBits(ofFloat: { number in MapValues.with { $0.byFloat = [1: number, 2: 0] } })
    }

    @Test func numbersInOneofsAndBelow() throws {
        try expectEqualityByBits { number in Choice.with { $0.aDouble = number } }
        try expectEqualityByBits(ofFloat: { number in Choice.with { $0.aFloat = number } })
        try expectEqualityByBits { number in Choice.with { $0.nested.nested.aDouble = number } }
        try expectEqualityByBits { number in ChatMessage.with { $0.replyTo.location.latitude = number } }
    }

    /// Extensions exist only as bytes: a known field is compared like them.
    @Test func numbersInExtensionsAndUnknownFields() throws {
        typealias Extendable = Test_Proto2_Extendable
        try expectEqualityByBits { number in Extendable.with { $0.Test_Extending_aDouble = number } }
        try expectEqualityByBits(ofFloat: { number in Extendable.with { $0.Test_Extending_aFloat = number } })
        try expectEqualityByBits { number in
            Extendable.with { $0.Test_Extending_singular = .with { $0.aDouble = number } }
        }
        try expectEqualityByBits { number in Singular.with { $0.aDouble = number }.withoutKnownFields }
    }

    // MARK: Lists and maps

    @Test func listsAndMapsAreComparedAsTheirMessages() throws {
        for left in Self.numbers {
            for right in Self.numbers {
                let isSame = left.bitPattern == right.bitPattern
                let (list, other) = ([1, left] as RepeatedField<Double>, [1, right] as RepeatedField<Double>)
                #expect((list == other) == isSame)
                #expect(!isSame || list.hashValue == other.hashValue)
                let (map, otherMap) = ([1: left] as MapField<Int32, Double>, [1: right] as MapField<Int32, Double>)
                #expect((map == otherMap) == isSame)
                #expect(!isSame || map.hashValue == otherMap.hashValue)
                let floats = ([Float(left)] as RepeatedField, [Float(right)] as RepeatedField)
                #expect((floats.0 == floats.1) == (Float(left).bitPattern == Float(right).bitPattern))
            }
        }
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect([composed] as RepeatedField != [decomposed] && [composed] as RepeatedField == [composed])
        #expect([composed: 1] as MapField<String, Int32> != [decomposed: 1])
        #expect([1: composed] as MapField<Int32, String> != [1: decomposed])
        #expect(Singular.with { $0.aString = composed } != .with { $0.aString = decomposed })
    }

    @Test func elementsOfAllKinds() {
        #expect([true, false] as RepeatedField == [true, false] && [true] as RepeatedField != [false])
        #expect([[1], []] as RepeatedField<[UInt8]> == [[1], []] && [[1]] as RepeatedField<[UInt8]> != [[2]])
        #expect([[]] as RepeatedField<[UInt8]> != [] && [] as RepeatedField<[UInt8]> == [])
        #expect(["a", ""] as RepeatedField == ["a", ""] && ["a"] as RepeatedField != ["a", ""])
        typealias Color = Test_Scalars_Proto3_Color
        #expect([.red, .UNRECOGNIZED(9)] as RepeatedField<Color> == [.red, .UNRECOGNIZED(9)])
        #expect([.red] as RepeatedField<Color> != [.green])
        typealias Point = Test_Scalars_Proto3_Point
        #expect([.with { $0.x = 1 }, .init()] as RepeatedField<Point> == [.with { $0.x = 1 }, .init()])
        #expect([.with { $0.x = 1 }] as RepeatedField<Point> != [.with { $0.x = 2 }])
        #expect([true: "a"] as MapField != [false: "a"] && [:] as MapField<Bool, String> == [:])
        #expect(["a": .with { $0.x = 1 }] as MapField<String, Point> == ["a": .with { $0.x = 1 }])
        #expect(["a": .with { $0.x = 1 }] as MapField<String, Point> != ["a": .init()])
    }

    /// Texts that are not UTF-8 may read the same, but have different bytes.
    @Test func malformedText() throws {
        func message(_ byte: UInt8) throws -> Packed {
            try Packed(serializedBytes: [0x72, 1, byte], options: DecodingOptions(validatesUTF8: false))
        }
        let (left, right) = (try message(0xFE), try message(0xFF))
        #expect(left.someString[0] == right.someString[0])
        #expect(left != right && left.someString != right.someString)
        #expect(try left == message(0xFE) && left.someString == message(0xFE).someString)
    }

    /// An entry that lacks its message is encoded with an empty one.
    @Test func anEntryWithoutItsMessage() throws {
        let lacking = try MapValues(serializedBytes: [0x8A, 1, 2, 8, 1])
        let empty = MapValues.with { $0.byPoint = [1: .init()] }
        #expect(lacking == empty && lacking.byPoint == empty.byPoint)
        #expect(try lacking.hashValue == empty.hashValue && lacking.serializedBytes() == empty.serializedBytes())
    }

    // MARK: Sets and dictionaries

    @Test func messagesWithANaNAreFoundInSetsAndDictionaries() {
        let nan = ChatMessage.with { $0.location.latitude = .nan }
        var set: Set = [nan]
        #expect(!set.insert(.with { $0.location.latitude = .nan }).inserted)
        #expect(set.remove(nan) != nil && set.isEmpty)
        var counts: [ChatMessage: Int] = [:]
        for _ in 0..<3 { counts[.with { $0.location.latitude = .nan }, default: 0] += 1 }
        #expect(counts == [nan: 3])
        let lists: Set<RepeatedField<Double>> = [[.nan], [.nan], [0], [-0.0]]
        #expect(lists.count == 3)
    }

    // MARK: Random messages

    /// Messages that differ in a bit or two of their encoding, or in none of their content.
    @Test(arguments: MessageCorpus.all.indices) func equalityIsThatOfEncodings(index: Int) throws {
        try expectEqualityOfEncodings(MessageCorpus.all[index].message, seed: UInt64(index))
    }

    private func expectEqualityOfEncodings<M: Message>(_ message: M, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let bytes = try message.serializedBytes(partial: true)
        var messages = [message]
        for _ in 0..<300 {
            var changed = bytes
            for _ in 0..<Int.random(in: 0...2, using: &random) where !bytes.isEmpty {
                changed[Int.random(in: changed.indices, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            }
            let options = DecodingOptions(validatesUTF8: false)
            guard let decoded = try? M(serializedBytes: changed, partial: true, options: options) else { continue }
            messages.append(decoded)
        }
        let encodings = try messages.map { try $0.serializedBytes(partial: true) }
        for _ in 0..<2_000 {
            let left = Int.random(in: messages.indices, using: &random)
            let right = Int.random(in: messages.indices, using: &random)
            try #require((messages[left] == messages[right]) == (encodings[left] == encodings[right]))
            if messages[left] == messages[right] {
                try #require(messages[left].hashValue == messages[right].hashValue)
            }
        }
        #expect(Set(messages).count == Set(encodings).count)
    }
}

extension Message {
    /// The message, decoded by a type that knows none of its fields.
    fileprivate var withoutKnownFields: Google_Protobuf_Empty {
        // Encoded bytes can be decoded.
        guard let bytes = try? serializedBytes(), let empty = try? Google_Protobuf_Empty(serializedBytes: bytes) else {
            preconditionFailure("A message of unknown fields")
        }
        return empty
    }
}
