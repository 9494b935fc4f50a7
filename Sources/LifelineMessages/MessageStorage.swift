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
/// and the next change on either side copies first. So a loan never needs to be taken back by force.
///
/// For generated code and this library; nothing here is for users.
/// The class itself is not `Sendable` (ManagedBuffer rules that out); the values that hold one are, because of that rule.
public final class MessageStorage: ManagedBuffer<MessageStorage.Header, UInt64> {
    /// A trivial type, so that creating and freeing a storage costs no reference counting of its own.
    @frozen public struct Header {
        @usableFromInline var arena: LifelineArena
        /// Where to allocate: `arena`, or that of the storage that a loan goes back to.
        @usableFromInline var allocator: UnsafeMutablePointer<LifelineArena>?
        /// In a loan, the storage that lent its arena; owned.
        @usableFromInline var lender: Unmanaged<MessageStorage>?
        /// A loan that came back, kept for the next one; owned.
        @usableFromInline var spareLoan: Unmanaged<MessageStorage>?

        @inlinable init() {
            arena = LifelineArena()
            allocator = nil
            lender = nil
            spareLoan = nil
        }
    }

    deinit {
        withUnsafeMutablePointerToHeader { header in
            if header.pointee.arena.blocks != nil { lifeline_arena_destroy(&header.pointee.arena) }
            header.pointee.lender?.release()
            header.pointee.spareLoan?.release()
        }
    }

    /// The storage of every message that has no field set. It is never unique, for this constant refers to it too,
    /// so it is never written to, which is what makes sharing it between threads safe.
    nonisolated(unsafe) public static let empty = MessageStorage.create(byteCount: 0)

    /// A storage whose arena starts with `byteCount` bytes in the object itself, and may then take `budget` bytes more.
    @inlinable static func create(byteCount: Int, budget: Int = .max) -> MessageStorage {
        let words = (byteCount &+ 7) / 8
        let buffer = MessageStorage.create(minimumCapacity: words) { _ in Header() }
        let storage = unsafeDowncast(buffer, to: MessageStorage.self)
        storage.withUnsafeMutablePointers { header, memory in
            let arena = header.pointer(to: \.arena)!
            lifeline_arena_init(arena, memory, words &* 8, budget)
            header.pointee.allocator = arena
        }
        return storage
    }

    @inlinable var allocator: UnsafeMutablePointer<LifelineArena> {
        withUnsafeMutablePointerToHeader { $0.pointee.allocator.unsafelyUnwrapped }
    }

    /// Memory for `byteCount` bytes, 8-aligned.
    ///
    /// Only decoding runs under a budget; here, running out of memory is as fatal as it is elsewhere in Swift.
    @inlinable func allocate(byteCount: Int) -> UnsafeMutableRawPointer {
        guard let memory = lifeline_arena_allocate(allocator, byteCount) else {
            preconditionFailure("Out of memory: a message needs \(byteCount) bytes more")
        }
        return memory
    }
}

// MARK: - Loans

extension MessageStorage {
    /// A storage for a part of this one's tree, to be changed in place by somebody else for a while.
    @usableFromInline func lend() -> MessageStorage {
        withUnsafeMutablePointerToHeader { header in
            let loan: MessageStorage
            if let spare = header.pointee.spareLoan {
                header.pointee.spareLoan = nil
                loan = spare.takeRetainedValue()
            } else {
                loan = MessageStorage.create(byteCount: 0)
            }
            loan.withUnsafeMutablePointerToHeader {
                $0.pointee.lender = .passRetained(self)
                $0.pointee.allocator = header.pointee.allocator
            }
            return loan
        }
    }

    /// Whether `storage` is a loan of this one's.
    @usableFromInline func isLender(of storage: MessageStorage) -> Bool {
        storage.withUnsafeMutablePointerToHeader { header in
            guard let lender = header.pointee.lender else { return false }
            return lender.toOpaque() == Unmanaged.passUnretained(self).toOpaque()
        }
    }

    /// Ends the loan `loan`, which must be one of this storage's. One that somebody else holds too stays as it is, and
    /// keeps this storage from being unique.
    @usableFromInline func takeBack(_ loan: inout MessageStorage) {
        guard isKnownUniquelyReferenced(&loan) else { return }
        loan.withUnsafeMutablePointerToHeader { header in
            header.pointee.lender.take()?.release()
        }
        withUnsafeMutablePointerToHeader { header in
            header.pointee.spareLoan?.release()
            header.pointee.spareLoan = .passRetained(loan)
        }
    }
}
