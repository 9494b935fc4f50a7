internal import CLifelineMessages
internal import LifelineMessages

/// Finds fields in messages and checks values, for the methods that read and change them.
extension DynamicMessage {
    func field(named name: String) throws(MessageError) -> FieldDescriptor {
        if let field = descriptor.field(named: name) { return field }
        throw MessageError(
            code: .unknownField,
            message: "\(descriptor.fullName) has no field \(name.textFormatLiteral)."
        )
    }

    func checkMembership(of field: FieldDescriptor) throws(MessageError) {
        if isMember(field) { return }
        let owner = field.containingType
        if field.isExtension, owner?.table == descriptor.table { try field.checkExtensionTable() }
        throw MessageError(
            code: .unknownField,
            message: "\(field.fullName) is no field of this \(descriptor.fullName)."
                + (owner?.fullName == descriptor.fullName
                    ? " It is one of another pool's, for which DynamicMessage.message(as:) makes a copy." : "")
        )
    }

    func isMember(_ field: FieldDescriptor) -> Bool {
        if field.isExtension {
            return field.extensionTable != nil && field.containingType?.table == descriptor.table
        }
        return field.storage === descriptor.storage
            && descriptor.storage.messages[descriptor.index].fields.contains(field.index)
    }

    /// Whether a field is an extension of this message that cannot be read or written, so that it is never set: see
    /// ``FieldDescriptor/checkExtensionTable()``.
    func isUnusable(_ field: FieldDescriptor) -> Bool {
        field.isExtension && field.extensionTable == nil && field.containingType?.table == descriptor.table
    }

    func checkElement(_ value: FieldValue, of field: FieldDescriptor) throws(MessageError) {
        try checkMembership(of: field)
        if !field.isRepeated || field.isMap { throw mismatch(value, field) }
        try check(value, for: field)
    }

    /// Checks that a value fits a singular field, or an element of a repeated one.
    func check(_ value: FieldValue, for field: FieldDescriptor) throws(MessageError) {
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
        if case .enumeration(let number) = value, let entry = field.tableEntry, lifeline_is_closed_enum(entry),
            !lifeline_enum_knows(entry, number)
        {
            throw MessageError(
                code: .unexpectedValue,
                message: "\(field.fullName) cannot be set to \(number): its enum is closed and has no such value."
            )
        }
    }

    func mismatch(_ value: FieldValue, _ field: FieldDescriptor) -> MessageError {
        let type = field.messageType?.fullName ?? field.enumType?.fullName ?? "\(field.type)"
        let shape = field.isMap ? "a map" : field.isRepeated ? "a list of \(type)" : type
        return MessageError(
            code: .unexpectedValue,
            message: "\(field.fullName) is \(shape), and cannot be set to \(value.kind)."
        )
    }

    func messageType(of field: FieldDescriptor) -> MessageDescriptor {
        guard let type = field.messageType else {
            preconditionFailure("\(field.fullName) has no value: it is no message, or its type is not linked")
        }
        return type
    }

    /// The table entry of a field that is not an extension.
    func entry(of field: FieldDescriptor) -> TableMessage.Field {
        precondition(isMember(field), "\(field.fullName) is no field of \(descriptor.fullName)")
        return descriptor.table.pointee.fields + field.tableIndex
    }

    /// An extension is the only field of a separate message, which is decoded to read it. The message is empty if the
    /// extension is absent.
    func extensionContent(of field: FieldDescriptor) -> TableMessage {
        content.extensionContent(as: extensionTable(of: field))
    }

    private func extensionTable(of field: FieldDescriptor) -> UnsafePointer<_MessageTable> {
        guard isMember(field), let table = field.extensionTable else {
            preconditionFailure("\(field.fullName) is no extension of \(descriptor.fullName)")
        }
        return table
    }

    /// Calls `body` with the message that has the field, or is the extension, and the field's entry in its table.
    @inline(__always)
    func read<Result>(
        _ field: FieldDescriptor,
        _ body: (TableMessage, TableMessage.Field) -> Result
    ) -> Result {
        guard field.isExtension else { return body(content, entry(of: field)) }
        let content = extensionContent(of: field)
        return body(content, content.table.pointee.fields)
    }

    /// Like ``read``, for changing the field. An extension is unchanged if `body` throws.
    ///
    /// - Parameter isNew: whether `body` gets the field without its old value.
    mutating func change<Result, Failure: Error>(
        _ field: FieldDescriptor,
        isNew: Bool = false,
        _ body: (inout TableMessage, TableMessage.Field) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard field.isExtension else {
            let entry = entry(of: field)
            if isNew { content.clear(entry) }
            return try body(&content, entry)
        }
        var changed = isNew ? TableMessage(extensionTable(of: field)) : extensionContent(of: field)
        let result = try body(&changed, changed.table.pointee.fields)
        content.setExtension(changed)
        return result
    }
}

extension FieldDescriptor {
    /// Checks that an extension can be read and written.
    func checkExtensionTable() throws(MessageError) {
        if extensionTable != nil { return }
        throw MessageError(
            code: .unknownField,
            message: "\(fullName) cannot be used: "
                + (number > Int(DescriptorBuilder.largestNumber)
                    ? "the number \(number) is larger than that of any field." : "its type is not linked.")
        )
    }
}
