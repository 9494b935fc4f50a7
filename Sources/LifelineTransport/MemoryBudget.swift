internal import LifelineCore
internal import NIOConcurrencyHelpers

/// How much memory a server's connections and sessions may take together for what they keep between reads and writes.
/// Where they take more, the idlest give up what they have.
package final class MemoryBudget: Sendable {
    private struct State {
        var ledger: MemoryLedger
        var giveUps: [MemoryLedger.HolderID: @Sendable () -> Void] = [:]
    }

    private let state: NIOLockedValueBox<State>

    /// - Parameter limit: in bytes.
    package init(limit: Int) {
        state = NIOLockedValueBox(State(ledger: MemoryLedger(limit: limit)))
    }

    /// How much is charged now.
    package var byteCount: Int { state.withLockedValue { $0.ledger.byteCount } }

    /// Makes an account of a holder's, on which nothing is charged.
    ///
    /// - Parameter giveUp: has the holder give up what it holds. Called once at most, on any thread, with no lock held.
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

/// What one holder has charged to a budget. Its owner sets it to 0 at the end.
package struct MemoryCharge: Sendable {
    /// Less is not charged.
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

    /// The holder holds so many bytes.
    ///
    /// Charged are whole steps: of 4 KiB, which most connections stay below, and from 64 KiB on of that, so that a long
    /// message is not charged with each read. So the budget's lock is no matter for connections that keep little.
    @inline(__always) package mutating func update(_ byteCount: Int) {
        let rounded = byteCount & (byteCount < 64 << 10 ? ~(Self.smallest - 1) : ~0xFFFF)
        if rounded != charged { change(to: rounded) }
    }

    private mutating func change(to byteCount: Int) {
        charged = byteCount
        budget.change(id, to: byteCount, giveUp)
    }
}
