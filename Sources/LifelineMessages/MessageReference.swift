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

    public var storage: MessageStorage
    public var fields: UnsafeMutablePointer<Fields>

    @inlinable public init(storage: MessageStorage, fields: UnsafeMutablePointer<Fields>) {
        self.storage = storage
        self.fields = fields
    }
}

// MARK: - Strings and bytes

extension MessageReference {
    /// The text of a field. What is not UTF-8, which a proto2 string may hold, reads as U+FFFD.
    @inlinable public func string(_ value: BytesValue) -> String { storage.string(value) }

    /// Calls `body` with the text of a field, without making a String of it.
    @inlinable public func withUTF8Span<Result: ~Copyable, Failure: Error>(
        _ value: BytesValue,
        _ body: (UTF8Span) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.withUTF8Span(value, body)
    }

    /// Calls `body` with the bytes of a field, without copying them.
    @inlinable public func withSpan<Result: ~Copyable, Failure: Error>(
        _ value: BytesValue,
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.withSpan(value, body)
    }

    @inlinable public func bytes(_ value: BytesValue) -> [UInt8] {
        defer { extendLifetime(storage) }
        return [UInt8](UnsafeBufferPointer(start: value.data, count: value.len))
    }

    /// A string or bytes field with nothing in it.
    @inlinable public var emptyBytes: BytesValue { BytesValue(len: 0, data: nil) }

    @inlinable public func assign(_ text: String, to value: inout BytesValue) {
        var text = text
        text.withUTF8 { storage.assign(UnsafeRawBufferPointer($0), to: &value) }
    }

    @inlinable public func assign(_ bytes: [UInt8], to value: inout BytesValue) {
        bytes.withUnsafeBytes { storage.assign($0, to: &value) }
    }
}

extension MessageStorage {
    /// Replaces what `value`, a field of this storage, holds. Bytes that fit where the old ones are take their place.
    @usableFromInline func assign(_ bytes: UnsafeRawBufferPointer, to value: inout BytesValue) {
        if bytes.count > value.len {
            value.data = allocate(byteCount: bytes.count).assumingMemoryBound(to: UInt8.self)
        }
        value.len = bytes.count
        if let source = bytes.baseAddress, bytes.count > 0 {
            UnsafeMutableRawPointer(value.data).copyMemory(from: source, byteCount: bytes.count)
        }
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

// MARK: - Submessages

extension MessageReference {
    /// A new message in this one's arena, with no field set.
    @inlinable public func create<M: Message>(_: M.Type) -> UnsafeMutablePointer<M._Fields> {
        storage.take { lifeline_message_create(M._table, $0) }.assumingMemoryBound(to: M._Fields.self)
    }

    /// A deep copy of `message` in this one's arena.
    @inlinable public func copy<M: Message>(_ message: M) -> UnsafeMutablePointer<M._Fields> {
        storage.copy(message)
    }

    /// Lends a submessage, to be changed in place. `Message._settle` ends the loan.
    @inlinable public func lend<M: Message>(_ fields: UnsafeMutablePointer<M._Fields>?, as: M.Type) -> MessageLoan<M> {
        MessageLoan(storage: storage.lend(), fields: fields.unsafelyUnwrapped)
    }
}

extension MessageStorage {
    @inlinable func copy<M: Message>(_ message: M) -> UnsafeMutablePointer<M._Fields> {
        defer { extendLifetime(message) }
        inheritText(from: message._message.storage)
        return take { lifeline_message_copy(M._table, message._message.fields, $0) }
            .assumingMemoryBound(to: M._Fields.self)
    }
}

/// A submessage that is being changed in place.
///
/// For generated code; nothing here is for users.
@frozen public struct MessageLoan<M: Message> {
    public var message: M
    @usableFromInline let lent: UnsafeMutablePointer<M._Fields>

    @inlinable init(storage: MessageStorage, fields: UnsafeMutablePointer<M._Fields>) {
        message = M(_message: MessageReference(storage: storage, fields: fields))
        lent = fields
    }
}

extension Message {
    /// Ends the loan of one of this message's submessages.
    ///
    /// - Returns: Where the submessage is now, when it was replaced or copied meanwhile; nil when it is where it was.
    @inlinable public mutating func _settle<M>(_ loan: inout MessageLoan<M>) -> UnsafeMutablePointer<M._Fields>? {
        if loan.message._message.fields == loan.lent, _message.storage.isLender(of: loan.message._message.storage) {
            _message.storage.takeBack(&loan.message._message.storage)
            return nil
        }
        _ = _mutableFields()
        return _message.copy(loan.message)
    }
}

// MARK: - Repeated and map fields

extension MessageReference {
    /// A deep copy of `list` in this message's arena.
    @inlinable public func copy<Element>(_ list: RepeatedField<Element>) -> RepeatedField<Element> {
        list._copied(into: storage)
    }

    /// Lends a repeated field, to be changed in place. `Message._settle` ends the loan.
    @inlinable public func lend<Element: FieldElement>(
        _ elements: UnsafeMutablePointer<Element._CValue>?,
        count: Int,
        of: Element.Type
    ) -> RepeatedField<Element> {
        RepeatedField(_storage: storage.lend(), elements: elements, count: count)
    }

    /// A deep copy of `map` in this message's arena.
    @inlinable public func copy<Key, Value>(_ map: MapField<Key, Value>) -> MapField<Key, Value> {
        map._copied(into: storage)
    }

    /// Lends a map field, to be changed in place. `Message._settle` ends the loan.
    @inlinable public func lend<Entry, Key, Value>(
        entries: UnsafeMutablePointer<UnsafeMutablePointer<Entry>?>?,
        count: Int,
        as: MapField<Key, Value>.Type
    ) -> MapField<Key, Value> {
        MapField(_storage: storage.lend(), entries: MapField<Key, Value>.untyped(entries), count: count)
    }
}

extension Message {
    /// Ends the loan of a repeated field: on return `list` is in this message's arena.
    @inlinable public mutating func _settle<Element>(_ list: inout RepeatedField<Element>) {
        if _message.storage.isLender(of: list._storage) {
            _message.storage.takeBack(&list._storage)
        } else {
            _ = _mutableFields()
            list = _message.copy(list)
        }
    }

    /// Ends the loan of a map field: on return `map` is in this message's arena.
    @inlinable public mutating func _settle<Key, Value>(_ map: inout MapField<Key, Value>) {
        if _message.storage.isLender(of: map._storage) {
            _message.storage.takeBack(&map._storage)
        } else {
            _ = _mutableFields()
            map = _message.copy(map)
        }
    }
}
