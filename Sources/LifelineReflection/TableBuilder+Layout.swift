internal import CLifelineMessages
internal import CProtobufC
internal import LifelineDescriptorTypes
internal import LifelineMessages

/// The places of a message's fields in its struct, as protoc-gen-c would choose them: in the order of declaration, with
/// the oneofs after all others.
struct StructLayout {
    struct Member {
        let presence: Int
        var offset = 0
        var quantifierOffset = 0
        /// The size of the value.
        let size: Int
        /// The order in the struct.
        let position: (oneof: Int, declaration: Int)
    }

    /// In the order of the fields' numbers.
    private(set) var members: [Member]
    private(set) var size = MemoryLayout<ProtobufCMessage>.size

    init(of message: DescriptorStorage.Message, in storage: DescriptorStorage) {
        let isEntry = message.proto.options.mapEntry
        members = message.fieldsByNumber.map { index in
            let field = storage.fields[index]
            let oneof = field.oneof.map { $0 - message.oneofs.lowerBound + 1 } ?? 0
            return Member(
                presence: field.tablePresence(inMapEntry: isEntry, in: storage),
                size: field.isRepeated ? 8 : lifeline_type_size(Int32(field.type.rawValue)),
                position: (oneof, field.position)
            )
        }
        let order = members.indices.sorted { members[$0].position < members[$1].position }
        var next = order[...]
        while let index = next.first {
            if members[index].position.oneof == 0 {
                next.removeFirst()
                placePlain(index)
            } else {
                let union = next.prefix { members[$0].position.oneof == members[index].position.oneof }
                next = next.dropFirst(union.count)
                placeUnion(of: union)
            }
        }
        _ = take(0, alignedTo: 8)
    }

    private mutating func placePlain(_ index: Int) {
        switch members[index].presence {
        case LIFELINE_PRESENCE_FLAG, LIFELINE_PRESENCE_ONEOF:
            members[index].quantifierOffset = take(4, alignedTo: 4)
        case LIFELINE_PRESENCE_REPEATED, LIFELINE_PRESENCE_MAP: members[index].quantifierOffset = take(8, alignedTo: 8)
        default: break
        }
        members[index].offset = take(members[index].size, alignedTo: min(members[index].size, 8))
    }

    private mutating func placeUnion(of indices: ArraySlice<Int>) {
        let quantifierOffset = take(4, alignedTo: 4)
        let size = indices.map { members[$0].size }.max() ?? 0
        let alignment = min(size, 8)
        let offset = take((size + alignment - 1) / alignment * alignment, alignedTo: alignment)
        for index in indices { (members[index].offset, members[index].quantifierOffset) = (offset, quantifierOffset) }
    }

    private mutating func take(_ count: Int, alignedTo alignment: Int) -> Int {
        let offset = (size + alignment - 1) / alignment * alignment
        size = offset + count
        return offset
    }

    /// Fields whose absence can be checked together, like FieldGroup in the generator. There are none in a message with
    /// few fields.
    func groups(of fields: UnsafePointer<LifelineField>) -> [LifelineFieldGroup] {
        guard members.count >= 24 else { return [] }
        return stride(from: 0, to: members.count, by: 8).map { start in
            let group = members[start..<min(start + 8, members.count)].sorted { $0.position < $1.position }
            let (first, last) = (group[0], group[group.count - 1])
            let offset = first.quantifierOffset > 0 ? first.quantifierOffset : first.offset
            return LifelineFieldGroup(
                first_field: UInt32(start),
                offset: UInt32(offset),
                size: UInt32(last.offset + last.size - offset)
            )
        }
    }
}

/// How the decoder reads a field by the first bytes of its tag, as in the generator.
struct DispatchEntry {
    let index: Int
    let value: UInt64

    /// Nil if the decoder has to look up the field.
    init?(
        _ field: DescriptorStorage.Field,
        _ entry: LifelineField,
        at position: Int,
        in storage: DescriptorStorage
    ) {
        let bytes = field.tagBytes(in: storage)
        guard bytes.count <= 2, let kind = field.dispatchKind(in: storage) else { return nil }
        let isMessage = kind == LIFELINE_KIND_MESSAGE
        let (shape, detail) =
            switch Int(entry.presence) {
            case LIFELINE_PRESENCE_FLAG: (LIFELINE_SHAPE_MARKED, 1)
            case LIFELINE_PRESENCE_ONEOF:
                (LIFELINE_SHAPE_MARKED, isMessage ? position : Int(field.proto.number))
            case LIFELINE_PRESENCE_REPEATED where field.isPacked: (LIFELINE_SHAPE_PACKED, position)
            case LIFELINE_PRESENCE_REPEATED: (LIFELINE_SHAPE_REPEATED, position)
            case LIFELINE_PRESENCE_MAP: (LIFELINE_SHAPE_MAP, position)
            default: (LIFELINE_SHAPE_PLAIN, isMessage ? position : 0)
            }
        guard detail <= UInt8.max else { return nil }
        index = Int(bytes[0] >> 3)
        value = lifeline_dispatch_entry(
            UInt32(kind),
            UInt32(shape),
            bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) },
            UInt32(detail),
            entry.offset,
            entry.quantifier_offset
        )
    }
}

