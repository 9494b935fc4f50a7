public import CLifelineMessages

// For messages with the types of swift-protobuf: arrays for repeated fields, dictionaries for maps. Stores only the
// differences to the field, so that other messages are not copied.

extension _UntypedReference {
    /// A repeated field, as a new array.
    @inlinable
    public subscript<Element: FieldElement>(
        array index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> [Element] {
        let list: RepeatedField<Element> = self[collection: index, of: table]
        return list.withContiguousStorageIfAvailable { Array($0) } ?? Array(list)
    }

    /// A map, as a new dictionary.
    @inlinable
    public subscript<Key: MapKey, Value: FieldElement>(
        dictionary index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> [Key: Value] {
        Dictionary(self[collection: index, of: table] as MapField<Key, Value>)
    }

    /// Stores the elements that differ from those of the field. `array` is emptied first: messages in it may share this
    /// message's memory, which would then be copied.
    @inlinable public mutating func store<Element: FieldElement>(
        _ array: inout [Element],
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        let changes = changes(to: array, in: index, of: table)
        array = []
        if changes.isEmpty { return }
        Self.change(&self[collection: index, of: table]) { (list: inout RepeatedField<Element>) in
            if changes.count < list.count { list.removeLast(list.count - changes.count) }
            for (position, element) in changes.replaced { list[position] = element }
            list.append(contentsOf: changes.added)
        }
    }

    /// Stores the entries that differ from those of the field. `dictionary` is emptied first, for the same reason.
    @inlinable public mutating func store<Key: MapKey, Value: FieldElement>(
        _ dictionary: inout [Key: Value],
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) {
        let changes = changes(to: dictionary, in: index, of: table)
        dictionary = [:]
        if changes.isEmpty { return }
        Self.change(&self[collection: index, of: table]) { (map: inout MapField<Key, Value>) in
            map.remove(at: changes.removed)
            map.update(changes.set)
        }
    }

    @inlinable func changes<Element: FieldElement>(
        to array: [Element],
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> _ArrayChanges<Element> {
        _ArrayChanges(from: self[collection: index, of: table], to: array)
    }

    @inlinable func changes<Key: MapKey, Value: FieldElement>(
        to dictionary: [Key: Value],
        in index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> _DictionaryChanges<Key, Value> {
        _DictionaryChanges(from: self[collection: index, of: table], to: dictionary)
    }

    /// Static, because a method would hold a reference to the memory, which would then be copied.
    @inlinable static func change<Collection: _FieldCollection>(
        _ collection: inout Collection,
        _ body: (inout Collection) -> Void
    ) {
        body(&collection)
    }
}

/// The changes that make a repeated field equal to an array.
@usableFromInline struct _ArrayChanges<Element: FieldElement> {
    /// The number of elements of the field that remain.
    @usableFromInline let count: Int
    @usableFromInline var replaced: [(position: Int, element: Element)] = []
    @usableFromInline let added: [Element]
    @usableFromInline let isShorter: Bool

    @inlinable var isEmpty: Bool { replaced.isEmpty && added.isEmpty && !isShorter }

    @inlinable init(from list: RepeatedField<Element>, to array: [Element]) {
        count = min(list.count, array.count)
        isShorter = array.count < list.count
        added = Array(array[count...])
        guard let storage = list._storage, let elements = list._elements else { return }
        defer { extendLifetime(storage) }
        for position in 0..<count where !Element._isStored(array[position], as: elements[position], in: storage) {
            replaced.append((position, array[position]))
        }
    }
}

/// The changes that make a map equal to a dictionary.
@usableFromInline struct _DictionaryChanges<Key: MapKey, Value: FieldElement> {
    /// The positions of entries, ascending.
    @usableFromInline var removed: [Int] = []
    @usableFromInline var set: [Key: Value]

    @inlinable var isEmpty: Bool { removed.isEmpty && set.isEmpty }

    @inlinable init(from map: MapField<Key, Value>, to dictionary: [Key: Value]) {
        set = dictionary
        guard let storage = map._storage else { return }
        defer { extendLifetime(storage) }
        for position in 0..<map.count {
            let key = Key._load(map.key(at: position), in: storage)
            // Keys that differ only in their bytes are equal as Strings.
            guard let index = set.index(forKey: key),
                Key._isStored(set[index].key, as: map.key(at: position), in: storage)
            else {
                removed.append(position)
                continue
            }
            if Value._isStored(set[index].value, as: map.valuePointer(at: position).pointee, in: storage) {
                set.remove(at: index)
            } else if map.find(key).position != position {
                // A key that is not UTF-8, and reads as a different key.
                removed.append(position)
            }
        }
    }
}
