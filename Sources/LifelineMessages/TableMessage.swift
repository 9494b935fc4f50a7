package import CLifelineMessages
internal import CProtobufC

/// A message of the type that a table describes: for types that are known only at run time, and for functions that are
/// the same for all types.
///
/// The table lives at least as long as such a message.
package struct TableMessage: @unchecked Sendable {
    // @unchecked Sendable for the same reason as _UntypedReference; and tables never change.

    package typealias Field = UnsafePointer<LifelineField>

    package let table: UnsafePointer<_MessageTable>
    package private(set) var reference: _UntypedReference

    private init(_ table: UnsafePointer<_MessageTable>, _ storage: _MessageStorage?, _ fields: UnsafeMutableRawPointer)
    {
        self.init(table, _UntypedReference(storage: storage, fields: fields))
    }

    private init(_ table: UnsafePointer<_MessageTable>, _ reference: _UntypedReference) {
        self.table = table
        self.reference = reference
    }

    /// A message with no field set.
    package init(_ table: UnsafePointer<_MessageTable>) {
        self.init(table, nil, UnsafeMutableRawPointer(mutating: table.pointee.default_instance))
    }

    /// A message of a generated type, which shares its memory.
    package init<M: Message>(_ message: M) {
        self.init(M._table, message._message.untyped)
    }

    /// The message as one of a generated type, whose table must be the same.
    package func message<M: Message>(as: M.Type) -> M {
        precondition(table == M._table, "A message of another type")
        return M(_message: _MessageReference(reference))
    }

    /// The bytes from `reference.fields` on.
    private var memory: UnsafeMutableRawPointer { reference.fields }
}

// MARK: - Formats

extension TableMessage {
    package init(
        serializedBytes bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        let message = try _UntypedReference(decoding: bytes, as: table, partial: partial, options: options)
        self.init(table, message)
    }

    /// Merges an encoded message: see ``Message/merge(serializedBytes:partial:options:)``.
    package mutating func merge(
        serializedBytes bytes: UnsafeRawBufferPointer,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        try merge(bytes, partial: partial, options: LifelineDecodeOptions(options))
    }

    /// Merges an encoded message, without unknown fields that are not among `extensions`. Unknown fields inside
    /// extensions stay.
    package mutating func mergeKnownFields(
        serializedBytes bytes: UnsafeRawBufferPointer,
        extensions: MessageRegistry,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        try extensions.withCTypes { (types) throws(MessageError) in
            var types = types
            try withUnsafePointer(to: &types) { (types) throws(MessageError) in
                var options = LifelineDecodeOptions(options)
                options.kept_extensions = types
                try merge(bytes, partial: partial, options: options)
            }
        }
    }

    private mutating func merge(
        _ bytes: UnsafeRawBufferPointer,
        partial: Bool,
        options: LifelineDecodeOptions
    ) throws(MessageError) {
        var merged = self
        guard bytes.count <= Int(Int32.max) else { throw MessageError(tooLarge: table) }
        merged.reference.makeUnique(as: table, reserving: 2 &* bytes.count)
        let storage = merged.reference.storage.unsafelyUnwrapped
        try storage.merge(bytes, into: merged.memory, as: table, options: options)
        if !partial { try merged.requireInitialized() }
        self = merged
    }

    package init(
        jsonUTF8Bytes bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        partial: Bool,
        options: JSONDecodingOptions
    ) throws(MessageError) {
        let (storage, fields) = try _MessageStorage.parse(json: bytes, as: table, options)
        self.init(table, storage, fields)
        if !partial { try requireInitialized() }
    }

    package init(
        textFormat bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        partial: Bool,
        options: TextFormatDecodingOptions
    ) throws(MessageError) {
        let (storage, fields) = try _MessageStorage.parse(textFormat: bytes, as: table, options)
        self.init(table, storage, fields)
        if !partial { try requireInitialized() }
    }

    package func serializedBytes(partial: Bool) throws(MessageError) -> [UInt8] {
        if !partial { try requireInitialized() }
        defer { extendLifetime(reference) }
        return try MessageEncoding().array(of: memory, as: table)
    }

