/// Who holds how much of a limited amount of memory, and who gives it up when there is too much.
///
/// A holder is something that can be closed: a connection, or a session that has none. It knows no clock: the idlest
/// holder is the one whose amount has changed least recently.
package struct MemoryLedger: Sendable {
    /// A holder's name.
    package struct HolderID: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    private struct Holder {
        var byteCount: Int
        /// When the amount changed last: a count of changes.
        var changed: UInt64
    }

    /// How much all may hold together.
    package let limit: Int
    /// How much they hold, but for those that were told to give it up.
    package private(set) var byteCount = 0
    private var holders: [HolderID: Holder] = [:]
    private var lastID: UInt64 = 0
    private var changeCount: UInt64 = 0

    package init(limit: Int) {
        self.limit = max(limit, 0)
    }

    /// Makes a name for a holder, which holds nothing yet.
    package mutating func makeHolder() -> HolderID {
        lastID += 1
        return HolderID(number: lastID)
    }

    /// A holder holds so much now.
    ///
    /// - Returns: the holders that are to give up what they hold, the idlest first. What they hold does not count any
    ///   more; that it is gone need not be told.
    package mutating func changed(_ id: HolderID, to newByteCount: Int) -> [HolderID] {
        let before = holders[id]?.byteCount ?? 0
        byteCount += newByteCount - before
        changeCount += 1
        holders[id] = newByteCount > 0 ? Holder(byteCount: newByteCount, changed: changeCount) : nil
        var givingUp: [HolderID] = []
        // Each look goes through all of them, and costs somebody a connection.
        while byteCount > limit, let idlest = holders.min(by: { $0.value.changed < $1.value.changed }) {
            byteCount -= idlest.value.byteCount
            holders[idlest.key] = nil
            givingUp.append(idlest.key)
        }
        return givingUp
    }
}
