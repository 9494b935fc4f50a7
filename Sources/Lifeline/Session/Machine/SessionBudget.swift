/// What one session may take of what all sessions of a server share. A client's takes as much as its own limits allow.
package struct SessionAllowance: Sendable, Hashable {
    /// The bytes of what it keeps, in both directions.
    package var byteCount: Int
    /// The requests that it processes.
    package var handlerCount: Int
    /// How long a client stays away that was sent away, as there was nothing more to be had.
    package var pause = Duration.zero

    package static let unlimited = SessionAllowance(byteCount: .max, handlerCount: .max)
    package static let none = SessionAllowance(byteCount: 0, handlerCount: 0)
}

/// How much of what all sessions share a session needs at once.
package struct SessionNeed: Sendable, Equatable {
    let byteCount: Int
    let handlerCount: Int
}

/// What all sessions of a server keep together, and how many requests they process.
///
/// Each session takes its share in slices, as many messages cost one look at the budget: its first ones are small, so
/// that many sessions that keep little hold little, and it gives back what it does not need. What sessions hold is
/// never above the limit.
///
/// It is pure: the driver keeps it under a lock. The sessions' machines say what they need: see
/// `SessionMachine.lacking(toReceive:)`.
package struct SessionBudget: Sendable {
    /// The smallest slice: some messages of a session that keeps few. It is held until the session's connection ends.
    private static var smallestSlice: Int { 4 << 10 }
    /// The largest slice: so that sessions that keep much do not hold much more.
    private static var largestSlice: Int { 64 << 10 }

    private let limit: SessionAllowance
    /// What sessions hold.
    package private(set) var held = SessionAllowance.none

    /// - Parameter limit: what all sessions may hold together. Negative values count as 0.
    package init(limit: SessionAllowance) {
        self.limit = SessionAllowance(byteCount: max(limit.byteCount, 0), handlerCount: max(limit.handlerCount, 0))
    }

    /// A session needs more than it holds: adds to that, where there is enough left.
    ///
    /// - Parameter pause: how long its client stays away if it is sent away for want of it.
    package mutating func take(
        _ need: SessionNeed,
        pause: @autoclosure () -> Duration,
        for allowance: inout SessionAllowance
    ) {
        take(upTo: need.byteCount, for: &allowance)
        takeHandlers(upTo: need.handlerCount, for: &allowance)
        if allowance.byteCount < need.byteCount { allowance.pause = pause() }
    }

    /// A session needs to keep so many bytes: adds a slice to what it holds, or what is needed where there is no more.
    /// Changes nothing where there is less.
    mutating func take(upTo byteCount: Int, for allowance: inout SessionAllowance) {
        let missing = byteCount - allowance.byteCount
        let left = limit.byteCount - held.byteCount
        guard missing > 0, missing <= left else { return }
        let taken = min(max(missing, Self.slice(of: byteCount)), left)
        held.byteCount += taken
        allowance.byteCount += taken
    }

    /// A session needs to process so many requests: adds some to what it holds, or as many as are needed. Changes
    /// nothing where there are fewer.
    mutating func takeHandlers(upTo count: Int, for allowance: inout SessionAllowance) {
        let missing = count - allowance.handlerCount
        let left = limit.handlerCount - held.handlerCount
        guard missing > 0, missing <= left else { return }
        // A half more, so that many at once cost few looks.
        let taken = min(max(missing, min(count / 2, 16)), left)
        held.handlerCount += taken
        allowance.handlerCount += taken
    }

    /// Whether a session holds so much more than it needs that it is to give some back.
    static func isExcessive(_ allowance: SessionAllowance, for byteCount: Int, handlerCount: Int) -> Bool {
        allowance.byteCount - byteCount > 2 * slice(of: byteCount)
            || (allowance.handlerCount > 0 && (handlerCount == 0 || allowance.handlerCount > 2 * handlerCount + 16))
    }

    /// A session gives back what it holds beyond what it needs.
    ///
    /// - Parameter isOver: whether it needs no slice any more, as it has no connection, or has ended.
    mutating func giveBack(
        _ allowance: inout SessionAllowance,
        for byteCount: Int,
        handlerCount: Int,
        isOver: Bool
    ) {
        let spare = isOver ? 0 : Self.slice(of: byteCount)
        let excess = max(allowance.byteCount - byteCount - spare, 0)
        held.byteCount -= excess
        allowance.byteCount -= excess
        let idle = max(allowance.handlerCount - handlerCount, 0)
        held.handlerCount -= idle
        allowance.handlerCount -= idle
    }

    private static func slice(of byteCount: Int) -> Int {
        min(max(byteCount, smallestSlice), largestSlice)
    }
}
