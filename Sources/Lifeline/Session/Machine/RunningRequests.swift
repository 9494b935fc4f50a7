internal import LifelineCore

/// A request of the peer that is processed here. After it has ended, another request may have its serial.
package struct IncomingRequest: Hashable, Sendable {
    /// The peer's number for the request; 0 for a durable call.
    package let serial: UInt32
    /// The count of requests up to and including this one.
    let count: UInt64

    /// Whether the request is a durable call, which has no serial.
    var isDurable: Bool { serial == 0 }
}

/// The requests of the peer that are processed here. A cancelled one remains until its handler is done.
struct RunningRequests: Sendable {
    /// A durable call, which has no serial and outlives its session.
    struct DurableCall: Sendable {
        let receipt: SessionMachine.Receipt
        /// The number in the store of the sender.
        let number: UInt64
        let method: String
    }

    struct Entry: Sendable {
        let request: IncomingRequest
        let deadline: MonotonicTime?
        let byteCount: Int
        var durableCall: DurableCall?
        /// Whether parts of its response were sent.
        var hasParts = false
        /// Whether the peer no longer waits.
        var isCancelled = false
    }

    /// The requests by their counts, which ascend.
    private var entries = SparseQueue<Entry>()
    /// The counts of the requests that are not cancelled, by serial.
    private var countBySerial = SerialTable<UInt64>()
    private var deadlines = DeadlineHeap()
    private var begunCount: UInt64 = 0
    /// The size of the requests' contents.
    private(set) var byteCount = 0

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    /// The time at which to call `timerFired`.
    var nextDeadline: MonotonicTime? { deadlines.next }

    /// Begins a received request; nil when its serial is taken.
    mutating func begin(serial: UInt32, deadline: MonotonicTime?, byteCount: Int) -> IncomingRequest? {
        guard countBySerial.insertNew(serial, begunCount + 1) else { return nil }
        begunCount += 1
        let request = IncomingRequest(serial: serial, count: begunCount)
        entries.append(begunCount, Entry(request: request, deadline: deadline, byteCount: byteCount))
        self.byteCount += byteCount
        if let deadline { deadlines.insert(deadline, id: begunCount) }
        return request
    }

    /// Begins a durable call.
    mutating func begin(_ call: DurableCall) -> IncomingRequest {
        begunCount += 1
        let request = IncomingRequest(serial: 0, count: begunCount)
        // The bytes of a durable call count as those of a push.
        entries.append(begunCount, Entry(request: request, deadline: nil, byteCount: 0, durableCall: call))
        return request
    }

    /// Returns the durable call of a request; nil if it is not one, or has ended.
    func durableCall(_ request: IncomingRequest) -> DurableCall? {
        request.isDurable ? entries[request.count]?.durableCall : nil
    }

    /// Returns whether the peer waits for the response.
    func isWaitedFor(_ request: IncomingRequest) -> Bool { countBySerial[request.serial] == request.count }

    /// Returns the request with this serial that the peer waits for, if any.
    func request(serial: UInt32) -> IncomingRequest? {
        countBySerial[serial].map { IncomingRequest(serial: serial, count: $0) }
    }

    /// Returns whether a part of the response that has a place was sent.
    func hasParts(_ request: IncomingRequest) -> Bool { entries[request.count]?.hasParts == true }

    /// Notes that a part of the response is sent.
    mutating func sentPart(of request: IncomingRequest) {
        entries.update(request.count) { $0.hasParts = true }
    }

    /// Notes that the peer no longer waits. Returns the request; nil if there is none.
    mutating func cancel(serial: UInt32) -> IncomingRequest? {
        guard let count = countBySerial.removeValue(forKey: serial) else { return nil }
        entries.update(count) { $0.isCancelled = true }
        compact()
        return IncomingRequest(serial: serial, count: count)
    }

    /// Ends a request with its response. Returns nil if it had ended before.
    mutating func end(_ request: IncomingRequest) -> Entry? {
        guard let entry = entries.remove(request.count) else { return nil }
        byteCount -= entry.byteCount
        if !entry.isCancelled { countBySerial[request.serial] = nil }
        compact()
        return entry
    }

    /// The requests that the peer waits for, the oldest first.
    var waitedFor: [IncomingRequest] {
        countBySerial.elements.map { IncomingRequest(serial: $0.key, count: $0.value) }.sorted { $0.count < $1.count }
    }

    /// Cancels all requests. Returns those that the peer waited for, the oldest first.
    mutating func cancelAll() -> [IncomingRequest] {
        waitedFor.compactMap { cancel(serial: $0.serial) }
    }

    /// Cancels and returns the requests whose deadlines have passed.
    mutating func timerFired(now: MonotonicTime) -> [IncomingRequest] {
        var ended: [IncomingRequest] = []
        while let count = deadlines.takeDue(now: now) {
            // The first deadline belongs to a request that the peer waits for: `compact` removes the others.
            if let serial = entries[count]?.request.serial, let request = cancel(serial: serial) {
                ended.append(request)
            }
        }
        return ended
    }

    private mutating func compact() {
        guard deadlines.count > 0 else { return }
        deadlines.compact(liveCount: countBySerial.count) { [entries] in entries[$0]?.isCancelled == false }
    }
}
