public import CLifelineMessages

/// The heap object that one message tree lives in: an arena that the tree's C structs, strings and arrays are in.
///
/// Values of generated types hold a reference to a storage and a pointer into it; so do the views of their submessages
/// and repeated fields. A storage is written to only through a value that holds the only reference to it, which is
/// what gives messages value semantics. Where nothing was set yet, there is no storage.
///
/// To change a submessage in place, a parent lends its arena: see MessageStorage+Loans.swift.
///
/// **Garbage.** An arena takes nothing back: what a string held before it was set to a longer one stays where it is. So
/// that this does not add up, a storage has an *allowance* of memory that changes may take. Once they took more, the
/// storage is overdue, and the next change moves the message to a new storage first, leaving the garbage behind; or, if
/// there is little, gives it a new allowance. (Lists and maps on their own always move.) The allowance is twice the size,
/// so that this costs no more than growing an array does. While a storage is lent, nobody can move it: then it gets a
/// second allowance, after which what was lent moves away.
///
/// For generated code and this library; nothing here is for users.
/// The class itself is not `Sendable` (ManagedBuffer rules that out); the values that hold one are, because of that rule.
public final class MessageStorage: ManagedBuffer<LifelineArena, UInt64> {
    // The header is a trivial type, so that creating and freeing a storage costs no reference counting of its own; and a
    // small one, for every message has it.

    /// Bytes of a storage beside its memory: Swift's own two words, and the header.
    @inlinable static var overhead: Int { 16 + MemoryLayout<LifelineArena>.size }

    // Inlinable, as all that makes a storage is: where a message is made and used up in one function, the compiler then
    // sees that nobody else can refer to the storage, and frees it without counting references, in a third of the time.
    @inlinable deinit {
        withUnsafeMutablePointerToHeader { arena in
            guard arena.pointee.blocks != nil else { return }
            if arena.pointee.isLoan { MessageStorage.endLoan(arena) } else { lifeline_arena_destroy(arena) }
        }
    }

    /// A storage with room for `byteCount` bytes, and no arena in it yet.
    @inlinable @inline(__always) static func create(uninitializedByteCount byteCount: Int) -> MessageStorage {
        let buffer = MessageStorage.create(minimumCapacity: (byteCount &+ 7) / 8) { _ in LifelineArena() }
        return unsafeDowncast(buffer, to: MessageStorage.self)
    }

    /// A storage whose arena starts with `byteCount` bytes in the object itself, and goes on in blocks, the first of
    /// which glibc's malloc answers from its per-thread cache.
    @usableFromInline static func create(byteCount: Int) -> MessageStorage {
        let storage = create(uninitializedByteCount: byteCount)
        storage.withUnsafeMutablePointers { arena, memory in
            lifeline_arena_init(arena, memory, byteCount & ~7, 1_024)
            arena.pointee.budget = allowance(forSize: byteCount)
        }
        return storage
    }
}

// MARK: - The arena

extension MessageStorage {
    /// What `fill` copies into a new storage that starts with `byteCount` bytes: that does not count as a change of it.
    @inlinable static func filled<Copy>(byteCount: Int, by fill: (MessageStorage) -> Copy) -> Copy {
        let storage = create(byteCount: byteCount)
        storage.arena.pointee.budget = LIFELINE_NO_BUDGET
        let copy = fill(storage)
        storage.arena.pointee.budget = allowance(forSize: byteCount &+ lifeline_arena_block_bytes(storage.arena))
        return copy
    }

    /// Where to allocate: the arena of this storage, or of that which the loan goes back to in the end.
    @inlinable var arena: UnsafeMutablePointer<LifelineArena> {
        withUnsafeMutablePointerToHeader { $0.pointee.isLoan ? $0.pointee.root : $0 }
    }

    /// Whether strings in here may be other than UTF-8: they then have to be repaired when they are read.
    @inlinable var mayHoldMalformedText: Bool { arena.pointee.may_hold_malformed_text }

    /// What changes may take before a storage of that size is overdue. At least 4 KiB: less is not worth moving for.
    @inlinable static func allowance(forSize byteCount: Int) -> UInt32 {
        lifeline_arena_budget(max(4_096, byteCount &* 2))
    }

    /// Whether the next change should move what is here to a new storage: see `BorrowedStorage.take`.
    @inlinable var isOverdue: Bool {
        withUnsafeMutablePointerToHeader { $0.pointee.is_overdue != 0 }
    }

    func becomeOverdue() {
        withUnsafeMutablePointerToHeader { $0.pointee.is_overdue = 1 }
    }

    /// Gives the message at `fields`, for which the storage is overdue, a new allowance, if most of the memory is in use.
    /// The reference to this storage must be the only one.
    func renewAllowance(for fields: UnsafeRawPointer, as table: UnsafePointer<MessageTable>) -> Bool {
        withUnsafeMutablePointerToHeader { arena in
            guard !arena.pointee.isLoan else { return false }
            let size = lifeline_message_copy_size(table, fields)
            guard size >= lifeline_arena_block_bytes(arena) / 2 else { return false }
            arena.pointee.is_overdue = 0
            arena.pointee.budget = MessageStorage.allowance(forSize: size)
            return true
        }
    }
}

/// Whether what `storage` holds can be changed where it is.
@inlinable @inline(__always) func isWritable(_ storage: inout MessageStorage?) -> Bool {
    isKnownUniquelyReferenced(&storage) && !BorrowedStorage(storage.unsafelyUnwrapped).isOverdue
}
