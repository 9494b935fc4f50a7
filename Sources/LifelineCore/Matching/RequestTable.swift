/// The requests that wait for their answers, which carry the requests' serials.
///
/// Each request ends exactly once: with its response, at its deadline, by cancellation, or with the connection. Then
/// its waiter leaves the table, and a later response is dropped and counted. The first event counts: a response that is
/// reported before the timer fires is in time.
///
/// Every event takes constant time on average, a deadline logarithmic time. Memory is proportional to the largest
/// number of waiting requests since none waited.
@usableFromInline
package struct RequestTable<Waiter: Sendable>: Sendable {
    /// The ascending number of a request, which is never used again. Its lower half is the serial.
    @usableFromInline package typealias ID = UInt64

    /// A request that has ended without its answer, and its waiter.
    @usableFromInline package typealias Ended = (id: ID, waiter: Waiter)

    @usableFromInline struct Entry: Sendable {
        @usableFromInline let id: ID
        @usableFromInline var waiter: Waiter

        @inlinable init(id: ID, waiter: Waiter) {
            self.id = id
            self.waiter = waiter
        }
    }

    /// The most requests that may wait at once.
    @usableFromInline package let maximumCount: Int
    @usableFromInline let serials: ClosedRange<UInt32>
    /// The slot of a serial is its remainder by the number of slots, a power of two. A serial whose slot is taken is
    /// not used, so waiting requests have different slots, and are found at once.
    @usableFromInline var slots: [Entry?] = []
    @usableFromInline var deadlines = DeadlineHeap()
    /// The next number to try. Its upper half counts how often the serials were used up.
    @usableFromInline var next: ID
    /// The number of waiting requests.
    @usableFromInline package internal(set) var count = 0
    /// The number of responses to requests that had ended.
    @usableFromInline package internal(set) var lateResponseCount = 0
    /// The number of responses with serials that no request had.
    @usableFromInline package internal(set) var unknownResponseCount = 0

    /// Makes an empty table.
    ///
    /// - Parameters:
    ///   - maximumCount: the most requests that may wait at once: at least 1, at most a quarter of the serials.
    ///   - serials: the serials, which are used in order, again and again: at least four numbers.
    @inlinable
    package init(maximumCount: Int, serials: ClosedRange<UInt32>) {
        precondition(serials.count >= 4)
        self.maximumCount = min(max(maximumCount, 1), serials.count / 4)
        self.serials = serials
        next = ID(serials.lowerBound)
    }

    /// The time at which to call `timerFired`; nil to wait for another event.
    @inlinable package var nextDeadline: MonotonicTime? { deadlines.next }

    /// Returns the serial of a request.
    @inlinable package static func serial(of id: ID) -> UInt32 { UInt32(truncatingIfNeeded: id) }

    /// Begins a request. It is to be sent with the serial of the returned number.
    ///
    /// - Parameters:
    ///   - waiter: the waiter for the answer.
    ///   - deadline: the time at which it stops waiting; nil for never.
    ///   - reserved: a serial that this request must not have: with fixed headers, its url.
    /// - Throws: `RequestError` `tooManyInFlight`; then the waiter is not kept.
    @inlinable
    package mutating func began(
        _ waiter: Waiter,
        deadline: MonotonicTime?,
        avoiding reserved: UInt32? = nil
    ) throws(RequestError) -> ID {
        guard count < maximumCount else { throw .tooManyInFlight(limit: maximumCount) }
        // At most half of the slots are taken, so a free one is near.
        if 2 * count >= slots.count { grow() }
        var id = takeNumber()
        while slots[slot(of: id)] != nil || Self.serial(of: id) == reserved { id = takeNumber() }
        slots[slot(of: id)] = Entry(id: id, waiter: waiter)
        count += 1
        if let deadline { deadlines.insert(deadline, id: id) }
        return id
    }

    /// Returns the waiter of a request; nil when it has ended.
    @inlinable
    package func waiter(of id: ID) -> Waiter? {
        guard let slot = occupiedSlot(serial: Self.serial(of: id)), let entry = slots[slot], entry.id == id else {
            return nil
        }
        return entry.waiter
    }

    /// Changes the waiter of a request; does nothing when it has ended.
    @inlinable
    package mutating func update(_ id: ID, _ change: (inout Waiter) -> Void) {
        guard let slot = occupiedSlot(serial: Self.serial(of: id)), slots[slot]?.id == id else { return }
        change(&slots[slot]!.waiter)
    }

    /// Returns the number of the waiting request with this serial; nil when none waits.
    @inlinable
    package func id(serial: UInt32) -> ID? { occupiedSlot(serial: serial).flatMap { slots[$0]?.id } }

    /// Returns the waiter of the request with this serial; nil when none waits.
    @inlinable
    package func waiter(serial: UInt32) -> Waiter? {
        occupiedSlot(serial: serial).flatMap { slots[$0]?.waiter }
    }

    /// Returns whether a request with this serial waits.
    @inlinable
    package func isWaiting(serial: UInt32) -> Bool { occupiedSlot(serial: serial) != nil }

    /// The handling of a response.
    @usableFromInline
    package enum ResponseAction {
        /// The request has ended: pass the response to its waiter.
        case answer(ID, Waiter)
        /// Drop it. The request had ended, and the response was counted as late.
        case dropLate
        /// Drop it, or give up the connection: no request had its serial. It was counted.
        case dropUnknown
    }

    /// Receives a response.
    @inlinable
    package mutating func receivedResponse(serial: UInt32) -> ResponseAction {
        // Once the serials were used up, `next` is above them all.
        guard serials.contains(serial), ID(serial) < next else {
            unknownResponseCount += 1
            return .dropUnknown
        }
        guard let slot = occupiedSlot(serial: serial), let entry = slots[slot] else {
            lateResponseCount += 1
            return .dropLate
        }
        end(at: slot)
        return .answer(entry.id, entry.waiter)
    }

    /// Cancels a request for its caller. Returns the waiter; nil when the request has ended.
    @inlinable
    package mutating func cancelled(_ id: ID) -> Waiter? {
        guard let slot = occupiedSlot(serial: Self.serial(of: id)), let entry = slots[slot], entry.id == id else {
            return nil
        }
        end(at: slot)
        return entry.waiter
    }

    /// Notes that `nextDeadline` has passed; calling this early does no harm. Returns the requests that end with it,
    /// the earliest deadline first.
    @inlinable
    package mutating func timerFired(now: MonotonicTime) -> [Ended] {
        var ended: [Ended] = []
        while let id = deadlines.takeDue(now: now) {
            let slot = slot(of: id)
            guard let entry = slots[slot], entry.id == id else { continue }
            ended.append((id, entry.waiter))
            slots[slot] = nil
            count -= 1
        }
        compact()
        return ended
    }

    /// Notes that the connection is lost. Returns the requests that are lost with it, the oldest first. Serials
    /// continue.
    ///
    /// - Parameter isUnsent: returns whether a request still waits to be sent, so that it can go over the next
    ///   connection.
    @inlinable
    package mutating func connectionLost(
        keeping isUnsent: (ID) -> Bool = { _ in false }
    ) -> [Ended] {
        let lost = slots.compactMap(\.self).filter { !isUnsent($0.id) }.sorted { $0.id < $1.id }
        for entry in lost { slots[slot(of: entry.id)] = nil }
        count -= lost.count
        compact()
        if count == 0 {
            slots = []
            deadlines = DeadlineHeap()
        }
        return lost.map { ($0.id, $0.waiter) }
    }
}

