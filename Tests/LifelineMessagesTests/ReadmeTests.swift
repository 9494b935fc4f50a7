import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import Testing

/// The README's code, as it stands there.
@Suite struct ReadmeTests {
    private static func message() -> Sample_Chat_V1_ChatMessage {
        var message = Sample_Chat_V1_ChatMessage()
        message.text = "Grüezi"
        message.author.name = "Ada"
        message.attachments.append(.with { $0.url = "https://example.org/a.png" })
        message.headers["lang"] = "de"
        message.body = .sticker("👋")
        return message
    }

    @Test func messages() throws {
        let message = Self.message()
        #expect(!message.hasTtl)
        let bytes = try message.serializedBytes()
        let same = try Sample_Chat_V1_ChatMessage(serializedBytes: bytes)
        #expect(same == message)

        let json = try message.jsonString()
        let again = try Sample_Chat_V1_ChatMessage(jsonString: json)
        let text = message.textFormatString()
        let read = try Sample_Chat_V1_ChatMessage(textFormatString: text)
        #expect(json.contains(#""author":{"name":"Ada"}"#) && text.contains(#"name: "Ada""#))
        #expect(again == message && read == message)
    }

    @Test func wellKnownTypes() throws {
        let timestamp = Google_Protobuf_Timestamp.now()
        let later = timestamp + .seconds(5)
        #expect(later - timestamp == .seconds(5) && timestamp < later)
        var object = Google_Protobuf_Struct()
        object["tags"] = ["a", 1, nil]
        #expect(try object.jsonString() == #"{"tags":["a",1,null]}"#)
        let registry = MessageRegistry([Google_Protobuf_Struct.self])
        let any = try Google_Protobuf_Any(message: object)
        #expect(try any.unpacked(with: registry) as? Google_Protobuf_Struct == object)
    }

    @Test func readingAndWritingWithoutCopies() throws {
        var message = Self.message()
        message.withTextUTF8Span { span in #expect(span.count == 7) }
        message.attachments[0].withSha256Span { span in #expect(span.count == 0) }
        message.attachments.append { $0.url = "https://example.org/b.png" }
        var urls: [String] = []
        message.attachments.forEach { urls.append($0.url) }
        #expect(urls == ["https://example.org/a.png", "https://example.org/b.png"])
        message.headers.forEachUTF8Span { key, value in
            #expect(String(copying: key) == "lang" && String(copying: value) == "de")
        }

        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 8)
        defer { buffer.deallocate() }
        let frame = try #require(try message.serialize(intoEndOf: buffer, delimited: true))
        let expected = try message.serializedBytes()
        #expect(frame.count == expected.count + 1)
        #expect(Array(frame.dropFirst()) == expected)
    }
}
