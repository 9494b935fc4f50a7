import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import Testing

/// Runs the code of the README and of the articles about messages.
@Suite struct ArticleTests {
    private let message = Sample_Chat_V1_ChatMessage.with {
        $0.text = "Grüezi"
        $0.author.name = "Ada"
        $0.attachments.append(.with { $0.url = "https://example.org/a.png" })
        $0.headers["lang"] = "de"
        $0.body = .sticker("👋")
    }

    @Test func readme() throws {
        // snippet.messages
        var message = Sample_Chat_V1_ChatMessage.with {
            $0.text = "Grüezi"
            $0.author.name = "Ada"
            $0.attachments.append(.with { $0.url = "https://example.org/a.png" })
            $0.headers["lang"] = "de"
        }
        let bytes = try message.serializedBytes()
        message = try Sample_Chat_V1_ChatMessage(serializedBytes: bytes)
        print(try message.jsonString())
        // snippet.end
        #expect(message.author.name == "Ada" && message.headers["lang"] == "de")
    }

    @Test func buildingAndReading() throws {
        // snippet.build-and-read
        var message = Sample_Chat_V1_ChatMessage()
        message.text = "Grüezi"
        message.author.name = "Ada"  // in place, however deep
        message.attachments.append(.with { $0.url = "https://example.org/a.png" })
        message.headers["lang"] = "de"
        message.body = .sticker("👋")  // or message.sticker = "👋"
        print(message.hasTtl)  // proto3 `optional`, proto2, and messages have presence

        let bytes = try message.serializedBytes()  // [UInt8]; deterministic
        let same = try Sample_Chat_V1_ChatMessage(serializedBytes: bytes)
        print(same == message)  // Hashable and Sendable too
        // snippet.end
        #expect(!message.hasTtl && message == self.message && same == message)
    }

    @Test func jsonAndTextFormat() throws {
        // snippet.json-and-text-format
        let json = try message.jsonString()  // ProtoJSON: {"text":"Grüezi","author":{"name":"Ada"}, ...
        let again = try Sample_Chat_V1_ChatMessage(jsonString: json)
        let text = message.textFormatString()  // text format: text: "Grüezi" author { name: "Ada" } ...
        let read = try Sample_Chat_V1_ChatMessage(textFormatString: text)
        print(again == message, read == message)
        // snippet.end
        #expect(json.contains(#""author":{"name":"Ada"}"#) && text.contains(#"name: "Ada""#))
        #expect(again == message && read == message)
    }

    @Test func jsonOptions() throws {
        // snippet.json-options
        var options = JSONEncodingOptions()
        options.preserveProtoFieldNames = true  // avatar_url in place of avatarUrl
        options.alwaysPrintEnumsAsInts = true
        print(try message.jsonString(options: options))
        // snippet.end
        let changed = Sample_Chat_V1_ChatMessage.with {
            $0.author.avatarURL = "a"
            $0.kind = .text
        }
        let json = try changed.jsonString(options: options)
        #expect(json.contains(#""avatar_url":"a""#) && json.contains(#""kind":1"#))
    }

    @Test func jsonLines() throws {
        // snippet.json-lines
        let lines = try Sample_Chat_V1_ChatMessage.jsonLines(from: [message, message])
        let messages = try Sample_Chat_V1_ChatMessage.array(fromJSONLines: lines)
        print(messages.count)
        // snippet.end
        #expect(messages == [message, message])
    }

    @Test func wellKnownTypes() throws {
        // snippet.well-known-types
        let timestamp = Google_Protobuf_Timestamp.now()
        let later = timestamp + .seconds(5)
        print(later - timestamp == .seconds(5), timestamp < later)

        var object = Google_Protobuf_Struct()
        object["tags"] = ["a", 1, nil]
        let any = try Google_Protobuf_Any(message: object)
        let unpacked = try any.unpacked(with: MessageRegistry([Google_Protobuf_Struct.self]))
        print(unpacked is Google_Protobuf_Struct)
        // snippet.end
        #expect(later - timestamp == .seconds(5) && timestamp < later)
        #expect(try object.jsonString() == #"{"tags":["a",1,null]}"#)
        #expect(unpacked as? Google_Protobuf_Struct == object)
    }

    @Test func readingAndWritingWithoutCopies() throws {
        var message = message
        // snippet.without-copies
        message.withTextUTF8Span { span in print(span.count) }  // one such method for each string,
        message.attachments[0].withSha256Span { span in print(span.count) }  // and each bytes field
        message.attachments.append { $0.url = "https://example.org/b.png" }
        message.attachments.forEach { print($0.size) }  // retains nothing
        message.headers.forEachUTF8Span { key, value in print(key.count, value.count) }

        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 8)
        defer { buffer.deallocate() }
        if let frame = try message.serialize(intoEndOf: buffer, delimited: true) { print(frame.count) }
        // snippet.end
        message.withTextUTF8Span { span in #expect(span.count == 7) }
        var urls: [String] = []
        message.attachments.forEach { urls.append($0.url) }
        #expect(urls == ["https://example.org/a.png", "https://example.org/b.png"])
        message.headers.forEachUTF8Span { key, value in
            #expect(String(copying: key) == "lang" && String(copying: value) == "de")
        }
        let frame = try #require(try message.serialize(intoEndOf: buffer, delimited: true))
        let expected = try message.serializedBytes()
        #expect(frame.count == expected.count + 1)
        #expect(Array(frame.dropFirst()) == expected)
    }

    @Test func decodingIntoTheSameMemory() throws {
        let bytes = try message.serializedBytes()
        // snippet.scoped-decoder
        var decoder = ScopedDecoder()
        let count = try decoder.withMessage(Sample_Chat_V1_ChatMessage.self, serializedBytes: bytes) { message in
            message.attachments.count
        }
        // snippet.end
        #expect(count == 1)
    }
}
