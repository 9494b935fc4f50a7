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

// MARK: - Singular fields

// Generated code names a field by its index in the message's table, which says where the field is in the struct and
// what makes it present. What all fields need is written here once, because the compiler takes longer for each line of
// generated code.
extension _MessageReference {
    @inlinable @inline(__always) public mutating func assign(
        _ text: String,
        to index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        let place = makePresent(table.pointee.fields + index, of: table, as: _BytesValue.self)
        text.withUTF8Bytes { bytes in withStorage { $0.assign(bytes, to: &place.pointee) } }
    }

    @inlinable @inline(__always) public mutating func assign(
        _ bytes: [UInt8],
        to index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        bytes.withUnsafeBufferPointer { assign($0, to: index, of: table) }
    }

    /// Assigns bytes that are not in this message.
    @inlinable @inline(__always) public mutating func assign(
        _ bytes: UnsafeBufferPointer<UInt8>,
        to index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        let place = makePresent(table.pointee.fields + index, of: table, as: _BytesValue.self)
        withStorage { $0.assign(bytes, to: &place.pointee) }
    }

    /// A submessage. Changing it in place makes it present.
    @inlinable public subscript<M: Message>(message index: Int, of table: UnsafePointer<_MessageTable>) -> M {
        _read {
            defer { extendLifetime(storage) }
            let field = table.pointee.fields + index
            let isPresent = lifeline_is_present(field, fields)
            yield M(_reading: isPresent ? place(of: field, as: M._CValue.self).pointee : nil, in: self)
        }
        @inline(__always) set {
            let place = makePresent(table.pointee.fields + index, of: table, as: M._CValue.self)
            place.pointee = withStorage { M._store(newValue, in: $0) }
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
        let place = makePresent(table.pointee.fields + index, of: table, as: M._CValue.self)
        return withStorage { M._lend(&place.pointee, from: $0) }
    }

    /// Puts a submessage that was lent, or what has taken its place, into the field.
    @inlinable public mutating func settleMessage<M: Message>(
        _ message: inout M,
        _ lent: M._CValue,
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        let field = table.pointee.fields + index
        if let settled = withStorage({ M._settle(&message, lent, from: $0) }) {
            place(of: field, as: M._CValue.self).pointee = settled
        } else {
            _ = mutableFields(as: table)
            place(of: field, as: M._CValue.self).pointee = withStorage { M._store(message, in: $0) }
        }
    }

    /// Makes a field present, after the struct was made writable. Returns the place of its value.
    @inlinable @inline(__always) mutating func makePresent<Value>(
        _ field: UnsafePointer<LifelineField>,
        of table: UnsafePointer<_MessageTable>,
        as: Value.Type
    ) -> UnsafeMutablePointer<Value> {
        let fields = mutableFields(as: table)
        lifeline_make_present(field, fields)
        return place(of: field, as: Value.self)
    }

    @inlinable @inline(__always) func place<Value>(
        of field: UnsafePointer<LifelineField>,
        as: Value.Type
    ) -> UnsafeMutablePointer<Value> {
        (UnsafeMutableRawPointer(fields) + Int(field.pointee.offset)).assumingMemoryBound(to: Value.self)
    }
}

// MARK: - Repeated fields and maps

/// A repeated field or a map, for this library: what both have in common in the struct of a message.
public protocol _FieldCollection {
    /// An element in memory; of a map, a pointer to an entry.
    associatedtype _CElement
    var _storage: _MessageStorage? { get set }
    var _elements: UnsafeMutablePointer<_CElement>? { get }
    var count: Int { get }
    init(_storage: _MessageStorage?, elements: UnsafeMutablePointer<_CElement>?, count: Int)
    func _copied(into storage: _MessageStorage) -> Self
}

extension _MessageReference {
    @inlinable
    public subscript<Collection: _FieldCollection>(
        collection index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> Collection {
        _read {
            defer { extendLifetime(storage) }
            yield collection(table.pointee.fields + index, in: storage)
        }
        set {
            _ = mutableFields(as: table)
            store(newValue._copied(into: storage.unsafelyUnwrapped), in: table.pointee.fields + index)
        }
        _modify {
            _ = mutableFields(as: table)
            let field = table.pointee.fields + index
            var lent: Collection = collection(field, in: withStorage { $0.lend() })
            store(Collection(_storage: nil, elements: nil, count: 0), in: field)
            defer {
                if !withStorage({ $0.takeBack(&lent._storage) }) {
                    leaveLoan(as: table)
                    lent = lent._copied(into: storage.unsafelyUnwrapped)
                }
                store(lent, in: field)
            }
            yield &lent
        }
    }

    /// The elements that the struct has.
    @inlinable @inline(__always) func collection<Collection: _FieldCollection>(
        _ field: UnsafePointer<LifelineField>,
        in storage: _MessageStorage?
    ) -> Collection {
        let elements = place(of: field, as: UnsafeMutablePointer<Collection._CElement>?.self).pointee
        return Collection(_storage: storage, elements: elements, count: lifeline_count(field, fields))
    }

    /// Makes the struct's elements those of a collection in this message's arena.
    @inlinable @inline(__always) func store<Collection: _FieldCollection>(
        _ collection: Collection,
        in field: UnsafePointer<LifelineField>
    ) {
        place(of: field, as: UnsafeMutablePointer<Collection._CElement>?.self).pointee = collection._elements
        let quantifier = UnsafeMutableRawPointer(fields) + Int(field.pointee.quantifier_offset)
        quantifier.storeBytes(of: collection.count, as: Int.self)
    }

    /// Settles a loan whose child was replaced, and makes this message writable for a copy of the new child.
    @usableFromInline mutating func leaveLoan(as table: UnsafePointer<_MessageTable>) {
        withStorage { $0.settleWithoutLoan() }
        _ = mutableFields(as: table)
    }
}
