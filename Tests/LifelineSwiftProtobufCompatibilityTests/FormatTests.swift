internal import CompatibilityTestProtos
internal import Foundation
internal import LifelineSwiftProtobufCompatibility
internal import Testing

@Suite struct FormatTests {
    static let message = ChatMessage.with {
        $0.id = "m1"
        $0.mentions = [1, 2]
        $0.headers = ["lang": "en"]
        $0.sentAt = Google_Protobuf_Timestamp(seconds: 1, nanos: 500_000_000)
        $0.voice = Data([1, 2])
    }

    /// Written like a program for swift-protobuf, with a qualified protocol and enum.
    private func roundTrips<M: SwiftProtobuf.Message & Hashable>(_ message: M) throws -> Bool {
        let bytes: [UInt8] = try message.serializedBytes()
        let data: Data = try message.serializedBytes()
        let json: Data = try message.jsonUTF8Bytes()
        return try M(serializedBytes: bytes) == message && M(serializedBytes: data) == message
            && M(serializedData: message.serializedData()) == message && M(jsonString: message.jsonString()) == message
            && M(jsonUTF8Data: message.jsonUTF8Data()) == message && M(jsonUTF8Bytes: json) == message
            && M(textFormatString: message.textFormatString()) == message
            && M.array(fromJSONString: M.jsonString(from: [message, M()])) == [message, M()]
            && M.array(fromJSONUTF8Data: M.jsonUTF8Data(from: [message])) == [message]
            && message.isEqualTo(message: message) && !message.isEqualTo(message: Google_Protobuf_Empty())
    }

    @Test func allFormatsRoundTrip() throws {
        #expect(try roundTrips(Self.message))
        #expect(try roundTrips(ChatMessage()))
        let anything: any Message = Self.message
        #expect(try anything.serializedData() == Self.message.serializedData())
        #expect(type(of: anything).protoMessageName == "sample.chat.v1.ChatMessage")
    }

    @Test func messagesMerge() throws {
        var message = Self.message
        try message.merge(serializedData: ChatMessage.with { $0.mentions = [3] }.serializedData())
        try message.merge(serializedBytes: [0x0A, 1, 0x6E] as [UInt8])
        #expect(message.mentions == [1, 2, 3] && message.id == "n")
        #expect(throws: BinaryDecodingError.self) { try message.merge(serializedBytes: [0x0A] as [UInt8]) }
    }

    @Test func unknownFieldsCanBeSetAndDropped() throws {
        let data = try Self.message.serializedData()
        var empty = try Google_Protobuf_Empty(serializedData: data)
        #expect(empty.unknownFields.data == data)
        var other = Google_Protobuf_Empty()
        other.unknownFields = empty.unknownFields
        #expect(other == empty)
        empty.unknownFields = UnknownStorage()
        #expect(empty == Google_Protobuf_Empty() && empty.unknownFields.data.isEmpty)
    }

    /// They are not merged into the fields that have their numbers, not even when these cannot hold them.
    @Test func unknownFieldsOfAnotherTypeStayUnknown() throws {
        let unknown = try Google_Protobuf_Empty(serializedBytes: [0x08, 1, 0x3A, 1, 0x80, 0x12, 1, 0x62] as [UInt8])
        var message = ChatMessage.with { ($0.id, $0.mentions) = ("a", [1]) }
        try message.merge(serializedBytes: [0xF8, 0x07, 1] as [UInt8])
        message.unknownFields = unknown.unknownFields
        #expect(message.id == "a" && message.from.isEmpty && message.mentions == [1])
        #expect(message.unknownFields == unknown.unknownFields)
        let data = try message.serializedData()
        #expect(data == Data([0x0A, 1, 0x61, 0x3A, 1, 1]) + unknown.unknownFields.data)
    }

