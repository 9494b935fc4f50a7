internal import SwiftProtobuf

/// Writes the description of a .proto file for reflection: LifelineFile in lifeline_table.h.
struct FileDescription {
    private let path: String
    private let dependencies: [String]
    /// The encoded FileDescriptorProto.
    private let bytes: [UInt8]

    init(_ file: Google_Protobuf_FileDescriptorProto) throws {
        (path, dependencies) = (file.name, file.dependency)
        var file = file
        file.clearSourceCodeInfo()
        for index in file.messageType.indices { Self.removeImpliedNames(from: &file.messageType[index]) }
        for index in file.extension.indices { Self.removeImpliedName(from: &file.extension[index]) }
        bytes = try file.serializedBytes()
    }

    /// Removes the names in JSON, which protoc adds, where they follow from the other names.
    private static func removeImpliedNames(from message: inout Google_Protobuf_DescriptorProto) {
        for index in message.field.indices { removeImpliedName(from: &message.field[index]) }
        for index in message.extension.indices { removeImpliedName(from: &message.extension[index]) }
        for index in message.nestedType.indices { removeImpliedNames(from: &message.nestedType[index]) }
    }

    /// LifelineReflection computes the name again, and must get the same: `camelCased` in its DescriptorBuilder.
    private static func removeImpliedName(from field: inout Google_Protobuf_FieldDescriptorProto) {
        var name = ""
        var isCapital = false
        for character in field.name.unicodeScalars {
            if character == "_" {
                isCapital = true
            } else {
                name += isCapital && character.isASCII ? String(character).uppercased() : String(character)
                isCapital = false
            }
        }
        if field.jsonName == name { field.clearJsonName() }
    }

    /// The name in C of the description of the file at `path`.
    static func symbol(of path: String) -> String {
        "lifeline_file_" + TableGenerator.identifier(of: path.withoutProtoSuffix)
    }

    /// - Parameters:
    ///   - messages: the names in C of the tables of the file's messages, all of which are declared before.
    ///   - linkedFiles: the imported files that are always linked. The others may be missing.
    func print(messages: [String], linkedFiles: [String], to printer: inout SourcePrinter) {
        let symbol = Self.symbol(of: path)
        printer.print("static const char \(symbol)_bytes[] =")
        let bytesPerLine = 40
        for start in stride(from: 0, to: bytes.count, by: bytesPerLine) {
            let end = min(start + bytesPerLine, bytes.count)
            printer.print("    \"\(bytes[start..<end].cLiteral)\"" + (end == bytes.count ? ";" : ""))
        }
        let imports = dependencies.map(Self.symbol)
        for (name, path) in zip(imports, dependencies) {
            printer.print("extern const LifelineFile \(name)\(linkedFiles.contains(path) ? "" : " LIFELINE_WEAK");")
        }
        printer.printArray(of: imports, type: "LifelineFile", as: "\(symbol)_dependencies")
        printer.printArray(of: messages, type: "LifelineMessageTable", as: "\(symbol)_messages")
        printer.print(
            "const LifelineFile \(symbol) = {",
            "    .path = \"\(path.utf8.cLiteral)\", .bytes = \(symbol)_bytes, .count = \(bytes.count),",
            "    .dependencies = \(imports.isEmpty ? "NULL" : "\(symbol)_dependencies"), "
                + ".dependency_count = \(imports.count),",
            "    .messages = \(messages.isEmpty ? "NULL" : "\(symbol)_messages"), .message_count = \(messages.count)};",
            ""
        )
    }
}

extension SourcePrinter {
    /// Defines an array of pointers to constants, if there are any.
    fileprivate mutating func printArray(of constants: [String], type: String, as name: String) {
        if constants.isEmpty { return }
        print("static const \(type) *const \(name)[] = {")
        for constant in constants { print("    &\(constant),") }
        print("};")
    }
}
