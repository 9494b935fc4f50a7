internal import CLifelineMessages
public import LifelineMessages

extension DynamicMessage {
    /// The number of elements of a repeated field, or of entries of a map; `field` must be one of the two.
    public func count(of field: FieldDescriptor) -> Int {
        precondition(field.isRepeated, "\(field.fullName) is no repeated field")
        return isUnusable(field) ? 0 : read(field) { $0.count(of: $1) }
    }

    /// The element at `index` of a repeated field, which must exist.
    public func element(of field: FieldDescriptor, at index: Int) -> FieldValue {
        precondition(field.isRepeated && !field.isMap, "\(field.fullName) is no repeated field")
        return read(field) { content, entry in element(of: field, at: index, content, entry) }
    }

    func element(
        of field: FieldDescriptor,
        at index: Int,
        _ content: TableMessage,
        _ entry: TableMessage.Field
    ) -> FieldValue {
        content.withValue(of: entry, at: index) { load($0, as: field, in: $1) }
    }

    /// Adds an element to a repeated field. Throws as ``set(_:to:)-(FieldDescriptor,_)`` does.
    public mutating func append(_ value: FieldValue, to field: FieldDescriptor) throws(MessageError) {
        try checkElement(value, of: field)
        change(field) { content, entry in
            content.insert(into: entry, at: content.count(of: entry)) {
                Self.store(value, at: $0, as: field.type, in: $1)
            }
        }
    }

    /// Sets the element at `index` of a repeated field, which must exist. Throws as ``set(_:to:)-(FieldDescriptor,_)``
    /// does.
    public mutating func setElement(
        of field: FieldDescriptor,
        at index: Int,
        to value: FieldValue
    ) throws(MessageError) {
        try checkElement(value, of: field)
        change(field) { content, entry in
            content.withMutableElement(of: entry, at: index) { Self.store(value, at: $0, as: field.type, in: $1) }
        }
    }

    /// Removes the element at `index` of a repeated field, which must exist.
    public mutating func removeElement(of field: FieldDescriptor, at index: Int) {
        precondition(field.isRepeated && !field.isMap, "\(field.fullName) is no repeated field")
        change(field) { content, entry in content.remove(from: entry, at: index) }
    }

    /// The value of a map's key; nil if it has no such key.
    public func value(of field: FieldDescriptor, forKey key: FieldValue) -> FieldValue? {
        guard let (_, isFound) = try? position(of: key, in: field), isFound.isFound else { return nil }
        return keyAndValue(of: field, at: isFound.index).1
    }

    /// Sets the value of a map's key, or removes the key if `value` is nil. Throws as
    /// ``set(_:to:)-(FieldDescriptor,_)`` does.
    public mutating func setValue(
        of field: FieldDescriptor,
        forKey key: FieldValue,
        to value: FieldValue?
    ) throws(MessageError) {
        let (mapped, place) = try position(of: key, in: field)
        if let value { try check(value, for: mapped) }
        if place.isFound { content.remove(from: entry(of: field), at: place.index) }
        if let value { insert(key, value, into: field, at: place.index) }
    }

    /// The field of a map's values, and the index of the entry with `key`, or the one to insert it at.
    private func position(
        of key: FieldValue,
        in field: FieldDescriptor
    ) throws(MessageError) -> (FieldDescriptor, (index: Int, isFound: Bool)) {
        try checkMembership(of: field)
        guard let (keyField, mapped) = keyAndValue(of: field) else {
            throw MessageError(code: .unexpectedValue, message: "\(field.fullName) is no map.")
        }
        try check(key, for: keyField)
        let place =
            switch key {
            case .bool(let key): position(of: key, in: field)
            case .int32(let key): position(of: key, in: field)
            case .int64(let key): position(of: key, in: field)
            case .uint32(let key): position(of: key, in: field)
            case .uint64(let key): position(of: key, in: field)
            case .string(let key): position(of: key, in: field)
            default: preconditionFailure("A map has no keys of this type")
            }
        return (mapped, place)
    }

    /// Compares the stored bytes of keys, because different keys that are not UTF-8 may read as the same text.
    private func position<Key: MapKey>(of key: Key, in field: FieldDescriptor) -> (index: Int, isFound: Bool) {
        let (entry, offset) = (entry(of: field), Int(messageType(of: field).table.pointee.fields[0].offset))
        let stored = { [content] index in
            content.withValue(of: entry, at: index) { place, _ in
                place.load(as: UnsafeRawPointer.self).load(fromByteOffset: offset, as: Key._CValue.self)
            }
        }
        return Key._withCValue(of: key) { sought in
            let indices = 0..<content.count(of: entry)
            let index = indices.partitioningIndex { !Key._precedes(stored($0), sought) }
            return (index, index < indices.upperBound && !Key._precedes(sought, stored(index)))
        }
    }

    mutating func insert(
        _ key: FieldValue,
        _ value: FieldValue,
        into field: FieldDescriptor,
        at index: Int
    ) {
        guard let (keyField, mapped) = keyAndValue(of: field), let type = field.messageType else { return }
        let entries = type.table.fields
        content.insert(into: entry(of: field), at: index) { place, storage in
            let entry = storage.create(type.table)
            Self.store(key, at: entry + Int(entries[0].offset), as: keyField.type, in: storage)
            Self.store(value, at: entry + Int(entries[1].offset), as: mapped.type, in: storage)
            place.storeBytes(of: entry, as: UnsafeMutableRawPointer.self)
        }
    }

    private func mapEntry(of field: FieldDescriptor, at index: Int) -> DynamicMessage {
        DynamicMessage(messageType(of: field), content.message(of: entry(of: field), at: index))
    }

    func keyAndValue(of field: FieldDescriptor, at index: Int) -> (FieldValue, FieldValue) {
        guard let (key, value) = keyAndValue(of: field) else { preconditionFailure("\(field.fullName) is no map") }
        let entry = mapEntry(of: field, at: index)
        return (entry[key], entry[value])
    }

    func keyAndValue(of field: FieldDescriptor) -> (FieldDescriptor, FieldDescriptor)? {
        guard let key = field.mapKey, let value = field.mapValue else { return nil }
        return (key, value)
    }
}
