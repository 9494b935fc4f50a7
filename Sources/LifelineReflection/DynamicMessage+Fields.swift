internal import CLifelineMessages
internal import CProtobufC
public import LifelineMessages

// MARK: - Whole fields

extension DynamicMessage {
    /// The value of the field with this name: its default when it is not set, and for a submessage an empty one. Nil when
    /// the type has no such field.
    ///
    /// Setting nil clears the field. Setting a value of another type than the field's, or a field that does not exist, is a
    /// mistake of the program and ends it; ``set(_:to:)-(String,_)`` throws instead.
    public subscript(name: String) -> FieldValue? {
        get { descriptor.field(named: name).map { self[$0] } }
        set {
            do throws(MessageError) {
                if let newValue { try set(name, to: newValue) } else { clear(try field(named: name)) }
            } catch {
                preconditionFailure(error.message)
            }
        }
    }

    /// The value of the field with this number. See ``subscript(_:)-(String)``.
    public subscript(number number: Int) -> FieldValue? { descriptor.field(number: number).map { self[$0] } }

    /// The value of a field, which must be of this message's type: its default when it is not set, and for a submessage
    /// an empty one. Fields may be extensions here and below.
    public subscript(field: FieldDescriptor) -> FieldValue {
        read(field) { content, entry in
            if field.isMap {
                return .map(
                    Dictionary(
                        (0..<content.count(of: entry)).map { keyAndValue(of: field, at: $0) },
                        uniquingKeysWith: { $1 }
                    )
                )
            }
            if field.isRepeated {
                return .list((0..<content.count(of: entry)).map { element(of: field, at: $0, content, entry) })
            }
            guard content.isPresent(entry) else {
                return field.defaultValue ?? .message(DynamicMessage(messageType(of: field)))
            }
            return content.withValue(of: entry) { load($0, as: field, in: $1) }
        }
    }

    /// Sets the field with this name. See ``set(_:to:)-(FieldDescriptor,_)``.
    public mutating func set(_ name: String, to value: FieldValue) throws(MessageError) {
        try set(field(named: name), to: value)
    }

    /// Sets a field of this message's type. In a oneof, the other fields are cleared.
    ///
    /// - Throws: `MessageError`: `unexpectedValue` for a value of another type than the field's, or a message with another
    ///   descriptor, or a number that a closed enum does not declare; `unknownField` for a field of another message.
    public mutating func set(_ field: FieldDescriptor, to value: FieldValue) throws(MessageError) {
        try checkMembership(of: field)
        switch value {
        case .map(let entries) where field.isMap:
            guard let (key, mapped) = keyAndValue(of: field) else { return }
            for (newKey, newValue) in entries {
                try check(newKey, for: key)
                try check(newValue, for: mapped)
            }
            clear(field)
            let sorted = entries.sorted { $0.key.precedes($1.key) }
            for (index, (newKey, newValue)) in sorted.enumerated() {
                insert(newKey, newValue, into: field, at: index)
            }
        case .list(let elements) where field.isRepeated && !field.isMap:
            for element in elements { try check(element, for: field) }
            change(field) { content, entry in
                content.clear(entry)
                for (index, element) in elements.enumerated() {
                    content.insert(into: entry, at: index) { Self.store(element, at: $0, as: field.type, in: $1) }
                }
            }
        default:
            if field.isRepeated { throw mismatch(value, field) }
            try check(value, for: field)
            change(field) { content, entry in
                content.withMutableValue(of: entry) { Self.store(value, at: $0, as: field.type, in: $1) }
            }
        }
    }

    /// Whether a field of this message's type is set; whether a repeated field or a map has elements.
    public func has(_ field: FieldDescriptor) -> Bool { read(field) { $0.isPresent($1) } }

    /// Whether the field with this name is set. False when the type has no such field.
    public func has(_ name: String) -> Bool { descriptor.field(named: name).map(has) ?? false }

    /// Clears a field of this message's type; it then reads as its default.
    public mutating func clear(_ field: FieldDescriptor) {
        change(field) { content, entry in content.clear(entry) }
    }

    /// The fields that are set, in the order of their numbers, without extensions: ``presentExtensions(of:)``.
    public var presentFields: [FieldDescriptor] {
        let table = descriptor.table
        return table.fields.indices.filter { content.isPresent(table.pointee.fields + $0) }.map(descriptor.field(at:))
    }

