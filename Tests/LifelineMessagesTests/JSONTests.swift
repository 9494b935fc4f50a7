import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import TestProtos
import Testing

/// Messages as JSON, and back. scripts/differential compares all rules with other implementations.
@Suite struct JSONTests {
    private typealias Singular = Test_Scalars_Proto3_Singular
    private typealias ChatMessage = Sample_Chat_V1_ChatMessage

    // MARK: Values

    @Test func everyKindOfValueIsPrintedAndRead() throws {
        let message = Singular.with {
            $0.aDouble = -0.1
            $0.aFloat = 1e20
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
            $0.aString = "“quoted” \"\\/\n\u{1}\u{7f}é👩‍🚀"
            $0.aBytes = [0xFB, 0xFF, 0]
            $0.aColor = .red
            $0.aPoint.x = 3
        }
        let json = try message.jsonString()
        let expected =
            #"{"aDouble":-0.1,"aFloat":1e+20,"aInt32":-2147483648,"aInt64":"-9223372036854775808","aUint32":4294967295,"#
            + #""aUint64":"18446744073709551615","aSint32":-1,"aSint64":"42","aFixed32":7,"aFixed64":"8","#
            + #""aSfixed32":-9,"aSfixed64":"-10","aBool":true,"aString":"“quoted” \"\\/\n\u0001"# + "\u{7f}é👩‍🚀"
            + #"","aBytes":"+/8A","aColor":"COLOR_RED","aPoint":{"x":3}}"#
        #expect(json == expected)
        #expect(try Singular(jsonString: json) == message)
        #expect(try message.jsonUTF8Bytes() == Array(json.utf8))
        #expect(try Singular(jsonUTF8Bytes: Array(json.utf8)) == message)
    }

    @Test(arguments: [
        (1.0, "1"), (-0.0, "-0.0"), (0.1, "0.1"), (1e300, "1e+300"), (.leastNonzeroMagnitude, "5e-324"),
        (123456789.25, "123456789.25"),
        (.infinity, "\"Infinity\""), (-.infinity, "\"-Infinity\""), (.nan, "\"NaN\""),
    ]) func doublesAreShort(number: Double, text: String) throws {
        let json = try Singular.with { $0.aDouble = number }.jsonString()
        #expect(json == #"{"aDouble":\#(text)}"#)
        let read = try Singular(jsonString: json).aDouble
        #expect(read.bitPattern == number.bitPattern || read.isNaN && number.isNaN)
    }

    @Test func absentFieldsAreLeftOut() throws {
        #expect(try Singular().jsonString() == "{}")
        #expect(try Singular(jsonString: " { } \n") == Singular())
        #expect(try Singular(jsonString: #"{"aInt32":null,"aPoint":null,"aString":null}"#) == Singular())
    }

    @Test func mapsAreObjectsInTheOrderOfTheirKeys() throws {
        let message = ChatMessage.with {
            $0.headers = ["b": "2", "a": "1"]
            $0.poll.votes = [10: 1, 9: 2]
        }
        let json = try message.jsonString()
        #expect(json == #"{"headers":{"a":"1","b":"2"},"poll":{"votes":{"9":2,"10":1}}}"#)
        #expect(try ChatMessage(jsonString: json) == message)
        #expect(try ChatMessage(jsonString: #"{"headers":{"b":"2","a":"1"}}"#).headers.map(\.key) == ["a", "b"])
    }

    @Test func messagesInMessagesAndOneofs() throws {
        let message = ChatMessage.with {
            $0.attachments = [.with { $0.url = "u" }, .init()]
            $0.replyTo.replyTo.text = "deep"
            $0.sticker = ""
            $0.kindsSeen = [.image, .unspecified]
            $0.ttl = 0
        }
        let json = try message.jsonString()
        let expected =
            #"{"attachments":[{"url":"u"},{}],"ttl":0,"replyTo":{"replyTo":{"text":"deep"}},"sticker":"","#
            + #""kindsSeen":["KIND_IMAGE","KIND_UNSPECIFIED"]}"#
        #expect(json == expected)
        #expect(try ChatMessage(jsonString: json) == message)
    }

