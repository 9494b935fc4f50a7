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
/// storage is overdue, and the next change moves the message to a new storage first, leaving the garbage behind. The
/// allowance is twice the size, so that this costs no more than growing an array does.
///
/// For generated code and this library; nothing here is for users.
/// The class itself is not `Sendable` (ManagedBuffer rules that out); the values that hold one are, because of that rule.
public final class MessageStorage: ManagedBuffer<MessageStorage.Header, UInt64> {
    /// A trivial type, so that creating and freeing a storage costs no reference counting of its own; and a small one,
    /// for every message has it.
    @frozen public struct Header {
        /// First, so that a pointer to a storage's arena is one to its header. A loan's has no memory.
        @usableFromInline var arena = LifelineArena()
        /// The newest of the loans that came back and are kept for the next ones; its own link leads to the one before.
        /// Of a loan that is out: its lender.
        @usableFromInline var link: Unmanaged<MessageStorage>?

        @inlinable init() {}
    }

    // Inlinable, as all that makes a storage is: where a message is made and used up in one function, the compiler then
    // sees that nobody else can refer to the storage, and frees it without counting references, in a third of the time.
    @inlinable deinit {
        withUnsafeMutablePointerToHeader { header in
            if header.pointee.arena.blocks != nil { lifeline_arena_destroy(&header.pointee.arena) }
            if header.pointee.link != nil { MessageStorage.releaseLink(of: header) }
        }
    }

    /// A storage with room for `byteCount` bytes, and no arena in it yet.
    @inlinable @inline(__always) static func create(uninitializedByteCount byteCount: Int) -> MessageStorage {
        let buffer = MessageStorage.create(minimumCapacity: (byteCount &+ 7) / 8) { _ in Header() }
        return unsafeDowncast(buffer, to: MessageStorage.self)
    }

    /// A storage whose arena starts with `byteCount` bytes in the object itself, and goes on in blocks of at least
    /// `blockSize` bytes: by default what glibc's malloc answers from its per-thread cache.
    @usableFromInline static func create(byteCount: Int, blockSize: Int = 1_024) -> MessageStorage {
        let storage = create(uninitializedByteCount: byteCount)
        storage.withUnsafeMutablePointers { header, memory in
            lifeline_arena_init(&header.pointee.arena, memory, byteCount & ~7, blockSize)
            header.pointee.arena.budget = allowance(forSize: byteCount)
        }
        return storage
    }

    /// Where to allocate: this storage's arena, or that of the storage that the loan goes back to in the end.
    @inlinable var allocator: UnsafeMutablePointer<LifelineArena> {
        UnsafeMutableRawPointer(rootHeader).assumingMemoryBound(to: LifelineArena.self)
    }
}

// MARK: - Allocating

extension MessageStorage {
    /// What changes may take before a storage of that size is overdue. At least 4 KiB: less is not worth moving for.
    @inlinable static func allowance(forSize byteCount: Int) -> UInt32 {
        lifeline_arena_budget(max(4_096, byteCount &* 2))
    }

    /// Whether the next change should move what is here to a new storage. The arena's budget says it: see `take`.
    @inlinable var isOverdue: Bool {
        withUnsafeMutablePointerToHeader { $0.pointee.arena.budget == .max }
    }

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

    /// What `allocate` takes from the arena. It may be called twice: it answers nil while the allowance does not suffice.
    ///
    /// Running out of memory for real is as fatal here as it is elsewhere in Swift; decoding has a budget of its own.
    @inlinable @inline(__always) func take<Memory>(
        _ allocate: (UnsafeMutablePointer<LifelineArena>) -> Memory?
    ) -> Memory {
        if let memory = allocate(allocator) { return memory }
        becomeOverdue()
        guard let memory = allocate(allocator) else { preconditionFailure("Out of memory for a message") }
        return memory
    }

    /// A loan is overdue by itself too: what it holds then moves out of its lender's arena, and back once it is settled.
    @usableFromInline func becomeOverdue() {
        allocator.pointee.budget = .max
        becomeOverdueAlone()
    }

    func becomeOverdueAlone() {
        withUnsafeMutablePointerToHeader { $0.pointee.arena.budget = .max }
    }
}

// MARK: - Text

extension MessageStorage {
    /// Whether strings in here may be other than UTF-8: they then have to be repaired when they are read.
    @inlinable var mayHoldMalformedText: Bool { allocator.pointee.may_hold_malformed_text }

    /// To be called when something is copied from `source`.
    @inlinable func inheritText(from source: MessageStorage) {
        if source.mayHoldMalformedText { allocator.pointee.may_hold_malformed_text = true }
    }
}

// MARK: - Copying

extension MessageStorage {
    /// A deep copy in this storage of `message`, which is in `source`.
    @usableFromInline func copy(
        _ message: UnsafeRawPointer,
        as table: UnsafePointer<MessageTable>,
        from source: MessageStorage?
    ) -> UnsafeMutableRawPointer {
        guard let source else { return create(table) }
        defer { extendLifetime(source) }
        inheritText(from: source)
        return take { lifeline_message_copy(table, message, $0) }
    }

    /// A new message in this storage, with no field set.
    @usableFromInline func create(_ table: UnsafePointer<MessageTable>) -> UnsafeMutableRawPointer {
        take { lifeline_message_create(table, $0) }
    }

    /// A storage that nobody else refers to, with a deep copy of `message`, which is in `source`, and room for
    /// `reserved` bytes more.
    @usableFromInline static func withCopy(
        of message: UnsafeRawPointer,
        as table: UnsafePointer<MessageTable>,
        from source: MessageStorage?,
        reserving reserved: Int
    ) -> (MessageStorage, UnsafeMutableRawPointer) {
        let size = source == nil ? Int(table.pointee.size) : lifeline_message_copy_size(table, message)
        // Half as much again, and at least 256 bytes, for what is about to be set.
        let storage = create(byteCount: size &+ max(size / 2, 256) &+ reserved)
        return (storage, storage.copy(message, as: table, from: source))
    }
}
