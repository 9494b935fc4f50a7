package import LifelineCore

/// The receiving side of the ordinary lane of a session: counts the places of received frames, knows which of them were
/// processed, and decides when to tell the peer.
///
/// Frames may be processed in another order than that of their arrival. A report names the last place before which
/// nothing is missing, and the ranges above it that the peer does not know yet.
///
/// Every event takes constant time on average; finishing a frame far behind newer ones takes logarithmic time. Memory
/// depends on the unprocessed frames, not on those that were processed around them.
package struct InboundLane: Sendable {
    /// The bitmap grows up to 4,096 places, in 512 bytes.
    private static var maximumWordCount: Int { 64 }

    private let window: SessionWindow
    private var pacing: ReportPacing
    /// The number of places received.
    package private(set) var received: UInt64 = 0
    /// The size of received frames that are not processed.
    package private(set) var unprocessedSize = SessionSize()

    /// Every place up to this one was processed, except the stragglers. The next one is not processed, or was not
    /// received.
    private var floor: UInt64 = 0
    /// A ring with a bit for each place above the floor, set when the place was processed. In the word of the newest
    /// place, the bits after it are 0. Words that the floor has passed keep old bits until they are used again.
    private var words: [UInt64] = []
    /// The unprocessed places at or below the floor.
    private var stragglers = SparseQueue<Void>()

    /// The cumulative place that the peer knows on this connection.
    private var toldProcessed: UInt64 = 0
    private var untold = UntoldRanges()

    /// - Parameters:
    ///   - window: the most that may be unprocessed.
    ///   - batchSize: the number of processed frames after which a report is due at once. A quarter of the window
    ///     makes it due too, so that a peer that has filled the window soon learns of room.
    ///   - delay: how long a report may be delayed otherwise.
    ///   - received: the number of places that were received and processed before.
    package init(window: SessionWindow, batchSize: Int, delay: Duration, received: UInt64 = 0) {
        self.window = window
        pacing = ReportPacing(window: window, batchSize: batchSize, delay: delay)
        (self.received, floor) = (received, received)
    }

    /// Every place up to this one was processed.
    package var processed: UInt64 { stragglers.first.map { $0.number - 1 } ?? floor }
    /// Whether processed places were not reported to the peer on this connection.
    package var hasUntold: Bool { processed > toldProcessed || !untold.isEmpty }
    /// The time at which a report becomes due. Nil while there is nothing to report, and while a report is due and only
    /// waits for room.
    package var nextDeadline: MonotonicTime? { pacing.nextDeadline }
    /// The words of the bitmap, stragglers and untold ranges that are kept: 16 bytes each at most, besides slack.
    package var entryCount: Int { words.count + stragglers.count + untold.count }

    /// Whether a report to the peer is due now.
    package func isReportDue(now: MonotonicTime) -> Bool { pacing.isDue(now: now) }

    /// Receives the next frame. Returns its place.
    package mutating func receive(cost: Int) throws(SessionViolation) -> UInt64 {
        guard window.takes(cost, besides: unprocessedSize) else { throw .windowExceeded(.ordinary) }
        makeRoom(for: received + 1)
        received += 1
        unprocessedSize.add(cost)
        return received
    }

    /// Marks the frames from a place on as processed. They must not be processed already.
    ///
    /// - Parameter size: their number, and their cost when they were received.
    package mutating func finish(_ first: UInt64, _ size: SessionSize, now: MonotonicTime) {
        let last = first + UInt64(size.frameCount) - 1
        precondition(first > 0 && first <= last && last <= received, "place \(last) was not received")
        for place in first...last {
            if place > floor {
                let (word, bit) = (Self.index(of: place, in: words.count), UInt64(1) << (place & 63))
                precondition(words[word] & bit == 0, "place \(place) is processed already")
                words[word] |= bit
            } else {
                let straggler: Void? = stragglers.remove(place)
                precondition(straggler != nil, "place \(place) is processed already")
            }
        }
        if first <= floor + 1, last > floor { raiseFloor() }
        unprocessedSize = unprocessedSize - size
        // Places up to `processed` need no range: the cumulative place includes them.
        let processed = processed
        if last > processed { untold.insert(first...last, processed: processed) }
        pacing.add(size, now: now)
    }

    /// Returns the content of an acknowledgement that is about to be sent: the cumulative place, and, in ascending
    /// order, the processed ranges above it that were not reported on this connection. Ranges that do not fit are not
    /// reported, and remain due at once.
    ///
    /// - Parameter rangeLimit: the number of ranges that fit
    package mutating func takeReport(
        rangeLimit: Int = Acknowledgement.maximumRangeCount
    ) -> (processed: UInt64, ranges: [ClosedRange<UInt64>]) {
        let processed = processed
        let ranges = untold.take(above: processed, maximumCount: rangeLimit)
        toldProcessed = processed
        pacing.restart(isDue: !untold.isEmpty)
        return (processed, ranges)
    }

    /// Notes that an opening told the peer `processed`. The ranges above it have to be reported again.
    ///
    /// Call this when the opening is written: on a client when it sends the hello, not when the welcome comes. Only
    /// frames processed after this call count as unreported.
    package mutating func connectionOpened() {
        toldProcessed = processed
        untold = UntoldRanges(processedRanges)
        pacing.restart(isDue: !untold.isEmpty)
    }

    /// Notes that `nextDeadline` has passed; calling this early does no harm. The report stays due and has no further
    /// deadline.
    package mutating func timerFired(now: MonotonicTime) { pacing.timerFired(now: now) }

    /// Makes a report of unreported frames due at once.
    package mutating func reportAtOnce() {
        if hasUntold { pacing.restart(isDue: true) }
    }

    // MARK: The bitmap

    private static func index(of place: UInt64, in wordCount: Int) -> Int {
        // The count is a power of two.
        Int(truncatingIfNeeded: place >> 6) & (wordCount - 1)
    }

    /// Extends the bitmap from the floor to the next place.
    private mutating func makeRoom(for place: UInt64) {
        if words.isEmpty { words = [UInt64](repeating: 0, count: 4) }
        while Int(place >> 6 - (floor + 1) >> 6) >= words.count {
            if words.count < Self.maximumWordCount {
                growBitmap()
            } else {
                // Each place passes the floor once, so this costs constant time on average.
                stragglers.append(floor + 1, ())
                floor += 1
                raiseFloor()
            }
        }
        if place & 63 == 0 { words[Self.index(of: place, in: words.count)] = 0 }
    }

    /// Moves the floor over all processed places after it.
    private mutating func raiseFloor() {
        while floor < received {
            let offset = (floor + 1) & 63
            let word = words[Self.index(of: floor + 1, in: words.count)] >> offset
            let run = UInt64((~word).trailingZeroBitCount)
            floor += run
            if run < 64 - offset { return }
        }
    }

    private mutating func growBitmap() {
        var grown = [UInt64](repeating: 0, count: words.count * 2)
        for word in (floor + 1) >> 6...received >> 6 {
            let place = word << 6
            grown[Self.index(of: place, in: grown.count)] = words[Self.index(of: place, in: words.count)]
        }
        words = grown
    }

    /// The processed ranges above `processed`.
    private var processedRanges: [ClosedRange<UInt64>] {
        var ranges: [ClosedRange<UInt64>] = []
        var start = processed + 1
        func unprocessed(_ place: UInt64) {
            if start < place { ranges.append(start...place - 1) }
            start = place + 1
        }
        for place in stragglers.numbers { unprocessed(place) }
        for place in floor + 1..<received + 1
        where words[Self.index(of: place, in: words.count)] & (1 << (place & 63)) == 0 {
            unprocessed(place)
        }
        // The end of the received places ends the last range.
        unprocessed(received + 1)
        return ranges
    }
}