    @Test func aMessageOfManyFieldsIsRead() throws {
        let message = Test_Scalars_Many_ManyFields.with {
            $0.field1 = 1
            $0.highest = [0]
        }
        let json = try message.jsonString()
        #expect(json == #"{"field1":1,"highest":"AA=="}"#)
        #expect(try Test_Scalars_Many_ManyFields(jsonString: json) == message)
        let twice = #"{"highest":"AA==","field1":1,"highest":"AA=="}"#
        #expect(failure(of: Test_Scalars_Many_ManyFields.self, twice) == .duplicateField)
    }

    // MARK: Options

    @Test func namesAreThoseOfJSONOrOfTheFile() throws {
        let message = ChatMessage.with { $0.utcOffset = 1 }
        var options = JSONEncodingOptions()
        #expect(try message.jsonString(options: options) == #"{"utcOffset":1}"#)
        options.preserveProtoFieldNames = true
        #expect(try message.jsonString(options: options) == #"{"utc_offset":1}"#)
        // Both are read, whatever the options.
        #expect(try ChatMessage(jsonString: #"{"utcOffset":1}"#) == message)
        #expect(try ChatMessage(jsonString: #"{"utc_offset":1}"#) == message)
        #expect(failure(of: ChatMessage.self, #"{"utcOffset":1,"utc_offset":1}"#) == .duplicateField)
    }

    @Test func numbersInPlaceOfNamesAndStrings() throws {
        let message = ChatMessage.with {
            $0.kind = .image
            $0.nonce = 5
        }
        var options = JSONEncodingOptions()
        options.alwaysPrintEnumsAsInts = true
        options.alwaysPrintInt64sAsNumbers = true
        let json = try message.jsonString(options: options)
        #expect(json == #"{"kind":2,"nonce":5}"#)
        #expect(try ChatMessage(jsonString: json) == message)
        let unknown = ChatMessage.with { $0.kind = .UNRECOGNIZED(77) }
        #expect(try unknown.jsonString() == #"{"kind":77}"#)
        #expect(try ChatMessage(jsonString: #"{"kind":77}"#) == unknown)
    }

    @Test func fieldsWithoutPresenceArePrintedOnDemand() throws {
        var options = JSONEncodingOptions()
        options.alwaysPrintFieldsWithNoPresence = true
        let poll = try Sample_Chat_V1_Poll().jsonString(options: options)
        #expect(poll == #"{"question":"","choices":[],"votes":{}}"#)
        let user = #"{"id":"0","name":"","avatarUrl":"","level":0,"verified":false}"#
        #expect(try Sample_Chat_V1_User().jsonString(options: options) == user)
    }

    @Test func unknownFieldsAreIgnoredOnDemand() throws {
        let json = #"{"x":{"y":[1,{"z":null}]},"kind":"KIND_NEW","kindsSeen":["KIND_NEW","KIND_TEXT"],"text":"t"}"#
        #expect(failure(of: ChatMessage.self, json) == .unknownField)
        #expect(failure(of: ChatMessage.self, #"{"kind":"KIND_NEW"}"#) == .unknownEnumValue)
        var options = JSONDecodingOptions()
        options.ignoreUnknownFields = true
        let message = try ChatMessage(jsonString: json, options: options)
        let expected = ChatMessage.with {
            $0.text = "t"
            $0.kindsSeen = [.text]
        }
        #expect(message == expected)
        #expect(throws: MessageError.self) { try ChatMessage(jsonString: #"{"x":[1,]}"#, options: options) }
    }

    // MARK: Arrays and lines

