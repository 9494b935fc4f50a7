public import CLifelineMessages

// To change a submessage in place (`message.author.name = "Ada"`), its parent yields a value that must hold the only
// reference to *its* storage, although parent and child share an arena. For that time the parent lends its arena: the
// child's storage is a *loan*, an object without memory of its own that is linked to its lender.
//
// While it is out, a loan does not count as a reference to its lender: the parent holds one all the while, for nobody
// else can get at the parent, and a change in place is to cost no atomic operations. What is left to take care of is a
// loan that somebody else holds when the parent settles: a copy that was made of the child, which can be on any thread.
// From then on it does count, which keeps the lender alive, and from being unique, so that the next change of the
// parent copies first. Which of the two comes first, the end of the loan object or its settlement, is what the
// lender's state says, in one atomic exchange on either side.
//
// What is lent is not in its owner meanwhile: the owner's field holds nothing until it settles. So a copy of the child that
// another thread changes, because the child was replaced and nobody else holds the loan, is in nobody's way: no copy of the
// owner goes through it.
//
// A storage lends to one loan at a time: lending takes a unique reference to it, and the loan's end, or a settlement
// that leaves it with a reference of its own, comes before the next one.
private enum Lending {
    static let none: UInt8 = 0
    /// The loan does not count as a reference.
    static let isOut: UInt8 = 1
    /// The loan object is gone, before it was settled: the child was replaced.
    static let isGone: UInt8 = 2
    /// The loan counts as a reference.
    static let isCounted: UInt8 = 3
}

extension LifelineArena {
    // Of a loan's, which has no memory, the fields that would describe it lead to where it comes from.

    // Not told by one of those fields, for allocating in an arena writes to them, on any thread.
    @inlinable var isLoan: Bool { is_loan }

    /// The arena that has the memory.
    @inlinable var root: UnsafeMutablePointer<LifelineArena> {
        get { UnsafeMutableRawPointer(limit.unsafelyUnwrapped).assumingMemoryBound(to: LifelineArena.self) }
        set { limit = UnsafeMutableRawPointer(newValue).assumingMemoryBound(to: UInt8.self) }
    }

    /// Nil when the loan is not out.
    fileprivate var lender: Unmanaged<MessageStorage>? {
        get { blocks.map { Unmanaged.fromOpaque(UnsafeRawPointer($0)) } }
        set { blocks = newValue.map { OpaquePointer($0.toOpaque()) } }
    }
}

extension BorrowedStorage {
    /// A storage for a part of this one's tree, to be changed in place by somebody else for a while. The reference to
    /// this storage must be the only one.
    @usableFromInline func lend() -> MessageStorage {
        let root = arena
        let loan = MessageStorage.takeSpareLoan()
        loan.withUnsafeMutablePointerToHeader { arena in
            arena.pointee.lender = unmanaged
            arena.pointee.root = root
            // A loan that has just become overdue, to make room for what is lent, hands that on: its owner might go on with
            // what is lent and never change the loan again.
            arena.pointee.is_overdue = ownArena.pointee.isLoan ? ownArena.pointee.is_overdue : 0
        }
        ownArena.pointee.lending = Lending.isOut
        return loan
    }

    /// Takes the loan back. `storage` is that of what was lent, as it is now.
    ///
    /// - Returns: Whether it is the loan, so that what it holds is in this storage's arena. If not, the child was
    ///   replaced, and `settleWithoutLoan` has to follow.
    @usableFromInline func takeBack(_ storage: inout MessageStorage?) -> Bool {
        guard isLender(of: storage) else { return false }
        if isKnownUniquelyReferenced(&storage) {
            ownArena.pointee.lending = Lending.none
            MessageStorage.keepSpareLoan(&storage)
        } else {
            // What the other one refers to is this storage's as well, so it has to move away before it changes.
            storage.unsafelyUnwrapped.becomeOverdue()
            settleWithoutLoan()
        }
        return true
    }

