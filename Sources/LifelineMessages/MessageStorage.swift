public import CLifelineMessages

/// The heap object with one message tree: an arena with the C structs, strings and arrays of the tree.
///
/// Values of generated types hold a reference to a storage and a pointer into it. So do the views of their submessages
/// and repeated fields. See docs/message-memory.md for who owns a storage, for how long pointers into it are valid, for
/// loans, and for what bounds the garbage in an arena.
///
/// The class itself is not `Sendable` (ManagedBuffer rules that out). The values that hold a storage are, because only
/// the holder of the one reference to it writes to it.
public final class _MessageStorage: ManagedBuffer<LifelineArena, UInt64> {
    // The header is trivial, so that creating and freeing a storage counts no references, and small, because every
    // message has it. A loan has no arena: its memory holds a `Loan`, and its header says so.

    /// The bytes of a storage beside its memory: Swift's own two words, and the header.
    @inlinable static var overhead: Int { 16 + MemoryLayout<LifelineArena>.size }

    // Inlinable, like everything that creates a storage. If a message is made and used up in one function, the compiler
    // then knows that there is no other reference. It frees the storage without counting, in a third of the time.
    @inlinable deinit {
        withUnsafeMutablePointers { arena, memory in
            if arena.pointee.is_loan {
                _MessageStorage.end(_MessageStorage.loan(at: memory))
            } else if arena.pointee.blocks != nil {
                lifeline_arena_destroy(arena)
            }
        }
    }

    /// A storage with room for `byteCount` bytes, whose arena is not started yet.
    @inlinable @inline(__always) static func create(uninitializedByteCount byteCount: Int) -> _MessageStorage {
        let buffer = _MessageStorage.create(minimumCapacity: (byteCount &+ 7) / 8) { _ in LifelineArena() }
        return unsafeDowncast(buffer, to: _MessageStorage.self)
    }

    /// A storage whose arena starts with `byteCount` bytes in the object itself. It continues in blocks, the first of
    /// which comes from the per-thread cache of glibc's malloc.
    @usableFromInline static func create(byteCount: Int) -> _MessageStorage {
        let storage = create(uninitializedByteCount: byteCount)
        storage.withUnsafeMutablePointers { arena, memory in
            lifeline_arena_init(arena, memory, byteCount & ~7, 1_024)
            arena.pointee.budget = allowance(forSize: byteCount)
        }
        return storage
    }
}

extension _MessageStorage {
    /// Takes the reference out of `storage`, which must not be nil, and leaves nil there.
    ///
    /// By its bits, which are those of an Unmanaged: Swift 6.3 retains and releases around `Unmanaged.passRetained`.
    static func moved(out storage: inout _MessageStorage?) -> Unmanaged<_MessageStorage> {
        withUnsafeMutableBytes(of: &storage) { reference in
            defer { reference.storeBytes(of: nil, as: Unmanaged<_MessageStorage>?.self) }
            return reference.load(as: Unmanaged<_MessageStorage>.self)
        }
    }

    /// Calls `body` with the storage, if there is one. By its bits, too: Swift 6.3 retains what it loads from an inout
    /// parameter.
    @inline(__always) static func withUnmanaged<Result>(
        _ storage: inout _MessageStorage?,
        _ body: (_MessageStorage) -> Result
    ) -> Result? {
        let reference = withUnsafeBytes(of: &storage) { $0.load(as: Unmanaged<_MessageStorage>?.self) }
        return reference?._withUnsafeGuaranteedRef(body)
    }
}

// MARK: - The arena

extension _MessageStorage {
    /// Creates a storage that starts with `byteCount` bytes, and lets `fill` copy into it. The copy takes nothing from
    /// the allowance for changes.
    @inlinable static func filled<Copy>(byteCount: Int, by fill: (_MessageStorage) -> Copy) -> Copy {
        let storage = create(byteCount: byteCount)
        storage.arena.pointee.budget = LIFELINE_NO_BUDGET
        let copy = fill(storage)
        storage.arena.pointee.budget = allowance(forSize: byteCount &+ lifeline_arena_block_bytes(storage.arena))
        return copy
    }

    /// The arena to allocate in: this storage's own, or the one that a loan comes from.
    @inlinable var arena: UnsafeMutablePointer<LifelineArena> {
        withUnsafeMutablePointers { arena, memory in
            arena.pointee.is_loan ? _MessageStorage.loan(at: memory).pointee.root : arena
        }
    }

    /// Whether strings in here may not be UTF-8, so that they must be repaired when they are read.
    @inlinable var mayHoldMalformedText: Bool { arena.pointee.may_hold_malformed_text }

    /// The memory that changes may take before a storage of this size is overdue. At least 4 KiB: moving is not worth
    /// it for less.
    @inlinable static func allowance(forSize byteCount: Int) -> UInt32 {
        lifeline_arena_budget(max(4_096, byteCount &* 2))
    }

    /// Whether the next change should move the values in here to a new storage: see `_BorrowedStorage.take`.
    @inlinable var isOverdue: Bool {
        withUnsafeMutablePointerToHeader { $0.pointee.is_overdue != 0 }
    }

    func becomeOverdue() {
        withUnsafeMutablePointerToHeader { $0.pointee.is_overdue = 1 }
    }

    /// Gives an overdue storage a new allowance, if most of its memory is in use by the message at `fields`. The
    /// reference to this storage must be the only one.
    func renewAllowance(for fields: UnsafeRawPointer, as table: UnsafePointer<_MessageTable>) -> Bool {
        withUnsafeMutablePointerToHeader { arena in
            guard !arena.pointee.is_loan else { return false }
            let size = lifeline_message_copy_size(table, fields)
            guard size >= lifeline_arena_block_bytes(arena) / 2 else { return false }
            arena.pointee.is_overdue = 0
            arena.pointee.budget = _MessageStorage.allowance(forSize: size)
            return true
        }
    }
}

/// Whether the values in `storage` can be changed in place.
@inlinable @inline(__always) func isWritable(_ storage: inout _MessageStorage?) -> Bool {
    isKnownUniquelyReferenced(&storage) && !_BorrowedStorage(storage.unsafelyUnwrapped).isOverdue
}
