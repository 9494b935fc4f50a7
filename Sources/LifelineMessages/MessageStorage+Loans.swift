public import CLifelineMessages

// To change a submessage in place (`message.author.name = "Ada"`), its owner lends a part of its arena: the value that
// is changed has its own storage, a *loan*. The section "Loans" of docs/message-memory.md describes how loans begin,
// end and are settled.

/// The memory of a loan, in place of an arena's first block.
@usableFromInline struct Loan {
    /// The arena with the lent part: that of the storage at the start of a chain of loans.
    @usableFromInline var root: UnsafeMutablePointer<LifelineArena>
    /// The storage that lent. Nil if the loan is not in use.
    @usableFromInline var lender: Unmanaged<_MessageStorage>?
}

/// The state of the loan that a storage has given. The owner that settles and the end of the loan exchange it, perhaps
/// on two threads.
private enum Lending {
    static let none: UInt8 = 0
    /// The loan is in use, and does not count as a reference to its lender.
    static let isOut: UInt8 = 1
    /// The loan was freed before its owner settled: the child was replaced.
    static let isGone: UInt8 = 2
    /// The loan counts as a reference to its lender.
    static let isCounted: UInt8 = 3
}

extension _MessageStorage {
    @inlinable var isLoan: Bool { withUnsafeMutablePointerToHeader { $0.pointee.is_loan } }

    /// For loans only.
    @inlinable var loan: UnsafeMutablePointer<Loan> {
        withUnsafeMutablePointerToElements { _MessageStorage.loan(at: $0) }
    }

    @inlinable static func loan(at memory: UnsafeMutablePointer<UInt64>) -> UnsafeMutablePointer<Loan> {
        UnsafeMutableRawPointer(memory).assumingMemoryBound(to: Loan.self)
    }
}

// MARK: - Lending and settling

extension _BorrowedStorage {
    /// A storage for a part of this one's tree, which is about to be changed in place. The reference to this storage
    /// must be the only one.
    @usableFromInline func lend() -> _MessageStorage {
        let storage = _MessageStorage.takeSpareLoan()
        storage.loan.pointee = Loan(root: arena, lender: unmanaged)
        // An overdue loan passes that on: its owner might change only what it lends, and never the loan itself.
        let isOverdue = header.pointee.is_loan && header.pointee.is_overdue != 0
        storage.withUnsafeMutablePointerToHeader { $0.pointee.is_overdue = isOverdue ? 1 : 0 }
        header.pointee.lending = Lending.isOut
        return storage
    }

    /// Takes a loan back. `storage` is the current storage of the lent part.
    ///
    /// - Returns: Whether it is the loan, so that the child is in this storage's arena. If not, the child was replaced,
    ///   and the caller has to call `settleWithoutLoan`.
    @usableFromInline func takeBack(_ storage: inout _MessageStorage?) -> Bool {
        guard isLender(of: &storage) else { return false }
        if isKnownUniquelyReferenced(&storage) {
            header.pointee.lending = Lending.none
            _MessageStorage.keepSpareLoan(&storage)
        } else {
            // A copy of the child shares the memory of this storage, so it must move away before it changes.
            storage.unsafelyUnwrapped.becomeOverdue()
            settleWithoutLoan()
        }
        return true
    }

    /// Lends the message that `place` points to, and makes it first if there is none. The place is empty until the loan
    /// ends.
    @usableFromInline func lendMessage(
        at place: UnsafeMutableRawPointer,
        as table: UnsafePointer<_MessageTable>
    ) -> _UntypedReference {
        let message = place.load(as: UnsafeMutableRawPointer?.self) ?? create(table)
        place.storeBytes(of: nil, as: UnsafeMutableRawPointer?.self)
        return _UntypedReference(storage: lend(), fields: message)
    }

    /// Ends the loan of the message at `lent`. Returns whether the message is still there. If not, the caller has to
    /// copy its replacement.
    @usableFromInline func takeBack(_ message: inout _UntypedReference, lent: UnsafeMutableRawPointer) -> Bool {
        if message.fields == lent, takeBack(&message.storage) { return true }
        settleWithoutLoan()
        return false
    }

    /// Makes a loan that is still in use, by a copy of the child, count as a reference.
    @usableFromInline func settleWithoutLoan() {
        let ofLoan = unmanaged.retain()
        if exchangeLending(Lending.isCounted) == Lending.isGone { ofLoan.release() }
    }

    /// Makes this loan and those that it came from overdue, if it is one: each moves out of the arena with its next
    /// change, and back into another when it is settled.
    func markLoansOverdue() {
        var storage = self
        while storage.header.pointee.is_loan {
            storage.header.pointee.is_overdue = 1
            guard let lender = storage.with({ $0.loan.pointee.lender }) else { return }
            storage = lender._withUnsafeGuaranteedRef { _BorrowedStorage($0) }
        }
    }

    /// Inout, so that the reference is not counted.
    private func isLender(of storage: inout _MessageStorage?) -> Bool {
        _MessageStorage.withUnmanaged(&storage) { storage in
            storage.isLoan && storage.loan.pointee.lender?.toOpaque() == unmanaged.toOpaque()
        } ?? false
    }

    fileprivate func exchangeLending(_ lending: UInt8) -> UInt8 {
        lifeline_arena_exchange_lending(header, lending)
    }

    /// This storage's own header. A loan's `arena` is that of another storage.
    private var header: UnsafeMutablePointer<LifelineArena> {
        with { $0.withUnsafeMutablePointerToHeader { $0 } }
    }
}

extension _MessageStorage {
    /// Ends a loan when its storage is freed.
    @usableFromInline static func end(_ loan: UnsafeMutablePointer<Loan>) {
        var next = loan.pointee.lender
        while let lender = next {
            // The lender is alive: either the loan counts, or its owner has not settled yet.
            let borrowed = lender._withUnsafeGuaranteedRef { _BorrowedStorage($0) }
            guard borrowed.exchangeLending(Lending.isGone) == Lending.isCounted else { return }
            // The lender may end with this, and may be a loan too. This is a loop, because such a chain can have any
            // length.
            next = nil
            var storage: _MessageStorage? = lender.takeRetainedValue()
            if isKnownUniquelyReferenced(&storage) { next = storage.unsafelyUnwrapped.takeLender() }
        }
    }

    /// Takes the lender of this storage, if it is a loan, so that freeing it ends nothing.
    private func takeLender() -> Unmanaged<_MessageStorage>? {
        guard isLoan else { return nil }
        defer { loan.pointee.lender = nil }
        return loan.pointee.lender
    }
}

// MARK: - Spare loans

// Each thread keeps some loans, so that changing one submessage after the other allocates no objects.
extension _MessageStorage {
    fileprivate static func takeSpareLoan() -> _MessageStorage {
        guard let spare = lifeline_spares_take() else {
            let storage = create(uninitializedByteCount: MemoryLayout<Loan>.size)
            storage.withUnsafeMutablePointerToHeader { $0.pointee.is_loan = true }
            return storage
        }
        return Unmanaged<_MessageStorage>.fromOpaque(spare).takeRetainedValue()
    }

    /// Takes over the reference to a loan, which must be the only one.
    fileprivate static func keepSpareLoan(_ storage: inout _MessageStorage?) {
        let spare = moved(out: &storage)
        spare._withUnsafeGuaranteedRef { $0.loan.pointee.lender = nil }
        let isKept = lifeline_spares_keep(spare.toOpaque()) { Unmanaged<_MessageStorage>.fromOpaque($0).release() }
        if !isKept { spare.release() }
    }
}
