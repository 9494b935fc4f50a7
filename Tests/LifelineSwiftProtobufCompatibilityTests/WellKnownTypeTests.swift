internal import CompatibilityTestProtos
internal import Foundation
internal import LifelineSwiftProtobufCompatibility
internal import Testing

@Suite struct WellKnownTypeTests {
    @Test func timestampsAreDates() {
        let date = Date(timeIntervalSince1970: 1_767_225_602.125)
        let moment = Google_Protobuf_Timestamp(date: date)
        #expect(moment == Google_Protobuf_Timestamp(seconds: 1_767_225_602, nanos: 125_000_000))
        #expect(moment.date == date && moment.timeIntervalSince1970 == date.timeIntervalSince1970)
        #expect(moment.timeIntervalSinceReferenceDate == date.timeIntervalSinceReferenceDate)
        let past = Google_Protobuf_Timestamp(date: Date(timeIntervalSince1970: -0.25))
        #expect(past == Google_Protobuf_Timestamp(seconds: -1, nanos: 750_000_000))
        #expect(Google_Protobuf_Timestamp(timeIntervalSince1970: 1.5) == .init(seconds: 1, nanos: 500_000_000))
    }

    @Test func timesCanBeCalculatedWith() {
        let (first, second) = (Google_Protobuf_Timestamp(seconds: 10), Google_Protobuf_Timestamp(seconds: 12, nanos: 1))
        let span: Google_Protobuf_Duration = second - first
        #expect(span == Google_Protobuf_Duration(seconds: 2, nanos: 1))
        #expect(first + span == second && second - span == first && -span + span == Google_Protobuf_Duration())
        #expect(Swift.Duration(span) == .seconds(2) + .nanoseconds(1))
        #expect(Google_Protobuf_Duration(timeInterval: 0.5).timeInterval == 0.5)
        let half: Google_Protobuf_Duration = 0.5
        #expect(half == Google_Protobuf_Duration(rounding: .milliseconds(500)))
    }

    @Test func anyHoldsMessages() throws {
        let message = ChatMessage.with { $0.id = "a" }
        let any = try Google_Protobuf_Any(message: message as any Message)
        #expect(any.typeURL == "type.googleapis.com/sample.chat.v1.ChatMessage")
        #expect(any.isA(ChatMessage.self) && !any.isA(Attachment.self))
        #expect(try ChatMessage(unpackingAny: any) == message)
        #expect(throws: AnyUnpackError.typeMismatch) { try Attachment(unpackingAny: any) }
        #expect(throws: BinaryEncodingError.missingRequiredFields) {
            try Google_Protobuf_Any(message: Test_Proto2_Defaults())
        }
    }

    @Test func anyHoldsRegisteredTypesInJSON() throws {
        let any = try Google_Protobuf_Any(message: Sample_Chat_V1_Location.with { $0.latitude = 1.5 })
        #expect(throws: JSONEncodingError.anyTranscodeFailure) { try any.jsonString() }
        #expect(Google_Protobuf_Any.register(messageType: Sample_Chat_V1_Location.self))
        #expect(Google_Protobuf_Any.register(messageType: Sample_Chat_V1_Location.self))
        #expect(Google_Protobuf_Any.messageType(forTypeURL: any.typeURL) == Sample_Chat_V1_Location.self)
        #expect(Google_Protobuf_Any.messageType(forMessageName: "x") == nil)
        #expect(try Google_Protobuf_Any(jsonString: any.jsonString()) == any)
        let duration = try Google_Protobuf_Any(message: Google_Protobuf_Duration(seconds: 1))
        #expect(try duration.jsonString().contains("1s"))
    }

    @Test func valuesAreLiterals() {
        let object: Google_Protobuf_Struct = ["a": 1, "b": Google_Protobuf_Value(listValue: [nil, true])]
        #expect(object["a"]?.numberValue == 1)
        #expect(Google_Protobuf_Value().kind == nil)
    }

    @Test func masksSelectFields() throws {
        let source = ChatMessage.with { ($0.id, $0.author.name, $0.text) = ("a", "Ada", "hello") }
        let mask = Google_Protobuf_FieldMask(protoPaths: "id", "author.name")
        var message = ChatMessage()
        try message.merge(from: source, fieldMask: mask)
        #expect(message == .with { ($0.id, $0.author.name) = ("a", "Ada") })
        message.text = "hello"
        let isChanged = message.trim(keeping: Google_Protobuf_FieldMask(protoPaths: ["text"]))
        #expect(isChanged && message == .with { $0.text = "hello" })
        #expect(mask.isValid(for: ChatMessage.self) && !ChatMessage.isPathValid("author.colour"))
        #expect(mask.union(.init(protoPaths: "author")).paths == ["author", "id"])
        #expect(try Google_Protobuf_FieldMask(fieldNumbers: [1], of: ChatMessage.self).paths == ["id"])
        #expect(Google_Protobuf_FieldMask(jsonPaths: "sentAt", "a.bC1")?.paths == ["sent_at", "a.b_c1"])
        // One with a comma is one path, which has no form in the .proto file.
        #expect(Google_Protobuf_FieldMask(jsonPaths: "a,b", "c", "d_e")?.paths == ["c"])
    }

    @Test func wrappersAreLiterals() {
        let number: Google_Protobuf_Int32Value = 3
        let text: Google_Protobuf_StringValue = "a"
        #expect(number.value == 3 && text == Google_Protobuf_StringValue("a"))
        #expect(Google_Protobuf_BytesValue(Data([1])).value == Data([1]))
    }
}
