/// Bounds the replies to pings that wait for the peer to read them. Replies do not wait for room, so a peer that asks
/// and does not read would fill the memory. While too many reply bytes wait, the peer's bytes are not read.
///
/// Other waiting bytes do not count: otherwise two sides that both send much, and do not read meanwhile, would wait for
/// each other.
package struct ReplyBacklog: Sendable {
    private let marks: WaterMarks
    private var queuedByteCount = 0
    private var inFlightByteCount = 0
    private var isPaused = false

    package init(marks: WaterMarks) {
        self.marks = marks
    }

    /// Notes queued replies. Returns whether to stop reading.
    package mutating func queued(byteCount: Int) -> Bool {
        queuedByteCount += byteCount
        guard !isPaused, queuedByteCount + inFlightByteCount >= marks.high else { return false }
        isPaused = true
        return true
    }

    /// Notes that everything queued is being written.
    package mutating func writeStarted() {
        inFlightByteCount = queuedByteCount
        queuedByteCount = 0
    }

    /// Notes that the kernel has taken the write. Returns whether to resume reading.
    package mutating func writeCompleted() -> Bool {
        inFlightByteCount = 0
        guard isPaused, queuedByteCount <= marks.low else { return false }
        isPaused = false
        return true
    }
}
