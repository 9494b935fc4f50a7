internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// An entry of a table's `dispatch`, which tells the decoder how to read a field by the first bytes of its tag: see
/// LIFELINE_DISPATCH in lifeline_table.h.
struct DispatchEntry {
    let field: FieldDescriptor
    /// The text after LIFELINE_KIND_ and LIFELINE_SHAPE_.
    let kind: String
    let shape: String
    /// The value to store at the quantifier, or the field's index in the table.
    let detail: Int
    /// The tag's one or two bytes, the first one lowest.
    let tag: UInt16

    /// Its position in the table: five bits of the tag's first byte.
    var index: Int { Int(UInt8(truncatingIfNeeded: tag) >> 3) }

    /// The entries of a message with these fields, ascending by number. Of fields that share an index, the first has
    /// it.
    static func entries(of fields: [FieldDescriptor], in names: CNames) -> [DispatchEntry] {
        var entries: [Int: DispatchEntry] = [:]
        for (position, field) in fields.enumerated() {
            guard let entry = DispatchEntry(field, at: position, in: names) else { continue }
            if entries[entry.index] == nil { entries[entry.index] = entry }
        }
        return entries.values.sorted { $0.index < $1.index }
    }

    /// Nil if the decoder has to look up the field.
    private init?(_ field: FieldDescriptor, at position: Int, in names: CNames) {
        let bytes = field.tagBytes
        let presence = field.presence(in: names)
        guard bytes.count <= 2, let kind = field.dispatchKind else { return nil }
        let isMessage = kind == "MESSAGE"
        switch presence {
        case .implicit, .pointer, .always:
            (shape, detail) = ("PLAIN", isMessage ? position : 0)
        case .flag:
            (shape, detail) = ("MARKED", 1)
        case .oneof:
            (shape, detail) = ("MARKED", isMessage ? position : Int(field.number))
        case .repeated:
            (shape, detail) = (field.isPacked ? "PACKED" : "REPEATED", position)
        case .map:
            (shape, detail) = ("MAP", position)
        }
        guard detail <= UInt8.max else { return nil }
        self.field = field
        self.kind = kind
        tag = bytes.reversed().reduce(0) { $0 << 8 | UInt16($1) }
    }
}

extension FieldDescriptor {
    /// The end of the name of a LIFELINE_KIND_ constant. Nil for groups, and for numbers that have to be checked
    /// against a closed enum.
    fileprivate var dispatchKind: String? {
        switch type {
        case .int32, .uint32: "VARINT32"
        case .int64, .uint64: "VARINT64"
        case .bool: "BOOL"
        case .sint32: "SINT32"
        case .sint64: "SINT64"
        case .fixed32, .sfixed32, .float: "FIXED32"
        case .fixed64, .sfixed64, .double: "FIXED64"
        case .bytes: "BYTES"
        case .string: requiresUTF8Validation ? "UTF8" : "BYTES"
        case .enum: enumType.isClosed ? nil : "VARINT32"
        case .message: hasClosedEnumAsMapValue ? nil : "MESSAGE"
        case .group: nil
        }
    }

    private var hasClosedEnumAsMapValue: Bool {
        guard isMap, let (_, value) = messageType.mapKeyAndValue else { return false }
        return value.type == .enum && value.enumType.isClosed
    }

    /// The tag as it is written: the number and the wire type, as a varint.
    fileprivate var tagBytes: [UInt8] {
        var rest = UInt32(number) << 3 | wireType
        var bytes: [UInt8] = []
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    /// LifelineField.encoded_tag: the tag's bytes at the end of eight, and their number at the start.
    var encodedTag: String {
        let bytes = tagBytes
        let padded = [UInt8(bytes.count)] + Array(repeating: 0, count: 7 - bytes.count) + bytes
        return "0x" + padded.reversed().map { String($0 >> 4, radix: 16) + String($0 & 0xF, radix: 16) }.joined()
    }

    private var wireType: UInt32 {
        if isPacked { return 2 }
        switch type {
        case .double, .fixed64, .sfixed64: return 1
        case .string, .bytes, .message: return 2
        case .group: return 3
        case .float, .fixed32, .sfixed32: return 5
        default: return 0
        }
    }
}
