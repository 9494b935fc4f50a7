public import CLifelineMessages
public import CProtobufC

/// The C table that describes a message type.
public typealias _MessageTable = LifelineMessageTable

/// The C struct of a `string` or `bytes` field: a length and a pointer.
public typealias _BytesValue = ProtobufCBinaryData

/// The content of a value of a generated message type: its storage, and the protobuf-c struct in it.
///
/// See docs/message-memory.md.
@frozen public struct _MessageReference<Fields>: Sendable {
    // Everything that does not need the type of the struct uses this type, and is compiled once for all messages.
    public var untyped: _UntypedReference

    @inlinable @inline(__always) public init(_ untyped: _UntypedReference) {
        self.untyped = untyped
    }

    @inlinable @inline(__always) public init(storage: _MessageStorage?, fields: UnsafeMutablePointer<Fields>) {
        untyped = _UntypedReference(storage: storage, fields: fields)
    }

    /// For writing, after `mutableFields`, and for comparing. Use `pointee` for reading.
    @inlinable @inline(__always) public var fields: UnsafeMutablePointer<Fields> {
        untyped.fields.assumingMemoryBound(to: Fields.self)
    }

    /// The fields, for reading. Unlike with `fields`, the message lives until the access ends.
    @inlinable public var pointee: Fields {
        @inline(__always) _read {
            defer { extendLifetime(untyped.storage) }
            yield fields.pointee
        }
    }

    /// The struct, for writing. It is copied first if the storage has other references, or to get rid of garbage.
    @inlinable @inline(__always) public mutating func mutableFields(
        as table: UnsafePointer<_MessageTable>
    ) -> UnsafeMutablePointer<Fields> {
        untyped.mutableFields(as: table).assumingMemoryBound(to: Fields.self)
    }
}

/// The content of a message of any type.
@frozen public struct _UntypedReference: @unchecked Sendable {
    // @unchecked Sendable, because threads that share a storage only read it. `fields` points into `storage` and is
    // written to only while `self` holds the one reference to it, which no other thread can get then. References are
    // counted atomically, and a part that was lent is settled by one atomic exchange. Without a storage, `fields` is a
    // constant.

    /// Nil until a field is set. `fields` is then the type's default instance.
    public var storage: _MessageStorage?
    /// The struct.
    public var fields: UnsafeMutableRawPointer

    @inlinable @inline(__always) public init(storage: _MessageStorage?, fields: UnsafeMutableRawPointer) {
        self.storage = storage
        self.fields = fields
    }
}

extension _UntypedReference {
    /// Whether the message is equal to one in memory. NULL means a message with no field set.
    @usableFromInline func isEqual(to other: UnsafeRawPointer?, as table: UnsafePointer<_MessageTable>) -> Bool {
        defer { extendLifetime(self) }
        return lifeline_message_equal(table, fields, other)
    }
}

// MARK: - Strings and bytes

extension _UntypedReference {
    /// The text of a field. Bytes that are not UTF-8, which a proto2 string may hold, read as U+FFFD.
    public func string(_ value: _BytesValue) -> String {
        defer { extendLifetime(self) }
        return String(value, isValid: !mayHoldMalformedText)
    }

    /// Calls `body` with the text of a field, without making a String.
    @inlinable public func withUTF8Span<Result: ~Copyable, Failure: Error>(
        _ value: _BytesValue,
        _ body: (UTF8Span) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { extendLifetime(self) }
        return try value.withUTF8Span(isValid: !mayHoldMalformedText, body)
    }

    /// Calls `body` with the default text of an absent field, which is not in a message.
    @inlinable public func withUTF8Span<Result: ~Copyable, Failure: Error>(
        ofDefault text: String,
        _ body: (UTF8Span) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try text.withUTF8SpanOfCopy(body)
    }

    /// Calls `body` with the bytes of a field, without copying them.
    @inlinable public func withSpan<Result: ~Copyable, Failure: Error>(
        _ value: _BytesValue,
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { extendLifetime(self) }
        return try body(Span(_unsafeElements: value.buffer))
    }

    public func bytes(_ value: _BytesValue) -> [UInt8] {
        defer { extendLifetime(self) }
        return [UInt8](value.buffer)
    }

    @inlinable @inline(__always) var mayHoldMalformedText: Bool {
        storage != nil && _BorrowedStorage(storage.unsafelyUnwrapped).mayHoldMalformedText
    }
}

extension _BytesValue {
    @inlinable @inline(__always) var buffer: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: data, count: len) }

    @inlinable func withUTF8Span<Result: ~Copyable, Failure: Error>(
        isValid: Bool,
        _ body: (UTF8Span) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        if !isValid { return try String(self, isValid: false).withUTF8SpanOfCopy(body) }
        return try body(UTF8Span(unchecked: Span(_unsafeElements: buffer)))
    }
}

extension String {
    /// The text of a field. If `isValid`, it is known to be UTF-8 and is not checked.
    @usableFromInline init(_ value: _BytesValue, isValid: Bool) {
        if isValid {
            // A String that is known to be ASCII is hashed and compared by its bytes instead of its characters.
            let isASCII = lifeline_bytes_are_ascii(value.data, value.len)
            self.init(copying: UTF8Span(unchecked: Span(_unsafeElements: value.buffer), isKnownASCII: isASCII))
        } else {
            self.init(decoding: value.buffer, as: UTF8.self)
        }
    }

    /// Calls `body` with a copy of the text on the heap. In optimized code of Swift 6.3.1, the span of a String of at
    /// most 15 bytes, which are in the String itself, was left dangling.
    @usableFromInline func withUTF8SpanOfCopy<Result: ~Copyable, Failure: Error>(
        _ body: (UTF8Span) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = Array(utf8)
        defer { extendLifetime(bytes) }
        return try body(UTF8Span(unchecked: bytes.span))
    }
}