    @Test func unknownFieldsCanBeDiscardedAtAllDepths() throws {
        let unknown: [UInt8] = [0xF8, 0x07, 1]
        let author: [UInt8] = [0x08, 1] + unknown
        let bytes = [0x52, UInt8(author.count)] + author + [0x2A, 3] + unknown + [0x32, 3] + unknown + unknown
        let kept = try ChatMessage(serializedBytes: bytes)
        #expect(try kept.serializedData().count > bytes.count - 3)
        var options = BinaryDecodingOptions()
        options.discardUnknownFields = true
        let message = try ChatMessage(serializedBytes: bytes, options: options)
        #expect(
            message
                == .with {
                    $0.author.id = 1
                    $0.attachments = [Attachment()]
                    $0.headers = ["": ""]
                }
        )
        #expect(message.unknownFields == UnknownStorage())
        // Those that were there before remain.
        var merged = kept
        try merged.merge(serializedBytes: bytes, options: options)
        #expect(merged.unknownFields == kept.unknownFields && merged.author == kept.author)
        #expect(merged.attachments == kept.attachments + [Attachment()])
    }

    @Test func discardingUnknownFieldsKeepsExtensionsThatAreNamed() throws {
        let original = Test_Proto2_Extendable.with {
            $0.Test_Extending_aString = "a"
            $0.Test_Extending_anInt32 = 3
            $0.Test_Extending_numbers = [1, 2]
        }
        let extensions: SimpleExtensionMap = [
            Test_Extending_Extensions_a_string.self, Test_Extending_Extensions_numbers.self,
        ]
        var options = BinaryDecodingOptions()
        options.discardUnknownFields = true
        var bytes: [UInt8] = try original.serializedBytes()
        bytes += [0xF8, 0xFF, 0x03, 1]
        let message = try Test_Proto2_Extendable(serializedBytes: bytes, extensions: extensions, options: options)
        #expect(message == .with { ($0.Test_Extending_aString, $0.Test_Extending_numbers) = ("a", [1, 2]) })
        #expect(try Test_Proto2_Extendable(serializedBytes: bytes, options: options) == Test_Proto2_Extendable())
        var merged = original
        try merged.merge(serializedBytes: bytes, options: options)
        #expect(merged == original)
    }

    @Test func itemsOfMessageSetsAreExtensions() throws {
        let item: [UInt8] = [0x0B, 0x10, 0xE8, 0x07, 0x1A, 3, 0x0A, 1, 0x61, 0x0C]
        let unknownItem: [UInt8] = [0x0B, 0x10, 5, 0x1A, 0, 0x0C]
        var options = BinaryDecodingOptions()
        options.discardUnknownFields = true
        let set = try Test_Extending_Set(
            serializedBytes: unknownItem + item + unknownItem,
            extensions: Test_Extending_Extending_Extensions,
            options: options
        )
        let bytes: [UInt8] = try set.serializedBytes()
        #expect(bytes == item)
    }

    @Test func binaryErrorsAreThoseOfSwiftProtobuf() throws {
        func error(_ bytes: [UInt8], _ options: BinaryDecodingOptions = BinaryDecodingOptions()) -> BinaryDecodingError?
        {
            do {
                _ = try ChatMessage(serializedBytes: bytes, options: options)
                return nil
            } catch {
                return error as? BinaryDecodingError
            }
        }
        #expect(error([0x0A, 2, 0x61]) == .truncated)
        #expect(error([0]) == .malformedProtobuf)
        #expect(error([0x0A, 1, 0xFF]) == .invalidUTF8)
        var options = BinaryDecodingOptions()
        // The outermost message counts.
        options.messageDepthLimit = 3
        #expect(error([0x72, 4, 0x72, 2, 0x72, 0], options) == .messageDepthLimit)
        options.messageDepthLimit = 4
        #expect(error([0x72, 4, 0x72, 2, 0x72, 0], options) == nil)
        #expect(throws: BinaryDecodingError.missingRequiredFields) { try Test_Proto2_Defaults(serializedData: Data()) }
        #expect(throws: BinaryDecodingError.truncated) { try ChatMessage(serializedData: Data([0x0A])) }
        #expect(throws: BinaryEncodingError.missingRequiredFields) { try Test_Proto2_Defaults().serializedData() }
        #expect(throws: BinaryEncodingError.missingRequiredFields) {
            let _: [UInt8] = try Test_Proto2_Defaults().serializedBytes()
        }
        #expect(try Test_Proto2_Defaults(serializedData: Data(), partial: true) == Test_Proto2_Defaults())
    }

    @Test func jsonErrorsAreThoseOfSwiftProtobuf() {
        func error(_ json: String) -> String {
            do {
                _ = try ChatMessage(jsonString: json)
                return ""
            } catch let error as JSONDecodingError {
                return "\(error)"
            } catch {
                return "another error: \(error)"
            }
        }
        #expect(error(#"{"id": "a", "flags": "#) == "truncated")
        #expect(error(#"{"id": "a"#) == "truncated")
        #expect(error(#"{"co\u006cour": 1}"#) == #"unknownField("colour")"#)
        #expect(error(#"{"kind": "KIND_X"}"#) == "unrecognizedEnumValue")
        #expect(error(#"{"flags": 1e10}"#) == "numberRange")
        #expect(error(#"{"flags": {}}"#) == "schemaMismatch")
        #expect(error(#"{"sticker": "a", "voice": ""}"#) == "conflictingOneOf")
    }

    @Test func optionsOfJSONWork() throws {
        var encoding = JSONEncodingOptions()
        encoding.preserveProtoFieldNames = true
        encoding.alwaysPrintEnumsAsInts = true
        encoding.alwaysPrintInt64sAsNumbers = true
        let message = ChatMessage.with { ($0.kind, $0.position, $0.utcOffset) = (.image, 5, 1) }
        #expect(try message.jsonString(options: encoding) == #"{"kind":2,"utc_offset":1,"position":5}"#)
        var decoding = JSONDecodingOptions()
        decoding.ignoreUnknownFields = true
        #expect(try ChatMessage(jsonString: #"{"x": [1], "position": 5}"#, options: decoding).position == 5)
        #expect(try Test_Proto2_Defaults(jsonString: "{}") == Test_Proto2_Defaults())
    }

    @Test func textErrorsAreThoseOfSwiftProtobuf() {
        #expect(throws: TextFormatDecodingError.unknownField) { try ChatMessage(textFormatString: "colour: 1") }
        #expect(throws: TextFormatDecodingError.truncated) { try ChatMessage(textFormatString: "author {") }
    }
}
