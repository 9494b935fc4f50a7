import LifelineMessages
import TestProtos
import Testing

@Suite struct GeneratedCodePresenceTests {
    @Test func proto3OptionalFieldsKnowWhetherTheyAreSet() throws {
        var message = Test_Scalars_Proto3_Optional()
        #expect(!message.hasAInt32 && !message.hasAString && !message.hasABytes && !message.hasABool)
        #expect(!message.hasAColor && !message.hasAPoint && !message.hasADouble)
        message.aInt32 = 0
        message.aString = ""
        message.aBytes = []
        message.aBool = false
        message.aColor = .unspecified
        message.aPoint = .init()
        message.aDouble = 0
        #expect(message.hasAInt32 && message.hasAString && message.hasABytes && message.hasABool)
        #expect(message.hasAColor && message.hasAPoint && message.hasADouble)
        #expect(!message.hasAUint64)
        #expect(
            try message.serializedBytes() == [
                0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0x18, 0, 0x68, 0, 0x72, 0, 0x7A, 0, 0x80, 1, 0, 0x8A, 1, 0,
            ]
        )
        let decoded = try Test_Scalars_Proto3_Optional(serializedBytes: message.serializedBytes())
        #expect(decoded == message)
        message.clearAInt32()
        message.clearAString()
        message.clearABytes()
        message.clearABool()
        message.clearAColor()
        message.clearAPoint()
        message.clearADouble()
        #expect(message == .init())
        #expect(decoded.hasAInt32 && decoded.hasAPoint)
    }

    @Test func proto3FieldsWithoutOptionalAreAbsentWhenZero() throws {
        let message = Test_Scalars_Proto3_Singular.with {
            $0.aInt32 = 5
            $0.aString = "text"
            $0.aInt32 = 0
            $0.aString = ""
            $0.aBytes = []
            $0.aColor = .unspecified
        }
        #expect(try message.serializedBytes() == [])
    }

    @Test func negativeZeroIsNotAbsent() throws {
        let message = Test_Scalars_Proto3_Singular.with { $0.aFloat = -0.0 }
        let decoded = try Test_Scalars_Proto3_Singular(serializedBytes: message.serializedBytes())
        #expect(decoded.aFloat.sign == .minus)
    }

    @Test func proto2FieldsKnowWhetherTheyAreSet() throws {
        var message = Test_Scalars_Proto2_Singular()
        #expect(!message.hasASint64 && !message.hasAFixed32 && !message.hasAString && !message.hasALevel)
        message.aSint64 = 0
        message.aFixed32 = 0
        message.aString = ""
        message.aLevel = .middle
        message.aPoint.x = 0
        #expect(message.hasASint64 && message.hasAFixed32 && message.hasAString && message.hasALevel)
        #expect(message.hasAPoint && message.aPoint.hasX && !message.aPoint.hasY)
        let bytes = try message.serializedBytes()
        #expect(try Test_Scalars_Proto2_Singular(serializedBytes: bytes) == message)
        message.clearAString()
        message.aPoint.clearX()
        #expect(!message.hasAString && message.hasAPoint && !message.aPoint.hasX)
    }

    @Test func aClearedValueDoesNotComeBack() {
        var message = Test_Scalars_Proto2_Singular.with { $0.aString = "long enough to be kept" }
        message.clearAString()
        #expect(message.aString == "")
        message.aString = "new"
        #expect(message.aString == "new")
    }

    @Test func readingAnAbsentMessageDoesNotSetIt() {
        var message = Test_Imports_Tree()
        #expect(message.left.left.right.name == "")
        #expect(!message.hasLeft)
        message.left.left.right.name = "deep"
        #expect(message.hasLeft && message.left.hasLeft && message.left.left.hasRight)
    }
}

@Suite struct GeneratedCodeRequiredTests {
    private static let complete = Test_Scalars_Proto2_Required.with {
        $0.aDouble = 1
        $0.aFloat = 1
        $0.aInt32 = 1
        $0.aInt64 = 1
        $0.aUint32 = 1
        $0.aUint64 = 1
        $0.aSint32 = 1
        $0.aSint64 = 1
        $0.aFixed32 = 1
        $0.aFixed64 = 1
        $0.aSfixed32 = 1
        $0.aSfixed64 = 1
        $0.aBool = true
        $0.aString = ""
        $0.aBytes = []
        $0.aLevel = .low
        $0.aPoint = .init()
    }

    @Test func aCompleteMessageIsInitialized() throws {
        #expect(Self.complete.isInitialized)
        let bytes = try Self.complete.serializedBytes()
        #expect(try Test_Scalars_Proto2_Required(serializedBytes: bytes) == Self.complete)
    }

    @Test func everyRequiredFieldIsNamedWhenItIsAbsent() throws {
        typealias Required = Test_Scalars_Proto2_Required
        let clearings: [(String, @Sendable (inout Required) -> Void)] = [
            ("a_double", { $0.clearADouble() }), ("a_float", { $0.clearAFloat() }),
            ("a_int32", { $0.clearAInt32() }), ("a_int64", { $0.clearAInt64() }),
            ("a_uint32", { $0.clearAUint32() }), ("a_uint64", { $0.clearAUint64() }),
            ("a_sint32", { $0.clearASint32() }), ("a_sint64", { $0.clearASint64() }),
            ("a_fixed32", { $0.clearAFixed32() }), ("a_fixed64", { $0.clearAFixed64() }),
            ("a_sfixed32", { $0.clearASfixed32() }), ("a_sfixed64", { $0.clearASfixed64() }),
            ("a_bool", { $0.clearABool() }), ("a_string", { $0.clearAString() }),
            ("a_bytes", { $0.clearABytes() }), ("a_level", { $0.clearALevel() }),
            ("a_point", { $0.clearAPoint() }),
        ]
        for (name, clear) in clearings {
            var message = Self.complete
            clear(&message)
            #expect(!message.isInitialized)
            let error = #expect(throws: MessageError.self) { try message.serializedBytes() }
            #expect(error?.code == .missingRequiredField)
            #expect(error?.message.contains("test.scalars.proto2.Required.\(name) ") == true)
            let partial = try message.serializedBytes(partial: true)
            #expect(throws: MessageError.self) { try Required(serializedBytes: partial) }
            #expect(try Required(serializedBytes: partial, partial: true) == message)
        }
    }

    @Test func requiredFieldsCountWhereverTheirMessageStands() {
        typealias Below = Test_Scalars_Proto2_RequiredBelow
        #expect(Below().isInitialized)
        #expect(!Below.with { $0.one = .init() }.isInitialized)
        #expect(!Below.with { $0.many = [Self.complete, .init()] }.isInitialized)
        #expect(!Below.with { $0.mapped = ["a": .init()] }.isInitialized)
        #expect(!Below.with { $0.chosen = .init() }.isInitialized)
        let complete = Below.with {
            $0.one = Self.complete
            $0.many = [Self.complete]
            $0.mapped = ["a": Self.complete]
            $0.chosen = .init()
            $0.number = 1
        }
        #expect(complete.isInitialized)
    }
}
