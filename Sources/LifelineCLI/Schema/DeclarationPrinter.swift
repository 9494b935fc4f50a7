internal import LifelineCore
internal import LifelineDescriptorTypes
internal import LifelineMessages
internal import LifelineReflection

/// Prints declarations in the form of a .proto file, with their comments and the full names of types. It prints only
/// the options that a reader needs: defaults, names in JSON, packing and deprecation.
struct DeclarationPrinter {
    private var lines: [String] = []
    private var depth = 0

    /// The declarations that were printed.
    var text: String { lines.joined(separator: "\n") + "\n" }

    mutating func print(_ service: ServiceDescriptor) {
        print(service.comments)
        block("service \(service.name)", service.comments, isDeprecated: service.options.deprecated) { printer in
            for method in service.methods { printer.print(method) }
        }
    }

    mutating func print(_ method: MethodDescriptor) {
        print(method.comments)
        let request = (method.isClientStreaming ? "stream " : "") + (method.inputType?.fullName ?? "?")
        let reply = (method.isServerStreaming ? "stream " : "") + (method.outputType?.fullName ?? "?")
        let head = "rpc \(method.name)(\(request)) returns (\(reply))"
        if method.options.deprecated {
            block(head, method.comments, isDeprecated: true) { _ in }
        } else {
            line("\(head);", method.comments)
        }
    }

    mutating func print(_ message: MessageDescriptor) {
        print(message.comments)
        let proto = message.proto
        block("message \(message.name)", message.comments, isDeprecated: message.options.deprecated) { printer in
            printer.printRanges("extensions", proto.extensionRange.map { ($0.start, $0.end &- 1) }, upTo: 0x1FFF_FFFF)
            printer.printRanges("reserved", proto.reservedRange.map { ($0.start, $0.end &- 1) }, upTo: 0x1FFF_FFFF)
            printer.printReservedNames(Array(proto.reservedName), in: message.file)
            var printedOneofs: Set<OneofDescriptor> = []
            for field in message.fields {
                if let oneof = field.containingOneof {
                    // The oneof is printed at its first field.
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
        let proto = enumeration.proto
        block("enum \(enumeration.name)", enumeration.comments, isDeprecated: enumeration.options.deprecated) {
            printer in
            if enumeration.options.allowAlias { printer.line("option allow_alias = true;") }
            // Unlike those of messages, these ranges include their ends.
            printer.printRanges("reserved", proto.reservedRange.map { ($0.start, $0.end) }, upTo: .max)
            printer.printReservedNames(Array(proto.reservedName), in: enumeration.file)
            for value in enumeration.values {
                printer.print(value.comments)
                let options = value.options.deprecated ? " [deprecated = true]" : ""
                printer.line("\(value.name) = \(value.number)\(options);", value.comments)
            }
        }
    }

    private mutating func print(_ oneof: OneofDescriptor) {
        print(oneof.comments)
        block("oneof \(oneof.name)", oneof.comments) { printer in
            for field in oneof.fields { printer.print(field) }
        }
    }

    private mutating func print(_ field: FieldDescriptor) {
        print(field.comments)
        let options = options(of: field)
        let list = options.isEmpty ? "" : " [\(options.joined(separator: ", "))]"
        line("\(label(of: field))\(type(of: field)) \(field.name) = \(field.number)\(list);", field.comments)
    }

    private func options(of field: FieldDescriptor) -> [String] {
        let (proto, options) = (field.proto, field.options)
        var result: [String] = []
        if proto.hasDefaultValue {
            // Bytes are already escaped.
            let text =
                switch field.type {
                case .string: proto.defaultValue.textFormatLiteral
                case .bytes: "\"\(proto.defaultValue)\""
                default: proto.defaultValue
                }
            result.append("default = \(text)")
        }
        // Editions use a feature for it, and groups cannot be packed.
        if options.hasPacked, options.packed != (field.file.edition != .proto2) {
            result.append("packed = \(options.packed)")
        }
        if proto.hasJsonName, proto.jsonName != field.name.camelCased {
            result.append("json_name = \(proto.jsonName.textFormatLiteral)")
        }
        if options.deprecated { result.append("deprecated = true") }
        return result
    }

    // MARK: Numbers and names that are not fields

    /// - Parameters:
    ///   - ranges: the first and the last number of each.
    ///   - maximum: the number that `max` stands for.
    private mutating func printRanges(_ keyword: String, _ ranges: [(first: Int32, last: Int32)], upTo maximum: Int32) {
        if ranges.isEmpty { return }
        let texts = ranges.map { first, last in
            first == last ? "\(first)" : "\(first) to \(last == maximum ? "max" : "\(last)")"
        }
        line("\(keyword) \(texts.joined(separator: ", "));")
    }

    private mutating func printReservedNames(_ names: [String], in file: FileDescriptor) {
        if names.isEmpty { return }
        // Since the first edition they are identifiers.
        let isQuoted = file.edition == .proto2 || file.edition == .proto3
        let texts = names.map { isQuoted ? $0.textFormatLiteral : $0 }
        line("reserved \(texts.joined(separator: ", "));")
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

    private mutating func block(
        _ head: String,
        _ comments: DescriptorComments,
        isDeprecated: Bool = false,
        _ body: (inout DeclarationPrinter) -> Void
    ) {
        line("\(head) {", comments)
        depth += 1
        if isDeprecated { line("option deprecated = true;") }
        body(&self)
        depth -= 1
        line("}")
    }

    /// Adds a line with its trailing comment. Further lines of the comment follow, and then an empty line, without
    /// which they would belong to the next declaration.
    private mutating func line(_ text: String, _ comments: DescriptorComments) {
        let trailing = comments.trailing.split(separator: "\n")
        guard let first = trailing.first else { return line(text) }
        line("\(text)  //\(first)")
        for text in trailing.dropFirst() { line("//\(text)") }
        if trailing.count > 1 { lines.append("") }
    }

    /// Comments come from a server, and may contain anything.
    private mutating func line(_ text: String) {
        lines.append(String(repeating: "  ", count: depth) + text.escaped(limit: .max))
    }
}
