internal import CLifelineMessages
internal import CProtobufC

extension Message {
    /// The message in protobuf's text format, over several lines, for reading and logging. Unknown fields are only
    /// counted, in a comment.
    public var textFormat: String {
        defer { extendLifetime(self) }
        var printer = TextFormatPrinter()
        printer.print(_message.fields, as: Self._table)
        return printer.text
    }

    public var debugDescription: String {
        let text = textFormat
        return text.isEmpty ? "\(Self.protoMessageName) {}" : "\(Self.protoMessageName) {\n\(text)}"
    }
}

/// Prints messages by their tables. Text format: https://protobuf.dev/reference/protobuf/textformat-spec/
private struct TextFormatPrinter {
    /// Deeper messages, which only local code can build, are replaced by a comment.
    private static let maximumDepth = 200

    private(set) var text = ""
    private var depth = 0

    mutating func print(_ message: UnsafeRawPointer, as table: UnsafePointer<MessageTable>) {
        for index in 0..<Int(table.pointee.field_count) { print(table.pointee.fields + index, of: message) }
        let unknown = message.assumingMemoryBound(to: ProtobufCMessage.self).pointee.unknownFieldBytes
        if !unknown.isEmpty { printLine("# unknown fields: \(unknown.count) bytes") }
    }

    private mutating func print(_ field: UnsafePointer<LifelineField>, of message: UnsafeRawPointer) {
        guard lifeline_is_present(field, message) else { return }
        let value = message + Int(field.pointee.offset)
        guard lifeline_is_repeated(field) else { return printValue(at: value, of: field.pointee) }
        let elements = value.load(as: UnsafeRawPointer.self)
        for index in 0..<lifeline_count(field, message) {
            printValue(at: elements + index * lifeline_value_size(field), of: field.pointee)
        }
    }

    private mutating func printValue(at value: UnsafeRawPointer, of field: LifelineField) {
        let name = String(cString: field.name)
        guard let table = field.message else {
            return printLine("\(name): \(field.literal(at: value))")
        }
        guard let message = value.load(as: UnsafeRawPointer?.self) else { return }
        guard depth < Self.maximumDepth else { return printLine("# \(name): deeper messages are left out") }
        printLine("\(name) {")
        depth += 1
        print(message, as: table)
        depth -= 1
        printLine("}")
    }

    private mutating func printLine(_ line: String) {
        text += String(repeating: "  ", count: depth) + line + "\n"
    }
}

extension LifelineField {
    fileprivate func literal(at value: UnsafeRawPointer) -> String {
        switch Int(type) {
        case LIFELINE_TYPE_DOUBLE: Self.literal(value.load(as: Double.self))
        case LIFELINE_TYPE_FLOAT: Self.literal(value.load(as: Float.self))
        case LIFELINE_TYPE_INT64, LIFELINE_TYPE_SINT64, LIFELINE_TYPE_SFIXED64: "\(value.load(as: Int64.self))"
        case LIFELINE_TYPE_UINT64, LIFELINE_TYPE_FIXED64: "\(value.load(as: UInt64.self))"
        case LIFELINE_TYPE_UINT32, LIFELINE_TYPE_FIXED32: "\(value.load(as: UInt32.self))"
        case LIFELINE_TYPE_BOOL: "\(value.load(as: protobuf_c_boolean.self) != 0)"
        case LIFELINE_TYPE_STRING: Self.quoted(value.load(as: BytesValue.self), isText: true)
        case LIFELINE_TYPE_BYTES: Self.quoted(value.load(as: BytesValue.self), isText: false)
        case LIFELINE_TYPE_ENUM: enumName(of: value.load(as: Int32.self))
        default: "\(value.load(as: Int32.self))"
        }
    }

    /// The enum's name for `number`, or the number itself.
    private func enumName(of number: Int32) -> String {
        guard let enumeration = enumeration?.pointee else { return "\(number)" }
        let numbers = UnsafeBufferPointer(start: enumeration.numbers, count: enumeration.count)
        guard let index = numbers.firstIndex(of: number) else { return "\(number)" }
        return String(cString: enumeration.names[index])
    }

    private static func literal(_ number: some BinaryFloatingPoint & CustomStringConvertible) -> String {
        if number.isNaN { return "nan" }
        if number.isInfinite { return number < 0 ? "-inf" : "inf" }
        return number.description
    }

    private static func quoted(_ value: BytesValue, isText: Bool) -> String {
        let bytes = UnsafeBufferPointer(start: value.data, count: value.len)
        let text = isText ? String(validating: bytes, as: UTF8.self) : nil
        return text.map(\.textFormatLiteral) ?? "\"\(bytes.map(escapedInTextFormat).joined())\""
    }
}

extension String {
    /// A quoted literal of text format, on one line. Text keeps its letters; whatever a terminal obeys, ends the line or changes
    /// the order in which it is read, is escaped in octal, byte by byte, as every parser of text format reads it.
    package var textFormatLiteral: String {
        var literal = "\""
        for scalar in unicodeScalars {
            if scalar.isEscapedInTextFormat || scalar == "\"" || scalar == "\\" {
                for byte in UTF8.encode(scalar)! { literal += escapedInTextFormat(byte) }
            } else {
                literal.unicodeScalars.append(scalar)
            }
        }
        return literal + "\""
    }
}

extension Unicode.Scalar {
    /// C0 and C1 controls, DEL, the separators of lines and paragraphs, and the marks, embeddings, overrides and isolates of
    /// bidirectional text.
    package var isEscapedInTextFormat: Bool {
        switch value {
        case 0x00...0x1F, 0x7F...0x9F, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

/// A byte of a literal: itself where it is printable ASCII.
private func escapedInTextFormat(_ byte: UInt8) -> String {
    switch byte {
    case UInt8(ascii: "\n"): "\\n"
    case UInt8(ascii: "\r"): "\\r"
    case UInt8(ascii: "\t"): "\\t"
    case UInt8(ascii: "\""): "\\\""
    case UInt8(ascii: "\\"): "\\\\"
    case 0x20..<0x7F: "\(Unicode.Scalar(byte))"
    default: "\\\(byte >> 6)\(byte >> 3 & 7)\(byte & 7)"
    }
}
