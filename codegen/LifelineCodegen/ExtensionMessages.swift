internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Declares a message for each extension of a file. The extension is its only field, so it gets a struct, a table and a
/// Swift type like any other field. The message has the full name of the extension, which nothing else has.
enum ExtensionMessages {
    /// The only field. In JSON it has the extension's name.
    static let fieldName = "value"

    static func declared(in file: Google_Protobuf_FileDescriptorProto) -> Google_Protobuf_FileDescriptorProto {
        var file = file
        file.messageType = file.messageType.map { declared(in: $0, of: file, scope: file.package) }
        // Last, so that they do not change the Swift names of other messages.
        file.messageType += file.extension.map { message(for: $0, of: file, scope: file.package) }
        return file
    }

    private static func declared(
        in message: Google_Protobuf_DescriptorProto,
        of file: Google_Protobuf_FileDescriptorProto,
        scope: String
    ) -> Google_Protobuf_DescriptorProto {
        var declaring = message
        let scope = joined(scope, message.name)
        declaring.nestedType = message.nestedType.map { declared(in: $0, of: file, scope: scope) }
        declaring.nestedType += message.extension.map { self.message(for: $0, of: file, scope: scope) }
        return declaring
    }

    private static func message(
        for declared: Google_Protobuf_FieldDescriptorProto,
        of file: Google_Protobuf_FileDescriptorProto,
        scope: String
    ) -> Google_Protobuf_DescriptorProto {
        .with {
            var field = declared
            field.clearExtendee()
            field.name = fieldName
            field.jsonName = "[\(joined(scope, declared.name))]"
            $0.name = declared.name
            // An extension tells whether it is set, as `optional` fields do.
            if declared.label != .repeated, file.syntax == "proto3" {
                field.proto3Optional = true
                field.oneofIndex = 0
                $0.oneofDecl = [.with { $0.name = "_\(fieldName)" }]
            } else if declared.label != .repeated, file.hasEdition {
                field.options.features.fieldPresence = .explicit
            }
            $0.field = [field]
        }
    }

    private static func joined(_ scope: String, _ name: String) -> String { scope.isEmpty ? name : "\(scope).\(name)" }
}

extension FileDescriptor {
    /// The extensions that are declared in this file, those in messages last.
    var allExtensions: [FieldDescriptor] { extensions + allMessages.flatMap(\.extensions) }
}
