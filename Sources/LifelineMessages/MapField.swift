/// A key of a map: an integer, `Bool` or `String`.
public protocol MapKey: FieldElement {
    /// Whether `left` comes before `right` in a map. For this library.
    static func _precedes(_ left: _CValue, _ right: _CValue) -> Bool

    /// Calls `body` with the C value of `key`, which is valid during the call. For this library.
    static func _withCValue<Result>(of key: Self, _ body: (_CValue) -> Result) -> Result
}

/// The entries of a map field: a collection of key-value pairs with the value semantics of a dictionary.
///
/// Entries are in the order of their keys (numbers by value, text by its UTF-8 bytes). So a lookup takes logarithmic
/// time without a dictionary beside the field, and equal maps have the same encoding. Inserting moves the entries after
/// the new one, one pointer each. `Dictionary(map)` makes a dictionary. Only `map[key, default: value]` changes a
/// message in place; `map[key]` copies it.
@frozen public struct MapField<Key: MapKey, Value: FieldElement>: @unchecked Sendable {
    // @unchecked Sendable for the same reason as _UntypedReference: `_elements` points into `_storage`, and is written
    // to only while `self` holds the one reference to it. Keys and values are Sendable themselves. See
    // docs/message-memory.md.

    /// Nil until the first entry is added.
    public var _storage: _MessageStorage?
    /// Pointers to entry structs, which begin with a ProtobufCMessage. Preceded by a LifelineArrayHeader.
    public var _elements: UnsafeMutablePointer<UnsafeMutableRawPointer>?
    @usableFromInline var _count: Int
    /// The number of entries.
    @inlinable public var count: Int { _count }

    @inlinable public init(
        _storage: _MessageStorage?,
        elements: UnsafeMutablePointer<UnsafeMutableRawPointer>?,
        count: Int
    ) {
        self._storage = _storage
        self._elements = elements
        self._count = count
    }

    /// The entries of a field of `parent`. For generated code.
    @inlinable public init<Entry>(
        _in parent: _UntypedReference,
        entries: UnsafeMutablePointer<UnsafeMutablePointer<Entry>?>?,
        count: Int
    ) {
        let elements = UnsafeMutableRawPointer(entries)?.assumingMemoryBound(to: UnsafeMutableRawPointer.self)
        self.init(_storage: parent.storage, elements: elements, count: count)
    }
}

extension MapField: _FieldCollection {}

// MARK: - Dictionary

extension MapField {
    /// Makes an empty map.
    @inlinable public init() {
        self.init(_storage: nil, elements: nil, count: 0)
    }

    /// A map of `pairs`. If a key occurs more than once, its last value counts.
    @inlinable public init(_ pairs: some Sequence<(Key, Value)>) {
        self.init()
        for (key, value) in pairs { updateValue(value, forKey: key) }
    }

    /// A map with the entries of `dictionary`.
    @inlinable public init(_ dictionary: [Key: Value]) {
        self.init()
        update(dictionary)
    }

    /// Sets the values of keys. Goes in the order of keys, so that those of an empty map are added at the end.
    @inlinable mutating func update(_ dictionary: [Key: Value]) {
        let sorted = dictionary.sorted { left, right in
            Key._withCValue(of: left.key) { left in
                Key._withCValue(of: right.key) { right in Key._precedes(left, right) }
            }
        }
        for (key, value) in sorted { updateValue(value, forKey: key) }
    }

    /// Removes the entries at `positions`, which ascend.
    @inlinable mutating func remove(at positions: [Int]) {
        guard let first = positions.first else { return }
        makeUnique()
        let elements = _elements.unsafelyUnwrapped
        var (kept, next) = (first, 0)
        for position in first..<count {
            if next < positions.count, positions[next] == position {
                next += 1
            } else {
                elements[kept] = elements[position]
                kept += 1
            }
        }
        _count = kept
    }