/// The receiving side of the urgent lane of a session, whose frames are processed on arrival.
package struct UrgentLane: Sendable {
    private let window: SessionWindow
    private var pacing: ReportPacing
    /// The number of places received and processed.
    package private(set) var received: UInt64 = 0
    private var told: UInt64 = 0

    /// See ``InboundLane/init(window:batchSize:delay:received:)``.
    package init(window: SessionWindow, batchSize: Int, delay: Duration, received: UInt64 = 0) {
        self.window = window
        pacing = ReportPacing(window: window, batchSize: batchSize, delay: delay)
        self.received = received
    }

    /// Every place up to this one was processed.
    package var processed: UInt64 { received }
    /// Whether processed frames were not reported to the peer.
    package var hasUntold: Bool { received > told }
    /// The time at which a report becomes due. Nil while there is nothing to report, and while a report is due and only
    /// waits for room.
    package var nextDeadline: MonotonicTime? { pacing.nextDeadline }

    /// Whether a report to the peer is due now.
    package func isReportDue(now: MonotonicTime) -> Bool { pacing.isDue(now: now) }

    /// Receives and processes the next frame. Throws if it alone is larger than the window. Returns its place.
    @discardableResult
    package mutating func receive(cost: Int, now: MonotonicTime) throws(SessionViolation) -> UInt64 {
        guard window.takes(cost, besides: SessionSize()) else { throw .windowExceeded(.urgent) }
        received += 1
        pacing.add(SessionSize(frameCount: 1, byteCount: cost), now: now)
        return received
    }

    /// Returns the cumulative place for an acknowledgement that is about to be sent.
    package mutating func takeReport() -> UInt64 {
        told = received
        pacing.restart(isDue: false)
        return told
    }

    /// Notes that an opening told the peer `processed`. Call this when the opening is written.
    package mutating func connectionOpened() { _ = takeReport() }

    /// Notes that `nextDeadline` has passed; calling this early does no harm. The report stays due and has no further
    /// deadline.
    package mutating func timerFired(now: MonotonicTime) { pacing.timerFired(now: now) }
}

