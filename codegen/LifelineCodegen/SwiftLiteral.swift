internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Swift literals of the defaults that proto2 files declare.
enum SwiftLiteral {
    /// What an absent field reads as.
    static func defaultValue(of field: FieldDescriptor, in context: SwiftContext) -> String {
        guard let text = field.defaultValue else { return implicitDefault(of: field, in: context) }
        switch field.type {
        case .string:
            return string(text)
        case .bytes:
            return "[" + unescaped(text).map { "\($0)" }.joined(separator: ", ") + "]"
        case .float, .double:
            return floatingPoint(text)
        case .enum:
            let value = field.enumType.values.first { $0.name == text }
            return value.map(context.namer.dottedRelativeName) ?? implicitDefault(of: field, in: context)
        default:
            return text
        }
    }

    private static func implicitDefault(of field: FieldDescriptor, in context: SwiftContext) -> String {
        switch field.type {
        case .string: "\"\""
        case .bytes: "[]"
        case .bool: "false"
        case .enum: context.namer.dottedRelativeName(enumValue: field.enumType.values[0])
        default: "0"
        }
    }

    private static func floatingPoint(_ text: String) -> String {
        switch text {
        case "inf": ".infinity"
        case "-inf": "-.infinity"
        case "nan", "-nan": ".nan"
        default: text
        }
    }

    /// Only printable ASCII stays as it is.
    static func string(_ text: String) -> String {
        var literal = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": literal += "\\\(scalar)"
            case " "..."~": literal.unicodeScalars.append(scalar)
            default: literal += "\\u{\(String(scalar.value, radix: 16))}"
            }
        }
        return literal + "\""
    }

    /// The bytes of a default that descriptor.proto keeps C-escaped, as protoc's CEscape writes it.
    static func unescaped(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            switch escape {
            case UInt8(ascii: "n"): bytes.append(10)
            case UInt8(ascii: "r"): bytes.append(13)
            case UInt8(ascii: "t"): bytes.append(9)
            case UInt8(ascii: "0")...UInt8(ascii: "7"):
                let digits = [escape] + rest.prefix(2)
                rest = rest.dropFirst(2)
                bytes.append(digits.reduce(0) { $0 &* 8 &+ ($1 &- UInt8(ascii: "0")) })
            default: bytes.append(escape)
            }
        }
        return bytes
    }
}
