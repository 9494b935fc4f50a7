internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Rewrites a schema so that protoc-gen-c makes the right structs from it.
///
/// - Strings become bytes with a length, because C's strings end at the first NUL.
/// - Enums become `int32`, because a C enum may only have numbers that it declares.
/// - The synthetic oneof of a proto3 `optional` field becomes an ordinary one, and proto2's `required` becomes
///   `optional`, so that the struct tells whether the field is set.
/// - Maps become the repeated entry messages that they are on the wire.
/// - A file of an edition becomes one of proto2, where each field declares whether its struct has a flag for it. A
///   field without presence becomes `required`, which has no flag.
/// - Defaults are dropped. The Swift getters have them, and protoc-gen-c writes `inf`, which C does not have.
/// - Services, options and everything else that is not needed for structs are dropped, with the imports for them.
struct SchemaRewriter {
    private let schema: Schema

    init(schema: Schema) {
        self.schema = schema
    }

    func rewrite(_ file: Google_Protobuf_FileDescriptorProto) -> Google_Protobuf_FileDescriptorProto {
        guard let descriptor = schema.descriptors.fileDescriptor(named: file.name) else { return file }
        var rewritten = Google_Protobuf_FileDescriptorProto()
        rewritten.name = file.name
        rewritten.package = CNames.rewrittenPackage(of: descriptor)
        rewritten.syntax = descriptor.edition == .proto3 ? "proto3" : "proto2"
        rewritten.dependency = descriptor.filesOfUsedMessages.map(\.name)
        rewritten.messageType = descriptor.messages.map(rewrite)
        rewritten.options = .with { try? $0.merge(serializedBytes: ProtobufCOptions.file) }
        return rewritten
    }

    private func rewrite(_ message: Descriptor) -> Google_Protobuf_DescriptorProto {
        .with {
            $0.name = String(schema.names.rewrittenFullName(message).split(separator: ".").last ?? "")
            $0.field = message.fields.map { rewrite($0, inMapEntry: message.options.mapEntry) }
            $0.nestedType = message.messages.map(rewrite)
            $0.oneofDecl = message.oneofs.map { oneof in .with { $0.name = schema.names.oneof(oneof) } }
        }
    }

    private func rewrite(_ field: FieldDescriptor, inMapEntry: Bool) -> Google_Protobuf_FieldDescriptorProto {
        .with {
            $0.name = schema.names.member(field)
            $0.number = Int32(field.number)
            $0.label = field.isRepeated ? .repeated : .optional
            let hasNoFlag = inMapEntry || !field.isRepeated && !field.hasPresence
            if hasNoFlag, field.file.edition != .proto3 { $0.label = .required }
            if let index = field.oneofIndex { $0.oneofIndex = index }
            switch field.type {
            case .message, .group:
                $0.type = .message
                $0.typeName = "." + schema.names.rewrittenFullName(field.messageType)
            case .enum:
                $0.type = .int32
            case .string:
                $0.type = .string
                $0.options = .with { try? $0.merge(serializedBytes: ProtobufCOptions.stringAsBytes) }
            default:
                $0.type = field.type
            }
        }
    }
}

/// Encoded options of protobuf-c, from /usr/include/protobuf-c/protobuf-c.proto: extension 1019, a message.
private enum ProtobufCOptions {
    /// `(pb_c_file)`: gen_pack_helpers (2) and gen_init_helpers (3) are false.
    static let file: [UInt8] = [0xDA, 0x3F, 4, 2 << 3, 0, 3 << 3, 0]
    /// `(pb_c_field)`: string_as_bytes (1) is true.
    static let stringAsBytes: [UInt8] = [0xDA, 0x3F, 2, 1 << 3, 1]
}

extension FileDescriptor {
    /// The other files that declare a message type of this file's fields.
    var filesOfUsedMessages: [FileDescriptor] {
        files(usedBy: { $0.isMessage ? $0.messageType.file : nil })
    }

    /// The other files that `use` returns for the fields of this file, without duplicates, ordered by name.
    func files(usedBy use: (FieldDescriptor) -> FileDescriptor?) -> [FileDescriptor] {
        var found: [String: FileDescriptor] = [:]
        for message in allMessages {
            for field in message.fields {
                if let file = use(field), file !== self { found[file.name] = file }
            }
        }
        return found.values.sorted { $0.name < $1.name }
    }

    /// The messages of the file and those nested in them, outer ones first.
    var allMessages: [Descriptor] { messages.flatMap(\.withNestedMessages) }
}

extension Descriptor {
    fileprivate var withNestedMessages: [Descriptor] { [self] + messages.flatMap(\.withNestedMessages) }
}
