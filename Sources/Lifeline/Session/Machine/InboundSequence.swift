package import LifelineCore

/// What has come from the peer in one lane of a session: which frames are new, which were processed, and when to say
/// so.
///
/// Messages may be processed in another order than they came in; the acknowledgement names the last one before which
/// nothing is missing. It travels with whatever is sent next, or alone when enough has gathered, or after a while.
///
/// Every event costs constant time on average. Memory follows what has come and is not acknowledged, which the window
/// bounds.
package struct InboundSequence: Sendable {
    private struct Entry {
        let byteCount: Int
        var isProcessed = false
    }

    private let lane: SessionLane
    private let window: SessionWindow
    private let delay: Duration
    private let batchSize: UInt64
    private let byteThreshold: Int
    /// What has come, by its place, from the first that is not processed on.
    private var entries = FIFO<Entry>(firstNumber: 1)
    private(set) var unprocessed = SessionSize()
    /// The last place that the peer was told of, and the bytes that were processed since.
    private var reported: UInt64 = 0
    private var unreportedByteCount = 0
    /// When the peer is to be told; nil when it knows everything.
    private var reportDeadline: MonotonicTime?
    /// Whether that time has come: what is due waits for room on the connection, not for a time.
    private var isOverdue = false
    /// Frames that had come before.
    package private(set) var duplicateCount = 0

    /// - Parameters:
    ///   - window: what is taken before it is processed.
    ///   - batchSize: after so many processed messages the peer is told at once.
    ///   - delay: how long it may take otherwise.
    package init(_ lane: SessionLane, window: SessionWindow, batchSize: Int, delay: Duration) {
        self.lane = lane
        self.window = window
        // Soon enough that a peer which has filled the window learns of it, or what it keeps at most, which may be
        // less.
        self.batchSize = UInt64(max(1, min(batchSize, window.frameCount / 4)))
        byteThreshold = min(32 << 10, window.byteCount / 4)
        self.delay = delay
    }

    /// Everything up to this place was processed.
    package var processed: UInt64 { entries.firstNumber - 1 }
    /// Everything up to this place has come.
    package var received: UInt64 { entries.nextNumber - 1 }
    /// Whether the peer does not know everything.
    package var hasUnreported: Bool { reportDeadline != nil }
    /// When `timerFired` is to be called, if nothing is sent before.
    package var nextDeadline: MonotonicTime? { isOverdue ? nil : reportDeadline }

    /// Whether the peer is to be told now.
    package func isReportDue(now: MonotonicTime) -> Bool {
        guard let reportDeadline else { return false }
        return isOverdue || reportDeadline <= now || processed - reported >= batchSize
            || unreportedByteCount > byteThreshold
    }

    /// A frame with a place came in. Returns whether it is new.
    package mutating func receive(_ sequence: UInt64, byteCount: Int) throws(SessionViolation) -> Bool {
        let expected = entries.nextNumber
        guard sequence <= expected else { throw .gap(lane, expected: expected, received: sequence) }
        guard sequence == expected else {
            duplicateCount += 1
            return false
        }
        guard window.takes(byteCount, besides: unprocessed) else { throw .windowExceeded(lane) }
        entries.append(Entry(byteCount: byteCount))
        unprocessed.add(byteCount)
        return true
    }

    /// A message is processed. One that was processed before changes nothing.
    package mutating func finish(_ sequence: UInt64, now: MonotonicTime) {
        guard entries.numbers.contains(sequence) else { return }
        entries[sequence].isProcessed = true
        while let first = entries.first, first.isProcessed {
            entries.removeFirst()
            unprocessed.remove(first.byteCount)
            unreportedByteCount += first.byteCount
        }
        if processed > reported, reportDeadline == nil { reportDeadline = now + delay }
    }

    /// The acknowledgement for a frame that is about to be sent.
    package mutating func takeReport() -> UInt64 {
        reported = processed
        unreportedByteCount = 0
        reportDeadline = nil
        isOverdue = false
        return reported
    }

    /// `nextDeadline` has come; calling it early does no harm.
    package mutating func timerFired(now: MonotonicTime) {
        if let reportDeadline, reportDeadline <= now { isOverdue = true }
    }
}
