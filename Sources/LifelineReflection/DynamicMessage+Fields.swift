internal import CLifelineMessages
public import LifelineMessages

extension DynamicMessage {
    /// The value of the field with this name. If it is not set, this is its default, or an empty submessage. Nil if the
    /// type has no such field.
    ///
    /// Setting nil clears the field. Setting a value of another type than the field's, or a field that does not exist,
    /// is a programming error and ends the program; ``set(_:to:)-(String,_)`` throws instead.
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

    /// The value of a field, which must be of this message's type. If it is not set, this is its default, or an empty
    /// submessage. The methods that take a `FieldDescriptor` also accept extensions. But a message has no default if
    /// its type is not linked: reading such an extension is a programming error and ends the program. `has(_:)` is
    /// false for it.
    public subscript(field: FieldDescriptor) -> FieldValue {
        if let value = presentValue(of: field) { return value }
        if field.isMap { return .map([:]) }
        if field.isRepeated { return .list([]) }
        return field.defaultValue ?? .message(DynamicMessage(messageType(of: field)))
    }

    /// The value of a field; nil if it is not set, or has no elements.
    func presentValue(of field: FieldDescriptor) -> FieldValue? {
        if isUnusable(field) { return nil }
        return read(field) { content, entry in
            guard content.isPresent(entry) else { return nil }
            if field.isMap {
                let entries = (0..<content.count(of: entry)).map { keyAndValue(of: field, at: $0) }
                // Different keys that are not UTF-8 may read as the same text.
                return .map(Dictionary(entries, uniquingKeysWith: { $1 }))
            }
            if field.isRepeated {
                return .list((0..<content.count(of: entry)).map { element(of: field, at: $0, content, entry) })
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
    /// - Throws: `MessageError`: `unexpectedValue` for a value of another type than the field's, or a message with
    ///   another descriptor, or a number that a closed enum does not declare; `unknownField` for a field of another
    ///   message, and for an extension that cannot be used because its number is over 536,870,911 or its type is not
    ///   linked. Such an extension is never set.
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
            change(field, isNew: true) { content, entry in
                for (index, element) in elements.enumerated() {
                    content.insert(into: entry, at: index) { Self.store(element, at: $0, as: field.type, in: $1) }
                }
            }
        default:
            if field.isRepeated { throw mismatch(value, field) }
            try check(value, for: field)
            change(field, isNew: true) { content, entry in
                content.withMutableValue(of: entry) { Self.store(value, at: $0, as: field.type, in: $1) }
            }
        }
    }

    /// Whether a field of this message's type is set; whether a repeated field or a map has elements.
    public func has(_ field: FieldDescriptor) -> Bool { !isUnusable(field) && read(field) { $0.isPresent($1) } }

    /// Whether the field with this name is set. False if the type has no such field.
    public func has(_ name: String) -> Bool { descriptor.field(named: name).map(has) ?? false }

    /// Clears a field of this message's type. It then reads as its default.
    public mutating func clear(_ field: FieldDescriptor) {
        if isUnusable(field) { return }
        change(field, isNew: true) { _, _ in }
    }

    /// The fields that are set, in the order of their numbers, without extensions. For those, see
    /// ``presentExtensions(of:)``.
    public var presentFields: [FieldDescriptor] {
        let table = descriptor.table
        return table.fields.indices.filter { content.isPresent(table.pointee.fields + $0) }.map(descriptor.field(at:))
    }

    /// The extensions that are set and that the pool knows, in the order of their numbers.
    public func presentExtensions(of pool: DescriptorPool) -> [FieldDescriptor] {
        let known = { [self] (number: UInt32) -> FieldDescriptor? in
            guard let field = pool.extension(of: descriptor, number: Int(number)), isMember(field) else { return nil }
            return field
        }
        return content.presentExtensions { known($0)?.extensionTable }.compactMap(known)
    }

    /// The field of a oneof that is set; nil if none is.
    public func presentField(of oneof: OneofDescriptor) -> FieldDescriptor? { oneof.fields.first(where: has) }

    /// Calls `body` with a submessage, to be changed in place. A field that is not set is set first. If `body` throws,
    /// its changes remain, except that an extension is unchanged.
    ///
    /// - Throws: `MessageError` as ``set(_:to:)-(FieldDescriptor,_)`` does for a field that is not a submessage;
    ///   `typeMismatch` if `body` replaces the submessage by one with another descriptor, which leaves it empty; and
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
