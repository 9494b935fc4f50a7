import LifelineDescriptorTypes
import LifelineMessages
import LifelineReflection
import LifelineTestSupport
import TestProtos
import Testing

/// Extensions of dynamic and generated messages that are known only at run time.
@Suite struct DynamicExtensionTests {
    private typealias Extendable = Test_Proto2_Extendable

    private let pool: DescriptorPool
    private let type: MessageDescriptor

    init() throws {
        pool = try DescriptorPool(Schemas.set())
        type = try #require(pool.message(named: "test.proto2.Extendable"))
    }

    private func field(_ name: String) throws -> FieldDescriptor {
        try #require(pool.extension(named: "test.extending.\(name)"))
    }

    @Test(arguments: 0..<20) func extensionsOfEveryKindComeBack(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for type in [type, try #require(pool.message(named: "test.extending.Weight"))] {
            let extensions = pool.extensions(of: type).sorted { $0.number < $1.number }
            #expect(extensions.count >= 3)
            var message = DynamicMessage(type)
            var values: [FieldDescriptor: FieldValue] = [:]
            for field in extensions {
                let value = try Schemas.value(of: field, depth: 1, using: &random)
                values[field] = field.isRepeated ? .list([value, value]) : value
                try message.set(field, to: try #require(values[field]))
            }
            let read = try DynamicMessage(type, serializedBytes: message.serializedBytes(partial: true), partial: true)
            for field in extensions {
                #expect(read.has(field) && read[field] == values[field], "\(field.fullName)")
            }
            #expect(read.presentExtensions(of: pool) == extensions)
        }
    }

    @Test func generatedMessagesHaveTheSameExtensions() throws {
        var message = DynamicMessage(type)
        try message.set(field("an_int32"), to: .int32(3))
        try message.set(field("size"), to: .enumeration(1))
        try message.set(field("texts"), to: .list([.string("a"), .string("b")]))
        try message.update(field("weight")) { weight in
            try weight.set("grams", to: .int32(5))
            try weight.set(field("unit"), to: .string("g"))
        }
        let generated = try message.message(as: Extendable.self)
        #expect(generated.Test_Extending_anInt32 == 3 && generated.Test_Extending_size == .small)
        #expect(generated.Test_Extending_texts == ["a", "b"])
        #expect(
            generated.Test_Extending_weight.grams == 5 && generated.Test_Extending_weight.Test_Extending_unit == "g"
        )

        let dynamic = DynamicMessage(generated)
        let linked = DescriptorPool([Extendable.self, Test_Extending_Weight.self])
        let present = dynamic.presentExtensions(of: linked)
        #expect(present.map(\.name) == ["an_int32", "size", "weight", "texts"])
        #expect(dynamic[present[0]] == .int32(3))
        // The tables of pools are their own.
        #expect(dynamic.presentExtensions(of: pool) == [])
        #expect(try dynamic.message(as: type).presentExtensions(of: pool).count == 4)
    }

