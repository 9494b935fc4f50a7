import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import TestProtos
import Testing

/// Messages in text format, and back.
@Suite struct TextFormatTests {
    private typealias Singular = Test_Scalars_Proto3_Singular
    private typealias ChatMessage = Sample_Chat_V1_ChatMessage

    private func failure<M: Message>(
        of type: M.Type,
        _ text: String,
        _ options: TextFormatDecodingOptions = TextFormatDecodingOptions()
    ) -> MessageError.Code? {
        do {
            _ = try M(textFormatString: text, options: options)
            return nil
        } catch {
            return error.code
        }
    }

    // MARK: Values

    @Test func everyKindOfValueIsPrintedAndRead() throws {
        let message = Singular.with {
            $0.aDouble = -0.1
            $0.aFloat = .infinity
            $0.aInt32 = .min
            $0.aInt64 = .min
            $0.aUint32 = .max
            $0.aUint64 = .max
            $0.aSint32 = -1
            $0.aSint64 = 42
            $0.aFixed32 = 7
            $0.aFixed64 = 8
            $0.aSfixed32 = -9
            $0.aSfixed64 = -10
            $0.aBool = true
            $0.aString = "'é\"\\\n\u{1}👩‍🚀"
            $0.aBytes = [0xFB, 0x41, 0]
            $0.aColor = .red
            $0.aPoint.x = 3
        }
        let text = message.textFormatString()
        let lines = [
            "a_double: -0.1", "a_float: inf", "a_int32: -2147483648", "a_int64: -9223372036854775808",
            "a_uint32: 4294967295", "a_uint64: 18446744073709551615", "a_sint32: -1", "a_sint64: 42", "a_fixed32: 7",
            "a_fixed64: 8", "a_sfixed32: -9", "a_sfixed64: -10", "a_bool: true",
            #"a_string: "'é\"\\\n\001👩‍🚀""#, #"a_bytes: "\373A\000""#, "a_color: COLOR_RED", "a_point {", "  x: 3", "}",
        ]
        #expect(text == lines.map { $0 + "\n" }.joined())
        #expect(try Singular(textFormatString: text) == message)
        var options = TextFormatEncodingOptions()
        options.printInOneLine = true
        let line = message.textFormatString(options: options)
        #expect(line == lines.joined(separator: " ").replacing("{   x", with: "{ x"))
        #expect(try Singular(textFormatString: line) == message)
    }

    @Test(
        arguments: [
            ("0x1F", 31), ("-0x1f", -31), ("017", 15), ("0", 0), ("- 5", -5), ("2147483647", .max),
            ("-2147483648", .min),
        ] as [(String, Int32)]
    ) func integersAreReadInThreeBases(text: String, number: Int32) throws {
        #expect(try Singular(textFormatString: "a_int32: \(text)").aInt32 == number)
    }

    @Test(arguments: [
        ("1", 1), ("1.", 1), (".5", 0.5), ("1.5f", 1.5), ("1e3", 1000), ("1E-3F", 0.001), ("-inf", -.infinity),
        ("Infinity", .infinity), ("-0", -0.0), ("1e400", .infinity),
    ]) func floatingPointNumbersHaveManyForms(text: String, number: Double) throws {
        let read = try Singular(textFormatString: "a_double: \(text)").aDouble
        #expect(read == number && read.sign == number.sign)
        #expect(try Singular(textFormatString: "a_double: NaN a_float: -nan").aDouble.isNaN)
    }

    @Test func literalsAreJoinedAndHaveEscapes() throws {
        let text = #"a_string: 'a"b' "c'd" # between"# + "\n" + #" "\x41\102\u00e9\U0001F600\ud83d\ude00\?\'\"""#
        #expect(try Singular(textFormatString: text).aString == #"a"bc'dABé😀😀?'""#)
        #expect(try Singular(textFormatString: #"a_bytes: "\xff\377\a""#).aBytes == [0xFF, 0xFF, 7])
    }

    @Test func boolsAndEnumsHaveNamesAndNumbers() throws {
        for text in ["true", "True", "t", "1", "0x1"] {
            #expect(try Singular(textFormatString: "a_bool: \(text)").aBool)
        }
        for text in ["false", "False", "f", "0"] {
            #expect(try !Singular(textFormatString: "a_bool: \(text)").aBool)
        }
        #expect(try Singular(textFormatString: "a_color: COLOR_RED").aColor == .red)
        #expect(try Singular(textFormatString: "a_color: -7").aColor == .UNRECOGNIZED(-7))
    }

    // MARK: Structure