    /// The extensions that are set, of those that the pool knows.
    public func presentExtensions(of pool: DescriptorPool) -> [FieldDescriptor] {
        pool.extensions(of: descriptor).filter { isMember($0) && has($0) }
    }

    /// The field of a oneof that is set; nil when none is.
    public func presentField(of oneof: OneofDescriptor) -> FieldDescriptor? { oneof.fields.first(where: has) }

    /// Calls `body` with a submessage, to be changed in place. A field that is not set is set first.
    ///
    /// - Throws: `MessageError` as ``set(_:to:)-(FieldDescriptor,_)`` does for a field that is no submessage;
    ///   `typeMismatch` when `body` replaces the submessage by one with another descriptor, which leaves it empty; and
    ///   the errors of `body`.
    public mutating func update<Result>(
        _ field: FieldDescriptor,
        _ body: (inout DynamicMessage) throws -> Result
    ) throws -> Result {
        try update(field, at: nil, body)
    }

    /// Calls `body` with the message at `index` of a repeated field, to be changed in place. Throws as
    /// ``update(_:_:)`` does.
    public mutating func updateElement<Result>(
        of field: FieldDescriptor,
        at index: Int,
        _ body: (inout DynamicMessage) throws -> Result
    ) throws -> Result {
        try update(field, at: index, body)
    }

    private mutating func update<Result>(
        _ field: FieldDescriptor,
        at index: Int?,
        _ body: (inout DynamicMessage) throws -> Result
    ) throws -> Result {
        try checkMembership(of: field)
        guard let type = field.messageType, !field.isMap, field.isRepeated == (index != nil) else {
            throw MessageError(
                code: .unexpectedValue,
                message: "\(field.fullName) is no \(index == nil ? "submessage" : "repeated field of messages")."
            )
        }
        return try change(field) { holder, entry in
            try holder.withMutableMessage(of: entry, at: index) { content in
                var message = DynamicMessage(type, content)
                // Another reference to the storage would make each change a copy.
                content = TableMessage(type.table)
                defer { if message.content.table == type.table { content = message.content } }
                let result = try body(&message)
                guard message.content.table == type.table else {
                    throw MessageError(
                        code: .typeMismatch,
                        message:
                            "\(field.fullName) is \(type.fullName), and cannot be a \(message.descriptor.fullName)."
                    )
                }
                return result
            }
        }
    }
}

// MARK: - Elements

extension DynamicMessage {
    /// The number of elements of a repeated field, or of entries of a map.
    public func count(of field: FieldDescriptor) -> Int { read(field) { $0.count(of: $1) } }

    /// The element at `index` of a repeated field, which must be there.
    public func element(of field: FieldDescriptor, at index: Int) -> FieldValue {
        precondition(field.isRepeated && !field.isMap, "\(field.fullName) is no repeated field")
        return read(field) { content, entry in element(of: field, at: index, content, entry) }
    }

    private func element(
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

    /// Sets the element at `index` of a repeated field, which must be there. Throws as
    /// ``set(_:to:)-(FieldDescriptor,_)`` does.
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

    /// Removes the element at `index` of a repeated field, which must be there.
    public mutating func removeElement(of field: FieldDescriptor, at index: Int) {
        precondition(field.isRepeated && !field.isMap, "\(field.fullName) is no repeated field")
        change(field) { content, entry in content.remove(from: entry, at: index) }
    }

    /// The value of a map's key; nil when it has no such key.
    public func value(of field: FieldDescriptor, forKey key: FieldValue) -> FieldValue? {
        guard let (_, isFound) = try? position(of: key, in: field), isFound.isFound else { return nil }
        return keyAndValue(of: field, at: isFound.index).1
    }

    /// Sets the value of a map's key, or removes the key when `value` is nil. Throws as
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

    /// The field of a map's values, and the index at which an entry with `key` is, or would have to be.
    private func position(
        of key: FieldValue,
        in field: FieldDescriptor
    ) throws(MessageError) -> (FieldDescriptor, (index: Int, isFound: Bool)) {
        try checkMembership(of: field)
        guard let (keyField, mapped) = keyAndValue(of: field) else {
            throw MessageError(code: .unexpectedValue, message: "\(field.fullName) is no map.")
        }
        try check(key, for: keyField)
        let entry = entry(of: field)
        var range = 0..<content.count(of: entry)
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            let other = mapEntry(of: field, at: middle)[keyField]
            if other.precedes(key) {
                range = (middle + 1)..<range.upperBound
            } else if key.precedes(other) {
                range = range.lowerBound..<middle
            } else {
                return (mapped, (middle, true))
            }
        }
        return (mapped, (range.lowerBound, false))
    }

