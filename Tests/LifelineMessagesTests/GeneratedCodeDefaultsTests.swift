import LifelineMessages
import TestProtos
import Testing

@Suite struct GeneratedCodeDefaultsTests {
    private let absent = Test_Proto2_Defaults()

    @Test func floatingPointDefaults() {
        #expect(absent.aDouble == -1.5e300)
        #expect(absent.doubleInfinity == .infinity)
        #expect(absent.doubleNegativeInfinity == -.infinity)
        #expect(absent.doubleNan.isNaN)
        #expect(absent.doubleTiny == .leastNonzeroMagnitude)
        #expect(absent.doubleNegativeZero.bitPattern == (-0.0).bitPattern)
        #expect(absent.doubleWhole == 3)
        #expect(absent.aFloat == 0.1)
        #expect(absent.floatInfinity == .infinity)
        #expect(absent.floatNegativeInfinity == -.infinity)
        #expect(absent.floatNan.isNaN)
        #expect(absent.floatTiny == .leastNonzeroMagnitude)
        #expect(absent.floatLargest == .greatestFiniteMagnitude)
    }

    @Test func integerDefaults() {
        #expect(absent.int32Lowest == .min)
        #expect(absent.int64Lowest == .min)
        #expect(absent.int64Highest == .max)
        #expect(absent.uint32Highest == .max)
        #expect(absent.uint64Highest == .max)
        #expect(absent.aSint32 == -1)
        #expect(absent.aSint64 == -2)
        #expect(absent.aFixed32 == 8)
        #expect(absent.aFixed64 == 4)
        #expect(absent.aSfixed32 == -5)
        #expect(absent.aSfixed64 == -6)
        #expect(absent.yes)
        #expect(!absent.no)
    }

    @Test func stringAndBytesDefaults() {
        #expect(absent.plain == "plain")
        #expect(absent.escapes == "\"quoted\" 'single' back\\slash \\(1 + 1) tab\t line\n return\r bell\u{7}")
        #expect(absent.nul == "before\0after")
        #expect(Array(absent.unicode.utf8) == Array("é 😀 € e\u{301}".utf8))
        #expect(absent.trigraph == "??/ ??=")
        #expect(absent.empty == "")
        #expect(absent.aBytes == [0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x5C, 0x27, 0x0A, 0x0D, 0x09, 0x7A])
        #expect(absent.bytesDigitsAfterOctal == [0, 0x31, 0xFF, 0x31])
        #expect(absent.bytesEmpty == [])
        #expect(absent.requiredWithDefault == "needed")
    }

    @Test func enumDefaults() {
        #expect(absent.size == .large)
        #expect(absent.sizeWithoutDefault == .small)
        #expect(absent.color == .green)
        #expect(absent.colorWithoutDefault == .unspecified)
    }

    @Test func membersOfAOneofHaveDefaultsToo() {
        #expect(absent.choice == nil)
        #expect(absent.chosenNumber == 41)
        #expect(absent.chosenText == "forty-two")
        #expect(absent.chosenSize == .large)
        let message = Test_Proto2_Defaults.with { $0.chosenNumber = 0 }
        #expect(message.choice == .chosenNumber(0))
        #expect(message.chosenText == "forty-two")
    }

    @Test func aFieldSetToItsDefaultIsSet() throws {
        var message = Test_Proto2_Defaults.with {
            $0.plain = "plain"
            $0.size = .large
            $0.requiredWithDefault = "needed"
        }
        #expect(message.hasPlain && message.hasSize)
        #expect(message != absent)
        #expect(try Test_Proto2_Defaults(serializedBytes: message.serializedBytes()) == message)
        message.plain = ""
        #expect(message.plain == "")
        message.clearPlain()
        #expect(message.plain == "plain")
    }

    @Test func aDefaultDoesNotStandInForARequiredField() {
        #expect(!absent.isInitialized)
    }

    @Test func changingAnAbsentStringInPlaceBeginsWithItsDefault() {
        var message = absent
        message.plain += "er"
        message.int64Highest -= 1
        #expect(message.plain == "plainer")
        #expect(message.int64Highest == .max - 1)
    }
}
