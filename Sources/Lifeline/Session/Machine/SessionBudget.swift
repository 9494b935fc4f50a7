/// One session's share of the resources of a server's sessions. A client's session takes as much as its own limits
/// allow.
package struct SessionAllowance: Sendable, Hashable {
    /// The bytes that the session keeps, in both directions.
    package var byteCount: Int
    /// The requests that the session processes.
    package var handlerCount: Int
    /// How long a client stays away after it was sent away for lack of resources.
    package var pause = Duration.zero

    package static let unlimited = SessionAllowance(byteCount: .max, handlerCount: .max)
    package static let none = SessionAllowance(byteCount: 0, handlerCount: 0)
}

/// The shared resources that a session needs at once.
package struct SessionNeed: Sendable, Equatable {
    let byteCount: Int
    let handlerCount: Int
}

/// The resources of all sessions of a server: the bytes that they keep, and the requests that they process.
///
/// Each session takes its share in slices, so that many messages need only one access to the budget. The first slices
/// are small, so that many sessions with few messages hold little, and a session gives back what it does not need.
/// Sessions together never hold more than the limit.
///
/// It is pure: the driver keeps it under a lock. The sessions' machines report their needs: see
/// `SessionMachine.lacking(toReceive:)`.
package struct SessionBudget: Sendable {
    /// The smallest slice: enough for a few messages. It is held until the session's connection ends.
    private static var smallestSlice: Int { 4 << 10 }
    /// The largest slice, so that sessions with many messages hold little more than they need.
    private static var largestSlice: Int { 64 << 10 }

    private let limit: SessionAllowance
    /// The resources that sessions hold.
    package private(set) var held = SessionAllowance.none

    /// - Parameter limit: the resources that all sessions may hold together. Negative values count as 0.
    package init(limit: SessionAllowance) {
        self.limit = SessionAllowance(byteCount: max(limit.byteCount, 0), handlerCount: max(limit.handlerCount, 0))
    }

    /// Adds to a session's share, if enough is left.
    ///
    /// - Parameter pause: how long its client stays away if it is sent away for lack of resources.
    package mutating func take(
        _ need: SessionNeed,
        pause: @autoclosure () -> Duration,
        for allowance: inout SessionAllowance
    ) {
        take(upTo: need.byteCount, for: &allowance)
        takeHandlers(upTo: need.handlerCount, for: &allowance)
        if allowance.byteCount < need.byteCount { allowance.pause = pause() }
    }

    /// Raises a session's share to this many bytes: adds a slice, or only the needed bytes if no more are left. Changes
    /// nothing if fewer are left.
    mutating func take(upTo byteCount: Int, for allowance: inout SessionAllowance) {
        let missing = byteCount - allowance.byteCount
        let left = limit.byteCount - held.byteCount
        guard missing > 0, missing <= left else { return }
        let taken = min(max(missing, Self.slice(of: byteCount)), left)
        held.byteCount += taken
        allowance.byteCount += taken
    }

    /// Raises a session's share to this many requests: adds some more, or only those needed. Changes nothing if fewer
    /// are left.
    mutating func takeHandlers(upTo count: Int, for allowance: inout SessionAllowance) {
        let missing = count - allowance.handlerCount
        let left = limit.handlerCount - held.handlerCount
        guard missing > 0, missing <= left else { return }
        // Half as many more, so that many requests at once need few accesses.
        let taken = min(max(missing, min(count / 2, 16)), left)
        held.handlerCount += taken
        allowance.handlerCount += taken
    }

    /// Returns whether a session holds so much more than it needs that it should give some back.
    static func isExcessive(_ allowance: SessionAllowance, for byteCount: Int, handlerCount: Int) -> Bool {
        allowance.byteCount - byteCount > 2 * slice(of: byteCount)
            || (allowance.handlerCount > 0 && (handlerCount == 0 || allowance.handlerCount > 2 * handlerCount + 16))
    }

    /// Takes back what a session holds beyond its needs.
    ///
    /// - Parameter isOver: whether it needs no slice, because it has no connection or has ended.
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
