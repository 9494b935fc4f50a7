internal import LifelineReflection

/// Sets all fields of messages.
struct MessageFilling {
    /// The index of the oneof member to set, modulo the number of members.
    let turn: Int
    /// How many levels of submessages are still filled.
    private var depth = 2

    init(turn: Int) {
        self.turn = turn
    }

    func message(_ type: MessageDescriptor) throws -> DynamicMessage {
        var message = DynamicMessage(type)
        if let fields = contentOfWellKnown(type) {
            for (name, value) in fields { try message.set(name, to: value) }
            return message
        }
        for field in type.fields where isSet(field) { try message.set(field, to: value(of: field)) }
        return message
    }

    private func isSet(_ field: FieldDescriptor) -> Bool {
        if field.messageType != nil, depth == 0, !field.isRequired { return false }
        guard let oneof = field.containingOneof else { return true }
        return oneof.fields[turn % oneof.fields.count] == field
    }

    /// A value of a field, or an extension.
    func value(of field: FieldDescriptor) throws -> FieldValue {
        if let key = field.mapKey, let value = field.mapValue { return .map([try single(key): try single(value)]) }
        return field.isRepeated ? .list([try single(field), try single(field)]) : try single(field)
    }

    private func single(_ field: FieldDescriptor) throws -> FieldValue {
        switch field.type {
        case .bool: .bool(true)
        case .int32, .sint32, .sfixed32: .int32(-Int32(field.number))
        case .int64, .sint64, .sfixed64: .int64(.min + Int64(field.number))
        case .uint32, .fixed32: .uint32(.max - UInt32(field.number))
        case .uint64, .fixed64: .uint64(.max - UInt64(field.number))
        case .float: .float(Float(field.number) + 0.1)
        case .double: .double(Double(field.number) + 0.1)
        case .string: .string("\"\(field.name)\" ü\n")
        case .bytes: .bytes([0, 0xFF, UInt8(truncatingIfNeeded: field.number)])
        case .enumeration: .enumeration(Int32(field.enumType?.values.last?.number ?? 0))
        case .message: .message(try below(field.messageType))
        }
    }

    private func below(_ type: MessageDescriptor?) throws -> DynamicMessage {
        guard let type else { throw MissingType() }
        var filling = self
        filling.depth = max(depth - 1, 0)
        return try filling.message(type)
    }

    /// The fields of types whose form in JSON does not allow for every content.
    private func contentOfWellKnown(_ type: MessageDescriptor) -> [(String, FieldValue)]? {
        switch type.fullName {
        case "google.protobuf.Any": [("type_url", .string("type.googleapis.com/google.protobuf.Any"))]
        case "google.protobuf.Timestamp", "google.protobuf.Duration": [("seconds", .int64(1)), ("nanos", .int32(5))]
        case "google.protobuf.FieldMask": [("paths", .list([.string("name_of.a_field")]))]
        case "google.protobuf.Value": [("number_value", .double(-0.5))]
        default: nil
        }
    }
}

private struct MissingType: Error {}
