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

    @inlinable init(storage: MessageStorage?, untypedFields: UnsafeMutableRawPointer) {
        self.init(storage: storage, fields: untypedFields.assumingMemoryBound(to: Fields.self))
    }

    /// The storage of a message that `_mutableFields` was called for.
    @inlinable var mutableStorage: MessageStorage { storage.unsafelyUnwrapped }
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

    /// A string or bytes field with nothing in it.
    @inlinable public var emptyBytes: BytesValue { BytesValue(len: 0, data: nil) }

    @inlinable public func assign(_ text: String, to value: inout BytesValue) {
        text.withUTF8Bytes { mutableStorage.assign($0, to: &value) }
    }

    @inlinable public func assign(_ bytes: [UInt8], to value: inout BytesValue) {
        bytes.withUnsafeBufferPointer { mutableStorage.assign($0, to: &value) }
    }
}

extension MessageStorage {
    /// Replaces what `value`, a field of this storage, holds. Bytes that fit where the old ones are take their place.
    @inlinable func assign(_ bytes: UnsafeBufferPointer<UInt8>, to value: inout BytesValue) {
        // Not by way of `take`: it would be inlined into every setter.
        if !lifeline_bytes_assign(allocator, bytes.baseAddress, bytes.count, &value) {
            assignWithoutAllowance(bytes, to: &value)
        }
    }

    @usableFromInline func assignWithoutAllowance(_ bytes: UnsafeBufferPointer<UInt8>, to value: inout BytesValue) {
        take { lifeline_bytes_assign($0, bytes.baseAddress, bytes.count, &value) ? () : nil }
    }
}

extension String {
    /// Calls `body` with the UTF-8 of the text. Unlike `withUTF8`, it asks for no mutable copy of the text.
    @inlinable @inline(__always) func withUTF8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        return Array(utf8).withUnsafeBufferPointer(body)
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
        mutableStorage.create(M._table).assumingMemoryBound(to: M._Fields.self)
    }

    /// A deep copy of `message` in this one's arena.
    @inlinable public func copy<M: Message>(_ message: M) -> UnsafeMutablePointer<M._Fields> {
        mutableStorage.copy(message)
    }

    /// Lends a submessage, to be changed in place. `Message._settle` ends the loan.
    @inlinable public func lend<M: Message>(_ fields: UnsafeMutablePointer<M._Fields>?, as: M.Type) -> M {
        M(_message: MessageReference<M._Fields>(storage: mutableStorage.lend(), fields: fields.unsafelyUnwrapped))
    }
}

extension MessageStorage {
    @inlinable func copy<M: Message>(_ message: M) -> UnsafeMutablePointer<M._Fields> {
        copy(message._message.fields, as: M._table, from: message._message.storage)
            .assumingMemoryBound(to: M._Fields.self)
    }
}

extension Message {
    /// Ends the loan of `message`, one of this message's submessages, which was lent with its fields at `lent`.
    ///
    /// - Returns: Where the submessage is now, in the arena of this message.
    @inlinable public mutating func _settle<M: Message>(
        _ message: inout M,
        from lent: UnsafeMutablePointer<M._Fields>?
    ) -> UnsafeMutablePointer<M._Fields>? {
        if message._message.fields == lent, _message.mutableStorage.takeBack(&message._message.storage) { return lent }
        return _settleReplaced(message)
    }

    @usableFromInline mutating func _settleReplaced<M: Message>(_ message: M) -> UnsafeMutablePointer<M._Fields> {
        _message.mutableStorage.settleWithoutLoan()
        _ = _mutableFields()
        return _message.copy(message)
    }
}

// MARK: - Repeated and map fields

extension MessageReference {
    /// A deep copy of `list` in this message's arena.
    @inlinable public func copy<Element>(_ list: RepeatedField<Element>) -> RepeatedField<Element> {
        list._copied(into: mutableStorage)
    }

    /// Lends a repeated field, to be changed in place. `Message._settle` ends the loan.
    @inlinable public func lend<Element: FieldElement>(
        _ elements: UnsafeMutablePointer<Element._CValue>?,
        count: Int,
        of: Element.Type
    ) -> RepeatedField<Element> {
        RepeatedField(_storage: mutableStorage.lend(), elements: elements, count: count)
    }

    /// A deep copy of `map` in this message's arena.
    @inlinable public func copy<Key, Value>(_ map: MapField<Key, Value>) -> MapField<Key, Value> {
        map._copied(into: mutableStorage)
    }

    /// Lends a map field, to be changed in place. `Message._settle` ends the loan.
    @inlinable public func lend<Entry, Key, Value>(
        entries: UnsafeMutablePointer<UnsafeMutablePointer<Entry>?>?,
        count: Int,
        as: MapField<Key, Value>.Type
    ) -> MapField<Key, Value> {
        MapField(_storage: mutableStorage.lend(), entries: MapField<Key, Value>.untyped(entries), count: count)
    }
}

extension Message {
    /// Ends the loan of a repeated field, as it does that of a submessage.
    @inlinable public mutating func _settle<Element>(
        _ list: inout RepeatedField<Element>
    ) -> (elements: UnsafeMutablePointer<Element._CValue>?, count: Int) {
        let (elements, count) = (list._elements, list.count)
        if _message.mutableStorage.takeBack(&list._storage) { return (elements, count) }
        return _settleReplaced(list)
    }

    @usableFromInline mutating func _settleReplaced<Element>(
        _ list: RepeatedField<Element>
    ) -> (elements: UnsafeMutablePointer<Element._CValue>?, count: Int) {
        _message.mutableStorage.settleWithoutLoan()
        _ = _mutableFields()
        return (_message.copy(list)._elements, list.count)
    }

    /// Ends the loan of a map field, as it does that of a submessage.
    @inlinable public mutating func _settle<Entry, Key, Value>(
        _ map: inout MapField<Key, Value>,
        asTyped _: UnsafeMutablePointer<UnsafeMutablePointer<Entry>?>?
    ) -> (entries: UnsafeMutablePointer<UnsafeMutablePointer<Entry>?>?, count: Int) {
        let entries: UnsafeMutablePointer<UnsafeMutablePointer<Entry>?>? = map._typedEntries()
        let count = map.count
        if _message.mutableStorage.takeBack(&map._storage) { return (entries, count) }
        return _settleReplaced(map)
    }

    @usableFromInline mutating func _settleReplaced<Entry, Key, Value>(
        _ map: MapField<Key, Value>
    ) -> (entries: UnsafeMutablePointer<UnsafeMutablePointer<Entry>?>?, count: Int) {
        _message.mutableStorage.settleWithoutLoan()
        _ = _mutableFields()
        return (_message.copy(map)._typedEntries(), map.count)
    }
}