    package func withDelimitedBytes<Result>(
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        if !partial { try requireInitialized() }
        defer { extendLifetime(reference) }
        return try MessageEncoding(isDelimited: true).withBytes(of: memory, as: table, body)
    }

    package func jsonString(_ options: JSONEncodingOptions) throws(MessageError) -> String {
        defer { extendLifetime(reference) }
        return try jsonText(of: memory, as: table, options)
    }

    package func jsonUTF8Bytes(_ options: JSONEncodingOptions) throws(MessageError) -> [UInt8] {
        defer { extendLifetime(reference) }
        return try jsonBytes(of: memory, as: table, options)
    }

    package func textFormatString(_ options: TextFormatEncodingOptions) -> String {
        defer { extendLifetime(reference) }
        return textFormat(of: memory, as: table, options)
    }

    /// For decoding this message's own bytes as another type. Its size is not limited.
    package var optionsForCopy: DecodingOptions {
        DecodingOptions(maximumDepth: 1_000, memoryLimit: .max, validatesUTF8: !reference.mayHoldMalformedText)
    }

    package var isInitialized: Bool {
        defer { extendLifetime(reference) }
        return table.missingRequiredField(in: memory) == nil
    }

    private func requireInitialized() throws(MessageError) {
        defer { extendLifetime(reference) }
        try table.requireInitialized(memory)
    }

    package var unknownFields: [UInt8] { reference.unknownFields }

    package mutating func removeUnknownFields() {
        reference.removeUnknownFields(as: table)
    }
}

// MARK: - Extensions

extension TableMessage {
    /// The extension that the table describes, as a message of that table; an empty one if it is absent.
    package func extensionContent(as table: UnsafePointer<_MessageTable>) -> TableMessage {
        guard let (storage, fields) = reference.extensionContent(as: table) else { return TableMessage(table) }
        return TableMessage(table, storage, fields)
    }

    /// The numbers of the extensions that are present and whose tables `find` knows, ascending.
    package func presentExtensions(_ find: @escaping (UInt32) -> UnsafePointer<_MessageTable>?) -> [UInt32] {
        struct Search {
            let find: (UInt32) -> UnsafePointer<_MessageTable>?
            var numbers: [UInt32] = []
        }
        guard reference.hasUnknownFields else { return [] }
        defer { extendLifetime(reference) }
        var search = Search(find: find)
        let isFound = withUnsafeMutablePointer(to: &search) { search in
            var types = LifelineTypes()
            types.find_extension = { context, _, number, _, _ in
                context?.assumingMemoryBound(to: Search.self).pointee.find(number)
            }
            types.context = UnsafeMutableRawPointer(search)
            let (isMalformed, limit) = (reference.mayHoldMalformedText, reference.extensionLimit)
            return lifeline_extensions_present(table, memory, &types, isMalformed, limit) { context, table in
                context?.assumingMemoryBound(to: Search.self).pointee.numbers.append(table.pointee.fields[0].number)
            }
        }
        precondition(isFound, "Out of memory for extensions")
        return search.numbers
    }

    /// Replaces an extension by `content`, of the extension's table, or removes it if `content` has no field set.
    package mutating func setExtension(_ content: TableMessage) {
        reference.setExtension(content.reference, as: content.table, in: table)
    }

    /// Checks the content of extensions: see ``Message/checkExtensions(_:partial:options:)``.
    package func checkExtensions(
        _ extensions: MessageRegistry,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        defer { extendLifetime(reference) }
        try extensions.check(memory, as: table, partial: partial, options: options)
    }
}

extension TableMessage: Hashable {
    package static func == (left: TableMessage, right: TableMessage) -> Bool {
        defer { extendLifetime((left, right)) }
        guard left.table == right.table else { return false }
        return left.memory == right.memory || lifeline_message_equal(left.table, left.memory, right.memory)
    }

    package func hash(into hasher: inout Hasher) {
        defer { extendLifetime(reference) }
        MessageEncoding().hash(memory, as: table, into: &hasher)
    }
}

