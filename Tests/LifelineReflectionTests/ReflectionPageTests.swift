import LifelineMessages
import LifelineProtos
import LifelineReflection
import LifelineWellKnownTypes
import TestProtos
import Testing

/// The code of docs/reflection.md, as it stands there.
@Suite struct ReflectionPageTests {
    private let chatMessage = Sample_Chat_V1_ChatMessage.with { ($0.text, $0.author.name) = ("hello", "Ada") }

    @Test func descriptors() {
        let type = MessageDescriptor(Sample_Chat_V1_ChatMessage.self)
        for field in type.fields { #expect(field.number > 0 && !field.name.isEmpty) }
        #expect(DescriptorPool([Sample_Chat_V1_ChatMessage.self]).message(named: type.fullName) == type)
    }

    @Test func dynamicMessages() throws {
        let schema = try Schemas.set().serializedBytes()
        let pool = try DescriptorPool(serializedFileSet: schema)
        guard let type = pool.message(named: "sample.chat.v1.ChatMessage") else { return }

        var message = DynamicMessage(type)
        try message.set("text", to: .string("hello"))
        message["id"] = .string("1")
        if let author = type.field(named: "author") {
            try message.update(author) { try $0.set("name", to: .string("Ada")) }
        }
        let bytes = try message.serializedBytes()
        let same = try DynamicMessage(type, serializedBytes: bytes)
        #expect(try same.jsonString().contains("Ada") && same["text"]?.stringValue == "hello")
    }

    @Test func generatedMessages() throws {
        let dynamic = DynamicMessage(chatMessage)
        #expect(dynamic.presentFields.map(\.name) == ["text", "author"])
        let generated = try dynamic.message(as: Sample_Chat_V1_ChatMessage.self)
        #expect(generated == chatMessage)
    }

    @Test func customOptions() throws {
        let pool = DescriptorPool([Test_Imports_Schema.self])
        let field = try #require(MessageDescriptor(Test_Imports_Schema.self).field(named: "files"))
        let rank = field.options.Test_Imports_rank
        let known = try pool.extension(named: "test.imports.rank").flatMap { try field.options.value(ofExtension: $0) }
        #expect(rank == 3 && known == .int32(3))
    }

    @Test func extensions() throws {
        let pool = DescriptorPool([Test_Extending_Weight.self])
        var weight = DynamicMessage(Test_Extending_Weight())
        if let unit = pool.extension(named: "test.extending.unit") {
            try weight.set(unit, to: .string("g"))
            #expect(weight[unit] == .string("g") && weight.presentExtensions(of: pool).count == 1)
        }
        let json = try weight.jsonString(options: JSONEncodingOptions(types: MessageRegistry(pool)))
        #expect(json.contains("[test.extending.unit]"))
        #expect(weight.has("grams") == false && !weight.unknownFields.isEmpty)
    }

    @Test func fieldMasks() throws {
        var stored = Sample_Chat_V1_ChatMessage.with { $0.id = "1" }
        let mask: Google_Protobuf_FieldMask = ["text", "author.name"]
        guard mask.isValid(for: Sample_Chat_V1_ChatMessage.self) else { return }
        var reply = chatMessage
        reply.trim(keeping: mask)
        try stored.merge(from: chatMessage, fieldMask: mask)
        #expect(reply == chatMessage && stored.text == "hello" && stored.author.name == "Ada" && stored.id == "1")
    }
}