    private mutating func insert(
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

    private func keyAndValue(of field: FieldDescriptor, at index: Int) -> (FieldValue, FieldValue) {
        guard let (key, value) = keyAndValue(of: field) else { preconditionFailure("\(field.fullName) is no map") }
        let entry = mapEntry(of: field, at: index)
        return (entry[key], entry[value])
    }

    private func keyAndValue(of field: FieldDescriptor) -> (FieldDescriptor, FieldDescriptor)? {
        guard let key = field.mapKey, let value = field.mapValue else { return nil }
        return (key, value)
    }
}

// MARK: - Checks

extension DynamicMessage {
    private func field(named name: String) throws(MessageError) -> FieldDescriptor {
        if let field = descriptor.field(named: name) { return field }
        throw MessageError(
            code: .unknownField,
            message: "\(descriptor.fullName) has no field \(name.textFormatLiteral)."
        )
    }

    private func checkMembership(of field: FieldDescriptor) throws(MessageError) {
        if !isMember(field) {
            throw MessageError(
                code: .unknownField,
                message: "\(field.fullName) is no field of this \(descriptor.fullName)."
                    + (field.containingType?.fullName == descriptor.fullName
                        ? " It is one of another pool's, for which DynamicMessage.message(as:) makes a copy." : "")
            )
        }
    }

    private func isMember(_ field: FieldDescriptor) -> Bool {
        if field.isExtension {
            return field.extensionTable != nil && field.containingType?.table == descriptor.table
        }
        return field.storage === descriptor.storage
            && descriptor.storage.messages[descriptor.index].fields.contains(field.index)
    }

    private func checkElement(_ value: FieldValue, of field: FieldDescriptor) throws(MessageError) {
        try checkMembership(of: field)
        if !field.isRepeated || field.isMap { throw mismatch(value, field) }
        try check(value, for: field)
    }

    /// Checks that a value can be that of a singular field, or an element of a repeated one.
    private func check(_ value: FieldValue, for field: FieldDescriptor) throws(MessageError) {
        let isOfType =
            switch (value, field.type) {
            case (.bool, .bool), (.string, .string), (.bytes, .bytes), (.float, .float), (.double, .double): true
            case (.int32, .int32), (.int32, .sint32), (.int32, .sfixed32): true
            case (.int64, .int64), (.int64, .sint64), (.int64, .sfixed64): true
            case (.uint32, .uint32), (.uint32, .fixed32), (.uint64, .uint64), (.uint64, .fixed64): true
            case (.enumeration, .enumeration): true
            case (.message(let message), .message): message.descriptor.table == field.messageType?.table
            default: false
            }
        if !isOfType { throw mismatch(value, field) }
        if case .enumeration(let number) = value, let entry = field.tableEntry, !entry.pointee.canBe(number) {
            throw MessageError(
                code: .unexpectedValue,
                message: "\(field.fullName) cannot be set to \(number): its enum is closed and has no such value."
            )
        }
    }

    private func mismatch(_ value: FieldValue, _ field: FieldDescriptor) -> MessageError {
        let type = field.messageType?.fullName ?? field.enumType?.fullName ?? "\(field.type)"
        let shape = field.isMap ? "a map" : field.isRepeated ? "a list of \(type)" : type
        return MessageError(
            code: .unexpectedValue,
            message: "\(field.fullName) is \(shape), and cannot be set to \(value.kind)."
        )
    }

    private func messageType(of field: FieldDescriptor) -> MessageDescriptor {
        guard let type = field.messageType else { preconditionFailure("\(field.fullName) has no type") }
        return type
    }

    /// The entry in the table of a field that is no extension.
    private func entry(of field: FieldDescriptor) -> TableMessage.Field {
        precondition(isMember(field), "\(field.fullName) is no field of \(descriptor.fullName)")
        return descriptor.table.pointee.fields + field.tableIndex
    }

    /// An extension is the only field of a message of its own, which is decoded to read it: an empty one when it is absent.
    private func extensionContent(of field: FieldDescriptor) -> TableMessage {
        guard isMember(field), let table = field.extensionTable else {
            preconditionFailure("\(field.fullName) is no extension of \(descriptor.fullName)")
        }
        return content.extensionContent(as: table)
    }