    @Test func formatsNameThem() throws {
        var message = DynamicMessage(type)
        try message.set(field("a_bool"), to: .bool(true))
        try message.update(field("weight")) { try $0.set("grams", to: .int32(5)) }
        let types = MessageRegistry(pool)
        let json = try message.jsonString(options: JSONEncodingOptions(types: types))
        #expect(json == #"{"[test.extending.a_bool]":true,"[test.extending.weight]":{"grams":5}}"#)
        #expect(
            try DynamicMessage(type, jsonString: json, options: JSONDecodingOptions(types: types)) == message
        )
        let text = message.textFormatString(options: TextFormatEncodingOptions(types: types))
        #expect(text == "[test.extending.a_bool]: true\n[test.extending.weight] {\n  grams: 5\n}\n")
        #expect(
            try DynamicMessage(type, textFormatString: text, options: TextFormatDecodingOptions(types: types))
                == message
        )
    }

    @Test func messageSets() throws {
        let set = try #require(pool.message(named: "test.extending.Set"))
        let heavy = try field("heavy")
        var message = DynamicMessage(set)
        try message.update(heavy) { try $0.set("grams", to: .int32(5)) }
        let generated = try message.message(as: Test_Extending_Set.self)
        #expect(generated.Test_Extending_heavy.grams == 5)
        #expect(try DynamicMessage(generated).message(as: set)[heavy] == message[heavy])
    }

    @Test func changes() throws {
        let (numbers, weight) = (try field("numbers"), try field("weight"))
        var message = DynamicMessage(type)
        #expect(message[try field("an_int32")] == .int32(-7) && message[numbers] == .list([]))
        #expect(!message.has(weight) && message[weight].messageValue?["grams"] == .int32(0))
        for number in 1...3 { try message.append(.int32(Int32(number)), to: numbers) }
        try message.setElement(of: numbers, at: 0, to: .int32(10))
        message.removeElement(of: numbers, at: 1)
        #expect(message.count(of: numbers) == 2 && message.element(of: numbers, at: 1) == .int32(3))
        #expect(message[numbers] == .list([.int32(10), .int32(3)]))

        let copy = message
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try message.update(weight) { weight in
                try weight.set("grams", to: .int32(1))
                throw Stop()
            }
        }
        #expect(message == copy)
        message.clear(numbers)
        #expect(!message.has(numbers) && message == DynamicMessage(type) && copy.count(of: numbers) == 2)
    }

    @Test func submessagesKeepWhatWasChangedBeforeAnError() throws {
        struct Stop: Error {}
        let weight = try #require(pool.message(named: "test.extending.Weight"))
        let below = try #require(weight.field(named: "below"))
        var message = DynamicMessage(weight)
        #expect(throws: Stop.self) {
            try message.update(below) { below in
                try below.set("grams", to: .int32(1))
                throw Stop()
            }
        }
        #expect(message[below].messageValue?["grams"] == .int32(1))
    }

    @Test func textThatIsNotUTF8StaysInExtensions() throws {
        // The field a_string of Singular, not UTF-8.
        let bytes: [UInt8] = [14 << 3 | 2, 1, 0xFF]
        let options = DecodingOptions(validatesUTF8: false)
        let singular = try Test_Scalars_Proto3_Singular(serializedBytes: bytes, options: options)
        var generated = Extendable()
        generated.Test_Extending_singular = singular
        #expect(generated.hasTest_Extending_singular && generated.Test_Extending_singular == singular)

        let field = try field("singular")
        let content = try DynamicMessage(try #require(field.messageType), serializedBytes: bytes, options: options)
        var message = DynamicMessage(type)
        try message.set(field, to: .message(content))
        #expect(message.has(field) && message[field] == .message(content))
    }

    @Test func clearingAnAbsentExtensionChangesNothing() throws {
        var message = DynamicMessage(type)
        try message.set(field("a_bool"), to: .bool(true))
        let copy = message
        message.clear(try field("weight"))
        #expect(message == copy)
        message.clear(try field("a_bool"))
        #expect(message == DynamicMessage(type) && copy != message)
    }

    @Test func clearingAnAbsentExtensionKeepsMemoryShared() throws {
        let original = Extendable.with { $0.name = "a" }
        let pool = DescriptorPool([Extendable.self, Test_Extending_Weight.self])
        var view = DynamicMessage(original)
        view.clear(try #require(pool.extension(named: "test.extending.a_bool")))
        #expect(try view.message(as: Extendable.self)._message.fields == original._message.fields)
    }

    @Test func mistakes() throws {
        var message = DynamicMessage(type)
        let code = { (body: () throws -> Void) in
            #expect(throws: MessageError.self) { try body() }?.code
        }
        #expect(code { try message.set(field("an_int32"), to: .string("3")) } == .unexpectedValue)
        #expect(code { try message.set(field("size"), to: .enumeration(7)) } == .unexpectedValue)
        #expect(code { try message.set(field("unit"), to: .string("g")) } == .unknownField)
        #expect(message == DynamicMessage(type))

        let linked = DescriptorPool([Test_Extending_Weight.self])
        let foreign = try #require(linked.extension(named: "test.extending.an_int32"))
        let error = #expect(throws: MessageError.self) { try message.set(foreign, to: .int32(1)) }
        #expect(error?.code == .unknownField && error?.message.contains("message(as:)") == true)
        #expect(throws: MessageError.self) {
            try message.message(as: try #require(pool.message(named: "test.extending.Weight")))
        }
    }

    @Test func contentIsCheckedOnDemand() throws {
        // The extension 127 is a message, here with a field that ends too early.
        let bytes: [UInt8] = [0xFA, 0x07, 1, 0x08]
        let message = try DynamicMessage(type, serializedBytes: bytes)
        #expect(!message.has(try field("weight")))
        #expect(throws: MessageError.self) { try message.checkExtensions(MessageRegistry(pool)) }
        try message.checkExtensions(MessageRegistry())
    }

    @Test func extensionsOfAnotherPoolAreNoneOfTheMessage() throws {
        let linked = MessageDescriptor(Extendable.self)
        #expect(linked.fullName == type.fullName && pool.extensions(of: type).count >= 3)
        #expect(pool.extensions(of: linked) == [] && pool.extension(of: linked, number: 127) == nil)
        #expect(pool.extension(of: type, number: 127)?.name == "weight")
    }

    // MARK: Custom options

    @Test func customOptionsOfLinkedFiles() throws {
        let type = MessageDescriptor(Test_Imports_Schema.self)
        let linked = DescriptorPool([Test_Imports_Schema.self])
        let owner = try #require(linked.extension(named: "test.imports.owner"))
        let rank = try #require(linked.extension(named: "test.imports.rank"))
        #expect(try type.options.value(ofExtension: owner) == .string("schemas"))
        #expect(try type.field(named: "files")?.options.value(ofExtension: rank) == .int32(3))
        #expect(try type.field(named: "type")?.options.value(ofExtension: rank) == nil)
        #expect(throws: MessageError.self) { try type.options.value(ofExtension: rank) }
        #expect(throws: MessageError.self) { try type.options.value(ofExtension: try #require(type.fields.first)) }
    }

    @Test func extensionsOfProto3TellWhetherTheyAreSet() throws {
        let options = MessageDescriptor(Test_Imports_Options_Marked.self).options
        #expect(options.hasTest_Imports_Options_level && options.Test_Imports_Options_level == 0)
        #expect(!options.hasTest_Imports_Options_note)
        let linked = DescriptorPool([Test_Imports_Options_Marked.self])
        for pool in [linked, pool] {
            let level = try #require(pool.extension(named: "test.imports.options.level"))
            let note = try #require(pool.extension(named: "test.imports.options.note"))
            #expect(try options.value(ofExtension: level) == .int32(0))
            #expect(try options.value(ofExtension: note) == nil)
        }
    }

    @Test func customOptionsOfSchemas() throws {
        let schema = try #require(pool.message(named: "test.imports.Schema"))
        let owner = try #require(pool.extension(named: "test.imports.owner"))
        #expect(owner.containingType != MessageDescriptor(Google_Protobuf_MessageOptions.self))
        #expect(try schema.options.value(ofExtension: owner) == .string("schemas"))
    }
}
