public import CLifelineMessages
public import CProtobufC

/// A storage that somebody else's reference keeps alive for as long as this is used, and that may be written to.
///
/// What changes messages passes storages on as this, because passing references on makes compilers count them, and
/// counting took more than half of the time that building a message takes. A method may make one of a reference in `self`
/// that it does not replace: its caller keeps that alive. Of any other reference, `withBorrowed` makes one.
///
/// For generated code and this library.
@frozen public struct BorrowedStorage {
    @usableFromInline let unmanaged: Unmanaged<MessageStorage>

    @inlinable @inline(__always) init(_ storage: MessageStorage) {
        unmanaged = .passUnretained(storage)
    }

    @inlinable @inline(__always) func with<Result>(_ body: (MessageStorage) -> Result) -> Result {
        unmanaged._withUnsafeGuaranteedRef(body)
    }

    @inlinable var arena: UnsafeMutablePointer<LifelineArena> { with(\.arena) }
    @inlinable var isOverdue: Bool { with(\.isOverdue) }
    @inlinable var mayHoldMalformedText: Bool { with(\.mayHoldMalformedText) }
}

/// Calls `body` with `storage`, which must be there, and which is kept alive meanwhile.
@inlinable @inline(__always) func withBorrowed<Result>(
    _ storage: MessageStorage?,
    _ body: (BorrowedStorage) -> Result
) -> Result {
    defer { extendLifetime(storage) }
    return body(BorrowedStorage(storage.unsafelyUnwrapped))
}

// MARK: - Allocating

extension BorrowedStorage {
    /// Memory for `byteCount` bytes, 8-aligned.
    @usableFromInline func allocate(byteCount: Int) -> UnsafeMutableRawPointer {
        take { lifeline_arena_allocate($0, byteCount) }
    }

    /// Room for at least `capacity` elements, with the first `count` of `elements` in it.
    @usableFromInline func reserve(
        _ elements: UnsafeMutableRawPointer?,
        count: Int,
        capacity: Int,
        stride: Int
    ) -> UnsafeMutableRawPointer {
        take { lifeline_array_reserve($0, elements, count, capacity, stride) }
    }

    /// What `allocate` takes from the arena. It is called again when it answers nil, because the allowance is used up.
    ///
    /// Running out of memory for real is as fatal here as it is elsewhere in Swift; decoding has a budget of its own.
    @inline(__always) private func take<Memory>(_ allocate: (UnsafeMutablePointer<LifelineArena>) -> Memory?) -> Memory
    {
        if let memory = allocate(arena) { return memory }
        exceedAllowance()
        if let memory = allocate(arena) { return memory }
        // More at once than an allowance.
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
        root.pointee.budget = MessageStorage.allowance(forSize: lifeline_arena_block_bytes(root) / 2)
    }
}

// MARK: - Strings and bytes

extension BorrowedStorage {
    /// Replaces what `value`, a field in this storage, holds. Bytes that fit where the old ones are take their place.
    @inlinable @inline(__always) func assign(_ bytes: UnsafeBufferPointer<UInt8>, to value: inout BytesValue) {
        if !lifeline_bytes_assign(arena, &value.len, &value.data, bytes.baseAddress, bytes.count) {
            assignBeyondAllowance(bytes, to: &value)
        }
    }

    @usableFromInline func assignBeyondAllowance(_ bytes: UnsafeBufferPointer<UInt8>, to value: inout BytesValue) {
        take { lifeline_bytes_assign($0, &value.len, &value.data, bytes.baseAddress, bytes.count) ? () : nil }
    }

    @inlinable func store(_ bytes: UnsafeBufferPointer<UInt8>) -> BytesValue {
        var value = BytesValue(len: 0, data: nil)
        assign(bytes, to: &value)
        return value
    }

    /// A copy of `value`, which is in `source`. As it is: text that is not UTF-8 stays so.
    @usableFromInline func copy(_ value: BytesValue, from source: MessageStorage) -> BytesValue {
        withBorrowed(source) { source in
            inheritText(from: source)
            return store(value.buffer)
        }
    }

    /// To be called when something is copied from `source`.
    private func inheritText(from source: BorrowedStorage) {
        if source.mayHoldMalformedText { arena.pointee.may_hold_malformed_text = true }
    }
}

extension String {
    /// Calls `body` with the UTF-8 of the text. Unlike `withUTF8`, it retains no text that is on the heap.
    @inlinable @inline(__always) func withUTF8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        utf8.count > 15 ? utf8.span.withUnsafeBufferPointer(body) : withShortUTF8Bytes(body)
    }

    /// A String holds so few bytes in itself, and the span of that has dangled in Swift 6.3.1's optimized code.
    @inlinable @inline(never) func withShortUTF8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result
    {
        var text = self
        return text.withUTF8(body)
    }
}

// MARK: - Messages

extension BorrowedStorage {
    /// A new message, with no field set.
    @usableFromInline func create(_ table: UnsafePointer<MessageTable>) -> UnsafeMutableRawPointer {
        take { lifeline_message_create(table, $0) }
    }

    /// A deep copy of `message`, which is in `source`.
    @usableFromInline func copy(
        _ message: UnsafeRawPointer,
        as table: UnsafePointer<MessageTable>,
        from source: MessageStorage?
    ) -> UnsafeMutableRawPointer {
        guard let source else { return create(table) }
        return withBorrowed(source) { source in
            inheritText(from: source)
            return take { lifeline_message_copy(table, message, $0) }
        }
    }
}
