internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Refuses schemas that are not supported, before anything else reads them.
enum SchemaCheck {
    static let editions: ClosedRange<Google_Protobuf_Edition> = .edition2023 ... .edition2024

    static func check(_ files: [Google_Protobuf_FileDescriptorProto]) throws {
        for file in files {
            try checkSyntax(of: file)
            try checkExtensions(file.extension, of: file)
            var pending = file.messageType
            while let message = pending.popLast() {
                try checkExtensions(message.extension, of: file)
                pending += message.nestedType
            }
        }
    }

    /// Only the extensions of message sets may have larger numbers than fields.
    private static func checkExtensions(
        _ extensions: [Google_Protobuf_FieldDescriptorProto],
        of file: Google_Protobuf_FileDescriptorProto
    ) throws {
        guard let field = extensions.first(where: { $0.number >= 1 << 29 }) else { return }
        throw GeneratorError(
            "\(file.name): the extension \(field.name) has the number \(field.number). Numbers from 536870912 (2^29) on, which "
                + "a message set may have, are not supported. Use a lower one."
        )
    }

    private static func checkSyntax(of file: Google_Protobuf_FileDescriptorProto) throws {
        let isSupported =
            file.hasEdition ? editions.contains(file.edition) : ["", "proto2", "proto3"].contains(file.syntax)
        if isSupported { return }
        throw GeneratorError(
            "\(file.name): the file uses \(file.hasEdition ? "\(file.edition)" : "syntax \(file.syntax)"), which is not "
                + "supported. Declare edition = \"2024\" or \"2023\", or syntax = \"proto3\" or \"proto2\"."
        )
    }
}
