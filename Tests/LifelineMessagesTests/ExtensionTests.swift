import CLifelineMessages
import LifelineMessages
import TestProtos
import Testing

extension UnsafeMutablePointer {
    fileprivate static func allocate(copying value: UnsafePointer<Pointee>) -> Self {
        let copy = Self.allocate(capacity: 1)
        copy.initialize(to: value.pointee)
        return copy
    }
}

/// Extensions: typed, in messages that keep them among their unknown fields.
@Suite struct ExtensionTests {
    private typealias Extendable = Test_Proto2_Extendable
    private typealias Weight = Test_Extending_Weight
    private typealias Scope = Test_Extending_Scope

    private static let types = Test_Extending_Extending_Extensions

    /// A message with an extension of every kind.
    private static var full: Extendable {
        .with {
            $0.Test_Extending_name = "other"
            $0.Test_Extending_aDouble = 1.5
            $0.Test_Extending_aFloat = -0.25
            $0.Test_Extending_anInt64 = -3
            $0.Test_Extending_aUint64 = 1 << 63
            $0.Test_Extending_anInt32 = 7
            $0.Test_Extending_aFixed64 = 9
            $0.Test_Extending_aFixed32 = 10
            $0.Test_Extending_aBool = true
            $0.Test_Extending_aString = "é"
            $0.Test_Extending_someBytes = [0xFF, 0]
            $0.Test_Extending_aUint32 = 4_000_000_000
            $0.Test_Extending_anSfixed32 = -1
            $0.Test_Extending_anSfixed64 = -2
            $0.Test_Extending_aSint32 = -3
            $0.Test_Extending_aSint64 = -4
            $0.Test_Extending_size = .small
            $0.Test_Extending_color = .green
            $0.Test_Extending_weight.grams = 5
            $0.Test_Extending_weight.below.grams = 6
            $0.Test_Extending_weight.Test_Extending_unit = "g"
            $0.Test_Extending_weight.Test_Extending_Scope_scope.inner = true
            $0.Test_Extending_weight.Test_Extending_Scope_self = [-1, 1]
            $0.Test_Extending_pair.left = 1
            $0.Test_Extending_pair.right = "r"
            $0.Test_Extending_numbers = [1, -1]
            $0.Test_Extending_packedNumbers = [2, 300]
            $0.Test_Extending_sizes = [.large, .small]
            $0.Test_Extending_texts = ["a", ""]
            $0.Test_Extending_weights.append(.with { $0.grams = 1 })
            $0.Test_Extending_spot = [.with { $0.x = 4 }, .init()]
            $0.name = "n"
        }
    }

    /// The encoding of C++ libprotobuf 3.21.
    private static let fullBytes = bytes(
        """
        0a016ef106000000000000f83ffd06000080be8007fdffffffffffffffff018807808080808080808080019007079907090000000000\
        0000a5070a000000a80701b20702c3a9ba0702ff00c00780d0acf30ecd07ffffffffd107feffffffffffffffd80705e00707e80701f0\
        0702fa0715080512020806a2060167aa06020801b00601b006028308080112017284089008019008ffffffffffffffffff019a080302\
        ac02a00802a00801aa080161aa0800b208020801bb080804bc08bb08bc08c208056f74686572
        """
    )