    /// Calls `body` with the message that has a field or is an extension, and the field's entry in its table.
    @inline(__always)
    private func read<Result>(
        _ field: FieldDescriptor,
        _ body: (TableMessage, TableMessage.Field) -> Result
    ) -> Result {
        guard field.isExtension else { return body(content, entry(of: field)) }
        let content = extensionContent(of: field)
        return body(content, content.table.pointee.fields)
    }

    /// As ``read``, for changing the field. An extension stays as it was when `body` throws.
    private mutating func change<Result, Failure: Error>(
        _ field: FieldDescriptor,
        _ body: (inout TableMessage, TableMessage.Field) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard field.isExtension else { return try body(&content, entry(of: field)) }
        var changed = extensionContent(of: field)
        let result = try body(&changed, changed.table.pointee.fields)
        content.setExtension(changed)
        return result
    }
}

// MARK: - Values in memory

extension DynamicMessage {
    private func load(_ place: UnsafeRawPointer, as field: FieldDescriptor, in storage: _MessageStorage) -> FieldValue {
        switch field.type {
        case .double: .double(place.load(as: Double.self))
        case .float: .float(place.load(as: Float.self))
        case .int64, .sint64, .sfixed64: .int64(place.load(as: Int64.self))
        case .uint64, .fixed64: .uint64(place.load(as: UInt64.self))
        case .int32, .sint32, .sfixed32: .int32(place.load(as: Int32.self))
        case .uint32, .fixed32: .uint32(place.load(as: UInt32.self))
        case .bool: .bool(place.load(as: protobuf_c_boolean.self) != 0)
        case .string: .string(String._load(place.load(as: _BytesValue.self), in: storage))
        case .bytes: .bytes([UInt8]._load(place.load(as: _BytesValue.self), in: storage))
        case .enumeration: .enumeration(place.load(as: Int32.self))
        case .message:
            .message(
                DynamicMessage(
                    messageType(of: field),
                    TableMessage(loading: place, as: messageType(of: field).table, in: storage)
                )
            )
        }
    }

    /// Stores a value of the right type: see `check`.
    private static func store(
        _ value: FieldValue,
        at place: UnsafeMutableRawPointer,
        as type: FieldType,
        in storage: _BorrowedStorage
    ) {
        switch value {
        case .bool(let value): place.storeBytes(of: value ? 1 : 0, as: protobuf_c_boolean.self)
        case .int32(let value), .enumeration(let value): place.storeBytes(of: value, as: Int32.self)
        case .int64(let value): place.storeBytes(of: value, as: Int64.self)
        case .uint32(let value): place.storeBytes(of: value, as: UInt32.self)
        case .uint64(let value): place.storeBytes(of: value, as: UInt64.self)
        case .float(let value): place.storeBytes(of: value, as: Float.self)
        case .double(let value): place.storeBytes(of: value, as: Double.self)
        case .string(let value): place.storeBytes(of: String._store(value, in: storage), as: _BytesValue.self)
        case .bytes(let value): place.storeBytes(of: [UInt8]._store(value, in: storage), as: _BytesValue.self)
        case .message(let value):
            place.storeBytes(of: value.content.copied(into: storage), as: UnsafeMutableRawPointer.self)
        case .list, .map: preconditionFailure("A value of one field in place of an element")
        }
    }
}

extension FieldValue {
    /// The kind of value, in words.
    fileprivate var kind: String {
        switch self {
        case .bool: "a bool"
        case .int32: "an int32"
        case .int64: "an int64"
        case .uint32: "a uint32"
        case .uint64: "a uint64"
        case .float: "a float"
        case .double: "a double"
        case .string: "a string"
        case .bytes: "bytes"
        case .enumeration: "a number of an enum"
        case .message(let message): "a \(message.descriptor.fullName)"
        case .list: "a list"
        case .map: "a map"
        }
    }

    /// Whether one key of a map comes before another one of the same type.
    fileprivate func precedes(_ other: FieldValue) -> Bool {
        switch (self, other) {
        case (.bool(let left), .bool(let right)): !left && right
        case (.int32(let left), .int32(let right)): left < right
        case (.int64(let left), .int64(let right)): left < right
        case (.uint32(let left), .uint32(let right)): left < right
        case (.uint64(let left), .uint64(let right)): left < right
        case (.string(let left), .string(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
        default: false
        }
    }
}
