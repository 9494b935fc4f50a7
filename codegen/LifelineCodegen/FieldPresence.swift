internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// How a struct tells whether a field is set, with the name of the member that tells it.
enum FieldPresence {
    /// It is not zero or empty.
    case implicit
    /// `has_x` is not 0 (proto2).
    case flag(String)
    /// Its pointer is not NULL.
    case pointer
    /// The oneof's case is the field's number. A proto3 `optional` field has a oneof to itself.
    case oneof(caseMember: String)
    /// `n_x` is the number of elements.
    case repeated(countMember: String)
    case map(countMember: String)
    /// Key and value of a map's entry are always written.
    case always
}

extension FieldDescriptor {
    func presence(in names: CNames) -> FieldPresence {
        let member = names.member(self)
        if isMap { return .map(countMember: "n_\(member)") }
        if isRepeated { return .repeated(countMember: "n_\(member)") }
        if containingType.options.mapEntry { return .always }
        if let oneof = containingOneof { return .oneof(caseMember: names.caseMember(oneof)) }
        if isMessage { return .pointer }
        return hasPresence ? .flag("has_\(member)") : .implicit
    }

    /// Whether it has messages, however they are encoded.
    var isMessage: Bool { type == .message || type == .group }

    /// Whether it is declared like proto2's groups, which text format names after their types.
    private var isNamedByType: Bool {
        type == .group && name == messageType.name.lowercased() && messageType.containingType === containingType
    }

    /// LIFELINE_FIELD_… flags.
    var tableFlags: String {
        var flags: [String] = []
        if isPacked { flags.append("LIFELINE_FIELD_PACKED") }
        if isRequired { flags.append("LIFELINE_FIELD_REQUIRED") }
        if requiresUTF8Validation { flags.append("LIFELINE_FIELD_VALIDATE_UTF8") }
        if type == .enum, enumType.isClosed { flags.append("LIFELINE_FIELD_CLOSED_ENUM") }
        if type == .group { flags.append("LIFELINE_FIELD_GROUP") }
        if isNamedByType { flags.append("LIFELINE_FIELD_NAMED_BY_TYPE") }
        return flags.isEmpty ? "0" : flags.joined(separator: " | ")
    }
}

extension FieldPresence {
    /// The member that tells whether the field is set, unless that is the field itself.
    var quantifier: String? {
        switch self {
        case .implicit, .pointer, .always: nil
        case .flag(let member), .oneof(let member), .repeated(let member), .map(let member): member
        }
    }

    var constant: String {
        switch self {
        case .implicit: "LIFELINE_PRESENCE_IMPLICIT"
        case .flag: "LIFELINE_PRESENCE_FLAG"
        case .pointer: "LIFELINE_PRESENCE_POINTER"
        case .oneof: "LIFELINE_PRESENCE_ONEOF"
        case .repeated: "LIFELINE_PRESENCE_REPEATED"
        case .map: "LIFELINE_PRESENCE_MAP"
        case .always: "LIFELINE_PRESENCE_ALWAYS"
        }
    }
}

extension Google_Protobuf_FieldDescriptorProto.TypeEnum {
    /// The text after LIFELINE_TYPE_.
    var cName: String {
        switch self {
        case .double: "DOUBLE"
        case .float: "FLOAT"
        case .int64: "INT64"
        case .uint64: "UINT64"
        case .int32: "INT32"
        case .fixed64: "FIXED64"
        case .fixed32: "FIXED32"
        case .bool: "BOOL"
        case .string: "STRING"
        case .bytes: "BYTES"
        case .uint32: "UINT32"
        case .enum: "ENUM"
        case .sfixed32: "SFIXED32"
        case .sfixed64: "SFIXED64"
        case .sint32: "SINT32"
        case .sint64: "SINT64"
        case .message, .group: "MESSAGE"
        }
    }
}

extension OneofDescriptor {
    /// Whether protoc made it for a proto3 `optional` field.
    var isOfOptionalField: Bool { fields.allSatisfy { $0.realContainingOneof == nil } }
}
