import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import TestProtos
import Testing

/// Messages with so many fields that absent ones are skipped in groups: few fields are set, in every place.
@Suite struct WideMessagesTests {
    private typealias ManyFields = Test_Scalars_Many_ManyFields

    /// The fields of ManyFields, which repeats the scalar types in turn.
    private static let numbers = Array(1...150) + [2_048, 18_999, 20_000, 536_870_911]

    /// A field of ManyFields as it is encoded; `isZero` for the value that stands for absence.
    private static func field(_ number: Int, isZero: Bool = false) -> [UInt8] {
        let value = encodedValue(number)
        let zero = [UInt8](repeating: 0, count: wireType(number) == 2 ? 1 : value.count)
        return varint(number << 3 | wireType(number)) + (isZero ? zero : value)
    }

    private static func encodedValue(_ number: Int) -> [UInt8] {
        switch number {
        case 2_048: [1]
        case 18_999, 536_870_911: [1, 0x61]
        case 20_000: [2, 0, 1]
        default: encodings[(number - 1) % 15]
        }
    }

    /// double, float, int32, int64, uint32, uint64, sint32, sint64, fixed32, fixed64, sfixed32, sfixed64, bool, string,
    /// bytes: of fixed-size numbers only the last byte is set, so that no other can stand in for it.
    private static let encodings: [[UInt8]] = [
        [0, 0, 0, 0, 0, 0, 0, 0x80], [0, 0, 0, 0x80], [1], [2], [3], [4], [5], [6], [0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 1], [1], [1, 0x61], [1, 0xFF],
    ]

    private static func wireType(_ number: Int) -> Int {
        switch number {
        case 2_048: 0
        case 18_999, 20_000, 536_870_911: 2
        default: [1, 5, 0, 0, 0, 0, 0, 0, 5, 1, 5, 1, 0, 2, 2][(number - 1) % 15]
        }
    }

    private static func varint(_ value: Int) -> [UInt8] {
        value < 128 ? [UInt8(value)] : [UInt8(value % 128 + 128)] + varint(value / 128)
    }

    private func expectRoundTrip(_ bytes: [UInt8], _ comment: Comment) throws {
        let message = try ManyFields(serializedBytes: bytes)
        #expect(message.unknownFields == [], comment)
        #expect(try message.serializedBytes() == bytes, comment)
        #expect((message == .init()) == bytes.isEmpty, comment)
        var copy = message
        copy.field3 += 1
        copy.field3 -= 1
        #expect(copy == message, comment)
        #expect(try copy.serializedBytes() == bytes, comment)
    }

    @Test func nothingSet() throws { try expectRoundTrip([], "nothing") }

    @Test func eachFieldAlone() throws {
        for number in Self.numbers { try expectRoundTrip(Self.field(number), "\(number)") }
    }

    @Test func eachFieldAtZero() throws {
        for number in Self.numbers {
            let bytes = Self.field(number, isZero: true)
            let message = try ManyFields(serializedBytes: bytes)
            // Zero is a value of an `optional` field, but not of others.
            #expect(try message.serializedBytes() == (number == 2_048 ? bytes : []), "\(number)")
            #expect(message.unknownFields == [])
        }
    }

    @Test func firstAndLast() throws {
        try expectRoundTrip(Self.field(1) + Self.field(536_870_911), "first and last")
        try expectRoundTrip(Self.field(150) + Self.field(2_048), "the last of a row, and the one behind it")
    }

    @Test func neighbours() throws {
        for (left, right) in zip(Self.numbers, Self.numbers.dropFirst()) {
            try expectRoundTrip(Self.field(left) + Self.field(right), "\(left) and \(right)")
        }
    }

    @Test func everyFieldButOne() throws {
        for absent in Self.numbers {
            let bytes = Self.numbers.filter { $0 != absent }.flatMap { Self.field($0) }
            try expectRoundTrip(bytes, "all but \(absent)")
        }
        try expectRoundTrip(Self.numbers.flatMap { Self.field($0) }, "all")
    }

    @Test func randomSets() throws {
        var generator = SeededGenerator(seed: 24)
        for _ in 0..<500 {
            let count = Int.random(in: 1...12, using: &generator)
            let numbers = Set((0..<count).compactMap { _ in Self.numbers.randomElement(using: &generator) }).sorted()
            let fields = numbers.map { Self.field($0) }
            try expectRoundTrip(fields.flatMap { $0 }, "\(numbers)")
            // In any order they are the same message.
            let shuffled = try ManyFields(serializedBytes: fields.shuffled(using: &generator).flatMap { $0 })
            #expect(try shuffled.serializedBytes() == fields.flatMap { $0 })
        }
    }

    // MARK: Presence

    /// A proto2 message of 43 fields, each with a default: a field that is set to zero is set.
    @Test func fieldsThatAreSetToZero() throws {
        typealias Defaults = Test_Proto2_Defaults
        let zeros: [(ClosedRange<Int>, wireType: Int, [UInt8])] = [
            (1...7, 1, [0, 0, 0, 0, 0, 0, 0, 0]), (8...13, 5, [0, 0, 0, 0]), (14...20, 0, [0]),
            (21...21, 5, [0, 0, 0, 0]),
            (22...22, 1, [0, 0, 0, 0, 0, 0, 0, 0]), (23...23, 5, [0, 0, 0, 0]), (24...24, 1, [0, 0, 0, 0, 0, 0, 0, 0]),
            (25...26, 0, [0]), (27...35, 2, [0]), (38...39, 0, [0]), (41...41, 0, [0]), (42...42, 2, [0]),
            // These are of a closed enum, which has no zero.
            (36...37, 0, [7]), (43...43, 0, [7]),
        ]
        for (numbers, wireType, zero) in zeros {
            for number in numbers {
                let bytes = Self.varint(number << 3 | wireType) + zero
                let message = try Defaults(serializedBytes: bytes, partial: true)
                #expect(message.unknownFields == [], "\(number)")
                #expect(message != .init(), "\(number)")
                #expect(try message.serializedBytes(partial: true) == bytes, "\(number)")
            }
        }
    }

    /// A message of 25 fields with a oneof, whose members stand at the end of the struct.
    @Test func membersOfAOneof() throws {
        for bytes: [UInt8] in [[0x7A, 0], [0x82, 1, 0], [0x8A, 1, 0], [0x92, 1, 0]] {
            let message = try ChatMessage(serializedBytes: bytes)
            #expect(message.body != nil)
            #expect(try message.serializedBytes() == bytes)
            let last: [UInt8] = [0xC8, 1, 1]
            #expect(try ChatMessage(serializedBytes: bytes + last).serializedBytes() == bytes + last)
        }
    }

    @Test func requiredFieldsAreFoundAmongMany() throws {
        let message = Test_Proto2_Defaults.with { $0.aDouble = 0 }
        let error = #expect(throws: MessageError.self) { try message.serializedBytes() }
        #expect(error?.code == .missingRequiredField)
        #expect(error?.message.contains("required_with_default") == true)
    }
}
