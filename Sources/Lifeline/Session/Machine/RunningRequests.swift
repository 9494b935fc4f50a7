internal import LifelineCore

/// A request of the peer's that is processed here. Its serial may be another one's when it has ended.
package struct IncomingRequest: Hashable, Sendable {
    /// The peer's number for it; 0 of a durable call.
    package let serial: UInt32
    /// How many there were before it, and itself.
    let count: UInt64

    /// Whether it is a durable call, which has no serial.
    var isDurable: Bool { serial == 0 }
}

/// The peer's requests that are processed here. One that is cancelled is among them until its handler is done.
struct RunningRequests: Sendable {
    /// A durable call, which has no serial, and outlives its session.
    struct DurableCall: Sendable {
        let receipt: SessionMachine.Receipt
        /// Its number in the store of its sender.
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
        /// Whether the peer does not wait any more.
        var isCancelled = false
    }

    /// By their counts, which ascend.
    private var entries = SparseQueue<Entry>()
    /// The counts of those that are not cancelled.
    private var countBySerial = SerialTable<UInt64>()
    private var deadlines = DeadlineHeap()
    private var begunCount: UInt64 = 0
    /// The size of their contents.
    private(set) var byteCount = 0

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    /// When `timerFired` is to be called.
    var nextDeadline: MonotonicTime? { deadlines.next }

    /// A request came in; nil when its serial is taken.
    mutating func begin(serial: UInt32, deadline: MonotonicTime?, byteCount: Int) -> IncomingRequest? {
        guard countBySerial.insertNew(serial, begunCount + 1) else { return nil }
        begunCount += 1
        let request = IncomingRequest(serial: serial, count: begunCount)
        entries.append(begunCount, Entry(request: request, deadline: deadline, byteCount: byteCount))
        self.byteCount += byteCount
        if let deadline { deadlines.insert(deadline, id: begunCount) }
        return request
    }

    /// A durable call begins to be processed.
    mutating func begin(_ call: DurableCall) -> IncomingRequest {
        begunCount += 1
        let request = IncomingRequest(serial: 0, count: begunCount)
        // Its bytes count as those of a push.
        entries.append(begunCount, Entry(request: request, deadline: nil, byteCount: 0, durableCall: call))
        return request
    }

    /// The durable call that a request is; nil where it is none, or has ended.
    func durableCall(_ request: IncomingRequest) -> DurableCall? {
        request.isDurable ? entries[request.count]?.durableCall : nil
    }

    /// Whether the peer waits for its response.
    func isWaitedFor(_ request: IncomingRequest) -> Bool { countBySerial[request.serial] == request.count }

    /// The request with this serial that the peer waits for; nil: there is none.
    func request(serial: UInt32) -> IncomingRequest? {
        countBySerial[serial].map { IncomingRequest(serial: serial, count: $0) }
    }

    /// Whether a part of its response was sent that has a place.
    func hasParts(_ request: IncomingRequest) -> Bool { entries[request.count]?.hasParts == true }

    /// A part of its response is sent.
    mutating func sentPart(of request: IncomingRequest) {
        entries.update(request.count) { $0.hasParts = true }
    }

    /// The peer does not wait any more. Returns the request; nil when it does not matter.
    mutating func cancel(serial: UInt32) -> IncomingRequest? {
        guard let count = countBySerial.removeValue(forKey: serial) else { return nil }
        entries.update(count) { $0.isCancelled = true }
        compact()
        return IncomingRequest(serial: serial, count: count)
    }

    /// It is responded to. Nil when it had ended.
    mutating func end(_ request: IncomingRequest) -> Entry? {
        guard let entry = entries.remove(request.count) else { return nil }
        byteCount -= entry.byteCount
        if !entry.isCancelled { countBySerial[request.serial] = nil }
        compact()
        return entry
    }

    /// Those that the peer waits for, the oldest first.
    var waitedFor: [IncomingRequest] {
        countBySerial.elements.map { IncomingRequest(serial: $0.key, count: $0.value) }.sorted { $0.count < $1.count }
    }

    /// None is waited for any more. Returns those that were, the oldest first.
    mutating func cancelAll() -> [IncomingRequest] {
        waitedFor.compactMap { cancel(serial: $0.serial) }
    }

    /// Returns those whose deadlines have come, which are not waited for any more.
    mutating func timerFired(now: MonotonicTime) -> [IncomingRequest] {
        var ended: [IncomingRequest] = []
        while let count = deadlines.takeDue(now: now) {
            // The first deadline is that of one that is waited for: `compact` takes out the others.
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
