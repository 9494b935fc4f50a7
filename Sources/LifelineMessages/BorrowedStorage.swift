public import CLifelineMessages
public import CProtobufC

/// A storage that may be written to, and that a reference elsewhere keeps alive. It counts no references: see "Writing"
/// in docs/message-memory.md for the reason.
///
/// A method may make one from a reference in `self` that it does not replace, because its caller keeps that alive.
/// `withBorrowed` makes one from any other reference.
@frozen public struct _BorrowedStorage {
    @usableFromInline let unmanaged: Unmanaged<_MessageStorage>

    @inlinable @inline(__always) init(_ storage: _MessageStorage) {
        unmanaged = .passUnretained(storage)
    }

    @inlinable @inline(__always) func with<Result>(_ body: (_MessageStorage) -> Result) -> Result {
        unmanaged._withUnsafeGuaranteedRef(body)
    }

    @inlinable var arena: UnsafeMutablePointer<LifelineArena> { with(\.arena) }
    @inlinable var isOverdue: Bool { with(\.isOverdue) }
    @inlinable var mayHoldMalformedText: Bool { with(\.mayHoldMalformedText) }
}

/// Calls `body` with `storage`, which must not be nil, and keeps it alive during the call.
@inlinable @inline(__always) func withBorrowed<Result>(
    _ storage: _MessageStorage?,
    _ body: (_BorrowedStorage) -> Result
) -> Result {
    defer { extendLifetime(storage) }
    return body(_BorrowedStorage(storage.unsafelyUnwrapped))
}

// MARK: - Allocating

extension _BorrowedStorage {
    /// Memory for `byteCount` bytes, 8-aligned.
    @usableFromInline func allocate(byteCount: Int) -> UnsafeMutableRawPointer {
        take { lifeline_arena_allocate($0, byteCount) }
    }

    /// Room for at least `capacity` elements, of which the first `count` are those of `elements`.
    @usableFromInline func reserve(
        _ elements: UnsafeMutableRawPointer?,
        count: Int,
        capacity: Int,
        stride: Int
    ) -> UnsafeMutableRawPointer {
        take { lifeline_array_reserve($0, elements, count, capacity, stride) }
    }

    /// Memory that `allocate` takes from the arena. If it returns nil, the allowance is used up: gives a new one, and
    /// calls `allocate` again.
    ///
    /// Running out of real memory is fatal, as elsewhere in Swift. Decoding has a budget of its own.
    @inline(__always) private func take<Memory>(_ allocate: (UnsafeMutablePointer<LifelineArena>) -> Memory?) -> Memory
    {
        if let memory = allocate(arena) { return memory }
        exceedAllowance()
        if let memory = allocate(arena) { return memory }
        // This allocation alone is larger than an allowance.
        let root = arena
        markLoansOverdue()
        root.pointee.budget = LIFELINE_NO_BUDGET
        guard let memory = allocate(root) else { preconditionFailure("Out of memory for a message") }
        giveAllowance(root)
        return memory
    }

    private func exceedAllowance() {
        let root = arena
        if root.pointee.is_overdue != 0 {
            markLoansOverdue()
        } else {
            root.pointee.is_overdue = 1
        }
        giveAllowance(root)
    }

    private func giveAllowance(_ root: UnsafeMutablePointer<LifelineArena>) {
        root.pointee.budget = _MessageStorage.allowance(forSize: lifeline_arena_block_bytes(root) / 2)
    }
}

// MARK: - Strings and bytes

extension _BorrowedStorage {
    /// Sets `value`, a field in this storage, to a copy of `bytes`: in place of the old ones if they fit there.
    @inlinable @inline(__always) func assign(_ bytes: UnsafeBufferPointer<UInt8>, to value: inout _BytesValue) {
        if !lifeline_bytes_assign(arena, &value.len, &value.data, bytes.baseAddress, bytes.count) {
            assignBeyondAllowance(bytes, to: &value)
        }
    }

    @usableFromInline func assignBeyondAllowance(_ bytes: UnsafeBufferPointer<UInt8>, to value: inout _BytesValue) {
        take { lifeline_bytes_assign($0, &value.len, &value.data, bytes.baseAddress, bytes.count) ? () : nil }
    }

    /// The value of a field with a copy of `bytes` in this storage.
    @inlinable public func store(_ bytes: UnsafeBufferPointer<UInt8>) -> _BytesValue {
        var value = _BytesValue(len: 0, data: nil)
        assign(bytes, to: &value)
        return value
    }

    /// A copy of `value`, which is in `source`. Text that is not UTF-8 stays as it is.
    @usableFromInline func copy(_ value: _BytesValue, from source: _MessageStorage) -> _BytesValue {
        withBorrowed(source) { source in
            inheritText(from: source)
            return store(value.buffer)
        }
    }

    /// Takes over from `source`, from which something is copied, that its text may be malformed.
    private func inheritText(from source: _BorrowedStorage) {
        if source.mayHoldMalformedText { arena.pointee.may_hold_malformed_text = true }
    }
}

extension String {
    /// Calls `body` with the UTF-8 of the text. Takes fewer instructions than a span, and than `withUTF8`, which
    /// retains text on the heap.
    @inlinable @inline(__always) func withUTF8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        // All Strings are contiguous on Linux.
        utf8.withContiguousStorageIfAvailable(body).unsafelyUnwrapped
    }
}

// MARK: - Messages

extension _BorrowedStorage {
    /// A new message, with no field set.
    @usableFromInline package func create(_ table: UnsafePointer<_MessageTable>) -> UnsafeMutableRawPointer {
        take { lifeline_message_create(table, $0) }
    }

    /// A deep copy of `message`, which is in `source`.
    @usableFromInline func copy(
        _ message: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        from source: _MessageStorage?
    ) -> UnsafeMutableRawPointer {
        guard let source else { return create(table) }
        return withBorrowed(source) { source in
            inheritText(from: source)
            return take { lifeline_message_copy(table, message, $0) }
        }
    }

    /// A deep copy of the elements of a repeated field or a map, which are in `source`.
    func copy(
        _ elements: UnsafeRawPointer,
        count: Int,
        of field: UnsafePointer<LifelineField>,
        from source: _MessageStorage?
    ) -> UnsafeMutableRawPointer? {
        if count == 0 { return nil }
        return withBorrowed(source) { source in
            inheritText(from: source)
            return take { lifeline_elements_copy(field, elements, count, $0) }
        }
    }

    /// Makes encoded fields the unknown ones of `message`, which is in this storage.
    func setUnknownFields(of message: UnsafeMutableRawPointer, to bytes: UnsafeBufferPointer<UInt8>) {
        take { lifeline_unknown_fields_set(message, bytes.baseAddress, bytes.count, $0) ? () : nil }
    }

    /// Replaces an extension of `message`, which is in this storage, by `content`, of the extension's table and in
    /// `source`.
    func write(
        _ content: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        from source: _MessageStorage?,
        toExtensionsOf message: UnsafeMutableRawPointer
    ) {
        if source != nil { withBorrowed(source) { inheritText(from: $0) } }
        take { lifeline_extension_write(table, message, content, $0) ? () : nil }
    }
}