    /// Marks this loan, if it is one, and those that it came from: what they hold moves out of the arena with the next
    /// change of each, and back into another once it is settled.
    func markLoansOverdue() {
        var storage = self
        while storage.ownArena.pointee.isLoan {
            storage.ownArena.pointee.is_overdue = 1
            guard let lender = storage.ownArena.pointee.lender else { return }
            storage = lender._withUnsafeGuaranteedRef { BorrowedStorage($0) }
        }
    }

    private func isLender(of storage: MessageStorage?) -> Bool {
        guard let storage else { return false }
        return storage.withUnsafeMutablePointerToHeader { arena in
            arena.pointee.isLoan && arena.pointee.lender?.toOpaque() == unmanaged.toOpaque()
        }
    }

    /// Makes a loan that somebody else holds count as a reference, if there still is one.
    @usableFromInline func settleWithoutLoan() {
        let ofLoan = unmanaged.retain()
        if exchangeLending(Lending.isCounted) == Lending.isGone { ofLoan.release() }
    }

    fileprivate func exchangeLending(_ lending: UInt8) -> UInt8 {
        lifeline_arena_exchange_lending(ownArena, lending)
    }

    /// Also of a loan, which can be a lender too.
    private var ownArena: UnsafeMutablePointer<LifelineArena> {
        with { $0.withUnsafeMutablePointerToHeader { $0 } }
    }
}

extension MessageStorage {
    /// Ends a loan that is out, when the object is freed.
    @usableFromInline static func endLoan(_ loan: UnsafeMutablePointer<LifelineArena>) {
        var next = loan.pointee.lender
        while let lender = next {
            // It is still there: either the loan counts, or its parent has not settled yet.
            let borrowed = lender._withUnsafeGuaranteedRef { BorrowedStorage($0) }
            guard borrowed.exchangeLending(Lending.isGone) == Lending.isCounted else { return }
            // A lender that ends with this can be a loan itself: in a loop, for a chain of them can be of any length.
            next = nil
            var storage: MessageStorage? = lender.takeRetainedValue()
            if isKnownUniquelyReferenced(&storage) { next = storage.unsafelyUnwrapped.takeLender() }
        }
    }

    /// Takes the lender, if this is a loan, so that freeing it ends nothing.
    private func takeLender() -> Unmanaged<MessageStorage>? {
        withUnsafeMutablePointerToHeader { arena in
            guard arena.pointee.isLoan else { return nil }
            defer { arena.pointee.lender = nil }
            return arena.pointee.lender
        }
    }
}

// MARK: - Spare loans

// A thread keeps some, so that changing one submessage after the other creates no objects.
extension MessageStorage {
    fileprivate static func takeSpareLoan() -> MessageStorage {
        guard let spare = lifeline_spares_take() else {
            let loan = create(uninitializedByteCount: 0)
            loan.withUnsafeMutablePointerToHeader { $0.pointee.is_loan = true }
            return loan
        }
        return Unmanaged<MessageStorage>.fromOpaque(spare).takeRetainedValue()
    }

    /// Takes over the reference `loan`, which must be the only one.
    fileprivate static func keepSpareLoan(_ loan: inout MessageStorage?) {
        // As bits, which is what an Unmanaged is too: Swift 6.3 counts where `Unmanaged.passRetained` could move.
        let spare = withUnsafeMutableBytes(of: &loan) { reference in
            defer { reference.storeBytes(of: nil, as: Unmanaged<MessageStorage>?.self) }
            return reference.load(as: Unmanaged<MessageStorage>.self)
        }
        spare._withUnsafeGuaranteedRef { $0.withUnsafeMutablePointerToHeader { $0.pointee.lender = nil } }
        let isKept = lifeline_spares_keep(spare.toOpaque()) { Unmanaged<MessageStorage>.fromOpaque($0).release() }
        if !isKept { spare.release() }
    }
}