// MARK: - Reading fields

extension UnsafePointer<_MessageTable> {
    /// The fields, ascending by number.
    package var fields: UnsafeBufferPointer<LifelineField> {
        UnsafeBufferPointer(start: pointee.fields, count: Int(pointee.field_count))
    }

    /// The index of the field with this name in the .proto file.
    package func fieldIndex(named name: UnsafeBufferPointer<UInt8>) -> Int? {
        guard let start = name.baseAddress else { return nil }
        let index = lifeline_find_field_by_name(self, start, name.count)
        return index < 0 ? nil : Int(index)
    }

    /// The index of the field with this number.
    package func fieldIndex(number: Int) -> Int? {
        guard let number = UInt32(exactly: number), let found = lifeline_find_field(self, number) else { return nil }
        return found - pointee.fields
    }

    package func field(at index: Int) -> TableMessage.Field { pointee.fields + index }

    /// The name of a field in the .proto file.
    package func fieldName(at index: Int) -> String { pointee.names[2 * index] }
}

extension LifelineField {
    /// Whether it is a repeated field or a map.
    package var isRepeated: Bool {
        presence == LIFELINE_PRESENCE_REPEATED || presence == LIFELINE_PRESENCE_MAP
    }

    /// The table of a single submessage; nil for other fields.
    package var submessage: UnsafePointer<_MessageTable>? { isRepeated ? nil : message }
}

extension TableMessage {
    /// Whether a field is set. A message without a storage has none, not even the key and value of a map's entry.
    package func isPresent(_ field: Field) -> Bool {
        if reference.storage == nil { return false }
        defer { extendLifetime(reference) }
        return lifeline_is_present(field, memory)
    }

    /// The number of elements of a repeated or map field.
    package func count(of field: Field) -> Int {
        defer { extendLifetime(reference) }
        return lifeline_count(field, memory)
    }

    /// Calls `body` with the place of a value, which is valid during the call, and the storage.
    ///
    /// - Parameter index: the index of an element, which must exist; nil for a singular field, which must be present.
    ///   The element of a map is an entry.
    package func withValue<Result>(
        of field: Field,
        at index: Int? = nil,
        _ body: (UnsafeRawPointer, _MessageStorage) -> Result
    ) -> Result {
        defer { extendLifetime(reference) }
        return body(place(of: field, at: index), reference.storage.unsafelyUnwrapped)
    }

    /// A submessage, or an empty one if there is none.
    package func message(of field: Field, at index: Int? = nil) -> TableMessage {
        let table = field.pointee.message.unsafelyUnwrapped
        guard index != nil || isPresent(field) else { return TableMessage(table) }
        return withValue(of: field, at: index) { TableMessage(loading: $0, as: table, in: $1) }
    }

    /// The message that the pointer at `place` points to, or an empty one.
    package init(
        loading place: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        in storage: _MessageStorage
    ) {
        if let fields = place.load(as: UnsafeMutableRawPointer?.self) {
            self.init(table, storage, fields)
        } else {
            self.init(table)
        }
    }

    /// The place of a value that is present.
    private func place(of field: Field, at index: Int?) -> UnsafeMutableRawPointer {
        let place = memory + Int(field.pointee.offset)
        guard let index else { return place }
        precondition(index >= 0 && index < lifeline_count(field, memory), "Index \(index) is out of bounds")
        let elements = place.load(as: UnsafeMutableRawPointer.self)
        return elements + index * lifeline_value_size(field)
    }
}

// MARK: - Changing fields

extension TableMessage {
    /// Makes a singular field present, and calls `body` with the place for its value, which has a value of the field's
    /// type, or zeros.
    package mutating func withMutableValue<Result>(
        of field: Field,
        _ body: (UnsafeMutableRawPointer, _BorrowedStorage) -> Result
    ) -> Result {
        let place = reference.makePresent(field, of: table)
        return reference.withStorage { body(place, $0) }
    }

