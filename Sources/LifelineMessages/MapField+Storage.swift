public import CProtobufC

// protoc-gen-c makes the struct of an entry from a message with the fields key = 1 and value = 2: the base that all
// messages begin with, the key and the value, each with the alignment of its type. Static assertions in generated code
// check this.
extension MapField {
    @inlinable static var keyOffset: Int {
        align(MemoryLayout<ProtobufCMessage>.size, to: MemoryLayout<Key._CValue>.alignment)
    }

    @inlinable static var valueOffset: Int {
        align(keyOffset + MemoryLayout<Key._CValue>.size, to: MemoryLayout<Value._CValue>.alignment)
    }

    @inlinable static var entrySize: Int {
        align(valueOffset + MemoryLayout<Value._CValue>.size, to: MemoryLayout<ProtobufCMessage>.alignment)
    }

    @inlinable static func align(_ offset: Int, to alignment: Int) -> Int {
        (offset + alignment - 1) & ~(alignment - 1)
    }

    @inlinable func key(at position: Int) -> Key._CValue {
        defer { extendLifetime(_storage) }
        return _elements.unsafelyUnwrapped[position].load(fromByteOffset: Self.keyOffset, as: Key._CValue.self)
    }

    @inlinable func valuePointer(at position: Int) -> UnsafeMutablePointer<Value._CValue> {
        (_elements.unsafelyUnwrapped[position] + Self.valueOffset).assumingMemoryBound(to: Value._CValue.self)
    }

    @inlinable func value(at position: Int) -> Value {
        defer { extendLifetime(_storage) }
        return Value._load(valuePointer(at: position).pointee, in: _storage.unsafelyUnwrapped)
    }
}

extension MapField {
    /// The position of `key`, or the one to insert it at.
    @inlinable func find(_ key: Key) -> (position: Int?, insertion: Int) {
        defer { extendLifetime(_storage) }
        return Key._withCValue(of: key) { sought in
            var range = 0..<count
            while !range.isEmpty {
                let middle = range.lowerBound + range.count / 2
                let candidate = self.key(at: middle)
                if Key._precedes(candidate, sought) {
                    range = (middle + 1)..<range.upperBound
                } else if Key._precedes(sought, candidate) {
                    range = range.lowerBound..<middle
                } else {
                    return (middle, middle)
                }
            }
            return (nil, range.lowerBound)
        }
    }

    /// Inserts an entry with a new key at its place in the order. The storage must be unique.
    @inlinable mutating func insert(_ key: Key, _ value: Value, at position: Int) {
        let entry = withStorage { Self.makeEntry(Key._store(key, in: $0), Value._store(value, in: $0), in: $0) }
        reserve(count + 1)
        let gap = _elements.unsafelyUnwrapped + position
        (gap + 1).update(from: gap, count: count - position)
        gap.pointee = entry
        _count += 1
    }

    @inlinable static func makeEntry(
        _ key: Key._CValue,
        _ value: Value._CValue,
        in storage: _BorrowedStorage
    ) -> UnsafeMutableRawPointer {
        let entry = storage.allocate(byteCount: entrySize)
        entry.initializeMemory(as: UInt8.self, repeating: 0, count: entrySize)
        entry.storeBytes(of: key, toByteOffset: keyOffset, as: Key._CValue.self)
        entry.storeBytes(of: value, toByteOffset: valueOffset, as: Value._CValue.self)
        return entry
    }

    /// Calls `body` with the storage, after `makeUnique`.
    @inlinable @inline(__always) func withStorage<Result>(_ body: (_BorrowedStorage) -> Result) -> Result {
        body(_BorrowedStorage(_storage.unsafelyUnwrapped))
    }

    @inlinable mutating func makeUnique() {
        if isWritable(&_storage) { return }
        self = _MessageStorage.filled(byteCount: count * (Self.entrySize + 8) + 256) { _copied(into: $0) }
    }

    @inlinable mutating func reserve(_ capacity: Int) {
        let stride = MemoryLayout<UnsafeMutableRawPointer>.stride
        let reserved = withStorage { $0.reserve(_elements, count: count, capacity: capacity, stride: stride) }
        _elements = reserved.assumingMemoryBound(to: UnsafeMutableRawPointer.self)
    }

    /// A deep copy, in `storage`.
    @inlinable func _copied(into storage: _MessageStorage) -> MapField {
        var copy = MapField(_storage: storage, elements: nil, count: 0)
        guard let _storage, count > 0 else { return copy }
        defer { extendLifetime(_storage) }
        copy.reserve(count)
        let copies = copy._elements.unsafelyUnwrapped
        copy.withStorage { target in
            for position in 0..<count {
                let key = Key._copy(key(at: position), from: _storage, into: target)
                let value = Value._copy(valuePointer(at: position).pointee, from: _storage, into: target)
                copies[position] = Self.makeEntry(key, value, in: target)
            }
        }
        copy._count = count
        return copy
    }
}

// MARK: - Keys

extension MapKey where Self: _PlainFieldElement & Comparable {
    @inlinable public static func _precedes(_ left: Self, _ right: Self) -> Bool { left < right }
    @inlinable public static func _withCValue<Result>(of key: Self, _ body: (Self) -> Result) -> Result { body(key) }
}

extension Int32: MapKey {}
extension Int64: MapKey {}
extension UInt32: MapKey {}
extension UInt64: MapKey {}

extension Bool: MapKey {
    @inlinable public static func _precedes(_ left: protobuf_c_boolean, _ right: protobuf_c_boolean) -> Bool {
        left == 0 && right != 0
    }

    @inlinable public static func _withCValue<Result>(
        of key: Bool,
        _ body: (protobuf_c_boolean) -> Result
    ) -> Result {
        body(key ? 1 : 0)
    }
}

extension String: MapKey {
    @inlinable public static func _precedes(_ left: _BytesValue, _ right: _BytesValue) -> Bool {
        UnsafeBufferPointer(start: left.data, count: left.len)
            .lexicographicallyPrecedes(UnsafeBufferPointer(start: right.data, count: right.len))
    }

    @inlinable public static func _withCValue<Result>(of key: String, _ body: (_BytesValue) -> Result) -> Result {
        key.withUTF8Bytes { bytes in
            body(_BytesValue(len: bytes.count, data: UnsafeMutablePointer(mutating: bytes.baseAddress)))
        }
    }
}
