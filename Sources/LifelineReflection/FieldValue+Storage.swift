internal import CLifelineMessages
internal import CProtobufC
internal import LifelineMessages

/// Values in the memory of messages.
extension DynamicMessage {
    func load(_ place: UnsafeRawPointer, as field: FieldDescriptor, in storage: _MessageStorage) -> FieldValue {
        switch field.type {
        case .double: .double(place.load(as: Double.self))
        case .float: .float(place.load(as: Float.self))
        case .int64, .sint64, .sfixed64: .int64(place.load(as: Int64.self))
        case .uint64, .fixed64: .uint64(place.load(as: UInt64.self))
        case .int32, .sint32, .sfixed32: .int32(place.load(as: Int32.self))
        case .uint32, .fixed32: .uint32(place.load(as: UInt32.self))
        case .bool: .bool(place.load(as: protobuf_c_boolean.self) != 0)
        case .string: .string(String._load(place.load(as: _BytesValue.self), in: storage))
        case .bytes: .bytes([UInt8]._load(place.load(as: _BytesValue.self), in: storage))
        case .enumeration: .enumeration(place.load(as: Int32.self))
        case .message:
            .message(
                DynamicMessage(
                    messageType(of: field),
                    TableMessage(loading: place, as: messageType(of: field).table, in: storage)
                )
            )
        }
    }

    /// Stores a value of the right type: see `check`.
    static func store(
        _ value: FieldValue,
        at place: UnsafeMutableRawPointer,
        as type: FieldType,
        in storage: _BorrowedStorage
    ) {
        switch value {
        case .bool(let value): place.storeBytes(of: value ? 1 : 0, as: protobuf_c_boolean.self)
        case .int32(let value), .enumeration(let value): place.storeBytes(of: value, as: Int32.self)
        case .int64(let value): place.storeBytes(of: value, as: Int64.self)
        case .uint32(let value): place.storeBytes(of: value, as: UInt32.self)
        case .uint64(let value): place.storeBytes(of: value, as: UInt64.self)
        case .float(let value): place.storeBytes(of: value, as: Float.self)
        case .double(let value): place.storeBytes(of: value, as: Double.self)
        case .string(let value): place.storeBytes(of: String._store(value, in: storage), as: _BytesValue.self)
        case .bytes(let value): place.storeBytes(of: [UInt8]._store(value, in: storage), as: _BytesValue.self)
        case .message(let value):
            place.storeBytes(of: value.content.copied(into: storage), as: UnsafeMutableRawPointer.self)
        case .list, .map: preconditionFailure("A value of one field in place of an element")
        }
    }
}

extension FieldValue {
    /// The kind of value, in words.
    var kind: String {
        switch self {
        case .bool: "a bool"
        case .int32: "an int32"
        case .int64: "an int64"
        case .uint32: "a uint32"
        case .uint64: "a uint64"
        case .float: "a float"
        case .double: "a double"
        case .string: "a string"
        case .bytes: "bytes"
        case .enumeration: "a number of an enum"
        case .message(let message): "a \(message.descriptor.fullName)"
        case .list: "a list"
        case .map: "a map"
        }
    }

    /// Whether one key of a map comes before another one of the same type.
    func precedes(_ other: FieldValue) -> Bool {
        switch (self, other) {
        case (.bool(let left), .bool(let right)): !left && right
        case (.int32(let left), .int32(let right)): left < right
        case (.int64(let left), .int64(let right)): left < right
        case (.uint32(let left), .uint32(let right)): left < right
        case (.uint64(let left), .uint64(let right)): left < right
        case (.string(let left), .string(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
        default: false
        }
    }
}
