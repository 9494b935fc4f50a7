/// How much of what answers the peer's pings waits for the peer to read it. Replies do not wait for room, so that a
/// peer which asks and does not read would fill the memory; while too much of them waits, its bytes are not read.
///
/// Other bytes that wait do not count: two sides that both send much, and do not read meanwhile, would wait for each
/// other.
package struct ReplyBacklog: Sendable {
    private let marks: WaterMarks
    private var queuedByteCount = 0
    private var inFlightByteCount = 0
    private var isPaused = false

    package init(marks: WaterMarks) {
        self.marks = marks
    }

    /// Replies were queued. Tells whether to stop reading.
    package mutating func queued(byteCount: Int) -> Bool {
        queuedByteCount += byteCount
        guard !isPaused, queuedByteCount + inFlightByteCount >= marks.high else { return false }
        isPaused = true
        return true
    }

    /// All that is queued is being written.
    package mutating func writeStarted() {
        inFlightByteCount = queuedByteCount
        queuedByteCount = 0
    }

    /// The kernel has taken the write. Tells whether to read on.
    package mutating func writeCompleted() -> Bool {
        inFlightByteCount = 0
        guard isPaused, queuedByteCount <= marks.low else { return false }
        isPaused = false
        return true
    }
}
