public import CLifelineMessages
public import LifelineMessages
internal import Synchronization

// Nothing here is generic over the type of the message: looking up generic types took a third of the time for building
// a small message.

/// The values of fields that are not in the struct of a message yet: see `_MessageContent`.
@usableFromInline @frozen struct Unsettled: @unchecked Sendable {
    // @unchecked Sendable, because `storage` is written to only while this has the only reference to it, and a lock
    // protects the copy in it.

    /// Nil if nothing is unsettled. Messages that share an object have the same content.
    @usableFromInline var storage: Storage?

    @inlinable init() { storage = nil }

    @inlinable @inline(__always) var isEmpty: Bool { storage == nil }

    @usableFromInline final class Storage {
        @usableFromInline var fields: [AnyUnsettledField]
        /// The message with these values. It is kept, so that its memory lives as long as the message.
        fileprivate let copy = Mutex<_UntypedReference?>(nil)

        init(_ fields: [AnyUnsettledField]) { self.fields = fields }
    }
}

// MARK: - Values

extension Unsettled {
    /// The value of a field, for reading.
    @inlinable func value<Value>(at index: Int) -> Value? {
        isEmpty ? nil : existingField(at: index, as: Value.self)?.value
    }

    /// The object with the value of a field, for changing the value. Nil if the field has none here.
    @inlinable mutating func fieldToChange<Value>(at index: Int, as: Value.Type) -> UnsettledField<Value>? {
        if isEmpty { return nil }
        makeUnique()
        return existingField(at: index, as: Value.self)
    }

    @inlinable func existingField<Value>(at index: Int, as: Value.Type) -> UnsettledField<Value>? {
        guard let storage else { return nil }
        for field in storage.fields where field.index == index {
            return unsafeDowncast(field, to: UnsettledField<Value>.self)
        }
        return nil
    }

    /// The unsettled values of a submessage, for reading.
    @usableFromInline func part(at index: Int) -> Unsettled { value(at: index) ?? Unsettled() }

    /// Takes the unsettled values of a submessage.
    @usableFromInline mutating func takePart(at index: Int) -> Unsettled {
        var part = Unsettled()
        if let field = fieldToChange(at: index, as: Unsettled.self) { swap(&field.value, &part) }
        return part
    }

    /// Adds the value of a field that has none.
    @usableFromInline mutating func add(_ field: AnyUnsettledField) {
        makeUnique()
        if let storage { storage.fields.append(field) } else { storage = Storage([field]) }
    }

    @usableFromInline mutating func removeValue(at index: Int) {
        makeUnique()
        storage?.fields.removeAll { $0.index == index }
    }

    /// Prepares for a change of the message. Others may have the same values, and the copy becomes outdated.
    @usableFromInline mutating func makeUnique() {
        guard storage != nil else { return }
        if isKnownUniquelyReferenced(&storage) {
            storage.unsafelyUnwrapped.copy.withLock { $0 = nil }
        } else {
            storage = Storage(storage.unsafelyUnwrapped.fields.map { $0.copy() })
        }
    }
}

// MARK: - Settling

extension Unsettled {
    /// Stores all values in the struct.
    mutating func settle(in message: inout _UntypedReference) {
        guard var settled = storage.take() else { return }
        // Others may have the same values, and keep them.
        let isUnique = isKnownUniquelyReferenced(&settled)
        for field in settled.fields { (isUnique ? field : field.copy()).settle(in: &message) }
    }

    /// Stores the unsettled values of submessages.
    mutating func settleMessages(in message: inout _UntypedReference) {
        makeUnique()
        guard let storage else { return }
        for field in storage.fields where field.isMessage { field.settle(in: &message) }
        storage.fields.removeAll(where: \.isMessage)
    }

    /// Replaces `message`, which has these values, by a copy with all of them.
    func settleCopy(_ message: inout _UntypedReference) {
        guard let storage else { return }
        storage.copy.withLock { copy in
            if let copy {
                message = copy
                return
            }
            for field in storage.fields { field.copy().settle(in: &message) }
            copy = message
        }
    }
}

/// The value of a field that is not in the struct yet.
@usableFromInline class AnyUnsettledField {
    /// The index in the message's table.
    @usableFromInline let index: Int
    fileprivate let table: UnsafePointer<_MessageTable>
    /// Whether the value is the unsettled values of a submessage, and not a list.
    fileprivate let isMessage: Bool

    @usableFromInline init(in index: Int, of table: UnsafePointer<_MessageTable>, isMessage: Bool) {
        self.index = index
        self.table = table
        self.isMessage = isMessage
    }

    /// Stores the value in the struct, and removes it here.
    func settle(in message: inout _UntypedReference) {}
    func copy() -> AnyUnsettledField { self }
}

@usableFromInline final class UnsettledField<Value>: AnyUnsettledField {
    // It captures nothing, so that it takes no memory.
    @usableFromInline
    typealias Store = (inout Value, inout _UntypedReference, Int, UnsafePointer<_MessageTable>) -> Void

    @usableFromInline var value: Value
    private let store: Store

    @usableFromInline init(
        _ value: Value,
        in index: Int,
        of table: UnsafePointer<_MessageTable>,
        isMessage: Bool = false,
        store: @escaping Store
    ) {
        self.value = value
        self.store = store
        super.init(in: index, of: table, isMessage: isMessage)
    }

    override func settle(in message: inout _UntypedReference) { store(&value, &message, index, table) }

    override func copy() -> AnyUnsettledField {
        UnsettledField(value, in: index, of: table, isMessage: isMessage, store: store)
    }
}
