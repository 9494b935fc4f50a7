public import CLifelineMessages

// For the setters of generated code. All of them use the stored reference directly, and not the requirements of
// `Message`, so that the compiler sees that it need not retain anything.
extension _UntypedReference {
    /// The struct, for writing.
    @inlinable @inline(__always) public mutating func mutableFields(
        as table: UnsafePointer<_MessageTable>
    ) -> UnsafeMutableRawPointer {
        if !isWritable(&storage) { makeWritable(as: table) }
        return fields
    }

    /// Calls `body` with the storage, after `mutableFields`.
    @inlinable @inline(__always) func withStorage<Result>(_ body: (_BorrowedStorage) -> Result) -> Result {
        body(_BorrowedStorage(storage.unsafelyUnwrapped))
    }

    @usableFromInline mutating func makeWritable(as table: UnsafePointer<_MessageTable>) {
        let isUnique = isKnownUniquelyReferenced(&storage)
        if isUnique, storage.unsafelyUnwrapped.renewAllowance(for: fields, as: table) { return }
        makeUnique(as: table, reserving: 0)
    }

    /// Copies the message to its own storage, with room for `reserved` more bytes.
    mutating func makeUnique(as table: UnsafePointer<_MessageTable>, reserving reserved: Int) {
        let size = storage == nil ? Int(table.pointee.size) : lifeline_message_copy_size(table, fields)
        // Half as much again, and at least 256 bytes, for the coming changes.
        let copied = _MessageStorage.create(byteCount: size &+ max(size / 2, 256) &+ reserved)
        let source = storage.take()
        fields = withBorrowed(copied) { $0.copy(fields, as: table, from: source) }
        storage = copied
    }

    /// Makes a field present, after the struct was made writable. Returns the place of its value.
    mutating func makePresent(
        _ field: UnsafePointer<LifelineField>,
        of table: UnsafePointer<_MessageTable>
    ) -> UnsafeMutableRawPointer {
        lifeline_make_present(field, mutableFields(as: table))
        return place(of: field)
    }

    /// The place of a field's value in the struct. Untyped: generated code reads it as a pointer of another type, and
    /// the compiler assumes that pointers of different types point to different memory.
    @inlinable @inline(__always) func place(of field: UnsafePointer<LifelineField>) -> UnsafeMutableRawPointer {
        fields + Int(field.pointee.offset)
    }
}

// Generated code names a field by its index in the message's table. The table has the field's place in the struct and
// what makes it present. Generic functions here only cast. Everything else is compiled once, because the compiler takes
// longer for each line that is compiled for each field.

// MARK: - Strings and bytes

extension _UntypedReference {
    public mutating func assign(_ text: String, to index: Int, of table: UnsafePointer<_MessageTable>) {
        text.withUTF8Bytes { assign($0, to: index, of: table) }
    }

    public mutating func assign(_ bytes: [UInt8], to index: Int, of table: UnsafePointer<_MessageTable>) {
        bytes.withUnsafeBufferPointer { assign($0, to: index, of: table) }
    }

    /// Assigns bytes that are not in this message.
    public mutating func assign(
        _ bytes: UnsafeBufferPointer<UInt8>,
        to index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        let place = makePresent(table.pointee.fields + index, of: table).assumingMemoryBound(to: _BytesValue.self)
        withStorage { $0.assign(bytes, to: &place.pointee) }
    }
}

// MARK: - Submessages

extension _UntypedReference {
    /// A submessage. Changing it in place makes it present.
    @inlinable public subscript<M: Message>(message index: Int, of table: UnsafePointer<_MessageTable>) -> M {
        _read {
            defer { extendLifetime(storage) }
            let field = table.pointee.fields + index
            let isPresent = lifeline_is_present(field, fields)
            yield M(_reading: isPresent ? place(of: field).load(as: M._CValue.self) : nil, in: self)
        }
        @inline(__always) set {
            let message = newValue._message.untyped
            store(message.fields, from: message.storage, in: index, of: table)
        }
        _modify {
            var (message, lent): (element: M, lent: M._CValue) = lendMessage(index, of: table)
            defer { settleMessage(&message, lent, in: index, of: table) }
            yield &message
        }
    }

    /// Lends a submessage, to be changed and then settled.
    @inlinable public mutating func lendMessage<M: Message>(
        _ index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> (element: M, lent: M._CValue) {
        M._lent(lendMessage(index, of: table))
    }

    /// Puts a submessage that was lent, or its replacement, into the field.
    @inlinable public mutating func settleMessage<M: Message>(
        _ message: inout M,
        _ lent: M._CValue,
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        settleMessage(&message._message.untyped, lent: lent.unsafelyUnwrapped, in: index, of: table)
    }
}

extension _UntypedReference {
    @usableFromInline mutating func store(
        _ message: UnsafeRawPointer,
        from source: _MessageStorage?,
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        let field = table.pointee.fields + index
        let place = makePresent(field, of: table)
        let copy = withStorage { $0.copy(message, as: field.pointee.message.unsafelyUnwrapped, from: source) }
        place.storeBytes(of: copy, as: UnsafeMutableRawPointer?.self)
    }

