public import CLifelineMessages
public import LifelineMessages

/// The content of a message: its C struct, and newer arrays and dictionaries. For generated code.
///
/// Changing a list in place converts it once. The array then stays here, *unsettled*, so that `message.names.append(…)`
/// in a loop is as fast as appending to an array. The differences are stored in the struct when the message is used as
/// a whole, for example encoded or compared.
@frozen public struct _MessageContent<Fields>: Sendable {
    /// The struct. Fields with unsettled values are outdated in it.
    @usableFromInline var reference: _MessageReference<Fields>
    @usableFromInline var unsettled: Unsettled

    @inlinable public init(_ message: _MessageReference<Fields>) {
        reference = message
        unsettled = Unsettled()
    }

    /// The struct, for fields that are never unsettled.
    @inlinable public var message: _MessageReference<Fields> {
        @inline(__always) _read { yield reference }
        @inline(__always) _modify {
            if !unsettled.isEmpty { unsettled.makeUnique() }
            yield &reference
        }
    }

    /// The struct, for changes after which a submessage may be absent.
    @inlinable public var presence: _MessageReference<Fields> {
        @inline(__always) _read { yield reference }
        @inline(__always) _modify {
            if !unsettled.isEmpty { settleMessages() }
            yield &reference
        }
    }

    /// The whole message.
    @inlinable public var settled: _MessageReference<Fields> {
        @inline(__always) get { unsettled.isEmpty ? reference : settledCopy() }
        @inline(__always) _modify {
            if !unsettled.isEmpty { settle() }
            yield &reference
        }
    }
}

// MARK: - Fields

extension _MessageContent {
    /// A repeated field.
    @inlinable
    public subscript<Element: FieldElement>(
        array index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> [Element] {
        get { unsettled.value(at: index) ?? reference.untyped[array: index, of: table] }
        set {
            var array = newValue
            if !unsettled.isEmpty { unsettled.removeValue(at: index) }
            reference.untyped.store(&array, in: index, of: table)
        }
        _modify {
            if let field = unsettled.fieldToChange(at: index, as: [Element].self) {
                yield &field.value
            } else {
                let array: [Element] = reference.untyped[array: index, of: table]
                let field = UnsettledField(array, in: index, of: table) { array, message, index, table in
                    message.store(&array, in: index, of: table)
                }
                unsettled.add(field)
                yield &field.value
            }
        }
    }

    /// A map.
    @inlinable
    public subscript<Key: MapKey, Value: FieldElement>(
        dictionary index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> [Key: Value] {
        get { unsettled.value(at: index) ?? reference.untyped[dictionary: index, of: table] }
        set {
            var dictionary = newValue
            if !unsettled.isEmpty { unsettled.removeValue(at: index) }
            reference.untyped.store(&dictionary, in: index, of: table)
        }
        _modify {
            if let field = unsettled.fieldToChange(at: index, as: [Key: Value].self) {
                yield &field.value
            } else {
                let dictionary: [Key: Value] = reference.untyped[dictionary: index, of: table]
                let field = UnsettledField(dictionary, in: index, of: table) { dictionary, message, index, table in
                    message.store(&dictionary, in: index, of: table)
                }
                unsettled.add(field)
                yield &field.value
            }
        }
    }

    /// A submessage, whose struct is `fields`.
    @inlinable public func submessage<M: SwiftProtobufMessage>(
        _ fields: UnsafeMutablePointer<M._Fields>?,
        at index: Int
    ) -> M {
        var message = M(_reading: fields, in: reference.untyped)
        if !unsettled.isEmpty { message._content.unsettled = unsettled.part(at: index) }
        return message
    }

    /// A submessage for changing. Its unsettled values stay here.
    @inlinable
    public subscript<M: SwiftProtobufMessage>(
        message index: Int,
        of table: UnsafePointer<_MessageTable>
    ) -> M {
        get {
            var message: M = reference.untyped[message: index, of: table]
            if !unsettled.isEmpty { message._content.unsettled = unsettled.part(at: index) }
            return message
        }
        set {
            if !unsettled.isEmpty {
                unsettled.removeValue(at: index)
                prepareToLend(index, of: table)
            }
            reference.untyped[message: index, of: table] = newValue
        }
        _modify {
            var part = Unsettled()
            if !unsettled.isEmpty {
                part = unsettled.takePart(at: index)
                prepareToLend(index, of: table)
            }
            var (message, lent): (element: M, lent: M._CValue) = reference.untyped.lendMessage(index, of: table)
            swap(&message._content.unsettled, &part)
            defer {
                swap(&message._content.unsettled, &part)
                reference.untyped.settleMessage(&message, lent, in: index, of: table)
                if !part.isEmpty { keep(part, ofMessageAt: index, of: table, as: M.self) }
            }
            yield &message
        }
    }

    /// Keeps the unsettled values of a submessage.
    @inlinable mutating func keep<M: SwiftProtobufMessage>(
        _ part: Unsettled,
        ofMessageAt index: Int,
        of table: UnsafePointer<_MessageTable>,
        as: M.Type
    ) {
        if let field = unsettled.fieldToChange(at: index, as: Unsettled.self) {
            field.value = part
            return
        }
        let field = UnsettledField(part, in: index, of: table, isMessage: true) { part, message, index, table in
            // It is settled when the change of the submessage ends.
            if !part.isEmpty { M.give(&part, to: &message[message: index, of: table]) }
        }
        unsettled.add(field)
    }

    /// Prepares for a change that makes a submessage present. It may replace another member of a oneof that has
    /// unsettled values.
    @usableFromInline mutating func prepareToLend(_ index: Int, of table: UnsafePointer<_MessageTable>) {
        let field = table.pointee.fields + index
        if Int(field.pointee.presence) == LIFELINE_PRESENCE_ONEOF, !lifeline_is_present(field, reference.fields) {
            settleMessages()
        } else {
            unsettled.makeUnique()
        }
    }
}

extension SwiftProtobufMessage {
    @inlinable static func give(_ unsettled: inout Unsettled, to message: inout Self) {
        swap(&message._content.unsettled, &unsettled)
    }
}

// MARK: - Settling

extension _MessageContent {
    /// Stores all unsettled values in the struct.
    @usableFromInline mutating func settle() {
        var unsettled = Unsettled()
        swap(&unsettled, &self.unsettled)
        unsettled.settle(in: &reference.untyped)
    }

    @usableFromInline mutating func settleMessages() {
        var unsettled = Unsettled()
        swap(&unsettled, &self.unsettled)
        unsettled.settleMessages(in: &reference.untyped)
        self.unsettled = unsettled
    }

    @usableFromInline func settledCopy() -> _MessageReference<Fields> {
        var message = reference
        unsettled.settleCopy(&message.untyped)
        return message
    }
}
