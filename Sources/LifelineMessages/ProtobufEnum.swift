/// An enum of a `.proto` file.
///
/// Open enums, like those of proto3 and of editions, keep an unknown number as `UNRECOGNIZED`. With closed enums, like
/// those of proto2 and of editions with `features.enum_type = CLOSED`, it becomes an unknown field of the message.
public protocol ProtobufEnum: FieldElement, RawRepresentable, CaseIterable
where RawValue == Int, _CValue == Int32 {
    /// The default: the value that is declared first. It is zero in open enums.
    init()
}

extension ProtobufEnum {
    /// The case in a field. For generated code.
    @inlinable public static func _load(_ value: Int32) -> Self { Self(rawValue: Int(value)) ?? Self() }

    /// The number in a field; protobuf's enums have 32 bits. For generated code.
    @inlinable public var _cValue: Int32 { Int32(truncatingIfNeeded: rawValue) }

    @inlinable public static func _load(_ value: Int32, in _: _MessageStorage) -> Self { _load(value) }
    @inlinable public static func _store(_ element: Self, in _: _BorrowedStorage) -> Int32 { element._cValue }
    @inlinable public static func _areEqual(_ left: Int32, _ right: Int32) -> Bool { left == right }
}
