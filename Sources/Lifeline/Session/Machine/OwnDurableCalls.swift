internal import LifelineCore

/// The durable calls of this side that somebody waits for, until they are answered.
struct OwnDurableCalls: Sendable {
    private struct Call: Sendable {
        let asker: SessionMachine.Asker
        let deadline: MonotonicTime?
        /// Its number in the store; 0 until it is stored.
        var number: UInt64 = 0
    }

    /// By the numbers by which their askers know them.
    private var calls: [UInt64: Call] = [:]
    /// Those numbers by the ones in the store.
    private var waiters: [UInt64: UInt64] = [:]
    private var deadlines = DeadlineHeap()

    var isEmpty: Bool { calls.isEmpty }
    /// When `takeDue` has something.
    var nextDeadline: MonotonicTime? { deadlines.next }

    /// A call waits to be stored.
    ///
    /// - Parameter deadline: until when its asker waits; nil: as long as it takes.
    mutating func began(_ waiter: UInt64, asker: SessionMachine.Asker, deadline: MonotonicTime?) {
        calls[waiter] = Call(asker: asker, deadline: deadline)
        if let deadline { deadlines.insert(deadline, id: waiter) }
    }

    /// A message is stored, which may be a call.
    mutating func stored(_ waiter: UInt64, as number: UInt64) {
        guard calls[waiter] != nil else { return }
        calls[waiter]?.number = number
        waiters[number] = waiter
    }

    /// A call is answered. Returns who waits for it; nil: nobody does.
    mutating func answered(_ number: UInt64) -> SessionMachine.Asker? {
        waiters[number].flatMap { remove($0) }
    }

    /// Nobody waits for a call any more. Returns who did; nil: nobody.
    mutating func remove(_ waiter: UInt64) -> SessionMachine.Asker? {
        guard let call = calls.removeValue(forKey: waiter) else { return nil }
        if call.number != 0 { waiters[call.number] = nil }
        if call.deadline != nil { deadlines.compact(liveCount: calls.count) { [calls] in calls[$0] != nil } }
        return call.asker
    }

    /// The next call that its asker has waited for as long as it would; nil: there is none.
    mutating func takeDue(now: MonotonicTime) -> UInt64? {
        while let waiter = deadlines.takeDue(now: now) {
            if calls[waiter] != nil { return waiter }
        }
        return nil
    }

    /// Nobody waits for those any more that are stored. Returns who did, in the order of their calls.
    mutating func removeStored() -> [SessionMachine.Asker] {
        waiters.values.sorted().compactMap { remove($0) }
    }
}
