internal import LifelineCore

/// This side's durable calls whose callers wait for the answer.
struct OwnDurableCalls: Sendable {
    private struct Call: Sendable {
        let asker: SessionMachine.Asker
        let deadline: MonotonicTime?
        /// The number in the store; 0 until the call is stored.
        var number: UInt64 = 0
    }

    /// The calls by their callers' numbers for them.
    private var calls: [UInt64: Call] = [:]
    /// The callers' numbers by the numbers in the store.
    private var waiters: [UInt64: UInt64] = [:]
    private var deadlines = DeadlineHeap()

    var isEmpty: Bool { calls.isEmpty }
    /// The time at which `takeDue` has a call.
    var nextDeadline: MonotonicTime? { deadlines.next }

    /// Adds a call that waits to be stored.
    ///
    /// - Parameter deadline: the time until which the caller waits; nil for no limit.
    mutating func began(_ waiter: UInt64, asker: SessionMachine.Asker, deadline: MonotonicTime?) {
        calls[waiter] = Call(asker: asker, deadline: deadline)
        if let deadline { deadlines.insert(deadline, id: waiter) }
    }

    /// Notes that a message is stored, which may be a call.
    mutating func stored(_ waiter: UInt64, as number: UInt64) {
        guard calls[waiter] != nil else { return }
        calls[waiter]?.number = number
        waiters[number] = waiter
    }

    /// Notes that a call is answered. Returns the caller that waits for it, if any.
    mutating func answered(_ number: UInt64) -> SessionMachine.Asker? {
        waiters[number].flatMap { remove($0) }
    }

    /// Ends the waiting for a call. Returns the caller that waited, if any.
    mutating func remove(_ waiter: UInt64) -> SessionMachine.Asker? {
        guard let call = calls.removeValue(forKey: waiter) else { return nil }
        if call.number != 0 { waiters[call.number] = nil }
        if call.deadline != nil { deadlines.compact(liveCount: calls.count) { [calls] in calls[$0] != nil } }
        return call.asker
    }

    /// Returns the next call whose caller's time is over; nil if there is none.
    mutating func takeDue(now: MonotonicTime) -> UInt64? {
        while let waiter = deadlines.takeDue(now: now) {
            if calls[waiter] != nil { return waiter }
        }
        return nil
    }

    /// Ends the waiting for all stored calls. Returns the callers that waited, in the order of their calls.
    mutating func removeStored() -> [SessionMachine.Asker] {
        waiters.values.sorted().compactMap { remove($0) }
    }
}