    @Test func listsSeparatorsAndBrackets() throws {
        let text = """
            # A comment.
            mentions: [1, 2], mentions: 3; kinds_seen: [KIND_TEXT, 2]
            attachments [{ url: "a" }, < url: "b" >] attachments: { url: "c" };
            author < name: "Ada" > reply_to: { reply_to {} }
            headers { key: "b" value: "2" } headers { value: "1" key: "a" } headers { key: "b" value: "3" }
            signal: []
            """
        let expected = ChatMessage.with {
            $0.mentions = [1, 2, 3]
            $0.kindsSeen = [.text, .image]
            $0.attachments = [.with { $0.url = "a" }, .with { $0.url = "b" }, .with { $0.url = "c" }]
            $0.author.name = "Ada"
            $0.replyTo.replyTo = .init()
            $0.headers = ["a": "1", "b": "3"]
        }
        let message = try ChatMessage(textFormatString: text)
        #expect(message == expected && message.headers.map(\.key) == ["a", "b"])
        #expect(try ChatMessage(textFormatString: message.textFormatString()) == message)
        #expect(try ChatMessage(textFormatString: " # nothing") == ChatMessage())
    }

    @Test func unknownFieldsArePrintedByTheirNumbers() throws {
        let message = try ChatMessage(serializedBytes: [
            0xF8, 6, 5, 0xFA, 7, 4, 0x08, 1, 0x12, 0, 0xFA, 7, 1, 0x61, 0xF9, 6, 1, 0, 0, 0, 0, 0, 0, 0,
        ])
        let text = #"111: 5 127 { 1: 1 2: "" } 127: "a" 111: 0x0000000000000001"#
        var options = TextFormatEncodingOptions()
        options.printInOneLine = true
        #expect(message.textFormatString(options: options) == text)
        options.printUnknownFields = false
        #expect(message.textFormatString(options: options) == "")
    }

    @Test func anAnyIsPrintedInFullWhereItsTypeIsKnown() throws {
        let user = Sample_Chat_V1_User.with { $0.name = "Ada" }
        let packed = try Google_Protobuf_Any(message: user)
        let types = MessageRegistry([Sample_Chat_V1_User.self])
        let text = "[type.googleapis.com/sample.chat.v1.User] {\n  name: \"Ada\"\n}\n"
        #expect(packed.textFormatString(options: TextFormatEncodingOptions(types: types)) == text)
        let options = TextFormatDecodingOptions(types: types)
        #expect(try Google_Protobuf_Any(textFormatString: text, options: options) == packed)
        let plain = "type_url: \"type.googleapis.com/sample.chat.v1.User\"\nvalue: \"\\022\\003Ada\"\n"
        #expect(packed.textFormatString() == plain)
        #expect(try Google_Protobuf_Any(textFormatString: plain) == packed)
        let spaced = "[ type . googleapis.com # a comment\n / sample.chat.v1.User ] { name: 'Ada' }"
        #expect(try Google_Protobuf_Any(textFormatString: spaced, options: options) == packed)
        #expect(failure(of: Google_Protobuf_Any.self, text) == .unknownMessageType)
        #expect(failure(of: Google_Protobuf_Any.self, text + plain, options) == .duplicateField)
        let hostile = Google_Protobuf_Any.with { $0.typeURL = "\u{1b}[2J/sample.chat.v1.User" }
        let escaped = hostile.textFormatString(options: TextFormatEncodingOptions(types: types))
        #expect(escaped == "type_url: \"\\033[2J/sample.chat.v1.User\"\n")
        // It could not be read back in brackets.
        let withoutPrefix = Google_Protobuf_Any.with { $0.typeURL = "/sample.chat.v1.User" }
        let unchanged = withoutPrefix.textFormatString(options: TextFormatEncodingOptions(types: types))
        #expect(unchanged == "type_url: \"/sample.chat.v1.User\"\n")
    }

    /// Decoding allows them to be a hundred deep.
    @Test func nothingBehindDeepUnknownGroupsIsLost() throws {
        let depth = 100
        let bytes =
            Array(repeating: [0xFB, 0xF0, 4] as [UInt8], count: depth).flatMap(\.self)
            + Array(repeating: [0xFC, 0xF0, 4] as [UInt8], count: depth).flatMap(\.self) + [0xF0, 0xF0, 4, 7]
        let text = try ChatMessage(serializedBytes: bytes).textFormatString()
        #expect(text.hasSuffix("9998: 7\n") && text.count(where: { $0 == "{" }) == depth)
        // Such a message in an unknown field.
        let nested = try ChatMessage(serializedBytes: [0xFA, 0xF0, 4, 0xDC, 4] + bytes).textFormatString()
        #expect(nested.contains("9998: 7\n"))
    }

