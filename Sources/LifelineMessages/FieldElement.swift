public import CLifelineMessages
public import CProtobufC

/// An element of a repeated field, or a value of a map: a scalar, `String`, `[UInt8]`, an enum or a message.
///
/// The requirements are for this library and generated code.
public protocol FieldElement: Hashable, Sendable {
    /// The type of the element in C.
    ///
    /// It is always trivial, but not constrained to BitwiseCopyable: Swift 6.3 does not find that conformance of
    /// imported C structs when it loads this module.
    associatedtype _CValue

    /// The Swift value of `value`, which is in `storage`.
    static func _load(_ value: _CValue, in storage: _MessageStorage) -> Self

    /// The C value of `element`, with a copy of everything that it points to in `storage`.
    static func _store(_ element: Self, in storage: _BorrowedStorage) -> _CValue

    /// A copy of `value`, which is in `source`, with everything that it points to in `storage`.
    static func _copy(_ value: _CValue, from source: _MessageStorage, into storage: _BorrowedStorage) -> _CValue

    /// Whether two values are the same in an encoding: see ``Message``. Their storages live during the call.
    static func _areEqual(_ left: _CValue, _ right: _CValue) -> Bool

    /// Lends `value` as an element that can be changed in place, if the type supports that. `value` is then empty until
    /// the loan ends, and `lent` is its old content.
    static func _lend(
        _ value: inout _CValue,
        from storage: _BorrowedStorage
    ) -> (element: Self, lent: _CValue)

    /// Ends the loan of `lent`. Returns the value to put back, or nil when `element` has to be stored anew.
    static func _settle(_ element: inout Self, _ lent: _CValue, from storage: _BorrowedStorage) -> _CValue?

    /// Whether `element` is the one that `value`, which is in `storage`, holds: to the bit, unlike `==` of text and of
    /// floating-point numbers.
    static func _isStored(_ element: Self, as value: _CValue, in storage: _MessageStorage) -> Bool

    /// The value of a map's entry without a value.
    init()
}

extension FieldElement {
    @inlinable public static func _copy(
        _ value: _CValue,
        from _: _MessageStorage,
        into _: _BorrowedStorage
    ) -> _CValue {
        value
    }

    @inlinable public static func _lend(
        _ value: inout _CValue,
        from storage: _BorrowedStorage
    ) -> (element: Self, lent: _CValue) {
        (storage.with { _load(value, in: $0) }, value)
    }

    @inlinable public static func _settle(_: inout Self, _: _CValue, from _: _BorrowedStorage) -> _CValue? { nil }

    @inlinable public static func _isStored(_ element: Self, as value: _CValue, in storage: _MessageStorage) -> Bool {
        _load(value, in: storage) == element
    }
}

// MARK: - Scalars

/// A scalar with the same type in C and Swift.
public protocol _PlainFieldElement: FieldElement where _CValue == Self {}

extension _PlainFieldElement {
    @inlinable public static func _load(_ value: Self, in _: _MessageStorage) -> Self { value }
    @inlinable public static func _store(_ element: Self, in _: _BorrowedStorage) -> Self { element }
    @inlinable public static func _areEqual(_ left: Self, _ right: Self) -> Bool { left == right }
    @inlinable public static func _isStored(_ element: Self, as value: Self, in _: _MessageStorage) -> Bool {
        _areEqual(element, value)
    }
}

extension Int32: _PlainFieldElement {}
extension Int64: _PlainFieldElement {}
extension UInt32: _PlainFieldElement {}
extension UInt64: _PlainFieldElement {}

extension Float: _PlainFieldElement {
    @inlinable public static func _areEqual(_ left: Float, _ right: Float) -> Bool {
        left.bitPattern == right.bitPattern
    }
}

extension Double: _PlainFieldElement {
    @inlinable public static func _areEqual(_ left: Double, _ right: Double) -> Bool {
        left.bitPattern == right.bitPattern
    }
}

extension Bool: FieldElement {
    @inlinable public static func _load(_ value: protobuf_c_boolean, in _: _MessageStorage) -> Bool { value != 0 }
    @inlinable public static func _store(_ element: Bool, in _: _BorrowedStorage) -> protobuf_c_boolean {
        element ? 1 : 0
    }
    @inlinable public static func _areEqual(_ left: protobuf_c_boolean, _ right: protobuf_c_boolean) -> Bool {
        (left != 0) == (right != 0)
    }
}

