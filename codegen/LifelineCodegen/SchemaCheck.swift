internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Refuses what cannot be generated, before anything looks at the schema more closely.
enum SchemaCheck {
    static let editions: ClosedRange<Google_Protobuf_Edition> = .edition2023 ... .edition2024

    static func check(_ files: [Google_Protobuf_FileDescriptorProto]) throws {
        for file in files { try checkSyntax(of: file) }
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