    /// Calls `body` with the place of an element, which must exist.
    package mutating func withMutableElement<Result>(
        of field: Field,
        at index: Int,
        _ body: (UnsafeMutableRawPointer, _BorrowedStorage) -> Result
    ) -> Result {
        _ = reference.mutableFields(as: table)
        return reference.withStorage { body(place(of: field, at: index), $0) }
    }

    /// Inserts an element before the one at `index`, and calls `body` with its place, which has zeros.
    package mutating func insert(
        into field: Field,
        at index: Int,
        _ body: (UnsafeMutableRawPointer, _BorrowedStorage) -> Void
    ) {
        _ = reference.mutableFields(as: table)
        let (place, size) = (memory + Int(field.pointee.offset), lifeline_value_size(field))
        let count = lifeline_count(field, memory)
        precondition(index >= 0 && index <= count, "Index \(index) is out of bounds")
        reference.withStorage { storage in
            let old = place.load(as: UnsafeMutableRawPointer?.self)
            let elements = storage.reserve(old, count: count, capacity: count + 1, stride: size)
            place.storeBytes(of: elements, as: UnsafeMutableRawPointer.self)
            let gap = elements + index * size
            (gap + size).copyMemory(from: gap, byteCount: (count - index) * size)
            gap.initializeMemory(as: UInt8.self, repeating: 0, count: size)
            setCount(of: field, to: count + 1)
            body(gap, storage)
        }
    }

    /// Removes an element, which must exist.
    package mutating func remove(from field: Field, at index: Int) {
        _ = reference.mutableFields(as: table)
        let (gap, size) = (place(of: field, at: index), lifeline_value_size(field))
        let count = lifeline_count(field, memory)
        gap.copyMemory(from: gap + size, byteCount: (count - index - 1) * size)
        setCount(of: field, to: count - 1)
    }

    /// Makes a field absent, or a repeated one empty.
    package mutating func clear(_ field: Field) {
        guard isPresent(field) else { return }
        _ = reference.mutableFields(as: table)
        let size = field.pointee.isRepeated ? MemoryLayout<UnsafeRawPointer>.size : lifeline_value_size(field)
        (memory + Int(field.pointee.offset)).initializeMemory(as: UInt8.self, repeating: 0, count: size)
        switch Int(field.pointee.presence) {
        case LIFELINE_PRESENCE_FLAG, LIFELINE_PRESENCE_ONEOF: quantifier(of: field).storeBytes(of: 0, as: UInt32.self)
        case LIFELINE_PRESENCE_REPEATED, LIFELINE_PRESENCE_MAP: setCount(of: field, to: 0)
        default: break
        }
    }

    /// Calls `body` with a submessage, to be changed in place. It is made present.
    ///
    /// - Parameter index: the index of an element of a repeated field, which must exist; nil for a singular field.
    package mutating func withMutableMessage<Result, Failure: Error>(
        of field: Field,
        at index: Int? = nil,
        _ body: (inout TableMessage) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let inner = field.pointee.message.unsafelyUnwrapped
        if index == nil { _ = reference.makePresent(field, of: table) } else { _ = reference.mutableFields(as: table) }
        let lender = place(of: field, at: index)
        // Like the accessors of generated code: see docs/message-memory.md, "Loans".
        var lent = TableMessage(inner, reference.withStorage { $0.lendMessage(at: lender, as: inner) })
        let original = lent.memory
        defer {
            precondition(lent.table == inner, "The message was replaced by one of another type")
            let settled = reference.settled(&lent.reference, lent: original, as: inner, of: table)
            place(of: field, at: index).storeBytes(of: settled, as: UnsafeMutableRawPointer?.self)
        }
        return try body(&lent)
    }

    /// A deep copy of a message in `storage`.
    package func copied(into storage: _BorrowedStorage) -> UnsafeMutableRawPointer {
        storage.copy(memory, as: table, from: reference.storage)
    }

    private func setCount(of field: Field, to count: Int) {
        quantifier(of: field).storeBytes(of: count, as: Int.self)
    }

    private func quantifier(of field: Field) -> UnsafeMutableRawPointer {
        memory + Int(field.pointee.quantifier_offset)
    }
}