    @Test func arraysAndLines() throws {
        let users = (1...3).map { number in Sample_Chat_V1_User.with { $0.level = number } }
        let array = try Sample_Chat_V1_User.jsonString(from: users)
        #expect(array == #"[{"level":1},{"level":2},{"level":3}]"#)
        #expect(try Sample_Chat_V1_User.array(fromJSONString: array) == users)
        #expect(try Sample_Chat_V1_User.jsonUTF8Bytes(from: users) == Array(array.utf8))
        #expect(try Sample_Chat_V1_User.array(fromJSONUTF8Bytes: Array(" [ ] ".utf8)).isEmpty)
        let lines = try Sample_Chat_V1_User.jsonLines(from: users)
        #expect(lines == "{\"level\":1}\n{\"level\":2}\n{\"level\":3}\n")
        #expect(try Sample_Chat_V1_User.array(fromJSONLines: lines) == users)
        #expect(try Sample_Chat_V1_User.array(fromJSONLines: "\n\n").isEmpty)
        #expect(try Sample_Chat_V1_User.jsonLines(from: []).isEmpty)
        for text in ["", "[", "[{}", "[{},]", "[{}]x", "{}"] {
            #expect(throws: MessageError.self) { try Sample_Chat_V1_User.array(fromJSONString: text) }
        }
    }

    // MARK: Well-known types

    @Test func wellKnownTypesHaveFormsOfTheirOwn() throws {
        let time = Google_Protobuf_Timestamp.with { ($0.seconds, $0.nanos) = (951_782_400, 5_000) }
        #expect(try time.jsonString() == #""2000-02-29T00:00:00.000005Z""#)
        #expect(try Google_Protobuf_Timestamp(jsonString: #""2000-02-29T01:30:00.000005+01:30""#) == time)
        let duration = Google_Protobuf_Duration.with { ($0.seconds, $0.nanos) = (0, -500_000_000) }
        #expect(try duration.jsonString() == #""-0.500s""#)
        #expect(try Google_Protobuf_Duration(jsonString: #""-0.5s""#) == duration)
        let mask = Google_Protobuf_FieldMask.with { $0.paths = ["user.display_name", "photo"] }
        #expect(try mask.jsonString() == #""user.displayName,photo""#)
        #expect(try Google_Protobuf_FieldMask(jsonString: #""user.displayName,photo""#) == mask)
        let value = #"{"a":[1,"x",null,true,{"b":{}}]}"#
        #expect(try Google_Protobuf_Struct(jsonString: value).jsonString() == value)
        #expect(try Google_Protobuf_Value(jsonString: value).jsonString() == value)
        #expect(try Google_Protobuf_ListValue(jsonString: "[[],null]").jsonString() == "[[],null]")
        #expect(try Google_Protobuf_Int64Value(jsonString: "3").jsonString() == #""3""#)
        #expect(try Google_Protobuf_Empty().jsonString() == "{}")
    }

    @Test func anAnyNeedsToKnowItsType() throws {
        let user = Sample_Chat_V1_User.with { $0.name = "Ada" }
        var types = MessageRegistry([Sample_Chat_V1_User.self])
        types.add(.wellKnownTypes)
        let packed = try Google_Protobuf_Any(message: user)
        let json = #"{"@type":"type.googleapis.com/sample.chat.v1.User","name":"Ada"}"#
        #expect(try packed.jsonString(options: JSONEncodingOptions(types: types)) == json)
        let decoding = JSONDecodingOptions(types: types)
        #expect(try Google_Protobuf_Any(jsonString: json, options: decoding) == packed)
        let reversed = #"{"name":"Ada","@type":"type.googleapis.com/sample.chat.v1.User"}"#
        #expect(try Google_Protobuf_Any(jsonString: reversed, options: decoding) == packed)
        let nested = try Google_Protobuf_Any(message: Google_Protobuf_Any(message: Google_Protobuf_Duration()))
        let nestedJSON =
            #"{"@type":"type.googleapis.com/google.protobuf.Any","value":"#
            + #"{"@type":"type.googleapis.com/google.protobuf.Duration","value":"0s"}}"#
        #expect(try nested.jsonString(options: JSONEncodingOptions(types: types)) == nestedJSON)
        #expect(try Google_Protobuf_Any(jsonString: nestedJSON, options: decoding) == nested)
        #expect(types["sample.chat.v1.User"] == Sample_Chat_V1_User.self && types["x"] == nil)
        #expect(failure(of: Google_Protobuf_Any.self, json) == .unknownMessageType)
        let error = #expect(throws: MessageError.self) { try packed.jsonString() }
        #expect(error?.code == .unknownMessageType)
    }

