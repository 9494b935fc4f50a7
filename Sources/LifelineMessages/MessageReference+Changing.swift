public import CLifelineMessages
public import CProtobufC

// For the setters of generated code. All of them work on the reference that a value stores, and not through the
// requirements of `Message`, so that the compiler sees that it need not retain anything.
extension _MessageReference {
    /// The struct, for writing. It is copied first when there are other references to the storage, or to leave garbage
    /// behind.
    @inlinable @inline(__always) public mutating func mutableFields(
        as table: UnsafePointer<_MessageTable>
    ) -> UnsafeMutablePointer<Fields> {
        if !isWritable(&storage) { makeWritable(as: table) }
        return fields
    }

    @usableFromInline mutating func makeWritable(as table: UnsafePointer<_MessageTable>) {
        let isUnique = isKnownUniquelyReferenced(&storage)
        if isUnique, storage.unsafelyUnwrapped.renewAllowance(for: fields, as: table) { return }
        makeUnique(as: table, reserving: 0)
    }

    /// Copies the message to a storage of its own, with room for `reserved` more bytes.
    mutating func makeUnique(as table: UnsafePointer<_MessageTable>, reserving reserved: Int) {
        let size = storage == nil ? Int(table.pointee.size) : lifeline_message_copy_size(table, fields)
        // Half as much again, and at least 256 bytes, for the coming changes.
        let copied = _MessageStorage.create(byteCount: size &+ max(size / 2, 256) &+ reserved)
        let source = storage.take()
        fields = withBorrowed(copied) { $0.copy(fields, as: table, from: source) }.assumingMemoryBound(to: Fields.self)
        storage = copied
    }

    /// Calls `body` with the storage, after `mutableFields`.
    @inlinable @inline(__always) func withStorage<Result>(_ body: (_BorrowedStorage) -> Result) -> Result {
        body(_BorrowedStorage(storage.unsafelyUnwrapped))
    }
}

// MARK: - Strings and bytes

extension _MessageReference {
    /// A string or bytes field with nothing in it.
    @inlinable public var emptyBytes: _BytesValue { _BytesValue(len: 0, data: nil) }

    @inlinable public func assign(_ text: String, to value: inout _BytesValue) {
        text.withUTF8Bytes { bytes in withStorage { $0.assign(bytes, to: &value) } }
    }

    @inlinable public func assign(_ bytes: [UInt8], to value: inout _BytesValue) {
        bytes.withUnsafeBufferPointer { bytes in withStorage { $0.assign(bytes, to: &value) } }
    }
}

// MARK: - Submessages

extension _MessageReference {
    /// A new message in this one's arena, with no field set.
    @inlinable public func create<M: Message>(_: M.Type) -> UnsafeMutablePointer<M._Fields> {
        withStorage { $0.create(M._table) }.assumingMemoryBound(to: M._Fields.self)
    }

    /// A deep copy of `message` in this one's arena.
    @inlinable public func copy<M: Message>(_ message: M) -> UnsafeMutablePointer<M._Fields>? {
        withStorage { M._store(message, in: $0) }
    }

    /// Lends a submessage, to be changed in place. `settle` ends the loan.
    @inlinable public func lend<M: Message>(_ fields: UnsafeMutablePointer<M._Fields>?, as: M.Type) -> M {
        M(_message: _MessageReference<M._Fields>(storage: withStorage { $0.lend() }, fields: fields.unsafelyUnwrapped))
    }

    /// Ends the loan of `message`, which was lent with its fields at `lent`.
    ///
    /// - Parameter table: the table of this message, the owner.
    /// - Returns: The submessage's fields, in the arena of this message.
    @inlinable @inline(__always) public mutating func settle<M: Message>(
        _ message: inout M,
        from lent: UnsafeMutablePointer<M._Fields>?,
        as table: UnsafePointer<_MessageTable>
    ) -> UnsafeMutablePointer<M._Fields>? {
        if message._message.fields == lent, withStorage({ $0.takeBack(&message._message.storage) }) { return lent }
        leaveLoan(as: table)
        return copy(message)
    }

    /// Settles a loan whose child was replaced, and makes this message writable for a copy of the new child.
    @usableFromInline mutating func leaveLoan(as table: UnsafePointer<_MessageTable>) {
        withStorage { $0.settleWithoutLoan() }
        _ = mutableFields(as: table)
    }
}

// MARK: - Repeated fields

extension _MessageReference {
    /// A deep copy of `list` in this message's arena.
    @inlinable public func copy<Element>(_ list: RepeatedField<Element>) -> RepeatedField<Element> {
        list._copied(into: storage.unsafelyUnwrapped)
    }

    /// Lends a repeated field, to be changed in place. `settle` ends the loan.
    @inlinable public func lend<Element: FieldElement>(
        _ elements: UnsafeMutablePointer<Element._CValue>?,
        count: Int,
        of: Element.Type
    ) -> RepeatedField<Element> {
        RepeatedField(_storage: withStorage { $0.lend() }, elements: elements, count: count)
    }

    /// Ends the loan of a repeated field. Afterwards `list` is in the arena of this message.
    @inlinable @inline(__always) public mutating func settle<Element>(
        _ list: inout RepeatedField<Element>,
        as table: UnsafePointer<_MessageTable>
    ) {
        if withStorage({ $0.takeBack(&list._storage) }) { return }
        leaveLoan(as: table)
        list = copy(list)
    }
}

// MARK: - Map fields

extension _MessageReference {
    /// A deep copy of `map` in this message's arena.
    @inlinable public func copy<Key, Value>(_ map: MapField<Key, Value>) -> MapField<Key, Value> {
        map._copied(into: storage.unsafelyUnwrapped)
    }

    /// Lends a map field, to be changed in place. `settle` ends the loan.
    @inlinable public func lend<Entry, Key, Value>(
        entries: UnsafeMutablePointer<UnsafeMutablePointer<Entry>?>?,
        count: Int,
        as: MapField<Key, Value>.Type
    ) -> MapField<Key, Value> {
        MapField(_storage: withStorage { $0.lend() }, entries: MapField<Key, Value>.untyped(entries), count: count)
    }

    /// Ends the loan of a map field. Afterwards `map` is in the arena of this message.
    @inlinable @inline(__always) public mutating func settle<Key, Value>(
        _ map: inout MapField<Key, Value>,
        as table: UnsafePointer<_MessageTable>
    ) {
        if withStorage({ $0.takeBack(&map._storage) }) { return }
        leaveLoan(as: table)
        map = copy(map)
    }
}
