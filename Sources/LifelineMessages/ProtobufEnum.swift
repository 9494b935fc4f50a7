/// An enum of a `.proto` file.
///
/// An enum of a proto3 file is open: a number that it does not know is kept as `UNRECOGNIZED`. One of a proto2 file is
/// closed: such a number is kept among the message's unknown fields.
public protocol ProtobufEnum: FieldElement, RawRepresentable, CaseIterable
where RawValue == Int, _CValue == Int32 {
    /// The default: zero in proto3, what is declared first in proto2.
    init()
}

extension ProtobufEnum {
    /// The case that a field holds. For generated code.
    @inlinable public static func _load(_ value: Int32) -> Self { Self(rawValue: Int(value)) ?? Self() }

    /// The number that a field keeps; protobuf's enums have 32 bits. For generated code.
    @inlinable public var _cValue: Int32 { Int32(truncatingIfNeeded: rawValue) }

    @inlinable public static func _load(_ value: Int32, in _: MessageStorage) -> Self { _load(value) }
    @inlinable public static func _store(_ element: Self, in _: BorrowedStorage) -> Int32 { element._cValue }
}
