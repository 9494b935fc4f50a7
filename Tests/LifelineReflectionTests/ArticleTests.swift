import LifelineDescriptorTypes
import LifelineMessages
import LifelineProtos
import LifelineReflection
import LifelineWellKnownTypes
import TestProtos
import Testing

/// Runs the code of docs/reflection.md.
@Suite struct ArticleTests {
    private let chatMessage = Sample_Chat_V1_ChatMessage.with { ($0.text, $0.author.name) = ("hello", "Ada") }

    @Test func descriptors() {
        // snippet.descriptors
        let type = MessageDescriptor(Sample_Chat_V1_ChatMessage.self)
        for field in type.fields { print(field.number, field.name, field.type) }
        // snippet.end
        for field in type.fields { #expect(field.number > 0 && !field.name.isEmpty) }
        #expect(DescriptorPool([Sample_Chat_V1_ChatMessage.self]).message(named: type.fullName) == type)
    }

    @Test func dynamicMessages() throws {
        let schema = try Schemas.set().serializedBytes()
        // snippet.descriptor-pool
        let pool = try DescriptorPool(serializedFileSet: schema)
        guard let type = pool.message(named: "sample.chat.v1.ChatMessage") else { return }
        // snippet.end

        // snippet.dynamic-messages
        var message = DynamicMessage(type)
        try message.set("text", to: .string("hello"))
        message["id"] = .string("1")  // traps if the name or the type is wrong
        if let author = type.field(named: "author") {
            try message.update(author) { try $0.set("name", to: .string("Ada")) }
        }
        let bytes = try message.serializedBytes()
        let same = try DynamicMessage(type, serializedBytes: bytes)
        print(try same.jsonString(), same["text"]?.stringValue ?? "")
        // snippet.end
        #expect(try same.jsonString().contains("Ada") && same["text"]?.stringValue == "hello")
    }

    @Test func generatedMessages() throws {
        // snippet.generated-messages
        let dynamic = DynamicMessage(chatMessage)
        for field in dynamic.presentFields { print(field.name, dynamic[field]) }
        let generated = try dynamic.message(as: Sample_Chat_V1_ChatMessage.self)
        // snippet.end
        #expect(dynamic.presentFields.map(\.name) == ["text", "author"])
        #expect(generated == chatMessage)
    }

    @Test func customOptions() throws {
        let pool = DescriptorPool([Test_Imports_Schema.self])
        // snippet.custom-options
        guard let field = MessageDescriptor(Test_Imports_Schema.self).field(named: "files") else { return }
        let rank = field.options.Test_Imports_rank
        let known = try pool.extension(named: "test.imports.rank").flatMap { try field.options.value(ofExtension: $0) }
        // snippet.end
        #expect(rank == 3 && known == .int32(3))
    }

    /// Of the article about messages.
    @Test func extensionsAsProperties() {
        // snippet.extensions
        var options = Google_Protobuf_FieldOptions()  // of LifelineDescriptorTypes
        options.Test_Imports_rank = 80
        print(options.hasTest_Imports_rank)  // true; clearTest_Imports_rank() forgets it
        // snippet.end
        #expect(options.hasTest_Imports_rank)
    }

    @Test func extensions() throws {
        // snippet.dynamic-extensions
        let pool = DescriptorPool([Test_Extending_Weight.self])
        var weight = DynamicMessage(Test_Extending_Weight())
        if let unit = pool.extension(named: "test.extending.unit") {
            try weight.set(unit, to: .string("g"))
            print(weight[unit], weight.presentExtensions(of: pool).count)
        }
        // snippet.end
        let unit = try #require(pool.extension(named: "test.extending.unit"))
        #expect(weight[unit] == .string("g") && weight.presentExtensions(of: pool).count == 1)
        // snippet.extensions-in-json
        print(try weight.jsonString(options: JSONEncodingOptions(types: MessageRegistry(pool))))
        // snippet.end
        let json = try weight.jsonString(options: JSONEncodingOptions(types: MessageRegistry(pool)))
        #expect(json.contains("[test.extending.unit]"))
        #expect(weight.has("grams") == false && !weight.unknownFields.isEmpty)
    }

    @Test func fieldMasks() throws {
        // snippet.field-masks
        let mask: Google_Protobuf_FieldMask = ["text", "author.name"]
        guard mask.isValid(for: Sample_Chat_V1_ChatMessage.self) else { return }
        var reply = chatMessage
        reply.trim(keeping: mask)
        var stored = Sample_Chat_V1_ChatMessage.with { $0.id = "1" }
        try stored.merge(from: chatMessage, fieldMask: mask)
        // snippet.end
        #expect(reply == chatMessage && stored.text == "hello" && stored.author.name == "Ada" && stored.id == "1")
    }
}
