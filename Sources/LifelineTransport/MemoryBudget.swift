internal import LifelineCore
internal import NIOConcurrencyHelpers

/// The memory that a server's connections and sessions may together keep between reads and writes. Above the limit, the
/// idlest ones give up their memory.
package final class MemoryBudget: Sendable {
    private struct State {
        var ledger: MemoryLedger
        var giveUps: [MemoryLedger.HolderID: @Sendable () -> Void] = [:]
    }

    private let state: NIOLockedValueBox<State>

    /// - Parameter limit: the limit in bytes.
    package init(limit: Int) {
        state = NIOLockedValueBox(State(ledger: MemoryLedger(limit: limit)))
    }

    /// The number of bytes charged now.
    package var byteCount: Int { state.withLockedValue { $0.ledger.byteCount } }

    /// Makes a charge for a holder, with nothing charged yet.
    ///
    /// - Parameter giveUp: makes the holder give up its memory. Called at most once, on any thread, with no lock held.
    package func makeCharge(_ giveUp: @escaping @Sendable () -> Void) -> MemoryCharge {
        MemoryCharge(self, state.withLockedValue { $0.ledger.makeHolder() }, giveUp)
    }

    fileprivate func change(
        _ id: MemoryLedger.HolderID,
        to byteCount: Int,
        _ giveUp: @escaping @Sendable () -> Void
    ) {
        let giveUps = state.withLockedValue { state in
            state.giveUps[id] = byteCount > 0 ? giveUp : nil
            return state.ledger.changed(id, to: byteCount).compactMap { state.giveUps.removeValue(forKey: $0) }
        }
        for giveUp in giveUps { giveUp() }
    }
}

/// The charge of one holder to a budget. The holder sets it to 0 at the end.
package struct MemoryCharge: Sendable {
    /// Smaller amounts are not charged.
    package static var smallest: Int { 4 << 10 }

    private let budget: MemoryBudget
    private let id: MemoryLedger.HolderID
    private let giveUp: @Sendable () -> Void
    private var charged = 0

    fileprivate init(_ budget: MemoryBudget, _ id: MemoryLedger.HolderID, _ giveUp: @escaping @Sendable () -> Void) {
        self.budget = budget
        self.id = id
        self.giveUp = giveUp
    }

    /// Notes the number of bytes that the holder keeps.
    ///
    /// Charges whole steps: of 4 KiB, which most connections stay below, and above 64 KiB of 64 KiB, so that a long
    /// message is not charged at each read. So connections that keep little never take the budget's lock.
    @inline(__always) package mutating func update(_ byteCount: Int) {
        let rounded = byteCount & (byteCount < 64 << 10 ? ~(Self.smallest - 1) : ~0xFFFF)
        if rounded != charged { change(to: rounded) }
    }

    private mutating func change(to byteCount: Int) {
        charged = byteCount
        budget.change(id, to: byteCount, giveUp)
    }
}