// MARK: - A field's properties in tables

extension DescriptorStorage.Field {
    var isPacked: Bool { isRepeated && type.isPackable && features.isPacked }

    var isRequired: Bool { !isRepeated && !isExtension && oneof == nil && features.presence == .required }

    fileprivate func tablePresence(inMapEntry: Bool, in storage: DescriptorStorage) -> Int {
        if isMap { return LIFELINE_PRESENCE_MAP }
        if isRepeated { return LIFELINE_PRESENCE_REPEATED }
        // An extension tells whether it is set: the generator makes it an `optional` field, which has a oneof.
        if isExtension, storage.files[file].edition == .proto3 { return LIFELINE_PRESENCE_ONEOF }
        if inMapEntry { return LIFELINE_PRESENCE_ALWAYS }
        if oneof != nil { return LIFELINE_PRESENCE_ONEOF }
        if type == .message { return LIFELINE_PRESENCE_POINTER }
        let isImplicit = features.presence == .implicit && !isExtension
        return isImplicit ? LIFELINE_PRESENCE_IMPLICIT : LIFELINE_PRESENCE_FLAG
    }

    /// Whether a message is encoded between two tags. Maps and their values never are.
    func isGroup(in storage: DescriptorStorage) -> Bool {
        guard type == .message, features.isDelimited, !isMap else { return false }
        guard case .message(let message) = scope, !isExtension else { return true }
        return !storage.messages[message].proto.options.mapEntry
    }

    /// Whether a group is declared like proto2's, which text format names after their types.
    func isNamedByType(in storage: DescriptorStorage) -> Bool {
        guard case .message(let scope) = scope, let typePlace, typePlace.storage == nil else { return false }
        let type = storage.messages[typePlace.index]
        let path = "\(storage.messages[scope].fullName).\(type.proto.name)"
        return proto.name == type.proto.name.lowercased() && type.fullName == path
    }

    func hasClosedEnum(in storage: DescriptorStorage) -> Bool {
        guard type == .enumeration, let typePlace else { return false }
        return (typePlace.storage ?? storage).enums[typePlace.index].isClosed
    }

