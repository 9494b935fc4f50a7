public import CLifelineMessages

/// The heap object that one message tree lives in: an arena that the tree's C structs, strings and arrays are in.
///
/// Values of generated types hold a reference to a storage and a pointer into it; so do the views of their submessages
/// and repeated fields. A storage is written to only through a value that holds the only reference to it, which is
/// what gives messages value semantics.
///
/// **Loans.** To change a submessage in place (`message.author.name = "Ada"`), its parent yields a value that must hold
/// the only reference to *its* storage too, although parent and child share an arena. For that time the parent lends
/// its arena: the child's storage is a *loan*, an object without memory of its own that refers to its lender. While
/// anybody else holds the loan (a copy that the child made of itself), the loan keeps its lender from being unique,
/// and the next change on either side copies first: of the loan too, which is marked when it should have come back. So a
/// loan never needs to be taken back by force.
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
        /// A loan's has no memory.
        @usableFromInline var arena = LifelineArena()
        /// Of a loan: its lender. Of others: a loan that came back, kept for the next one; its own link is one more.
        @usableFromInline var link: Unmanaged<MessageStorage>?

        @inlinable init() {}
    }

    // Inlinable, as all that makes a storage is: where a message is made and used up in one function, the compiler then
    // sees that nobody else can refer to the storage, and frees it without counting references, in a third of the time.
    @inlinable deinit {
        withUnsafeMutablePointerToHeader { header in
            if header.pointee.arena.blocks != nil { lifeline_arena_destroy(&header.pointee.arena) }
            header.pointee.link?.release()
        }
    }

    /// The storage of every message that has no field set. It is never unique, for this constant refers to it too,
    /// so it is never written to, which is what makes sharing it between threads safe.
    nonisolated(unsafe) public static let empty = MessageStorage.create(byteCount: 0)

    /// A storage with room for `byteCount` bytes, and no arena in it yet.
    @inlinable @inline(__always) static func create(uninitializedByteCount byteCount: Int) -> MessageStorage {
        let buffer = MessageStorage.create(minimumCapacity: (byteCount &+ 7) / 8) { _ in Header() }
        return unsafeDowncast(buffer, to: MessageStorage.self)
    }

    /// A storage whose arena starts with `byteCount` bytes in the object itself, and goes on in blocks of at least
    /// `blockSize` bytes: by default what glibc's malloc answers from its per-thread cache.
    @inlinable static func create(byteCount: Int, blockSize: Int = 1_024) -> MessageStorage {
        let storage = create(uninitializedByteCount: byteCount)
        storage.withUnsafeMutablePointers { header, memory in
            lifeline_arena_init(&header.pointee.arena, memory, byteCount & ~7, blockSize)
            header.pointee.arena.budget = allowance(forSize: byteCount)
        }
        return storage
    }

    /// Where to allocate: this storage's arena, or that of the storage that the loan goes back to in the end.
    @inlinable var allocator: UnsafeMutablePointer<LifelineArena> {
        withUnsafeMutablePointerToHeader { header in
            if header.pointee.arena.next != nil { return header.pointer(to: \.arena).unsafelyUnwrapped }
            return header.pointee.link.unsafelyUnwrapped._withUnsafeGuaranteedRef { $0.lenderAllocator() }
        }
    }

    @usableFromInline func lenderAllocator() -> UnsafeMutablePointer<LifelineArena> { allocator }
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
    @inlinable func allocate(byteCount: Int) -> UnsafeMutableRawPointer {
        take { lifeline_arena_allocate($0, byteCount) }
    }

    /// What `allocate` takes from the arena. It may be called twice: it answers nil while the allowance does not suffice.
    ///
    /// Running out of memory for real is as fatal here as it is elsewhere in Swift; decoding has a budget of its own.
    @inlinable func take<Memory>(_ allocate: (UnsafeMutablePointer<LifelineArena>) -> Memory?) -> Memory {
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

    private func becomeOverdueAlone() {
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

// MARK: - Loans

extension MessageStorage {
    /// A storage for a part of this one's tree, to be changed in place by somebody else for a while.
    @usableFromInline func lend() -> MessageStorage {
        let loan = takeSpareLoan() ?? MessageStorage.create(minimumCapacity: 0) { _ in Header() }
        return loan.withUnsafeMutablePointerToHeader { header in
            header.pointee.link = .passRetained(self)
            header.pointee.arena.budget = 0
            return unsafeDowncast(loan, to: MessageStorage.self)
        }
    }

    /// Spare loans are kept by the storage that all loans go back to in the end.
    private func takeSpareLoan() -> ManagedBuffer<Header, UInt64>? {
        withUnsafeMutablePointerToHeader { header in
            if header.pointee.arena.next == nil {
                return header.pointee.link?._withUnsafeGuaranteedRef { $0.takeSpareLoan() }
            }
            guard let spare = header.pointee.link?.takeRetainedValue() else { return nil }
            spare.withUnsafeMutablePointerToHeader { header.pointee.link = $0.pointee.link.take() }
            return spare
        }
    }

    private func keepSpareLoan(_ loan: MessageStorage) {
        withUnsafeMutablePointerToHeader { header in
            if header.pointee.arena.next == nil {
                header.pointee.link?._withUnsafeGuaranteedRef { $0.keepSpareLoan(loan) }
            } else {
                loan.withUnsafeMutablePointerToHeader { $0.pointee.link = header.pointee.link }
                header.pointee.link = .passRetained(loan)
            }
        }
    }

    /// Whether `storage` is a loan of this one's.
    @usableFromInline func isLender(of storage: MessageStorage) -> Bool {
        storage.withUnsafeMutablePointerToHeader { header in
            guard header.pointee.arena.next == nil, let lender = header.pointee.link else { return false }
            return lender.toOpaque() == Unmanaged.passUnretained(self).toOpaque()
        }
    }

    /// Ends the loan `loan`, which must be one of this storage's. One that somebody else holds too stays as it is: it
    /// keeps this storage from being unique, and is itself moved away from before the next change, for what it refers
    /// to is this storage's as well.
    @usableFromInline func takeBack(_ loan: inout MessageStorage) {
        guard isKnownUniquelyReferenced(&loan) else { return loan.becomeOverdueAlone() }
        loan.withUnsafeMutablePointerToHeader { $0.pointee.link.take()?.release() }
        keepSpareLoan(loan)
    }
}
