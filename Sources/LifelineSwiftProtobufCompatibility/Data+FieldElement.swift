public import CLifelineMessages
public import CProtobufC
public import FoundationEssentials
public import LifelineMessages

extension Data: FieldElement {
    @inlinable public static func _load(_ value: _BytesValue, in storage: _MessageStorage) -> Data {
        defer { extendLifetime(storage) }
        return Data(value)
    }

    @inlinable public static func _store(_ element: Data, in storage: _BorrowedStorage) -> _BytesValue {
        element.withUnsafeBytes { storage.store($0.assumingMemoryBound(to: UInt8.self)) }
    }

    @inlinable init(_ value: _BytesValue) {
        if let bytes = value.data { self.init(bytes: bytes, count: value.len) } else { self.init() }
    }
}

// For generated code.
extension _UntypedReference {
    /// The bytes of a field.
    @inlinable public func data(_ value: _BytesValue) -> Data {
        defer { extendLifetime(self) }
        return Data(value)
    }

    @inlinable public mutating func assign(_ data: Data, to index: Int, of table: UnsafePointer<_MessageTable>) {
        data.withUnsafeBytes { assign($0.assumingMemoryBound(to: UInt8.self), to: index, of: table) }
    }
}