    /// The value of `key`. Setting nil removes the key.
    @inlinable public subscript(key: Key) -> Value? {
        get { find(key).position.map { value(at: $0) } }
        set {
            if let newValue { updateValue(newValue, forKey: key) } else { removeValue(forKey: key) }
        }
    }

    /// The value of `key`, or `defaultValue` if there is none. Changing the default in place inserts it.
    @inlinable public subscript(key: Key, default defaultValue: @autoclosure () -> Value) -> Value {
        get { self[key] ?? defaultValue() }
        _modify {
            makeUnique()
            let found = find(key)
            let position = found.position ?? found.insertion
            if found.position == nil { insert(key, defaultValue(), at: position) }
            var (value, lent) = withStorage { Value._lend(&valuePointer(at: position).pointee, from: $0) }
            defer {
                if let settled = withStorage({ Value._settle(&value, lent, from: $0) }) {
                    valuePointer(at: position).pointee = settled
                } else {
                    makeUnique()
                    valuePointer(at: position).pointee = withStorage { Value._store(value, in: $0) }
                }
            }
            yield &value
        }
    }

    /// Sets the value of `key`. Returns the old value.
    @discardableResult
    @inlinable public mutating func updateValue(_ value: Value, forKey key: Key) -> Value? {
        makeUnique()
        let found = find(key)
        guard let position = found.position else {
            insert(key, value, at: found.insertion)
            return nil
        }
        let old = self.value(at: position)
        valuePointer(at: position).pointee = withStorage { Value._store(value, in: $0) }
        return old
    }

    /// Removes `key`. Returns its value.
    @discardableResult
    @inlinable public mutating func removeValue(forKey key: Key) -> Value? {
        guard let position = find(key).position else { return nil }
        makeUnique()
        let old = value(at: position)
        let gap = _elements.unsafelyUnwrapped + position
        gap.update(from: gap + 1, count: count - position - 1)
        _count -= 1
        return old
    }

    /// Removes all entries.
    @inlinable public mutating func removeAll() { self = MapField() }

    /// Adds entries. If the map already has a key, `combine` chooses the value from the old and the new one.
    @inlinable public mutating func merge<Failure: Error>(
        _ entries: some Sequence<(key: Key, value: Value)>,
        uniquingKeysWith combine: (Value, Value) throws(Failure) -> Value
    ) throws(Failure) {
        for (key, value) in entries {
            if let old = self[key] {
                updateValue(try combine(old, value), forKey: key)
            } else {
                updateValue(value, forKey: key)
            }
        }
    }

    /// A map with added entries. If the map already has a key, `combine` chooses the value from the old and the new
    /// one.
    @inlinable public func merging<Failure: Error>(
        _ entries: some Sequence<(key: Key, value: Value)>,
        uniquingKeysWith combine: (Value, Value) throws(Failure) -> Value
    ) throws(Failure) -> MapField {
        var merged = self
        try merged.merge(entries, uniquingKeysWith: combine)
        return merged
    }

    /// A map with the same keys, and the results of `transform` as values.
    @inlinable public func mapValues<Mapped: FieldElement, Failure: Error>(
        _ transform: (Value) throws(Failure) -> Mapped
    ) throws(Failure) -> MapField<Key, Mapped> {
        try compactMapValues(transform)
    }

    /// A map with the keys for which `transform` returns a value, and these values.
    @inlinable public func compactMapValues<Mapped: FieldElement, Failure: Error>(
        _ transform: (Value) throws(Failure) -> Mapped?
    ) throws(Failure) -> MapField<Key, Mapped> {
        var mapped = MapField<Key, Mapped>()
        // In the order of keys, so that each entry goes to the end.
        for (key, value) in self {
            if let value = try transform(value) { mapped.updateValue(value, forKey: key) }
        }
        return mapped
    }

    /// The keys, in ascending order.
    public var keys: some RandomAccessCollection<Key> { lazy.map(\.key) }
    /// The values, in the order of their keys.
    public var values: some RandomAccessCollection<Value> { lazy.map(\.value) }
}