    /// The tag in its encoding: the number and the wire type, as a varint.
    func tagBytes(in storage: DescriptorStorage) -> [UInt8] {
        var rest = UInt32(proto.number) << 3 | wireType(in: storage)
        var bytes: [UInt8] = []
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    private func wireType(in storage: DescriptorStorage) -> UInt32 {
        if isPacked { return 2 }
        return switch type {
        case .double, .fixed64, .sfixed64: 1
        case .string, .bytes: 2
        case .message: isGroup(in: storage) ? 3 : 2
        case .float, .fixed32, .sfixed32: 5
        default: 0
        }
    }

    /// Nil for groups, and for numbers that have to be checked against a closed enum.
    fileprivate func dispatchKind(in storage: DescriptorStorage) -> Int? {
        switch type {
        case .int32, .uint32: LIFELINE_KIND_VARINT32
        case .int64, .uint64: LIFELINE_KIND_VARINT64
        case .bool: LIFELINE_KIND_BOOL
        case .sint32: LIFELINE_KIND_SINT32
        case .sint64: LIFELINE_KIND_SINT64
        case .fixed32, .sfixed32, .float: LIFELINE_KIND_FIXED32
        case .fixed64, .sfixed64, .double: LIFELINE_KIND_FIXED64
        case .bytes: LIFELINE_KIND_BYTES
        case .string: features.validatesUTF8 ? LIFELINE_KIND_UTF8 : LIFELINE_KIND_BYTES
        case .enumeration: hasClosedEnum(in: storage) ? nil : LIFELINE_KIND_VARINT32
        case .message:
            isGroup(in: storage) || hasClosedEnumAsMapValue(in: storage) ? nil : LIFELINE_KIND_MESSAGE
        }
    }

    private func hasClosedEnumAsMapValue(in storage: DescriptorStorage) -> Bool {
        guard isMap, let entry = typePlace?.index else { return false }
        return storage.fields[storage.messages[entry].fieldsByNumber[1]].hasClosedEnum(in: storage)
    }
}

extension String {
    /// Whether JSON has to escape it.
    var isEscapedInJSON: Bool {
        utf8.contains { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }
    }
}

// MARK: - Well-known types

extension TableBuilder {
    /// The JSON form of a message of google.protobuf, if it has the fields that the library needs: another schema may
    /// have declared it.
    func wellKnown(_ message: DescriptorStorage.Message) -> LifelineWellKnown {
        guard message.fullName.hasPrefix("google.protobuf."), let table = message.table else {
            return LIFELINE_WELL_KNOWN_NONE
        }
        let name = message.fullName.dropFirst("google.protobuf.".count)
        let (form, expected): (LifelineWellKnown, [(type: Int, presence: Int)]) =
            switch name {
            case "Any":
                (LIFELINE_WELL_KNOWN_ANY, [(LIFELINE_TYPE_STRING, implicit), (LIFELINE_TYPE_BYTES, implicit)])
            case "Timestamp":
                (LIFELINE_WELL_KNOWN_TIMESTAMP, [(LIFELINE_TYPE_INT64, implicit), (LIFELINE_TYPE_INT32, implicit)])
            case "Duration":
                (LIFELINE_WELL_KNOWN_DURATION, [(LIFELINE_TYPE_INT64, implicit), (LIFELINE_TYPE_INT32, implicit)])
            case "FieldMask":
                (LIFELINE_WELL_KNOWN_FIELD_MASK, [(LIFELINE_TYPE_STRING, LIFELINE_PRESENCE_REPEATED)])
            case "Struct":
                (LIFELINE_WELL_KNOWN_STRUCT, [(LIFELINE_TYPE_MESSAGE, LIFELINE_PRESENCE_MAP)])
            case "ListValue":
                (LIFELINE_WELL_KNOWN_LIST_VALUE, [(LIFELINE_TYPE_MESSAGE, LIFELINE_PRESENCE_REPEATED)])
            case "Value":
                (
                    LIFELINE_WELL_KNOWN_VALUE,
                    [
                        LIFELINE_TYPE_ENUM, LIFELINE_TYPE_DOUBLE, LIFELINE_TYPE_STRING, LIFELINE_TYPE_BOOL,
                        LIFELINE_TYPE_MESSAGE, LIFELINE_TYPE_MESSAGE,
                    ].map { ($0, LIFELINE_PRESENCE_ONEOF) }
                )
            case "DoubleValue": (LIFELINE_WELL_KNOWN_WRAPPER, [(LIFELINE_TYPE_DOUBLE, implicit)])
            case "FloatValue": (LIFELINE_WELL_KNOWN_WRAPPER, [(LIFELINE_TYPE_FLOAT, implicit)])
            case "Int64Value": (LIFELINE_WELL_KNOWN_WRAPPER, [(LIFELINE_TYPE_INT64, implicit)])
            case "UInt64Value": (LIFELINE_WELL_KNOWN_WRAPPER, [(LIFELINE_TYPE_UINT64, implicit)])
            case "Int32Value": (LIFELINE_WELL_KNOWN_WRAPPER, [(LIFELINE_TYPE_INT32, implicit)])
            case "UInt32Value": (LIFELINE_WELL_KNOWN_WRAPPER, [(LIFELINE_TYPE_UINT32, implicit)])
            case "BoolValue": (LIFELINE_WELL_KNOWN_WRAPPER, [(LIFELINE_TYPE_BOOL, implicit)])
            case "StringValue": (LIFELINE_WELL_KNOWN_WRAPPER, [(LIFELINE_TYPE_STRING, implicit)])
            case "BytesValue": (LIFELINE_WELL_KNOWN_WRAPPER, [(LIFELINE_TYPE_BYTES, implicit)])
            default: (LIFELINE_WELL_KNOWN_NONE, [])
            }
        let fields = table.fields
        let isAsExpected =
            fields.count == expected.count
            && zip(fields.indices, expected).allSatisfy { index, expected in
                fields[index].number == index + 1 && Int(fields[index].type) == expected.type
                    && Int(fields[index].presence) == expected.presence
                    // JSON's null is the number 0.
                    && (expected.type != LIFELINE_TYPE_ENUM || !lifeline_is_closed_enum(table.field(at: index))
                        || lifeline_enum_knows(table.field(at: index), 0))
            }
        return isAsExpected ? form : LIFELINE_WELL_KNOWN_NONE
    }

    private var implicit: Int { LIFELINE_PRESENCE_IMPLICIT }
}
