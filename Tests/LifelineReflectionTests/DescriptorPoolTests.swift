import Foundation
import LifelineDescriptorTypes
import LifelineMessages
import LifelineProtos
import LifelineReflection
import LifelineWellKnownTypes
import TestProtos
import Testing

/// Descriptors of linked files, and of files that are read.
@Suite struct DescriptorPoolTests {
    @Test func linkedTypesAreDescribed() throws {
        let pool = DescriptorPool([Sample_Chat_V1_ChatMessage.self])
        #expect(pool.files.map(\.name) == ["google/protobuf/timestamp.proto", "sample/chat/v1/chat.proto"])
        let type = try #require(pool.message(named: "sample.chat.v1.ChatMessage"))
        #expect(type == MessageDescriptor(Sample_Chat_V1_ChatMessage.self))
        #expect(type.name == "ChatMessage" && type.file.package == "sample.chat.v1")
        let text = try #require(type.field(named: "text"))
        #expect(text == type.field(number: text.number) && text.type == .string && text.containingType == type)
        #expect(
            type.field(named: "missing") == nil && type.field(number: 1_000) == nil && type.field(number: -1) == nil
        )
        #expect(pool.message(named: "google.protobuf.Timestamp") == MessageDescriptor(Google_Protobuf_Timestamp.self))
        #expect(pool.message(named: "sample.chat.v1") == nil && pool.enumeration(named: "") == nil)
    }

    @Test func fieldsSayWhatTheyHold() throws {
        let type = MessageDescriptor(Test_Proto2_Defaults.self)
        let defaults = type.fields.compactMap { field in field.defaultValue.map { (field.name, $0) } }
        #expect(!defaults.isEmpty && type.file.edition == .proto2)
        for (name, value) in defaults {
            // A NaN differs from itself.
            #expect(DynamicMessage(type)[name]?.description == value.description)
        }

        let proto3 = MessageDescriptor(Test_Scalars_Proto3_Optional.self)
        let optional = try #require(proto3.field(named: "a_int32"))
        #expect(optional.hasPresence && optional.containingOneof == nil && proto3.oneofs.isEmpty)
        #expect(optional.jsonName == "aInt32" && optional.defaultValue == .int32(0))
        #expect(optional.fullName == "test.scalars.proto3.Optional.a_int32")
        let packed = MessageDescriptor(Test_Scalars_Proto3_Packed.self)
        #expect(packed.fields.allSatisfy { $0.isRepeated && !$0.hasPresence && $0.defaultValue == nil })
        #expect(packed.fields.filter { !$0.isPacked }.map(\.type) == [.string, .bytes, .message])
        let choice = MessageDescriptor(Test_Scalars_Proto3_Choice.self)
        let oneof = try #require(choice.oneofs.first)
        #expect(oneof.fields.allSatisfy { $0.containingOneof == oneof } && oneof.containingType == choice)
        #expect(choice.oneof(named: oneof.name) == oneof)
        let groups = MessageDescriptor(Test_Proto2_Groups.self)
        #expect(groups.fields.contains { $0.isDelimited && $0.messageType != nil })
    }

    @Test func mapsHaveKeysAndValues() throws {
        let type = MessageDescriptor(Test_Imports_Schema.self)
        let map = try #require(type.field(named: "field_options"))
        #expect(map.isMap && map.isRepeated && map.messageType?.isMapEntry == true)
        #expect(map.mapKey?.type == .string && map.mapKey?.validatesUTF8 == false)
        #expect(map.mapValue?.messageType == MessageDescriptor(Google_Protobuf_FieldOptions.self))
        #expect(type.field(named: "type")?.mapKey == nil)
    }

    @Test func customOptionsAreExtensions() throws {
        let type = MessageDescriptor(Test_Imports_Schema.self)
        let pool = DescriptorPool([Test_Imports_Schema.self])
        #expect(type.options.unknownFields == [0xDA, 0xB5, 0x18, 7] + Array("schemas".utf8))
        #expect(type.field(named: "files")?.options.unknownFields == [0xE0, 0xB5, 0x18, 3])
        let owner = try #require(pool.extension(named: "test.imports.owner"))
        #expect(owner.isExtension && owner.number == 50_011 && owner.extensionScope == nil)
        let options = try #require(pool.message(named: "google.protobuf.MessageOptions"))
        #expect(owner.containingType == options && pool.extension(of: options, number: 50_011) == owner)
        #expect(pool.extension(of: options, number: 50_010) == nil)
        #expect(type.file.extensions.contains(owner))
    }

    @Test func messageSetsHaveExtensionsWithLargeNumbers() throws {
        let file = Google_Protobuf_FileDescriptorProto.with { file in
            file.name = "test.proto"
            file.messageType = [
                .with { type in
                    type.name = "Set"
                    type.options.messageSetWireFormat = true
                    type.extensionRange = [.with { ($0.start, $0.end) = (4, .max) }]
                }
            ]
            var field = Google_Protobuf_FieldDescriptorProto("large", .max - 1, .message, ".Set")
            field.extendee = ".Set"
            file.extension = [field]
        }
        let pool = try DescriptorPool(.of(file))
        let type = try #require(pool.message(named: "Set"))
        let large = try #require(pool.extension(of: type, number: Int(Int32.max - 1)))
        #expect(large.name == "large")
        // It has no tag, so it cannot be used.
        var message = DynamicMessage(type)
        let error = #expect(throws: MessageError.self) { try message.set(large, to: .message(message)) }
        #expect(error?.code == .unknownField && error?.message.contains("2147483646") == true)
        let empty = message
        #expect(!message.has(large))
        #expect(message[large] == .message(DynamicMessage(type)))
        message.clear(large)
        #expect(message == empty && message.presentExtensions(of: pool) == [])
        #expect(throws: MessageError.self) {
            let options = JSONDecodingOptions(types: MessageRegistry(pool))
            _ = try DynamicMessage(type, jsonString: #"{"[large]":{}}"#, options: options)
        }
    }

    @Test func namesInJSONMayBeAlikeWhereJSONIsNotPromised() throws {
        let fields: RepeatedField<Google_Protobuf_FieldDescriptorProto> = [.init("foo_bar", 1), .init("fooBar", 2)]
        let type = Google_Protobuf_DescriptorProto.with { ($0.name, $0.field) = ("M", fields) }
        var files = [Google_Protobuf_FileDescriptorProto](
            repeating: .with { ($0.name, $0.messageType) = ("test.proto", [type]) },
            count: 3
        )
        (files[1].syntax, files[1].edition) = ("editions", .edition2023)
        files[1].options.features.jsonFormat = .legacyBestEffort
        files[2].syntax = "proto3"
        files[2].messageType[0].options.deprecatedLegacyJsonFieldConflicts = true
        for file in files {
            #expect(try DescriptorPool(.of(file)).message(named: "M")?.fields.count == 2)
        }
    }

    @Test func defaultsNeedPresence() throws {
        let file = Google_Protobuf_FileDescriptorProto.proto3 { file in
            var inOneof = Google_Protobuf_FieldDescriptorProto("a", 1)
            (inOneof.oneofIndex, inOneof.defaultValue) = (0, "7")
            var ofExtension = Google_Protobuf_FieldDescriptorProto("b", 100)
            (ofExtension.extendee, ofExtension.defaultValue) = ("M", "8")
            file.messageType = [
                .with { type in
                    type.name = "M"
                    type.field = [inOneof]
                    type.oneofDecl = [.with { $0.name = "o" }]
                    type.extensionRange = [.with { ($0.start, $0.end) = (100, 101) }]
                }
            ]
            file.extension = [ofExtension]
        }
        let pool = try DescriptorPool(.of(file))
        #expect(pool.message(named: "test.M")?.field(named: "a")?.defaultValue == .int32(7))
        #expect(pool.extension(named: "test.b")?.defaultValue == .int32(8))
    }

    @Test func typesFollowFromTheirNames() throws {
        let file = Google_Protobuf_FileDescriptorProto.proto3 { file in
            var fields = [
                Google_Protobuf_FieldDescriptorProto("message", 1, .message, "M"),
                .init("list", 2, .message, ".test.M", isRepeated: true), .init("number", 3, .enum, "E"),
            ]
            for index in fields.indices { fields[index].clearType() }
            file.messageType = [
                .with {
                    $0.name = "M"
                    $0.field = RepeatedField(fields)
                }
            ]
            file.enumType = [
                .with { enumeration in
                    enumeration.name = "E"
                    enumeration.value = [.with { $0.name = "A" }]
                }
            ]
        }
        let type = try #require(try DescriptorPool(.of(file)).message(named: "test.M"))
        #expect(type.fields.map(\.type) == [.message, .message, .enumeration])
        #expect(type.fields.prefix(2).allSatisfy { $0.messageType == type })
        let message = try DynamicMessage(type, jsonString: #"{"message": {"list": [{}, {}]}, "number": "A"}"#)
        #expect(try DynamicMessage(type, serializedBytes: message.serializedBytes()) == message)
    }

    // MARK: Names

    /// A file with a message, in a package.
    private static func file(_ name: String, _ package: String, message: String) -> Google_Protobuf_FileDescriptorProto
    {
        .proto3(name, package: package) { $0.messageType = [.with { $0.name = message }] }
    }

    /// Names that are not absolute mean what they mean to protoc.
    @Test(
        arguments: [
            // Only messages and enums are types, so the package foo.bar does not hide the message.
            ("foo.bar", "bar", file("a.proto", "", message: "bar"), file("b.proto", "c", message: "M"), "bar"),
            // A message or a package in a file that is not imported hides nothing.
            ("a.b", "N", file("a.proto", "a", message: "N"), file("b.proto", "a.b", message: "N"), "a.N"),
            ("b", "a.M", file("a.proto", "a", message: "M"), file("b.proto", "b.a", message: "M"), "a.M"),
        ]
    )
    func namesAreLookedUpInVisibleScopes(
        package: String,
        name: String,
        imported: Google_Protobuf_FileDescriptorProto,
        other: Google_Protobuf_FileDescriptorProto,
        expected: String
    ) throws {
        let user = Google_Protobuf_FileDescriptorProto.proto3(package: package) {
            $0.dependency = [imported.name]
            $0.messageType = [
                .with {
                    $0.name = "User"
                    $0.field = [.init("field", 1, .message, name)]
                }
            ]
        }
        let atOnce = try DescriptorPool(.of(other, imported, user))
        var oneByOne = try DescriptorPool(.of(other))
        try oneByOne.add(.of(imported))
        try oneByOne.add(.of(user))
        for pool in [atOnce, oneByOne] {
            let field = try #require(pool.message(named: package + ".User")?.field(named: "field"))
            #expect(field.messageType?.fullName == expected)
        }
        // The package of a file that is imported does decide, even for names that are not in it.
        var seeing = user
        seeing.dependency.append(other.name)
        let decides = name != "bar"
        let field = try? DescriptorPool(.of(other, imported, seeing)).message(named: package + ".User")?.fields.first
        #expect(field?.messageType?.fullName == (decides ? "\(other.package).\(other.messageType[0].name)" : expected))
    }

    @Test func servicesAreDescribed() throws {
        let pool = DescriptorPool([Sample_Room_V1_EchoRequest.self])
        let service = try #require(pool.files.last?.services.first)
        #expect(pool.service(named: service.fullName) == service)
        let echo = try #require(service.method(named: "Echo"))
        #expect(echo.service == service && !echo.isServerStreaming && !echo.isClientStreaming)
        #expect(echo.inputType == MessageDescriptor(Sample_Room_V1_EchoRequest.self))
        #expect(echo.outputType == MessageDescriptor(Sample_Room_V1_EchoReply.self))
    }

    @Test func enumsAreDescribed() throws {
        let type = MessageDescriptor(Google_Protobuf_FieldDescriptorProto.self)
        let label = try #require(type.enums.first { $0.name == "Label" })
        #expect(label.isClosed && label.containingType == type)
        #expect(label.value(named: "LABEL_REPEATED")?.number == 3 && label.value(number: 3)?.name == "LABEL_REPEATED")
        #expect(label.value(number: 3)?.enumeration == label && label.value(number: 7) == nil)
        let field = try #require(type.field(named: "label"))
        #expect(field.enumType == label && field.defaultValue == .enumeration(1))
        let kind = try #require(Schemas.linked.enumeration(named: "google.protobuf.NullValue"))
        #expect(!kind.isClosed && kind.containingType == nil)
    }

    @Test func commentsAreKeptWhereTheyCome() throws {
        let file = Google_Protobuf_FileDescriptorProto.proto3 { file in
            file.messageType = [
                .with { message in
                    message.name = "Outer"
                    message.field = [.init("a", 1)]
                    message.nestedType = [.with { $0.name = "Inner" }]
                }
            ]
            let comments: [([Int32], String)] = [([4, 0], " outer"), ([4, 0, 2, 0], " a"), ([4, 0, 3, 0], " inner")]
            file.sourceCodeInfo.location = RepeatedField(
                comments.map { path, comment in
                    .with {
                        $0.path = RepeatedField(path)
                        $0.leadingComments = comment
                    }
                }
            )
        }
        let outer = try #require(try DescriptorPool(.of(file)).message(named: "test.Outer"))
        #expect(outer.comments.leading == " outer" && outer.comments.trailing == "")
        #expect(outer.fields.map(\.comments.leading) == [" a"])
        #expect(outer.messages.map(\.comments.leading) == [" inner"])
        #expect(MessageDescriptor(Test_Comments_Commented.self).comments.leading == "")
    }

    // MARK: Adding files

    @Test func filesAreAddedInAnyOrder() throws {
        let (base, user) = (Self.base, Self.user)
        for set in [Google_Protobuf_FileDescriptorSet.of(base, user), .of(user, base), .of(user, base, user)] {
            let pool = try DescriptorPool(set)
            #expect(pool.files.map(\.name) == ["base.proto", "user.proto"])
            let field = try #require(pool.message(named: "test.User")?.field(named: "base"))
            #expect(field.messageType == pool.message(named: "test.Base"))
            #expect(field.file.dependencies.map(\.name) == ["base.proto"])
        }
    }

    @Test func poolsAreValues() throws {
        var pool = try DescriptorPool(.of(Self.base))
        let before = pool
        let base = try #require(pool.message(named: "test.Base"))
        try pool.add(.of(Self.user, Self.base))
        #expect(before.files.count == 1 && before.message(named: "test.User") == nil)
        let type = try #require(pool.message(named: "test.User"))
        #expect(type.field(named: "base")?.messageType == base)
        var message = DynamicMessage(type)
        try message.set("base", to: .message(DynamicMessage(base)))
        #expect(message.has("base"))
        #expect(throws: DescriptorError.self) { try pool.add(.of(.proto3("x.proto") { $0.dependency = ["y.proto"] })) }
        #expect(pool.files.count == 2)
    }

    @Test func filesExtendLinkedOnes() throws {
        var pool = DescriptorPool([Google_Protobuf_Timestamp.self])
        // A set from protoc has the names in JSON.
        var timestamp = try #require(pool.file(named: "google/protobuf/timestamp.proto")).proto
        for index in timestamp.messageType[0].field.indices {
            let name = timestamp.messageType[0].field[index].name
            timestamp.messageType[0].field[index].jsonName = name
        }
        let file = Google_Protobuf_FileDescriptorProto.proto3 {
            $0.dependency = ["google/protobuf/timestamp.proto"]
            $0.messageType = [
                .with {
                    $0.name = "Event"
                    $0.field = [.init("time", 1, .message, ".google.protobuf.Timestamp")]
                }
            ]
        }
        try pool.add(.of(timestamp, file))
        let type = try #require(pool.message(named: "test.Event"))
        var event = DynamicMessage(type)
        try event.set("time", to: .message(DynamicMessage(Google_Protobuf_Timestamp.with { $0.seconds = 1 })))
        #expect(try event.jsonString() == #"{"time":"1970-01-01T00:00:01Z"}"#)
        #expect(try event["time"]?.messageValue?.message(as: Google_Protobuf_Timestamp.self).seconds == 1)
    }

    @Test func descriptorsKeepTheirPoolAlive() throws {
        var type = try DescriptorPool(.of(Self.base, Self.user)).message(named: "test.User")?.field(named: "base")
        let message =
            try #require(type?.messageType).fields.isEmpty ? DynamicMessage(try #require(type?.messageType)) : nil
        type = nil
        #expect(message?.descriptor.fullName == "test.Base")
        #expect(try message?.serializedBytes() == [])
    }

    private static let base = Google_Protobuf_FileDescriptorProto.proto3("base.proto") {
        $0.messageType = [.with { $0.name = "Base" }]
    }

    private static let user = Google_Protobuf_FileDescriptorProto.proto3("user.proto") {
        $0.dependency = ["base.proto"]
        $0.messageType = [
            .with {
                $0.name = "User"
                $0.field = [.init("base", 1, .message, "Base")]
            }
        ]
    }
}