extension Dictionary {
    /// The entries of `map`. Keys that differ only in their bytes, such as the two forms of "é", are equal as Strings:
    /// the value of the last one counts.
    @inlinable public init(_ map: MapField<Key, Value>) where Key: MapKey, Value: FieldElement {
        self.init(minimumCapacity: map.count)
        for (key, value) in map { self[key] = value }
    }
}

// MARK: - Access without copies

extension MapField where Key == String, Value == String {
    /// Calls `body` with the text of each key and value, in the order of keys, without making Strings of them.
    @inlinable public func forEachUTF8Span<Failure: Error>(
        _ body: (_ key: UTF8Span, _ value: UTF8Span) throws(Failure) -> Void
    ) throws(Failure) {
        guard let _storage else { return }
        defer { extendLifetime(_storage) }
        let isValid = !_storage.mayHoldMalformedText
        for position in 0..<count {
            try key(at: position).withUTF8Span(isValid: isValid) { (key) throws(Failure) in
                try valuePointer(at: position).pointee.withUTF8Span(isValid: isValid) { (value) throws(Failure) in
                    try body(key, value)
                }
            }
        }
    }
}

// MARK: - Collection

extension MapField: RandomAccessCollection {
    /// The position of an entry in the order of keys.
    public struct Index: Comparable, Hashable, Sendable {
        @usableFromInline let position: Int
        @inlinable init(position: Int) { self.position = position }
        @inlinable public static func < (left: Index, right: Index) -> Bool { left.position < right.position }
    }

    /// Visits the entries, with one reference to their memory for all of them.
    @frozen public struct Iterator: IteratorProtocol {
        @usableFromInline let map: MapField
        @usableFromInline var position = 0

        @inlinable init(_ map: MapField) { self.map = map }

        @inlinable public mutating func next() -> (key: Key, value: Value)? {
            guard position < map.count else { return nil }
            defer { position &+= 1 }
            return map.entry(at: position)
        }
    }

    @inlinable public func makeIterator() -> Iterator { Iterator(self) }

    @inlinable public var startIndex: Index { Index(position: 0) }
    @inlinable public var endIndex: Index { Index(position: count) }
    @inlinable public func index(after index: Index) -> Index { Index(position: index.position + 1) }
    @inlinable public func index(before index: Index) -> Index { Index(position: index.position - 1) }
    @inlinable public func index(_ index: Index, offsetBy distance: Int) -> Index {
        Index(position: index.position + distance)
    }
    @inlinable public func distance(from start: Index, to end: Index) -> Int { end.position - start.position }

    @inlinable public subscript(index: Index) -> (key: Key, value: Value) {
        precondition(index.position >= 0 && index.position < count, "A map's index is out of bounds")
        return entry(at: index.position)
    }

    @inlinable func entry(at position: Int) -> (key: Key, value: Value) {
        defer { extendLifetime(_storage) }
        return (Key._load(key(at: position), in: _storage.unsafelyUnwrapped), value(at: position))
    }
}

extension MapField: ExpressibleByDictionaryLiteral {
    @inlinable public init(dictionaryLiteral elements: (Key, Value)...) {
        self.init(elements)
    }
}

/// Keys and values are compared as in messages: numbers by their bits and text by its bytes. See ``Message``.
extension MapField: Hashable {
    @inlinable public static func == (left: MapField, right: MapField) -> Bool {
        guard left.count == right.count else { return false }
        if left._elements == right._elements { return true }
        defer { extendLifetime((left, right)) }
        for position in 0..<left.count {
            guard Key._areEqual(left.key(at: position), right.key(at: position)),
                Value._areEqual(
                    left.valuePointer(at: position).pointee,
                    right.valuePointer(at: position).pointee
                )
            else { return false }
        }
        return true
    }

    @inlinable public func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        for (key, value) in self {
            hasher.combine(key)
            hasher.combine(value)
        }
    }
}

extension MapField: CustomStringConvertible {
    public var description: String {
        isEmpty ? "[:]" : "[" + map { "\($0.key): \($0.value)" }.joined(separator: ", ") + "]"
    }
}
