/// A value of a field whose type is known only at run time.
///
/// Each type of a field has one case: `int32`, `sint32` and `sfixed32` have ``int32(_:)``, and so on. Numbers are not
/// converted from one case to another.
public enum FieldValue: Hashable, Sendable {
    /// The value of a `bool` field.
    case bool(Bool)
    /// The value of a field of type `int32`, `sint32` or `sfixed32`.
    case int32(Int32)
    /// The value of a field of type `int64`, `sint64` or `sfixed64`.
    case int64(Int64)
    /// The value of a field of type `uint32` or `fixed32`.
    case uint32(UInt32)
    /// The value of a field of type `uint64` or `fixed64`.
    case uint64(UInt64)
    /// The value of a `float` field.
    case float(Float)
    /// The value of a `double` field.
    case double(Double)
    /// The value of a `string` field.
    case string(String)
    /// The value of a `bytes` field.
    case bytes([UInt8])
    /// The number of an enum's value.
    case enumeration(Int32)
    /// The value of a field whose type is a message.
    case message(DynamicMessage)
    /// The elements of a repeated field.
    case list([FieldValue])
    /// The entries of a map. Keys are numbers, booleans or strings.
    case map([FieldValue: FieldValue])
}

extension FieldValue {
    /// Two values are equal if they have the same case and the same content. As in messages, numbers are compared by
    /// their bits and strings by their bytes, and not by Swift's rules: a NaN equals itself, `-0.0` differs from `0.0`,
    /// and an "é" from an "e" with a combining accent.
    public static func == (left: FieldValue, right: FieldValue) -> Bool {
        switch (left, right) {
        case (.bool(let left), .bool(let right)): left == right
        case (.int32(let left), .int32(let right)), (.enumeration(let left), .enumeration(let right)): left == right
        case (.int64(let left), .int64(let right)): left == right
        case (.uint32(let left), .uint32(let right)): left == right
        case (.uint64(let left), .uint64(let right)): left == right
        case (.float(let left), .float(let right)): left.bitPattern == right.bitPattern
        case (.double(let left), .double(let right)): left.bitPattern == right.bitPattern
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        case (.bytes(let left), .bytes(let right)): left == right
        case (.message(let left), .message(let right)): left == right
        case (.list(let left), .list(let right)): left == right
        case (.map(let left), .map(let right)): left == right
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .bool(let value): hasher.combine(value)
        case .int32(let value), .enumeration(let value): hasher.combine(value)
        case .int64(let value): hasher.combine(value)
        case .uint32(let value): hasher.combine(value)
        case .uint64(let value): hasher.combine(value)
        case .float(let value): hasher.combine(value.bitPattern)
        case .double(let value): hasher.combine(value.bitPattern)
        // The bytes: a string's own hash is the same for all texts that are equal in Unicode, of which a map can have
        // many.
        case .string(var value):
            value.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
            hasher.combine(0xFF as UInt8)
        case .bytes(let value): hasher.combine(value)
        case .message(let value): hasher.combine(value)
        case .list(let value): hasher.combine(value)
        case .map(let value): hasher.combine(value)
        }
    }
}

extension FieldValue {
    /// The boolean; nil for a value of another kind.
    public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The text; nil for a value of another kind.
    public var stringValue: String? { if case .string(let value) = self { value } else { nil } }
    /// The bytes; nil for a value of another kind.
    public var bytesValue: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
    /// The message; nil for a value of another kind.
    public var messageValue: DynamicMessage? { if case .message(let value) = self { value } else { nil } }
    /// The elements; nil for a value of another kind.
    public var listValue: [FieldValue]? { if case .list(let value) = self { value } else { nil } }
    /// The entries; nil for a value of another kind.
    public var mapValue: [FieldValue: FieldValue]? { if case .map(let value) = self { value } else { nil } }

    /// An integer of any width, or an enum's number; nil for a value of another kind, or one that is too large.
    public var intValue: Int? {
        switch self {
        case .int32(let value), .enumeration(let value): Int(value)
        case .int64(let value): Int(value)
        case .uint32(let value): Int(value)
        case .uint64(let value): Int(exactly: value)
        default: nil
        }
    }