    @Test func valuesWithoutJSONAreRefused() {
        let tooLate = Google_Protobuf_Timestamp.with { $0.seconds = 253_402_300_800 }
        let contrary = Google_Protobuf_Duration.with { ($0.seconds, $0.nanos) = (1, -1) }
        let infinite = Google_Protobuf_Value.with { $0.numberValue = .infinity }
        let path = Google_Protobuf_FieldMask.with { $0.paths = ["a__b"] }
        for message in [tooLate, contrary, infinite, path] as [any Message] {
            let error = #expect(throws: MessageError.self) { try message.jsonString() }
            #expect(error?.code == .valueOutOfRange)
        }
    }

    // MARK: Errors and limits

    private func failure<M: Message>(
        of type: M.Type,
        _ json: String,
        _ options: JSONDecodingOptions = JSONDecodingOptions()
    ) -> MessageError.Code? {
        do {
            _ = try M(jsonString: json, options: options)
            return nil
        } catch {
            return error.code
        }
    }

    @Test(
        arguments: [
            ("", .malformedJSON), ("{", .malformedJSON), ("{}x", .malformedJSON), ("{\"aInt32\":01}", .malformedJSON),
            ("{\"aString\":\"\u{1}\"}", .malformedJSON), (#"{"aString":"\ud800"}"#, .malformedJSON),
            ("{aInt32:1}", .malformedJSON),
            ("[]", .unexpectedValue), (#"{"aPoint":1}"#, .unexpectedValue), (#"{"aBool":1}"#, .unexpectedValue),
            (#"{"aBytes":"a"}"#, .unexpectedValue), (#"{"aInt32":"x"}"#, .unexpectedValue),
            (#"{"aInt32":2147483648}"#, .valueOutOfRange), (#"{"aUint64":-1}"#, .valueOutOfRange),
            (#"{"aInt32":1.5}"#, .valueOutOfRange), (#"{"aFloat":1e39}"#, .valueOutOfRange),
            (#"{"aColor":"RED"}"#, .unknownEnumValue), (#"{"b":1}"#, .unknownField),
            (#"{"aBool":true,"aBool":true}"#, .duplicateField),
        ] as [(String, MessageError.Code)]
    ) func malformedInputIsRefused(json: String, code: MessageError.Code) {
        #expect(failure(of: Singular.self, json) == code)
    }

    @Test func errorsSayWhere() {
        let error = #expect(throws: MessageError.self) {
            try ChatMessage(jsonString: #"{"replyTo":{"ttl":-1}}"#)
        }
        let message =
            #"The value at byte 18 of the JSON, in sample.chat.v1.ChatMessage.ttl (number 11), "#
            + "is none that the field can hold."
        #expect(error?.message == message)
    }

    @Test func inputThatIsNotUTF8IsRefused() {
        let error = #expect(throws: MessageError.self) {
            try Singular(jsonUTF8Bytes: Array(#"{"aString":""#.utf8) + [0xFF] + Array(#""}"#.utf8))
        }
        #expect(error?.code == .invalidUTF8)
    }

    @Test func depthAndMemoryAreLimited() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: #"{"replyTo":"#, count: depth) + "{}" + String(repeating: "}", count: depth)
        }
        #expect(failure(of: ChatMessage.self, nested(100)) == nil)
        #expect(failure(of: ChatMessage.self, nested(101)) == .tooDeep)
        var options = JSONDecodingOptions()
        options.maximumDepth = 5_000
        #expect(failure(of: ChatMessage.self, nested(1_000), options) == nil)
        #expect(failure(of: ChatMessage.self, nested(1_001), options) == .tooDeep)
        #expect(try ChatMessage(jsonString: nested(1_000), options: options).jsonString() == nested(1_000))
        options.ignoreUnknownFields = true
        #expect(failure(of: ChatMessage.self, #"{"x":"# + String(repeating: "[", count: 100_000), options) == .tooDeep)

        // Each empty message takes two bytes of JSON, with its comma three, and a struct of hundreds.
        let many = #"{"attachments":["# + String(repeating: "{},", count: 100_000) + "{}]}"
        options.memoryLimit = 1 << 20
        #expect(failure(of: ChatMessage.self, many, options) == .memoryLimitExceeded)
        #expect(failure(of: ChatMessage.self, many) == nil)
        options.memoryLimit = .max
        #expect(failure(of: ChatMessage.self, many, options) == nil)
    }

    /// A list in a Value is two messages, which have to be encoded and printed again.
    @Test func decodedMessagesCanBeEncoded() throws {
        var options = JSONDecodingOptions()
        options.maximumDepth = 1_000
        func lists(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        let value = try Google_Protobuf_Value(jsonString: lists(500), options: options)
        #expect(try value.jsonString() == lists(500) && value.serializedBytes().count > 500)
        #expect(failure(of: Google_Protobuf_Value.self, lists(501), options) == .tooDeep)
    }

    @Test func messagesOfAnArrayShareTheLimit() throws {
        let array = "[" + String(repeating: "{},", count: 100_000) + "{}]"
        var options = JSONDecodingOptions()
        options.memoryLimit = 1 << 20
        let error = #expect(throws: MessageError.self) {
            try ChatMessage.array(fromJSONString: array, options: options)
        }
        #expect(error?.code == .memoryLimitExceeded)
        let lines = String(repeating: "{}", count: 100_000)
        #expect(throws: MessageError.self) { try ChatMessage.array(fromJSONLines: lines, options: options) }
        #expect(try ChatMessage.array(fromJSONString: array).count == 100_001)
    }

    @Test func requiredFieldsMayLackOnDemand() throws {
        typealias Required = Test_Scalars_Proto2_Required
        #expect(failure(of: Required.self, "{}") == .missingRequiredField)
        _ = try Required(jsonString: "{}", partial: true)
        #expect(throws: MessageError.self) { try Required.array(fromJSONString: "[{}]") }
        #expect(try Required.array(fromJSONLines: "{}", partial: true).count == 1)
    }

    /// Each takes as much memory as everything inside of it.
    @Test func messagesInMessagesOfAnyTypeAreLimited() throws {
        func nested(_ depth: Int, around content: [UInt8]) throws -> Google_Protobuf_Any {
            var any = Google_Protobuf_Any.with { ($0.typeURL, $0.value) = ("a/google.protobuf.BytesValue", content) }
            for _ in 0..<depth { any = try Google_Protobuf_Any(message: any) }
            return any
        }
        let options = JSONEncodingOptions(types: .wellKnownTypes)
        func code(_ depth: Int, _ byteCount: Int) throws -> MessageError.Code? {
            let value = Google_Protobuf_BytesValue.with { $0.value = Array(repeating: 1, count: byteCount) }
            let message = try nested(depth, around: value.serializedBytes())
            return #expect(throws: MessageError.self) { try message.jsonString(options: options) }?.code
        }
        _ = try nested(99, around: []).jsonString(options: options)
        #expect(try code(100, 0) == .tooDeep)
        #expect(try code(90, 1 << 20) == .memoryLimitExceeded)
        let broken = try nested(0, around: [0xFF])
        let error = #expect(throws: MessageError.self) { try broken.jsonString(options: options) }
        #expect(error?.code == .unexpectedValue)
    }

    @Test func anEarlyEndIsNeverTaken() throws {
        let message = ChatMessage.with {
            $0.text = "é\n"
            $0.headers = ["a": "b"]
            $0.attachments = [.with { $0.content = [1, 2, 3] }]
            $0.signal = [1.5, -2e10]
            $0.sentAt.seconds = 1
            $0.kind = .text
        }
        let json = try message.jsonUTF8Bytes()
        for count in 0..<json.count {
            #expect(throws: MessageError.self) { try ChatMessage(jsonUTF8Bytes: json[..<count]) }
        }
    }
}
