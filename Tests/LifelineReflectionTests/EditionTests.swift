import LifelineDescriptorTypes
import LifelineMessages
import LifelineReflection
import Testing

/// Features of editions, and their overrides in files and declarations.
@Suite struct EditionTests {
    private func type(
        _ edition: Google_Protobuf_Edition,
        file: Google_Protobuf_FeatureSet = .init(),
        field: Google_Protobuf_FeatureSet = .init()
    ) throws -> MessageDescriptor {
        let file = Google_Protobuf_FileDescriptorProto.with {
            ($0.name, $0.syntax, $0.edition) = ("test.proto", "editions", edition)
            $0.options.features = file
            $0.enumType = [
                .with { enumeration in
                    enumeration.name = "E"
                    enumeration.value = [.with { $0.name = "ZERO" }]
                }
            ]
            $0.messageType = [
                .with {
                    $0.name = "M"
                    $0.field = [
                        .init("number", 1), .init("text", 2, .string), .init("numbers", 3, isRepeated: true),
                        .init("e", 4, .enum, ".E"), .init("m", 5, .message, ".M"),
                        .init("es", 6, .enum, ".E", isRepeated: true),
                    ]
                    for index in $0.field.indices where field != .init() { $0.field[index].options.features = field }
                }
            ]
        }
        return try #require(try DescriptorPool(.of(file)).message(named: "M"))
    }

    private func field(_ name: String, _ type: MessageDescriptor) throws -> FieldDescriptor {
        try #require(type.field(named: name))
    }

    @Test(arguments: [Google_Protobuf_Edition.edition2023, .edition2024])
    func defaultsAreThoseOfTheEdition(edition: Google_Protobuf_Edition) throws {
        let type = try type(edition)
        #expect(try type.file.edition == edition && field("number", type).hasPresence)
        #expect(try field("text", type).validatesUTF8 && field("numbers", type).isPacked)
        #expect(try !field("m", type).isDelimited && field("e", type).enumType?.isClosed == false)
        #expect(try !field("number", type).isRequired)
        var message = DynamicMessage(type)
        try message.set("number", to: .int32(0))
        #expect(try message.serializedBytes() == [8, 0] && message.has("number"))
    }

    @Test func filesOverrideDefaults() throws {
        let type = try type(
            .edition2023,
            file: .with {
                $0.fieldPresence = .implicit
                $0.utf8Validation = .none
                $0.repeatedFieldEncoding = .expanded
                $0.messageEncoding = .delimited
            }
        )
        #expect(try !field("number", type).hasPresence && !field("text", type).validatesUTF8)
        #expect(try !field("numbers", type).isPacked && field("m", type).isDelimited && field("m", type).hasPresence)
        var message = DynamicMessage(type)
        try message.set("m", to: .message(DynamicMessage(type)))
        try message.set("number", to: .int32(0))
        #expect(try message.serializedBytes() == [5 << 3 | 3, 5 << 3 | 4])
        #expect(try DynamicMessage(type, serializedBytes: message.serializedBytes()) == message)
        // Text that is not UTF-8 is accepted.
        #expect(try DynamicMessage(type, serializedBytes: [2 << 3 | 2, 1, 0xFF])["text"] == .string("\u{FFFD}"))
    }

    @Test func fieldsOverrideFiles() throws {
        let type = try type(
            .edition2023,
            file: .with { $0.fieldPresence = .implicit },
            field: .with {
                $0.fieldPresence = .legacyRequired
                $0.repeatedFieldEncoding = .expanded
            }
        )
        #expect(try field("number", type).isRequired && !field("numbers", type).isRequired)
        #expect(try !field("es", type).isPacked)
        #expect(!DynamicMessage(type).isInitialized)
        let error = #expect(throws: MessageError.self) { try DynamicMessage(type).serializedBytes() }
        #expect(error?.code == .missingRequiredField)
    }

    @Test func closedEnumsKeepUnknownNumbers() throws {
        let closed = try type(.edition2023, file: .with { $0.enumType = .closed })
        #expect(try field("e", closed).enumType?.isClosed == true)
        let message = try DynamicMessage(closed, serializedBytes: [4 << 3, 7])
        #expect(!message.has("e") && message.unknownFields == [4 << 3, 7])
        let open = try DynamicMessage(type(.edition2023), serializedBytes: [4 << 3, 7])
        #expect(open["e"] == .enumeration(7) && open.unknownFields.isEmpty)
    }

    @Test(arguments: [Google_Protobuf_Edition.unknown, .legacy, .edition2026, .unstable, .max])
    func otherEditionsAreRefused(edition: Google_Protobuf_Edition) {
        let error = #expect(throws: DescriptorError.self) { try type(edition) }
        #expect(error?.code == .unsupportedEdition)
    }
}