    /// A floating-point number of either precision; nil for a value of another kind.
    public var doubleValue: Double? {
        switch self {
        case .float(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }
}

extension FieldValue: CustomStringConvertible {
    public var description: String {
        switch self {
        case .bool(let value): "\(value)"
        case .int32(let value), .enumeration(let value): "\(value)"
        case .int64(let value): "\(value)"
        case .uint32(let value): "\(value)"
        case .uint64(let value): "\(value)"
        case .float(let value): "\(value)"
        case .double(let value): "\(value)"
        case .string(let value): value.debugDescription
        case .bytes(let value): "\(value)"
        case .message(let value): value.debugDescription
        case .list(let value): "\(value)"
        case .map(let value): "\(value)"
        }
    }
}

// MARK: - Defaults

extension FieldValue {
    /// Zero, false, or empty; nil for messages.
    init?(zeroOf type: FieldType) {
        switch type {
        case .double: self = .double(0)
        case .float: self = .float(0)
        case .int64, .sint64, .sfixed64: self = .int64(0)
        case .uint64, .fixed64: self = .uint64(0)
        case .int32, .sint32, .sfixed32: self = .int32(0)
        case .uint32, .fixed32: self = .uint32(0)
        case .bool: self = .bool(false)
        case .string: self = .string("")
        case .bytes: self = .bytes([])
        case .enumeration: self = .enumeration(0)
        case .message: return nil
        }
    }

    /// The default in a descriptor, of a type that is not an enum; nil if the text is not a value of the type.
    init?(default text: String, of type: FieldType) {
        switch type {
        case .double:
            guard let number = Double(default: text) else { return nil }
            self = .double(number)
        case .float:
            guard let number = Float(default: text) else { return nil }
            self = .float(number)
        case .int64, .sint64, .sfixed64:
            guard let number = Int64(text) else { return nil }
            self = .int64(number)
        case .uint64, .fixed64:
            guard let number = UInt64(text) else { return nil }
            self = .uint64(number)
        case .int32, .sint32, .sfixed32:
            guard let number = Int32(text) else { return nil }
            self = .int32(number)
        case .uint32, .fixed32:
            guard let number = UInt32(text) else { return nil }
            self = .uint32(number)
        case .bool:
            guard let value = Bool(text) else { return nil }
            self = .bool(value)
        case .string: self = .string(text)
        case .bytes:
            guard let bytes = [UInt8](unescaping: text) else { return nil }
            self = .bytes(bytes)
        case .enumeration, .message: return nil
        }
    }
}

extension BinaryFloatingPoint where Self: LosslessStringConvertible {
    fileprivate init?(default text: String) {
        switch text {
        case "inf": self = .infinity
        case "-inf": self = -.infinity
        case "nan": self = .nan
        case "-nan": self = -.nan
        default:
            // Swift reads more than protoc writes: hexadecimal numbers, and names of infinity in capitals.
            let isNumber = text.utf8.allSatisfy { "0123456789+-.eE".utf8.contains($0) }
            guard isNumber, let number = Self(text) else { return nil }
            self = number
        }
    }
}

extension [UInt8] {
    /// The bytes of a text with C's escapes.
    fileprivate init?(unescaping text: String) {
        self = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                append(byte)
                continue
            }
            guard let kind = rest.popFirst() else { return nil }
            switch Unicode.Scalar(kind) {
            case "n": append(0x0A)
            case "r": append(0x0D)
            case "t": append(0x09)
            case "a": append(0x07)
            case "b": append(0x08)
            case "f": append(0x0C)
            case "v": append(0x0B)
            case "\\", "'", "\"", "?": append(kind)
            case "x", "X":
                let digits = rest.prefix(2).prefix { Character(Unicode.Scalar($0)).isHexDigit }
                guard let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) else { return nil }
                append(value)
                rest = rest.dropFirst(digits.count)
            case "0"..."7":
                let more = rest.prefix(2).prefix { (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) }
                let digits = String(Unicode.Scalar(kind)) + String(decoding: more, as: UTF8.self)
                guard let value = UInt8(digits, radix: 8) else { return nil }
                append(value)
                rest = rest.dropFirst(more.count)
            default: return nil
            }
        }
    }
}
