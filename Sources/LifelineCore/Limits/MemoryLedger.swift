/// Counts the holders of a limited amount of memory, and decides which of them give it up when the limit is exceeded.
///
/// A holder can be closed: it is a connection, or a session without one. The ledger uses no clock: the idlest holder is
/// the one whose amount has changed least recently.
package struct MemoryLedger: Sendable {
    /// The id of a holder.
    package struct HolderID: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    private struct Holder {
        var byteCount: Int
        /// The count of changes at the amount's last change.
        var changed: UInt64
    }

    /// The most bytes that all holders may hold together.
    package let limit: Int
    /// The bytes that they hold, without those that were told to give them up.
    package private(set) var byteCount = 0
    private var holders: [HolderID: Holder] = [:]
    private var lastID: UInt64 = 0
    private var changeCount: UInt64 = 0

    package init(limit: Int) {
        self.limit = max(limit, 0)
    }

    /// Makes an id for a holder, which holds nothing yet.
    package mutating func makeHolder() -> HolderID {
        lastID += 1
        return HolderID(number: lastID)
    }

    /// Notes the number of bytes that a holder holds now.
    ///
    /// - Returns: the holders that must give up their memory, the idlest first. It no longer counts, and its end need
    ///   not be reported.
    package mutating func changed(_ id: HolderID, to newByteCount: Int) -> [HolderID] {
        let before = holders[id]?.byteCount ?? 0
        byteCount += newByteCount - before
        changeCount += 1
        holders[id] = newByteCount > 0 ? Holder(byteCount: newByteCount, changed: changeCount) : nil
        var givingUp: [HolderID] = []
        // Each pass visits all holders, but it also closes a connection, so it is rare.
        while byteCount > limit, let idlest = holders.min(by: { $0.value.changed < $1.value.changed }) {
            byteCount -= idlest.value.byteCount
            holders[idlest.key] = nil
            givingUp.append(idlest.key)
        }
        return givingUp
    }
}
