import LifelineMessages
import TestProtos
import Testing

@Suite struct GeneratedCodeEnumTests {
    @Test func anOpenEnumKeepsNumbersThatItDoesNotDeclare() throws {
        typealias Color = Test_Scalars_Proto3_Color
        #expect(Color(rawValue: 77) == .UNRECOGNIZED(77))
        #expect(Color(rawValue: 1) == .red)
        #expect(Color.UNRECOGNIZED(77).rawValue == 77)
        #expect(Color.allCases == [.unspecified, .red, .green, .lowest, .highest])
        #expect(Color.lowest.rawValue == Int(Int32.min) && Color.highest.rawValue == Int(Int32.max))
        #expect(Color() == .unspecified)

        let message = try Test_Scalars_Proto3_Singular(serializedBytes: [0x80, 1, 77])
        #expect(message.aColor == .UNRECOGNIZED(77))
        #expect(message.unknownFields == [])
        #expect(try message.serializedBytes() == [0x80, 1, 77])
    }

    @Test func aClosedEnumLeavesThemToTheUnknownFields() throws {
        typealias Level = Test_Scalars_Proto2_Level
        #expect(Level(rawValue: 77) == nil)
        #expect(Level.allCases.map(\.rawValue) == [0, -5, 1_000_000])

        let singular = try Test_Scalars_Proto2_Singular(serializedBytes: [0x80, 1, 77])
        #expect(!singular.hasALevel && singular.aLevel == .middle)
        #expect(singular.unknownFields == [0x80, 1, 77])
        #expect(try singular.serializedBytes() == [0x80, 1, 77])
    }

    @Test func negativeAndSparseNumbersAreEncodedAsDeclared() throws {
        let message = Test_Scalars_Proto2_Singular.with { $0.aLevel = .low }
        let bytes: [UInt8] = [0x80, 1, 0xFB, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]
        #expect(try message.serializedBytes() == bytes)
        #expect(try Test_Scalars_Proto2_Singular(serializedBytes: bytes).aLevel == .low)
    }

    @Test func unknownNumbersOfRepeatedClosedEnumsAreKeptApart() throws {
        let packed: [UInt8] = [0x82, 1, 5, 0, 77, 0xC0, 0x84, 0x3D]
        let message = try Test_Scalars_Proto2_Packed(serializedBytes: packed)
        #expect(message.someLevel == [.middle, .high])
        #expect(!message.unknownFields.isEmpty)
        let again = try Test_Scalars_Proto2_Packed(serializedBytes: message.serializedBytes())
        #expect(again == message)
    }

    @Test func aMapEntryWithAnUnknownClosedEnumIsNoEntry() throws {
        let entry: [UInt8] = [0x82, 1, 5, 0x0A, 1, 0x61, 0x10, 77]
        let message = try Test_Scalars_Proto2_Maps(serializedBytes: entry)
        #expect(message.byLevel.isEmpty)
        #expect(message.unknownFields == entry)
    }

    @Test func aliasesAreTheCaseThatCameFirst() {
        typealias Alias = Test_Proto2_Alias
        #expect(Alias.uno == .first)
        #expect(Alias.due == .second && Alias.segundo == .second)
        #expect(Alias.allCases.count == 4)
        let message = Test_Proto2_Enums.with { $0.aliases = [.uno, .segundo, .lowest, .highest] }
        #expect(message.aliases == [.first, .second, .lowest, .highest])
        #expect(message.textFormatString().contains("aliases: ALIAS_SECOND"))
    }

    @Test func theFirstValueIsTheDefaultEvenIfItIsNotZero() {
        #expect(Test_Proto2_Enums().single == .only)
        #expect(Test_Proto2_Enums().alias == .first)
        #expect(Test_Proto2_Single() == .only)
    }

    @Test func aProto3EnumStaysOpenInAProto2Message() throws {
        let message = try Test_Proto2_Enums(serializedBytes: [0x40, 77, 0x48, 1, 0x48, 78, 0x38, 79])
        #expect(message.hasColor && message.color == .UNRECOGNIZED(77))
        #expect(message.colors == [.red, .UNRECOGNIZED(78)])
        #expect(message.choice == .chosenColor(.UNRECOGNIZED(79)))
        #expect(message.unknownFields == [])
    }

    @Test func anUnknownClosedEnumDoesNotChangeAOneof() throws {
        let message = try Test_Proto2_Enums(serializedBytes: [0x38, 1, 0x30, 77])
        #expect(message.choice == .chosenColor(.red))
        #expect(message.unknownFields == [0x30, 77])
    }
}