    /// The text of Python's protobuf 7.36, except for spaces.
    private static let fullJSON = #"""
        {"name":"n","[test.extending.a_double]":1.5,"[test.extending.a_float]":-0.25,"[test.extending.an_int64]":"-3",\#
        "[test.extending.a_uint64]":"9223372036854775808","[test.extending.an_int32]":7,\#
        "[test.extending.a_fixed64]":"9","[test.extending.a_fixed32]":10,"[test.extending.a_bool]":true,\#
        "[test.extending.a_string]":"é","[test.extending.some_bytes]":"/wA=","[test.extending.a_uint32]":4000000000,\#
        "[test.extending.an_sfixed32]":-1,"[test.extending.an_sfixed64]":"-2","[test.extending.a_sint32]":-3,\#
        "[test.extending.a_sint64]":"-4","[test.extending.size]":"SIZE_SMALL","[test.extending.color]":"COLOR_GREEN",\#
        "[test.extending.weight]":{"grams":5,"below":{"grams":6},"[test.extending.unit]":"g",\#
        "[test.extending.Scope.scope]":{"inner":true},"[test.extending.Scope.self]":[-1,1]},\#
        "[test.extending.pair]":{"left":1,"right":"r"},"[test.extending.numbers]":[1,-1],\#
        "[test.extending.packed_numbers]":[2,300],"[test.extending.sizes]":["SIZE_LARGE","SIZE_SMALL"],\#
        "[test.extending.texts]":["a",""],"[test.extending.weights]":[{"grams":1}],\#
        "[test.extending.spot]":[{"x":4},{}],"[test.extending.name]":"other"}
        """#

    private static let fullText = """
        name: "n" [test.extending.a_double]: 1.5 [test.extending.a_float]: -0.25 [test.extending.an_int64]: -3 \
        [test.extending.a_uint64]: 9223372036854775808 [test.extending.an_int32]: 7 [test.extending.a_fixed64]: 9 \
        [test.extending.a_fixed32]: 10 [test.extending.a_bool]: true [test.extending.a_string]: "é" \
        [test.extending.some_bytes]: "\\377\\000" [test.extending.a_uint32]: 4000000000 \
        [test.extending.an_sfixed32]: -1 [test.extending.an_sfixed64]: -2 [test.extending.a_sint32]: -3 \
        [test.extending.a_sint64]: -4 [test.extending.size]: SIZE_SMALL [test.extending.color]: COLOR_GREEN \
        [test.extending.weight] { grams: 5 below { grams: 6 } [test.extending.unit]: "g" \
        [test.extending.Scope.scope] { inner: true } [test.extending.Scope.self]: -1 [test.extending.Scope.self]: 1 } \
        [test.extending.pair] { left: 1 right: "r" } [test.extending.numbers]: 1 [test.extending.numbers]: -1 \
        [test.extending.packed_numbers]: 2 [test.extending.packed_numbers]: 300 [test.extending.sizes]: SIZE_LARGE \
        [test.extending.sizes]: SIZE_SMALL [test.extending.texts]: "a" [test.extending.texts]: "" \
        [test.extending.weights] { grams: 1 } [test.extending.spot] { x: 4 } [test.extending.spot] { } \
        [test.extending.name]: "other"
        """

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.utf8.map {
            UInt8($0 < UInt8(ascii: "a") ? $0 - UInt8(ascii: "0") : $0 - UInt8(ascii: "a") + 10)
        }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    // MARK: Typed access

    @Test func extensionsAreEncodedInTheOrderOfTheirNumbers() throws {
        #expect(try Self.full.serializedBytes() == Self.fullBytes)
    }

    @Test func everyKindIsRead() throws {
        let message = try Extendable(serializedBytes: Self.fullBytes)
        #expect(message == Self.full)
        #expect(message.Test_Extending_aDouble == 1.5 && message.Test_Extending_aUint64 == 1 << 63)
        #expect(message.Test_Extending_aString == "é" && message.Test_Extending_someBytes == [0xFF, 0])
        #expect(message.Test_Extending_aBool && message.Test_Extending_aSint64 == -4)
        #expect(message.Test_Extending_size == .small && message.Test_Extending_color == .green)
        #expect(message.Test_Extending_weight.below.grams == 6 && message.Test_Extending_pair.right == "r")
        #expect(message.Test_Extending_weight.Test_Extending_Scope_scope.inner)
        #expect(message.Test_Extending_weight.Test_Extending_Scope_self == [-1, 1])
        #expect(message.Test_Extending_numbers == [1, -1] && message.Test_Extending_packedNumbers == [2, 300])
        #expect(message.Test_Extending_sizes == [.large, .small] && message.Test_Extending_texts == ["a", ""])
        #expect(message.Test_Extending_spot.map(\.x) == [4, 0] && message.Test_Extending_name == "other")
    }

    @Test func anAbsentExtensionReadsAsItsDefault() {
        let message = Extendable()
        #expect(message.Test_Extending_aString == "hello" && message.Test_Extending_anInt32 == -7)
        #expect(message.Test_Extending_size == .large && message.Test_Extending_numbers.isEmpty)
        #expect(!message.hasTest_Extending_aString && !message.hasExtension(Test_Extending_Extensions_numbers.self))
        #expect(message[Test_Extending_Extensions_an_int32.self] == -7)
    }

    @Test func anExtensionThatHasItsDefaultIsSet() throws {
        let message = Extendable.with { $0.Test_Extending_aBool = false }
        #expect(message.hasTest_Extending_aBool)
        #expect(try message.serializedBytes() == [0xA8, 7, 0])
    }

    @Test func aClearedExtensionIsGoneAndNoOther() {
        var message = Self.full
        message.clearTest_Extending_weight()
        message.clearExtension(Test_Extending_Extensions_numbers.self)
        message.Test_Extending_texts = []
        #expect(!message.hasTest_Extending_weight && message.Test_Extending_weight == Weight())
        #expect(message.Test_Extending_numbers.isEmpty && message.Test_Extending_texts.isEmpty)
        #expect(message.Test_Extending_name == "other" && message.name == "n")
        #expect(message != Self.full)
        message.removeUnknownFields()
        #expect(message == .with { $0.name = "n" })
    }

    @Test func copiesChangeApart() {
        var copy = Self.full
        copy.Test_Extending_weight.below.grams += 1
        #expect(copy.Test_Extending_weight.below.grams == 7)
        #expect(Self.full.Test_Extending_weight.below.grams == 6)
        let weight = copy.Test_Extending_weight
        copy = Extendable()
        #expect(weight.Test_Extending_unit == "g")
    }

    /// An encoding may split an extension into parts, with other fields in between.
    @Test func partsAreMerged() throws {
        let message = try Extendable(
            serializedBytes: Self.bytes("fa07020805" + "900801" + "f00601" + "9a080102" + "fa0704120208069208020304")
        )
        #expect(
            message.Test_Extending_weight
                == .with {
                    $0.grams = 5; $0.below.grams = 6
                }
        )
        #expect(message.Test_Extending_numbers == [1, 3, 4] && message.Test_Extending_packedNumbers == [2])
        #expect(!message.hasTest_Extending_aDouble)
    }

    @Test func fieldsBesideAnExtensionStayWhenItIsSet() throws {
        var message = try Extendable(serializedBytes: Self.bytes("b00605" + "900801" + "c03e07"))
        message.Test_Extending_numbers = [2, 3]
        #expect(message.unknownFields == Self.bytes("b00605" + "900802900803" + "c03e07"))
        message.Test_Extending_aBool = true
        #expect(message.unknownFields == Self.bytes("b00605" + "a80701" + "900802900803" + "c03e07"))
    }

    @Test func contentThatIsNotOfTheTypeStaysAnUnknownField() throws {
        // A length where a varint should be, an enum's number that is not declared, text that is cut.
        let bytes = Self.bytes("aa0701ff" + "e80763" + "fa07020880")
        let message = try Extendable(serializedBytes: bytes)
        #expect(
            !message.hasTest_Extending_aBool && !message.hasTest_Extending_size && !message.hasTest_Extending_weight
        )
        #expect(try message.serializedBytes() == bytes)
    }

    // MARK: Checking

    @Test func contentIsCheckedWithARegistry() throws {
        #expect(try Extendable(serializedBytes: Self.fullBytes, extensions: Self.types) == Self.full)
        for (hex, code) in [
            ("fa07020880", MessageError.Code.truncated), ("fa070112", .truncated),
            // A required field is absent, in an extension and in an extension of that.
            ("fa0700", .missingRequiredField), ("b20800", .missingRequiredField),
        ] {
            let bytes = Self.bytes(hex)
            #expect(throws: MessageError.self) { try Extendable(serializedBytes: bytes, extensions: Self.types) }
            do {
                _ = try Extendable(serializedBytes: bytes, extensions: Self.types)
            } catch {
                #expect(error.code == code, "\(hex): \(error)")
            }
            #expect(try Extendable(serializedBytes: bytes).serializedBytes() == bytes)
        }
        #expect(
            try Extendable(serializedBytes: Self.bytes("fa0700"), extensions: Self.types, partial: true)
                .hasTest_Extending_weight
        )
        #expect(try Extendable(serializedBytes: Self.bytes("fa070112"), extensions: MessageRegistry()).name == "")
    }

    @Test func extensionsInExtensionsAreCheckedToo() throws {
        let scope = "aa0601ff"  // text that is no message
        let bytes = Self.bytes("fa0706" + "0805" + scope)
        #expect(throws: MessageError.self) { try Extendable(serializedBytes: bytes, extensions: Self.types) }
        #expect(try Extendable(serializedBytes: bytes).Test_Extending_weight.grams == 5)
    }

    @Test func anExtensionThatTakesTooMuchReadsAsAbsent() throws {
        var bytes = Self.bytes("b20800")
        while bytes.count < 8 << 20 { bytes += bytes }
        let message = try Extendable(serializedBytes: bytes)
        #expect(!message.hasExtension(Test_Extending_Extensions_weights.self))
        #expect(message.Test_Extending_weights.isEmpty && message.unknownFields.count == bytes.count)
    }

    @Test func textThatIsNotValidatedIsReadInExtensions() throws {
        let bytes = Self.bytes("ca0803" + "7201ff")
        let options = DecodingOptions(validatesUTF8: false)
        let message = try Extendable(serializedBytes: bytes, extensions: Self.types, options: options)
        #expect(message.Test_Extending_singular.aString == "\u{FFFD}")
        #expect(throws: MessageError.self) { try Extendable(serializedBytes: bytes, extensions: Self.types) }
    }

    @Test func depthAndMemoryOfExtensionsAreLimited() throws {
        func nested(_ depth: Int) -> Test_Extending_Set {
            var set = Test_Extending_Set.with { $0.Test_Extending_Entry_entry.text = "t" }
            for _ in 0..<depth {
                let below = set
                set = .with { $0.Test_Extending_Entry_entry.set = below }
            }
            return set
        }
        let deep = try nested(150).serializedBytes()
        let options = DecodingOptions(maximumDepth: 1_000)
        do {
            _ = try Test_Extending_Set(serializedBytes: deep, extensions: Self.types)
            Issue.record("is taken though it is too deep")
        } catch {
            #expect(error.code == .tooDeep)
        }
        #expect(try Test_Extending_Set(serializedBytes: deep, extensions: Self.types, options: options) == nested(150))
        do {
            let message = try Extendable(serializedBytes: Self.bytes(String(repeating: "b20800", count: 50_000)))
            try message.checkExtensions(Self.types, partial: true, options: DecodingOptions(memoryLimit: 1 << 20))
            Issue.record("is taken though it takes too much memory")
        } catch {
            #expect(error.code == .memoryLimitExceeded)
        }
    }

    /// The limit applies to extensions: the message around them may be deeper.
    @Test func extensionsBelowTheLimitAreRefused() throws {
        var weight = Weight()
        weight.below.below.below.Test_Extending_unit = "g"
        let options = DecodingOptions(maximumDepth: 2)
        try weight.checkExtensions(Self.types, partial: true, options: options)
        weight.below.below.below.Test_Extending_Scope_scope.inner = true
        do {
            try weight.checkExtensions(Self.types, partial: true, options: options)
            Issue.record("is taken though it is too deep")
        } catch {
            #expect(error.code == .tooDeep)
        }
    }

    /// Each length runs out of memory at another place.
    @Test func parsingExtensionsWithLittleMemory() {
        var json = JSONDecodingOptions(types: Self.types)
        json.memoryLimit = 0
        var text = TextFormatDecodingOptions(types: Self.types)
        text.memoryLimit = 0
        var outcomes = Set<MessageError.Code?>()
        for count in 0..<300 {
            let objects = Array(repeating: #"{"[test.extending.unit]":""}"#, count: count).joined(separator: ",")
            let jsonText = #"{"[test.extending.weights]":[\#(objects)]}"#
            outcomes.insert(code { () throws(MessageError) in try Extendable(jsonString: jsonText, options: json) })
            let fields = String(repeating: #"[test.extending.weights]{[test.extending.unit]:""}"#, count: count)
            outcomes.insert(code { () throws(MessageError) in try Extendable(textFormatString: fields, options: text) })
        }
        #expect(outcomes == [nil, .memoryLimitExceeded])
    }

    private func code(of body: () throws(MessageError) -> Extendable) -> MessageError.Code? {
        do {
            _ = try body()
            return nil
        } catch {
            return error.code
        }
    }

    // MARK: JSON and text format

    @Test func extensionsInJSON() throws {
        #expect(try Self.full.jsonString(options: JSONEncodingOptions(types: Self.types)) == Self.fullJSON)
        let parsed = try Extendable(jsonString: Self.fullJSON, options: JSONDecodingOptions(types: Self.types))
        #expect(parsed == Self.full)
        #expect(try Self.full.jsonString() == #"{"name":"n"}"#)
    }

    @Test func extensionsInTextFormat() throws {
        var options = TextFormatEncodingOptions(types: Self.types)
        options.printInOneLine = true
        #expect(Self.full.textFormatString(options: options) == Self.fullText)
        let parsed = try Extendable(
            textFormatString: Self.fullText,
            options: TextFormatDecodingOptions(types: Self.types)
        )
        #expect(parsed == Self.full)
    }

    @Test(arguments: [
        #"{"[test.extending.a_bool]":true,"[test.extending.a_bool]":true}"#,  // twice
        #"{"[test.extending.unit]":"g"}"#,  // of another message
        #"{"[test.extending.unknown]":1}"#,
        #"{"[test.extending.a_bool":true}"#,
        #"{"test.extending.a_bool":true}"#,
        #"{"value":true}"#,
        #"{"[test.extending.a_bool]":1}"#,
    ])
    func jsonThatIsRefused(_ text: String) {
        let options = JSONDecodingOptions(types: Self.types)
        #expect(throws: MessageError.self) { try Extendable(jsonString: text, options: options) }
    }

    @Test(arguments: [
        "[test.extending.a_bool]: true [test.extending.a_bool]: true",
        #"[test.extending.unit]: "g""#,
        "[test.extending.unknown]: 1",
        "test.extending.a_bool: true",
        "[test.extending.a_bool]: 5",
        "value: true",
    ])
    func textThatIsRefused(_ text: String) {
        let options = TextFormatDecodingOptions(types: Self.types)
        #expect(throws: MessageError.self) { try Extendable(textFormatString: text, options: options) }
    }

    @Test func unknownExtensionsArePassedOverOnDemand() throws {
        var json = JSONDecodingOptions(types: Self.types)
        json.ignoreUnknownFields = true
        var text = TextFormatDecodingOptions(types: Self.types)
        text.ignoreUnknownFields = true
        let expected = Extendable.with { $0.Test_Extending_aBool = true }
        let parsed = try Extendable(
            jsonString: #"{"[a.b]":{"c":[1]},"[test.extending.a_bool]":true}"#,
            options: json
        )
        #expect(parsed == expected)
        #expect(
            try Extendable(textFormatString: "[a.b] { c: 1 } [test.extending.a_bool]: true", options: text) == expected
        )
    }

    @Test func contentThatIsNotOfTheTypeIsPrintedByItsNumber() throws {
        let message = try Extendable(serializedBytes: Self.bytes("fa07020880" + "a80701" + "e80763"))
        var options = TextFormatEncodingOptions(types: Self.types)
        options.printInOneLine = true
        let expected = #"[test.extending.a_bool]: true 127: "\010\200" 125: 99"#
        #expect(message.textFormatString(options: options) == expected)
        let json = try message.jsonString(options: JSONEncodingOptions(types: Self.types))
        #expect(json == #"{"[test.extending.a_bool]":true}"#)
    }

    // MARK: Message sets

    @Test func theExtensionsOfAMessageSetAreItems() throws {
        let set = Test_Extending_Set.with {
            $0.Test_Extending_heavy.grams = 3
            $0.Test_Extending_Entry_entry.text = "t"
            $0.Test_Extending_Entry_entry.set.Test_Extending_heavy.grams = 1
        }
        let bytes = Self.bytes("0b10e8071a0f0a0174120a0b10f0a2041a0208010c0c0b10f0a2041a0208030c")
        #expect(try set.serializedBytes() == bytes)
        let decoded = try Test_Extending_Set(serializedBytes: bytes, extensions: Self.types)
        #expect(decoded == set && decoded.Test_Extending_Entry_entry.set.Test_Extending_heavy.grams == 1)

        let json =
            #"{"[test.extending.Entry.entry]":{"text":"t","set":{"[test.extending.heavy]":{"grams":1}}},"#
            + #""[test.extending.heavy]":{"grams":3}}"#
        #expect(try set.jsonString(options: JSONEncodingOptions(types: Self.types)) == json)
        #expect(try Test_Extending_Set(jsonString: json, options: JSONDecodingOptions(types: Self.types)) == set)

        var options = TextFormatEncodingOptions(types: Self.types)
        options.printInOneLine = true
        let text =
            #"[test.extending.Entry] { text: "t" set { [test.extending.heavy] { grams: 1 } } } "#
            + "[test.extending.heavy] { grams: 3 }"
        #expect(set.textFormatString(options: options) == text)
        let parsing = TextFormatDecodingOptions(types: Self.types)
        #expect(try Test_Extending_Set(textFormatString: text, options: parsing) == set)
        let byField = text.replacing("[test.extending.Entry]", with: "[test.extending.Entry.entry]")
        #expect(try Test_Extending_Set(textFormatString: byField, options: parsing) == set)
    }

    @Test func itemsInOtherFormsAreKept() throws {
        // The message before its type, a field beside both, and the extension as an ordinary field.
        for hex in ["0b1a02080310f0a2040c", "0b2001" + "10f0a2041a0208030c", "82972202" + "0803"] {
            let set = try Test_Extending_Set(serializedBytes: Self.bytes(hex), extensions: Self.types)
            #expect(set.Test_Extending_heavy.grams == 3, "\(hex)")
            #expect(try set.serializedBytes() == Self.bytes(hex))
        }
        // Without a type, without a message, with two types, and with a number that no field has.
        for hex in ["0b1a0208030c", "0b10f0a2040c", "0b10f0a20410e8071a0208030c", "0b1080808080101a0208030c"] {
            let set = try Test_Extending_Set(serializedBytes: Self.bytes(hex), extensions: Self.types)
            #expect(!set.hasTest_Extending_heavy, "\(hex)")
            #expect(try set.serializedBytes() == Self.bytes(hex))
        }
    }

    /// A field with the number of an extension of a set, and no length, is kept beside the item.
    @Test func fieldsOfOtherWireTypesInAMessageSetAreKept() throws {
        var set = try Test_Extending_Set(serializedBytes: Self.bytes("0b10f0a2041a0208030c" + "8097220b"))
        set.Test_Extending_heavy.grams = 4
        #expect(set.Test_Extending_heavy.grams == 4)
        #expect(try set.serializedBytes() == Self.bytes("0b10f0a2041a0208040c" + "8097220b"))
    }

    // MARK: Registries

    /// Two extensions of one number may come from files that do not know of each other.
    @Test func ofTwoExtensionsWithOneNumberTheLastCounts() {
        let table = UnsafeMutablePointer<_MessageTable>.allocate(capacity: 1)
        let field = UnsafeMutablePointer.allocate(copying: Test_Extending_Extensions_numbers._table.pointee.fields)
        defer {
            table.deallocate()
            field.deallocate()
        }
        field.pointee.number = 110
        table.initialize(to: Test_Extending_Extensions_numbers._table.pointee)
        table.pointee.fields = UnsafePointer(field)
        final class Owner: Sendable {}
        var types = MessageRegistry(tables: [(UnsafePointer(table), Owner())])
        types.add(MessageRegistry([Test_Extending_Extensions_a_double.self]))
        let options = TextFormatDecodingOptions(types: types)
        #expect(throws: MessageError.self) {
            try Extendable(
                textFormatString: "[test.extending.numbers]: [] [test.extending.a_double]: 5",
                options: options
            )
        }
        #expect(throws: Never.self) {
            try Extendable(textFormatString: "[test.extending.a_double]: 5", options: options)
        }
    }

    @Test func registriesAreAddedTogether() throws {
        var types = MessageRegistry([Test_Extending_Extensions_a_bool.self, Extendable.self])
        #expect(types["test.proto2.Extendable"] != nil && types["test.extending.a_bool"] == nil)
        types.add(Test_Proto2_OnlyExtension_Extensions)
        let message = try Extendable(
            jsonString: #"{"[test.extending.a_bool]":true,"[test.proto2.ratio]":2}"#,
            options: JSONDecodingOptions(types: types)
        )
        #expect(message.Test_Extending_aBool && message.Test_Proto2_ratio == 2)
    }

    /// Every part of an input is read or refused, and nothing is lost.
    @Test func everyTruncationIsReadOrRefused() throws {
        for count in 0..<Self.fullBytes.count {
            let part = Array(Self.fullBytes.prefix(count))
            guard let message = try? Extendable(serializedBytes: part, extensions: Self.types) else { continue }
            #expect(try message.serializedBytes() == part)
        }
    }
}
