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

    /// A quoted literal. Bytes that are not printable ASCII are escaped in octal; text keeps its letters.
    private static func quoted(_ value: BytesValue, isText: Bool) -> String {
        let bytes = UnsafeBufferPointer(start: value.data, count: value.len)
        let isUTF8 = isText && (try? UTF8Span(validating: Span(_unsafeElements: bytes))) != nil
        var literal: [UInt8] = [UInt8(ascii: "\"")]
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\n"): literal += "\\n".utf8
            case UInt8(ascii: "\r"): literal += "\\r".utf8
            case UInt8(ascii: "\t"): literal += "\\t".utf8
            case UInt8(ascii: "\""): literal += "\\\"".utf8
            case UInt8(ascii: "\\"): literal += "\\\\".utf8
            case 0x20..<0x7F: literal.append(byte)
            case 0x80... where isUTF8: literal.append(byte)
            default: literal += "\\\(byte >> 6)\(byte >> 3 & 7)\(byte & 7)".utf8
            }
        }
        literal.append(UInt8(ascii: "\""))
        return String(decoding: literal, as: UTF8.self)
    }
}
