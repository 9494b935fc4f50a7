internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Refuses what cannot be generated, before anything looks at the schema more closely.
enum SchemaCheck {
    static func check(_ files: [Google_Protobuf_FileDescriptorProto]) throws {
        for file in files { try checkSyntax(of: file) }
    }

    private static func checkSyntax(of file: Google_Protobuf_FileDescriptorProto) throws {
        if !["", "proto2", "proto3"].contains(file.syntax) || file.hasEdition {
            throw GeneratorError(
                "\(file.name): the file uses \(file.syntax) (edition \(file.edition)), and editions are not supported. "
                    + "Declare syntax = \"proto3\" or \"proto2\"."
            )
        }
    }
}