// MARK: - Strings and bytes

extension FieldElement where _CValue == _BytesValue {
    @inlinable public static func _copy(
        _ value: _BytesValue,
        from source: _MessageStorage,
        into storage: _BorrowedStorage
    ) -> _BytesValue {
        storage.copy(value, from: source)
    }

    @inlinable public static func _areEqual(_ left: _BytesValue, _ right: _BytesValue) -> Bool {
        lifeline_bytes_equal(left.data, left.len, right.data, right.len)
    }
}

extension String: FieldElement {
    @inlinable public static func _load(_ value: _BytesValue, in storage: _MessageStorage) -> String {
        defer { extendLifetime(storage) }
        return String(value, isValid: !storage.mayHoldMalformedText)
    }

    @inlinable public static func _store(_ element: String, in storage: _BorrowedStorage) -> _BytesValue {
        element.withUTF8Bytes { storage.store($0) }
    }

    @inlinable public static func _isStored(
        _ element: String,
        as value: _BytesValue,
        in storage: _MessageStorage
    ) -> Bool {
        defer { extendLifetime(storage) }
        if element.withUTF8Bytes({ value.buffer.elementsEqual($0) }) { return true }
        return storage.mayHoldMalformedText && _load(value, in: storage).utf8.elementsEqual(element.utf8)
    }
}

extension Array: FieldElement where Element == UInt8 {
    @inlinable public static func _load(_ value: _BytesValue, in storage: _MessageStorage) -> [UInt8] {
        defer { extendLifetime(storage) }
        return [UInt8](value.buffer)
    }

    @inlinable public static func _store(_ element: [UInt8], in storage: _BorrowedStorage) -> _BytesValue {
        element.withUnsafeBufferPointer { storage.store($0) }
    }
}

// MARK: - Messages

// Inlinable are only the functions that read and change elements: each type gets a copy of them.
extension Message {
    @inlinable public static func _load(_ value: UnsafeMutablePointer<_Fields>?, in storage: _MessageStorage) -> Self {
        guard let value else { return Self() }
        return Self(_message: _MessageReference(storage: storage, fields: value))
    }

    @inlinable public static func _store(_ element: Self, in storage: _BorrowedStorage) -> UnsafeMutablePointer<
        _Fields
    >? {
        let message = element._message.untyped
        return storage.copy(message.fields, as: _table, from: message.storage).assumingMemoryBound(to: _Fields.self)
    }

    public static func _copy(
        _ value: UnsafeMutablePointer<_Fields>?,
        from source: _MessageStorage,
        into storage: _BorrowedStorage
    ) -> UnsafeMutablePointer<_Fields>? {
        guard let value else { return nil }
        return storage.copy(value, as: _table, from: source).assumingMemoryBound(to: _Fields.self)
    }

    public static func _areEqual(
        _ left: UnsafeMutablePointer<_Fields>?,
        _ right: UnsafeMutablePointer<_Fields>?
    ) -> Bool {
        lifeline_message_equal(_table, left, right)
    }

    @inlinable public static func _lend(
        _ value: inout UnsafeMutablePointer<_Fields>?,
        from storage: _BorrowedStorage
    ) -> (element: Self, lent: UnsafeMutablePointer<_Fields>?) {
        _lent(storage.lendMessage(at: &value, as: _table))
    }

    @inlinable static func _lent(_ loan: _UntypedReference) -> (element: Self, lent: _CValue) {
        let message = _MessageReference<_Fields>(loan)
        return (Self(_message: message), message.fields)
    }

    @inlinable public static func _settle(
        _ element: inout Self,
        _ lent: UnsafeMutablePointer<_Fields>?,
        from storage: _BorrowedStorage
    ) -> UnsafeMutablePointer<_Fields>?? {
        let isThere = storage.takeBack(&element._message.untyped, lent: lent.unsafelyUnwrapped)
        return isThere ? .some(lent) : nil
    }

    public static func _isStored(
        _ element: Self,
        as value: UnsafeMutablePointer<_Fields>?,
        in storage: _MessageStorage
    ) -> Bool {
        defer { extendLifetime(storage) }
        return element._message.untyped.isEqual(to: value, as: _table)
    }
}