    /// A string of proto2 may hold anything.
    @Test func textThatIsNotUTF8IsRepairedWhereItIsRead() throws {
        let message = try Test_Scalars_Proto2_Singular(textFormatString: #"a_string: "a\xf0""#)
        #expect(message.aString == "a\u{FFFD}")
        var copy = message
        copy.aInt32 = 1
        #expect(copy.aString == "a\u{FFFD}" && copy.textFormatString().contains(#""a\360""#))
    }

    @Test func anEarlyEndIsRefusedOrAnotherMessage() throws {
        let message = ChatMessage.with {
            $0.text = "é\n"
            $0.headers = ["a": "b"]
            $0.attachments = [.with { $0.content = [1, 2, 3] }]
            $0.signal = [1.5, -2e10]
        }
        let text = message.textFormatString()
        for count in 0..<text.utf8.count {
            let start = String(decoding: text.utf8.prefix(count), as: UTF8.self)
            if let read = try? ChatMessage(textFormatString: start) { #expect(try read.serializedBytes().count < 100) }
        }
    }

    // MARK: Errors and limits

    @Test(
        arguments: [
            ("a_int32 1", .malformedTextFormat), ("a_int32:", .malformedTextFormat),
            ("a_point {", .malformedTextFormat),
            ("a_point { >", .malformedTextFormat), ("}", .malformedTextFormat), (": 1", .malformedTextFormat),
            (#"a_string: "a"#, .malformedTextFormat), (#"a_string: "\q""#, .malformedTextFormat),
            ("a_string: \"a\nb\"", .malformedTextFormat), (#"a_string: "\ud800""#, .malformedTextFormat),
            (#"a_string: "\400""#, .malformedTextFormat), ("a_int32: [1]", .unexpectedValue),
            ("a_int32: 1.5", .unexpectedValue), ("a_int32: 09", .unexpectedValue), ("a_int32: 0x", .unexpectedValue),
            ("a_double: 010", .unexpectedValue), ("a_double: 1e", .unexpectedValue), ("a_bool: 2", .unexpectedValue),
            ("a_double: 00.5", .unexpectedValue), ("a_double: 01e1", .unexpectedValue),
            (#"a_string: "\X41""#, .malformedTextFormat), ("# \0", .malformedTextFormat),
            ("[a..b]: 1", .malformedTextFormat), ("[/a.b] {}", .malformedTextFormat),
            ("a_point: 1", .unexpectedValue), ("a_string: 1", .unexpectedValue),
            ("a_int32: 2147483648", .valueOutOfRange),
            ("a_uint32: -1", .valueOutOfRange), ("a_uint64: 18446744073709551616", .valueOutOfRange),
            ("a_color: RED", .unknownEnumValue), ("aInt32: 1", .unknownField), ("[a.b]: 1", .unknownField),
            ("a_int32: 1 a_int32: 2", .duplicateField), (#"a_string: "\xff""#, .invalidUTF8),
        ] as [(String, MessageError.Code)]
    ) func malformedInputIsRefused(text: String, code: MessageError.Code) {
        #expect(failure(of: Singular.self, text) == code)
    }

    @Test func twoMembersOfAOneofAreRefused() {
        #expect(failure(of: ChatMessage.self, #"sticker: "a" voice: "b""#) == .duplicateField)
        #expect(failure(of: ChatMessage.self, "author {} author {}") == .duplicateField)
    }

    @Test(arguments: [
        #"headers { key: "a" key: "a" }"#, #"headers { key: "" key: "" }"#, #"headers { value: "a" value: "b" }"#,
    ]) func keysAndValuesOfAnEntryThatComeTwiceAreRefused(text: String) {
        #expect(failure(of: ChatMessage.self, text) == .duplicateField)
    }

    @Test func unknownFieldsAreIgnoredOnDemand() throws {
        var options = TextFormatDecodingOptions()
        options.ignoreUnknownFields = true
        let text = #"x: 1 y { a: -inf b < c: "d" 'e' > [f.g]: [1, {}] } z: [] [h.i] { j: 0x1 }; text: "t""#
        #expect(try ChatMessage(textFormatString: text, options: options) == .with { $0.text = "t" })
        #expect(try ChatMessage(textFormatString: "x [{ a: 1 }, <>] y: -1.5f", options: options) == ChatMessage())
        for malformed in ["x { a }", "x: 1.2.3", "x: 1z", "x [1]", "x: -", "x: [1", "x: -y", "1x: 1"] {
            #expect(failure(of: ChatMessage.self, malformed, options) == .malformedTextFormat, "\(malformed)")
        }
        #expect(failure(of: ChatMessage.self, String(repeating: "x {", count: 101), options) == .tooDeep)
        #expect(failure(of: ChatMessage.self, "x", options) == .malformedTextFormat)
    }

    @Test func depthAndMemoryAreLimited() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "reply_to {", count: depth) + String(repeating: "}", count: depth)
        }
        #expect(failure(of: ChatMessage.self, nested(100)) == nil)
        #expect(failure(of: ChatMessage.self, nested(101)) == .tooDeep)
        var options = TextFormatDecodingOptions()
        options.maximumDepth = 5_000
        #expect(failure(of: ChatMessage.self, nested(1_000), options) == nil)
        #expect(failure(of: ChatMessage.self, nested(1_001), options) == .tooDeep)
        let many = String(repeating: "attachments{}", count: 100_000)
        options.memoryLimit = 1 << 20
        #expect(failure(of: ChatMessage.self, many, options) == .memoryLimitExceeded)
        #expect(failure(of: ChatMessage.self, many) == nil)
    }

    @Test func requiredFieldsMayLackOnDemand() throws {
        typealias Required = Test_Scalars_Proto2_Required
        #expect(failure(of: Required.self, "") == .missingRequiredField)
        _ = try Required(textFormatString: "", partial: true)
    }
}
