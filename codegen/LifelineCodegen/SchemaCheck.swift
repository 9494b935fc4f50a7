internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Refuses what cannot be generated, before anything looks at the schema more closely.
enum SchemaCheck {
    static func check(
        _ files: [Google_Protobuf_FileDescriptorProto],
        generating names: [String]
    ) throws {
        for file in files { try checkSyntax(of: file) }
        for file in files where names.contains(file.name) {
            for (index, message) in file.messageType.enumerated() {
                try check(message, at: [4, Int32(index)], named: message.name, in: file)
            }
        }
    }

    private static func checkSyntax(of file: Google_Protobuf_FileDescriptorProto) throws {
        if !["", "proto2", "proto3"].contains(file.syntax) || file.hasEdition {
            throw GeneratorError(
                "\(file.name): the file uses \(file.syntax) (edition \(file.edition)), and editions are not supported. "
                    + "Declare syntax = \"proto3\" or \"proto2\"."
            )
        }
    }

    /// `path` leads to the message in the file, as SourceCodeInfo counts: field numbers of descriptor.proto and indices.
    private static func check(
        _ message: Google_Protobuf_DescriptorProto,
        at path: [Int32],
        named name: String,
        in file: Google_Protobuf_FileDescriptorProto
    ) throws {
        if message.options.messageSetWireFormat {
            throw GeneratorError(
                "\(file.position(of: path)): message \(name) has the option message_set_wire_format, which is not supported. "
                    + "Use an ordinary message with a google.protobuf.Any field."
            )
        }
        for (index, nested) in message.nestedType.enumerated() {
            try check(nested, at: path + [3, Int32(index)], named: "\(name).\(nested.name)", in: file)
        }
    }
}

extension Google_Protobuf_FileDescriptorProto {
    fileprivate func position(of path: [Int32]) -> String {
        GeneratorError.place(sourceCodeInfo.location.first { $0.path == path }, in: name)
    }
}