/// Decides when to report processed frames to the peer: after a batch, after some bytes, or after a while.
private struct ReportPacing: Sendable {
    private let batchSize: Int
    private let byteThreshold: Int
    private let delay: Duration
    /// The frames that were processed since the last report.
    private var size = SessionSize()
    private var isDue = false
    private var deadline: MonotonicTime?

    init(window: SessionWindow, batchSize: Int, delay: Duration) {
        self.batchSize = max(1, min(batchSize, window.frameCount / 4))
        // 32 KiB: the peer keeps as much while an acknowledgement is under way.
        byteThreshold = max(1, min(32 << 10, window.byteCount / 4))
        self.delay = delay
    }

    var nextDeadline: MonotonicTime? { isDue ? nil : deadline }

    func isDue(now: MonotonicTime) -> Bool {
        if isDue { return true }
        guard let deadline else { return false }
        return deadline <= now
    }

    /// Adds processed frames.
    mutating func add(_ more: SessionSize, now: MonotonicTime) {
        size = size + more
        if deadline == nil { deadline = now + delay }
        if size.frameCount >= batchSize || size.byteCount >= byteThreshold { isDue = true }
    }

    /// Notes that the peer was told. Unreported ranges are due at once.
    mutating func restart(isDue: Bool) {
        size = SessionSize()
        deadline = nil
        self.isDue = isDue
    }

    mutating func timerFired(now: MonotonicTime) {
        if isDue(now: now) { isDue = true }
    }
}

/// Processed ranges that the peer has not been told of, sorted and merged only when they are needed.
private struct UntoldRanges: Sendable {
    private var ranges: [ClosedRange<UInt64>] = []
    /// The number of ranges at which they are merged: twice the number left after the last merge, so that merging costs
    /// little on average and memory stays in proportion. The minimum of 64 avoids merging a few.
    private var mergeCount = 64

    init() {}

    /// - Parameter ranges: in order, with gaps between them.
    init(_ ranges: [ClosedRange<UInt64>]) {
        self.ranges = ranges
        mergeCount = max(64, 2 * ranges.count)
    }

    var isEmpty: Bool { ranges.isEmpty }
    var count: Int { ranges.count }

    /// Adds places, which are in no range.
    mutating func insert(_ places: ClosedRange<UInt64>, processed: UInt64) {
        if let last = ranges.last {
            // Most frames are processed one after another.
            if places.lowerBound == last.upperBound + 1 {
                ranges[ranges.count - 1] = last.lowerBound...places.upperBound
                return
            }
            if places.upperBound + 1 == last.lowerBound {
                ranges[ranges.count - 1] = places.lowerBound...last.upperBound
                return
            }
        }
        if ranges.count >= mergeCount {
            merge(above: processed)
            mergeCount = max(64, 2 * ranges.count)
        }
        ranges.append(places)
    }

    /// Removes and returns the first ranges above `processed`, in order; drops those below.
    mutating func take(above processed: UInt64, maximumCount: Int) -> [ClosedRange<UInt64>] {
        if ranges.isEmpty { return [] }
        merge(above: processed)
        if ranges.isEmpty { return [] }
        defer { mergeCount = max(64, 2 * ranges.count) }
        guard ranges.count > maximumCount else {
            let taken = ranges
            ranges = []
            return taken
        }
        let taken = Array(ranges[..<maximumCount])
        ranges = Array(ranges[maximumCount...])
        return taken
    }

    /// Sorts and merges the ranges, and drops those up to `processed`. No range contains places on both sides of it,
    /// because the place after `processed` is not processed.
    private mutating func merge(above processed: UInt64) {
        ranges.sort { $0.lowerBound < $1.lowerBound }
        var count = 0
        for index in ranges.indices where ranges[index].lowerBound > processed {
            let range = ranges[index]
            if count > 0, ranges[count - 1].upperBound + 1 == range.lowerBound {
                ranges[count - 1] = ranges[count - 1].lowerBound...range.upperBound
            } else {
                ranges[count] = range
                count += 1
            }
        }
        ranges.removeLast(ranges.count - count)
    }
}