// Slots and serials.
extension RequestTable {
    @inlinable
    func slot(of id: ID) -> Int { Int(Self.serial(of: id)) & (slots.count - 1) }

    @inlinable
    func occupiedSlot(serial: UInt32) -> Int? {
        guard !slots.isEmpty else { return nil }
        let slot = slot(of: ID(serial))
        guard let entry = slots[slot], Self.serial(of: entry.id) == serial else { return nil }
        return slot
    }

    @inlinable
    mutating func takeNumber() -> ID {
        let id = next
        if Self.serial(of: id) == serials.upperBound {
            next = (id | ID(UInt32.max)) + 1 + ID(serials.lowerBound)
        } else {
            next += 1
        }
        return id
    }

    @inlinable
    mutating func grow() {
        let old = slots
        slots = Array(repeating: nil, count: max(2 * old.count, 8))
        // Numbers with different slots in the smaller table have different slots in the larger one.
        for entry in old { if let entry { slots[slot(of: entry.id)] = entry } }
    }

    @inlinable
    mutating func end(at slot: Int) {
        slots[slot] = nil
        count -= 1
        compact()
    }

    @inlinable
    mutating func compact() {
        deadlines.compact(liveCount: count) { [slots, mask = slots.count - 1] id in
            slots[Int(Self.serial(of: id)) & mask]?.id == id
        }
        // Memory is freed when a burst is over, and kept while requests come and go.
        if count == 0, slots.count > 1024 { slots = [] }
    }
}
