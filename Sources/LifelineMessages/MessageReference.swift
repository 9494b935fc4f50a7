public import CLifelineMessages
public import CProtobufC

/// The C table that describes a message type.
public typealias MessageTable = LifelineMessageTable

/// The C struct of a `string` or `bytes` field: a length and a pointer.
public typealias BytesValue = ProtobufCBinaryData

/// What a value of a generated message type holds: its storage, and the protobuf-c struct in it.
///
/// For generated code; nothing here is for users.
@frozen public struct MessageReference<Fields>: @unchecked Sendable {
    // @unchecked Sendable: see MessageStorage; `fields` points into `storage` and is written to only while that is
    // uniquely referenced.

    /// Nil while no field was set: `fields` is then the type's default instance.
    public var storage: MessageStorage?
    public var fields: UnsafeMutablePointer<Fields>

    @inlinable public init(storage: MessageStorage?, fields: UnsafeMutablePointer<Fields>) {
        self.storage = storage
        self.fields = fields
    }
}

// MARK: - Strings and bytes

extension MessageReference {
    /// The text of a field. What is not UTF-8, which a proto2 string may hold, reads as U+FFFD.
    @inlinable public func string(_ value: BytesValue) -> String {
        guard let storage else { return "" }
        return storage.string(value)
    }

    /// Calls `body` with the text of a field, without making a String of it.
    @inlinable public func withUTF8Span<Result: ~Copyable, Failure: Error>(
        _ value: BytesValue,
        _ body: (UTF8Span) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let storage else { return try body("".utf8Span) }
        return try storage.withUTF8Span(value, body)
    }

    /// Calls `body` with the bytes of a field, without copying them.
    @inlinable public func withSpan<Result: ~Copyable, Failure: Error>(
        _ value: BytesValue,
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { extendLifetime(storage) }
        return try body(Span(_unsafeElements: UnsafeBufferPointer<UInt8>(start: value.data, count: value.len)))
    }

    @inlinable public func bytes(_ value: BytesValue) -> [UInt8] {
        defer { extendLifetime(storage) }
        return [UInt8](UnsafeBufferPointer(start: value.data, count: value.len))
    }
}

extension MessageStorage {
    /// The text of `value`, which is in this storage.
    @inlinable func string(_ value: BytesValue) -> String {
        defer { extendLifetime(self) }
        let bytes = UnsafeBufferPointer<UInt8>(start: value.data, count: value.len)
        if mayHoldMalformedText { return String(decoding: bytes, as: UTF8.self) }
        return String(copying: UTF8Span(unchecked: Span(_unsafeElements: bytes)))
    }

    @inlinable func withUTF8Span<Result: ~Copyable, Failure: Error>(
        _ value: BytesValue,
        _ body: (UTF8Span) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { extendLifetime(self) }
        if mayHoldMalformedText { return try body(string(value).utf8Span) }
        let bytes = UnsafeBufferPointer<UInt8>(start: value.data, count: value.len)
        return try body(UTF8Span(unchecked: Span(_unsafeElements: bytes)))
    }

    @inlinable func withSpan<Result: ~Copyable, Failure: Error>(
        _ value: BytesValue,
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { extendLifetime(self) }
        return try body(Span(_unsafeElements: UnsafeBufferPointer<UInt8>(start: value.data, count: value.len)))
    }
}
