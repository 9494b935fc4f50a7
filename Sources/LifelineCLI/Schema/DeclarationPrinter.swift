internal import LifelineCore
internal import LifelineDescriptorTypes
internal import LifelineReflection

/// Prints declarations as a .proto file has them, with their comments and the full names of types.
struct DeclarationPrinter {
    private var lines: [String] = []
    private var depth = 0

    /// The declarations that were printed.
    var text: String { lines.joined(separator: "\n") + "\n" }

    mutating func print(_ service: ServiceDescriptor) {
        print(service.comments)
        block("service \(service.name)") { printer in
            for method in service.methods { printer.print(method) }
        }
    }

    mutating func print(_ method: MethodDescriptor) {
        print(method.comments)
        let request = (method.isClientStreaming ? "stream " : "") + (method.inputType?.fullName ?? "?")
        let reply = (method.isServerStreaming ? "stream " : "") + (method.outputType?.fullName ?? "?")
        line("rpc \(method.name)(\(request)) returns (\(reply));")
    }

    mutating func print(_ message: MessageDescriptor) {
        print(message.comments)
        block("message \(message.name)") { printer in
            var printedOneofs: Set<OneofDescriptor> = []
            for field in message.fields {
                if let oneof = field.containingOneof {
                    // Where its first field stands.
                    if printedOneofs.insert(oneof).inserted { printer.print(oneof) }
                } else {
                    printer.print(field)
                }
            }
            for message in message.messages where !message.isMapEntry { printer.print(message) }
            for enumeration in message.enums { printer.print(enumeration) }
        }
    }

    mutating func print(_ enumeration: EnumDescriptor) {
        print(enumeration.comments)
        block("enum \(enumeration.name)") { printer in
            for value in enumeration.values {
                printer.print(value.comments)
                printer.line("\(value.name) = \(value.number);")
            }
        }
    }

    private mutating func print(_ oneof: OneofDescriptor) {
        print(oneof.comments)
        block("oneof \(oneof.name)") { printer in
            for field in oneof.fields { printer.print(field) }
        }
    }

    private mutating func print(_ field: FieldDescriptor) {
        print(field.comments)
        line("\(label(of: field))\(type(of: field)) \(field.name) = \(field.number);")
    }

    private func label(of field: FieldDescriptor) -> String {
        if field.isMap || field.containingOneof != nil { return "" }
        if field.isRepeated { return "repeated " }
        if field.isRequired { return "required " }
        let isOptional = field.file.edition == .proto2 || field.proto.proto3Optional
        return isOptional ? "optional " : ""
    }

    private func type(of field: FieldDescriptor) -> String {
        if let key = field.mapKey, let value = field.mapValue { return "map<\(type(of: key)), \(type(of: value))>" }
        return switch field.type {
        case .message: field.messageType?.fullName ?? "?"
        case .enumeration: field.enumType?.fullName ?? "?"
        case .double, .float, .int64, .uint64, .int32, .fixed64, .fixed32, .bool, .string, .bytes, .uint32, .sfixed32,
            .sfixed64, .sint32, .sint64:
            "\(field.type)"
        }
    }

    // MARK: Lines

    private mutating func print(_ comments: DescriptorComments) {
        for text in comments.leading.split(separator: "\n") { line("//\(text)") }
    }

    private mutating func block(_ head: String, _ body: (inout DeclarationPrinter) -> Void) {
        line("\(head) {")
        depth += 1
        body(&self)
        depth -= 1
        line("}")
    }

    /// Comments are a server's, which may say anything.
    private mutating func line(_ text: String) {
        lines.append(String(repeating: "  ", count: depth) + text.escaped(limit: .max))
    }
}
