internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Swift literals of the defaults that proto2 files declare.
enum SwiftLiteral {
    /// The value of an absent field.
    static func defaultValue(of field: FieldDescriptor, in context: SwiftContext) -> String {
        guard let text = field.defaultValue else { return implicitDefault(of: field, in: context) }
        switch field.type {
        case .string:
            return string(text)
        case .bytes:
            return "[" + unescaped(text).map { "\($0)" }.joined(separator: ", ") + "]"
        case .float:
            return Float(text).map { floatingPoint($0, text, as: context.standard("Float")) } ?? text
        case .double:
            return Double(text).map { floatingPoint($0, text, as: context.standard("Double")) } ?? text
        case .enum:
            let value = field.enumType.values.first { $0.name == text }
            return value.map(context.dottedCaseName) ?? implicitDefault(of: field, in: context)
        default:
            return text
        }
    }

    private static func implicitDefault(of field: FieldDescriptor, in context: SwiftContext) -> String {
        switch field.type {
        case .string: "\"\""
        case .bytes: "[]"
        case .bool: "false"
        case .enum: context.dottedCaseName(field.enumType.values[0])
        default: "0"
        }
    }

    /// `text` is `number` as protoc writes it.
    static func floatingPoint<Number: BinaryFloatingPoint>(_ number: Number, _ text: String, as type: String) -> String
    {
        if number.isNaN { return ".nan" }
        if number.isInfinite { return number < 0 ? "-.infinity" : ".infinity" }
        // Swift would read -0 as an integer, which has no sign.
        if number.isZero { return number.sign == .minus ? "-0.0" : "0" }
        // The compiler warns of decimal literals of these as an underflow.
        if number.isSubnormal {
            let sign = number < 0 ? "-" : ""
            return "\(sign)\(type)(bitPattern: \(number.significandBitPattern))"
        }
        return text
    }

    /// Escapes everything but printable ASCII.
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