    @usableFromInline mutating func lendMessage(
        _ index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> _UntypedReference {
        let field = table.pointee.fields + index
        let place = makePresent(field, of: table)
        return withStorage { $0.lendMessage(at: place, as: field.pointee.message.unsafelyUnwrapped) }
    }

    @usableFromInline mutating func settleMessage(
        _ message: inout _UntypedReference,
        lent: UnsafeMutableRawPointer,
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        let field = table.pointee.fields + index
        let settled = settled(&message, lent: lent, as: field.pointee.message.unsafelyUnwrapped, of: table)
        place(of: field).storeBytes(of: settled, as: UnsafeMutableRawPointer?.self)
    }

    /// Ends the loan of a message. Returns the message to store in its place: the one at `lent`, or a copy of its
    /// replacement.
    mutating func settled(
        _ message: inout _UntypedReference,
        lent: UnsafeMutableRawPointer,
        as inner: UnsafePointer<_MessageTable>,
        of table: UnsafePointer<_MessageTable>
    ) -> UnsafeMutableRawPointer? {
        if withStorage({ $0.takeBack(&message, lent: lent) }) { return lent }
        _ = mutableFields(as: table)
        return withStorage { $0.copy(message.fields, as: inner, from: message.storage) }
    }
}

// MARK: - Repeated fields and maps

/// A repeated field or a map, for this library: what both share in the struct of a message.
public protocol _FieldCollection {
    /// An element in memory. For a map, a pointer to an entry.
    associatedtype _CElement
    var _storage: _MessageStorage? { get set }
    var _elements: UnsafeMutablePointer<_CElement>? { get }
    var count: Int { get }
    init(_storage: _MessageStorage?, elements: UnsafeMutablePointer<_CElement>?, count: Int)
}

extension _UntypedReference {
    @inlinable
    public subscript<Collection: _FieldCollection>(
        collection index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> Collection {
        _read {
            defer { extendLifetime(storage) }
            let field = table.pointee.fields + index
            let elements = place(of: field).load(as: UnsafeMutablePointer<Collection._CElement>?.self)
            yield Collection(_storage: storage, elements: elements, count: lifeline_count(field, fields))
        }
        @inline(__always) set {
            store(newValue._elements, count: newValue.count, from: newValue._storage, in: index, of: table)
        }
        _modify {
            var lent: Collection = lendCollection(index, of: table)
            defer { settle(lent._elements, count: lent.count, from: &lent._storage, in: index, of: table) }
            yield &lent
        }
    }

    // Separate, so that no local constant holds a second reference to the storage.
    @inlinable @inline(__always) mutating func lendCollection<Collection: _FieldCollection>(
        _ index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> Collection {
        let (elements, count) = takeElements(index, of: table)
        return Collection(
            _storage: withStorage { $0.lend() },
            elements: elements?.assumingMemoryBound(to: Collection._CElement.self),
            count: count
        )
    }
}

extension _UntypedReference {
    /// Stores a copy of elements.
    @usableFromInline mutating func store(
        _ elements: UnsafeRawPointer?,
        count: Int,
        from source: _MessageStorage?,
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        let field = table.pointee.fields + index
        _ = mutableFields(as: table)
        let copy = elements.flatMap { elements in
            withStorage { $0.copy(elements, count: count, of: field, from: source) }
        }
        set(copy, count: count, of: field)
    }

    /// Takes the elements of a repeated field or a map, to be lent and then settled.
    @usableFromInline mutating func takeElements(
        _ index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> (elements: UnsafeMutableRawPointer?, count: Int) {
        let field = table.pointee.fields + index
        _ = mutableFields(as: table)
        let elements = place(of: field).load(as: UnsafeMutableRawPointer?.self)
        let count = lifeline_count(field, fields)
        set(nil, count: 0, of: field)
        return (elements, count)
    }

    /// Puts elements that were lent, or their replacement, into the field.
    @usableFromInline mutating func settle(
        _ elements: UnsafeMutableRawPointer?,
        count: Int,
        from source: inout _MessageStorage?,
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        if withStorage({ $0.takeBack(&source) }) {
            set(elements, count: count, of: table.pointee.fields + index)
        } else {
            withStorage { $0.settleWithoutLoan() }
            store(elements, count: count, from: source, in: index, of: table)
        }
    }

    private func set(_ elements: UnsafeMutableRawPointer?, count: Int, of field: UnsafePointer<LifelineField>) {
        place(of: field).storeBytes(of: elements, as: UnsafeMutableRawPointer?.self)
        let quantifier = fields + Int(field.pointee.quantifier_offset)
        quantifier.storeBytes(of: count, as: Int.self)
    }
}
