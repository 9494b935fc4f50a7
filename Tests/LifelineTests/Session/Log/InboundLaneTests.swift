import Lifeline
import LifelineCore
import Testing

private func at(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }

private func lane(frames: Int = 1_000, bytes: Int = 1 << 20, batch: Int = 16) -> InboundLane {
    InboundLane(
        window: SessionWindow(frameCount: frames, byteCount: bytes),
        batchSize: batch,
        delay: .milliseconds(20)
    )
}

extension InboundLane {
    fileprivate mutating func receive(count: Int, cost: Int = 1) throws(SessionViolation) {
        for _ in 0..<count { _ = try receive(cost: cost) }
    }

    fileprivate mutating func finish(_ places: some Sequence<UInt64>, cost: Int = 1, now: MonotonicTime = at(0)) {
        for place in places { finish(place, cost: cost, now: now) }
    }

    fileprivate mutating func finish(_ place: UInt64, cost: Int, now: MonotonicTime) {
        finish(place, SessionSize(frameCount: 1, byteCount: cost), now: now)
    }
}

@Suite struct InboundLaneTests {
    // MARK: Places

    @Test func placesAreCounted() throws {
        var lane = lane()
        #expect(lane.received == 0 && lane.processed == 0 && !lane.hasUntold)
        #expect(try lane.receive(cost: 65) == 1 && lane.receive(cost: 70) == 2 && lane.receive(cost: 80) == 3)
        #expect(lane.received == 3 && lane.unprocessedSize == SessionSize(frameCount: 3, byteCount: 215))
        lane.finish(2, cost: 70, now: at(0))
        #expect(lane.processed == 0 && lane.unprocessedSize == SessionSize(frameCount: 2, byteCount: 145))
        lane.finish(1, cost: 65, now: at(0))
        #expect(lane.processed == 2)
        lane.finish(3, cost: 80, now: at(0))
        #expect(lane.processed == 3 && lane.unprocessedSize == SessionSize())
    }

    @Test func unprocessedFramesStayInTheWindow() throws {
        var lane = lane(frames: 3, bytes: 100)
        try lane.receive(count: 2, cost: 40)
        #expect(throws: SessionViolation.windowExceeded(.ordinary)) { try lane.receive(cost: 21) }
        try lane.receive(count: 1, cost: 20)
        #expect(throws: SessionViolation.windowExceeded(.ordinary)) { try lane.receive(cost: 0) }
        #expect(lane.received == 3)
        lane.finish(2, cost: 40, now: at(0))
        #expect(throws: SessionViolation.windowExceeded(.ordinary)) { try lane.receive(cost: 41) }
        #expect(try lane.receive(cost: 40) == 4)
    }

    @Test func aPlaceIsFinishedOnceAndAfterItCame() async {
        await #expect(processExitsWith: .failure) {
            var lane = lane()
            try lane.receive(count: 2)
            lane.finish([2, 2])
        }
        await #expect(processExitsWith: .failure) {
            var lane = lane()
            try lane.receive(count: 2)
            lane.finish([1, 1])
        }
        await #expect(processExitsWith: .failure) {
            var lane = lane()
            try lane.receive(count: 2)
            lane.finish([3])
        }
        // A straggler.
        await #expect(processExitsWith: .failure) {
            var lane = lane(frames: 10_000)
            try lane.receive(count: 9_000)
            lane.finish([2, 2])
        }
    }

    // MARK: Reports

    @Test func aReportTellsTheRangesThatAreNew() throws {
        var lane = lane()
        try lane.receive(count: 10)
        lane.finish([5, 3, 6, 1, 9])
        var report = lane.takeReport()
        #expect(report.processed == 1 && report.ranges == [3...3, 5...6, 9...9])
        #expect(!lane.hasUntold && lane.nextDeadline == nil && !lane.isReportDue(now: at(1_000)))
        report = lane.takeReport()
        #expect(report.processed == 1 && report.ranges == [])
        // 4 closes a gap between ranges that are known.
        lane.finish([4, 8])
        report = lane.takeReport()
        #expect(report.processed == 1 && report.ranges == [4...4, 8...8])
        // 2 raises the cumulative place to 6.
        lane.finish([10, 2])
        report = lane.takeReport()
        #expect(report.processed == 6 && report.ranges == [10...10])
    }

    @Test func aReportIsDueAfterABatch() throws {
        var lane = lane()
        try lane.receive(count: 40)
        // Places above a gap count, too.
        lane.finish(2...16)
        #expect(!lane.isReportDue(now: at(19)) && lane.nextDeadline == at(20))
        lane.finish([18])
        #expect(lane.isReportDue(now: at(0)) && lane.nextDeadline == nil)
        #expect(lane.takeReport().ranges == [2...16, 18...18])
        lane.finish(19...33)
        #expect(!lane.isReportDue(now: at(0)))
        lane.finish([1])
        #expect(lane.isReportDue(now: at(0)))
    }

    @Test func aReportIsDueAfterBytesOrAQuarterOfTheWindow() throws {
        var wide = lane()
        try wide.receive(count: 2, cost: 16_384)
        wide.finish([1], cost: 16_384)
        #expect(!wide.isReportDue(now: at(0)))
        wide.finish([2], cost: 16_384)
        #expect(wide.isReportDue(now: at(0)))

        var short = lane(bytes: 4_096)
        try short.receive(count: 2, cost: 1_024)
        short.finish([2], cost: 1_024)
        #expect(short.isReportDue(now: at(0)))

        var narrow = lane(frames: 8)
        try narrow.receive(count: 8)
        narrow.finish([3])
        #expect(!narrow.isReportDue(now: at(0)))
        narrow.finish([5])
        #expect(narrow.isReportDue(now: at(0)))

        var smallest = lane(frames: 1)
        try smallest.receive(count: 1)
        smallest.finish([1])
        #expect(smallest.isReportDue(now: at(0)))
    }

    @Test func aReportIsDueAfterAWhile() throws {
        var lane = lane()
        try lane.receive(count: 9)
        #expect(lane.nextDeadline == nil)
        lane.finish([2], now: at(5))
        lane.finish([1], now: at(9))
        #expect(lane.nextDeadline == at(25) && !lane.isReportDue(now: at(24)) && lane.isReportDue(now: at(25)))
        lane.timerFired(now: at(24))
        #expect(lane.nextDeadline == at(25))
        // From now on the report waits for room on the connection.
        lane.timerFired(now: at(25))
        #expect(lane.nextDeadline == nil && lane.isReportDue(now: at(25)))
        _ = lane.takeReport()
        #expect(!lane.isReportDue(now: at(99)))
        lane.finish([3], now: at(100))
        #expect(lane.nextDeadline == at(120))
    }

    @Test func rangesThatDoNotFitAreDueAtOnce() throws {
        var lane = lane(frames: 10_000)
        try lane.receive(count: 6_000)
        lane.finish(stride(from: 6_000, to: 0, by: -2))
        var told: [ClosedRange<UInt64>] = []
        for (count, isRest) in [(1_024, true), (1_024, true), (952, false)] {
            #expect(lane.isReportDue(now: at(0)) && lane.hasUntold)
            let report = lane.takeReport()
            #expect(report.processed == 0 && report.ranges.count == count)
            #expect(lane.isReportDue(now: at(0)) == isRest && lane.hasUntold == isRest && lane.nextDeadline == nil)
            told += report.ranges
        }
        #expect(told == stride(from: 2, through: 6_000, by: 2).map { $0...$0 })
    }

    @Test func anOpeningTellsTheRangesAgain() throws {
        var lane = lane(frames: 10_000)
        lane.connectionOpened()
        #expect(!lane.hasUntold && !lane.isReportDue(now: at(9)))
        try lane.receive(count: 5_000)
        lane.finish([1, 2, 4, 5, 4_999])
        _ = lane.takeReport()
        lane.finish([6], now: at(1))
        lane.connectionOpened()
        #expect(lane.hasUntold && lane.isReportDue(now: at(0)) && lane.nextDeadline == nil)
        var report = lane.takeReport()
        #expect(report.processed == 2 && report.ranges == [4...6, 4_999...4_999])
        // The opening stated the cumulative place.
        lane.finish([3])
        lane.finish([4_998])
        lane.connectionOpened()
        report = lane.takeReport()
        #expect(report.processed == 6 && report.ranges == [4_998...4_999])
        lane.finish(7...4_997)
        lane.connectionOpened()
        #expect(!lane.hasUntold && lane.nextDeadline == nil && !lane.isReportDue(now: at(99)))
        // Places that are processed after the opening was written have to be reported.
        lane.finish([5_000], now: at(50))
        #expect(lane.hasUntold && lane.nextDeadline == at(70))
    }

    // MARK: Ranges

    @Test(arguments: [1...64, 2...64, 63...64, 64...65, 1...4_096, 60...300, 2...9_000] as [ClosedRange<UInt64>])
    func framesAreProcessedTogether(range: ClosedRange<UInt64>) throws {
        for count in [range.upperBound, 9_000] {
            var lane = lane(frames: 10_000)
            try lane.receive(count: Int(count), cost: 3)
            lane.finish(range.lowerBound, SessionSize(frameCount: range.count, byteCount: 3 * range.count), now: at(5))
            let (left, report) = (Int(count) - range.count, lane.takeReport())
            #expect(lane.unprocessedSize == SessionSize(frameCount: left, byteCount: 3 * left))
            #expect(report.processed == (range.lowerBound == 1 ? range.upperBound : 0))
            #expect(report.ranges == (range.lowerBound == 1 ? [] : [range]))
            // The other places close the gaps.
            lane.finish(1..<range.lowerBound, cost: 3)
            #expect(lane.processed == range.upperBound)
            lane.finish(range.upperBound + 1..<count + 1, cost: 3)
            #expect(lane.processed == count && lane.unprocessedSize == SessionSize())
        }
    }

    /// The bitmap reaches 4,096 places back: older ones are stragglers.
    @Test func aRangeGoesFromTheStragglersIntoTheBitmap() throws {
        var lane = lane(frames: 10_000)
        try lane.receive(count: 9_000)
        lane.finish([4_000, 6_000])
        lane.finish(4_001, SessionSize(frameCount: 1_999, byteCount: 1_999), now: at(0))
        #expect(lane.processed == 0 && lane.takeReport().ranges == [4_000...6_000])
        lane.finish(1, SessionSize(frameCount: 3_999, byteCount: 3_999), now: at(0))
        #expect(lane.processed == 6_000)
        lane.finish(6_001, SessionSize(frameCount: 3_000, byteCount: 3_000), now: at(0))
        #expect(lane.processed == 9_000 && lane.unprocessedSize == SessionSize())
    }

    @Test func aRangeCountsAsItsFrames() throws {
        var lane = lane(batch: 16)
        try lane.receive(count: 40)
        lane.finish(2, SessionSize(frameCount: 15, byteCount: 15), now: at(0))
        #expect(!lane.isReportDue(now: at(19)) && lane.nextDeadline == at(20))
        lane.finish(20, SessionSize(frameCount: 2, byteCount: 2), now: at(1))
        #expect(lane.isReportDue(now: at(1)))
    }

    @Test(arguments: [1...3, 2...2, 3...5] as [ClosedRange<UInt64>])
    func eachPlaceOfARangeIsFinishedOnceAndAfterItCame(range: ClosedRange<UInt64>) async {
        await #expect(processExitsWith: .failure) { [range] in
            var lane = lane()
            try lane.receive(count: 4)
            lane.finish([2])
            lane.finish(range.lowerBound, SessionSize(frameCount: range.count, byteCount: range.count), now: at(0))
        }
    }

    // MARK: Memory

    @Test(arguments: [false, true])
    func twoMillionMessagesPassTwoHundred(reporting: Bool) throws {
        var lane = lane()
        var entryCount = 0
        var told = 0
        for _ in 0..<2_000_000 {
            let place = try lane.receive(cost: 1)
            // Leaves out the first 100 places, and 100 of the others.
            if place <= 100 || place.isMultiple(of: 20_000) { continue }
            lane.finish(place, cost: 1, now: at(0))
            entryCount = max(entryCount, lane.entryCount)
            if reporting, lane.isReportDue(now: at(0)) { told += lane.takeReport().ranges.map(\.count).reduce(0, +) }
        }
        #expect(lane.processed == 0 && lane.received == 2_000_000 && lane.unprocessedSize.frameCount == 200)
        // At most 16 bytes each.
        #expect(entryCount <= 64 + 200 + 2 * 201 + 64)
        if reporting { told += lane.takeReport().ranges.map(\.count).reduce(0, +) }
        #expect(told == (reporting ? 1_999_800 : 0))
        lane.connectionOpened()
        #expect(lane.takeReport().ranges.map(\.count).reduce(0, +) == 1_999_800)
        lane.finish((1...99).reversed())
        lane.finish(stride(from: 2_000_000, to: 0, by: -20_000))
        #expect(lane.processed == 99)
        lane.finish([100])
        #expect(lane.processed == 2_000_000 && lane.unprocessedSize == SessionSize())
    }

    @Test func untoldRangesAreBounded() throws {
        // No report can be sent, and four handlers take turns over runs of places.
        var lane = lane()
        try lane.receive(count: 1)
        var entryCount = 0
        for _ in 0..<500 {
            let first = lane.received + 1
            try lane.receive(count: 400)
            for offset in 0..<100 as Range<UInt64> {
                lane.finish((0..<4).map { first + offset + $0 * 100 })
            }
            entryCount = max(entryCount, lane.entryCount)
        }
        #expect(entryCount <= 64 + 1 + 2 * 401 + 64)
        let report = lane.takeReport()
        #expect(report.processed == 0 && report.ranges == [2...200_001])
    }

    // MARK: The urgent lane

    @Test func urgentFramesAreProcessedAsTheyCome() throws {
        var lane = UrgentLane(
            window: SessionWindow(frameCount: 12, byteCount: 4_096),
            batchSize: 16,
            delay: .milliseconds(20)
        )
        #expect(!lane.hasUntold && lane.nextDeadline == nil)
        #expect(try lane.receive(cost: 70, now: at(5)) == 1 && lane.receive(cost: 70, now: at(6)) == 2)
        #expect(lane.received == 2 && lane.processed == 2 && lane.hasUntold && lane.nextDeadline == at(25))
        #expect(!lane.isReportDue(now: at(24)) && lane.isReportDue(now: at(25)))
        try lane.receive(cost: 70, now: at(7))
        #expect(lane.isReportDue(now: at(7)) && lane.nextDeadline == nil)
        #expect(lane.takeReport() == 3 && !lane.hasUntold && !lane.isReportDue(now: at(99)))
        // The bytes of a quarter of the window.
        try lane.receive(cost: 1_024, now: at(30))
        #expect(lane.isReportDue(now: at(30)))
        lane.connectionOpened()
        #expect(!lane.hasUntold && !lane.isReportDue(now: at(99)))
        try lane.receive(cost: 70, now: at(40))
        lane.timerFired(now: at(60))
        #expect(lane.nextDeadline == nil && lane.isReportDue(now: at(60)))
        #expect(throws: SessionViolation.windowExceeded(.urgent)) { try lane.receive(cost: 4_097, now: at(60)) }
        #expect(lane.takeReport() == 5)
    }

    // MARK: Random stories

    @Test func randomStories() throws {
        for seed in 0..<3_000 as Range<UInt64> {
            var story = LaneStory(seed: seed, maximumRun: 20, maximumWindow: 300)
            for _ in 0..<45 { try story.goOn() }
            try story.end()
            if story.hasFailed {
                Issue.record("story \(seed) failed")
                return
            }
        }
    }

    /// Stories whose frames leave the bitmap, and whose ranges do not fit into one report.
    @Test func longRandomStories() throws {
        for seed in 10_000..<10_040 as Range<UInt64> {
            var story = LaneStory(seed: seed, maximumRun: 3_000, maximumWindow: 7_000)
            for _ in 0..<20 { try story.goOn() }
            try story.end()
            if story.hasFailed {
                Issue.record("story \(seed) failed")
                return
            }
        }
    }
}

/// A lane, and sets of places that model its expected state.
private struct LaneStory {
    private var random: SplitMix64
    private let maximumRun: Int
    private let window: SessionWindow
    private let batch: Int
    private var lane: InboundLane
    private var now: Int64 = 0

    private var costs: [UInt64: Int] = [:]
    /// In order of arrival, without those that were taken out.
    private var unprocessed: [UInt64] = []
    private var finished: Set<UInt64> = []
    /// The places that the peer knows on this connection.
    private var told: Set<UInt64> = []
    private var sizeSinceReport = (frames: 0, bytes: 0)
    private var firstUntold: Int64?
    private var isOverdue = false
    private(set) var hasFailed = false

    init(seed: UInt64, maximumRun: Int, maximumWindow: Int) {
        random = SplitMix64(seed: seed)
        self.maximumRun = maximumRun
        window = SessionWindow(
            frameCount: Int.random(in: 1...maximumWindow, using: &random),
            byteCount: Int.random(in: 4_096...200 * maximumWindow + 4_096, using: &random)
        )
        batch = Int.random(in: 1...20, using: &random)
        lane = InboundLane(window: window, batchSize: batch, delay: .milliseconds(20))
    }

    private mutating func check(_ holds: Bool, _ what: String) {
        guard !holds, !hasFailed else { return }
        hasFailed = true
        Issue.record("\(what)")
    }

    private var processed: UInt64 { (unprocessed.min() ?? lane.received + 1) - 1 }

    mutating func goOn() throws {
        let run = Int.random(in: 1...maximumRun, using: &random)
        switch Int.random(in: 0..<24, using: &random) {
        case 0..<7:
            for _ in 0..<run { try receive() }
        case 7..<9:
            // In order.
            for _ in 0..<min(run, unprocessed.count) { finish(at: 0) }
        case 9..<13:
            for _ in 0..<min(run, unprocessed.count) {
                finish(at: Int.random(in: 0..<unprocessed.count, using: &random))
            }
        case 13:
            // Every other one, from the end.
            var index = unprocessed.count - 1
            while index > 0 {
                finish(at: index)
                index -= 2
            }
        case 14..<16:
            now += Int64.random(in: 0...25, using: &random)
            if Bool.random(using: &random) {
                lane.timerFired(now: at(now))
                if let firstUntold, firstUntold + 20 <= now { isOverdue = true }
            }
        case 16..<20:
            finishRange(atMost: run)
        case 20..<23:
            report()
        default:
            open()
        }
        checkState()
    }

    /// Reports everything, finishes everything, and reports that.
    mutating func end() throws {
        while lane.hasUntold, !hasFailed { report() }
        check(told == finished, "what was told is what was processed")
        while !unprocessed.isEmpty { finish(at: unprocessed.count - 1) }
        checkState()
        while lane.hasUntold, !hasFailed { report() }
        check(told == finished && lane.processed == lane.received, "everything was told")
        check(lane.unprocessedSize == SessionSize(), "nothing is unprocessed")
    }

    private mutating func receive() throws {
        let cost = Int.random(in: 0..<10, using: &random) == 0 ? 900 : 70
        let taken = lane.unprocessedSize
        guard taken.frameCount < window.frameCount, taken.byteCount + cost <= window.byteCount else {
            let before = lane.received
            do {
                _ = try lane.receive(cost: cost)
                check(false, "the window was exceeded")
            } catch {
                check(error == .windowExceeded(.ordinary) && lane.received == before, "\(error)")
            }
            return
        }
        let place = try lane.receive(cost: cost)
        check(place == UInt64(costs.count + 1), "places are counted")
        costs[place] = cost
        unprocessed.append(place)
    }

    /// Finishes some consecutive places at once.
    private mutating func finishRange(atMost limit: Int) {
        guard !unprocessed.isEmpty else { return }
        let start = Int.random(in: 0..<unprocessed.count, using: &random)
        var end = start + 1
        while end < unprocessed.count, end - start < limit, unprocessed[end] == unprocessed[end - 1] + 1 { end += 1 }
        let places = unprocessed[start..<end]
        let size = SessionSize(frameCount: places.count, byteCount: places.map { costs[$0]! }.reduce(0, +))
        lane.finish(places[start], size, now: at(now))
        unprocessed.removeSubrange(start..<end)
        finished.formUnion(places)
        sizeSinceReport.frames += size.frameCount
        sizeSinceReport.bytes += size.byteCount
        if firstUntold == nil { firstUntold = now }
    }

    private mutating func finish(at index: Int) {
        let place = unprocessed.remove(at: index)
        lane.finish(place, cost: costs[place]!, now: at(now))
        finished.insert(place)
        sizeSinceReport.frames += 1
        sizeSinceReport.bytes += costs[place]!
        if firstUntold == nil { firstUntold = now }
    }

    private mutating func report() {
        let processed = processed
        let expected = finished.subtracting(told).filter { $0 > processed }.sorted()
        let report = lane.takeReport()
        check(report.processed == processed, "the cumulative place")
        check(report.ranges.count <= 1_024, "no more ranges than fit")
        for (first, second) in zip(report.ranges, report.ranges.dropFirst()) {
            check(first.upperBound + 1 < second.lowerBound, "ranges are in order and merged")
        }
        let places = report.ranges.flatMap { Array($0) }
        check(places == Array(expected.prefix(places.count)), "the ranges are those that are new")
        check(places.count == expected.count || report.ranges.count == 1_024, "all that fit are told")
        told.formUnion(places)
        if processed > 0 { told.formUnion(1...processed) }
        sizeSinceReport = (0, 0)
        firstUntold = nil
        isOverdue = places.count < expected.count
    }

    private mutating func open() {
        lane.connectionOpened()
        told = processed > 0 ? Set(1...processed) : []
        sizeSinceReport = (0, 0)
        firstUntold = nil
        isOverdue = told.count < finished.count
    }

    private mutating func checkState() {
        check(lane.received == UInt64(costs.count) && lane.processed == processed, "places")
        check(
            lane.unprocessedSize
                == SessionSize(
                    frameCount: unprocessed.count,
                    byteCount: unprocessed.map { costs[$0]! }.reduce(0, +)
                ),
            "sizes"
        )
        check(lane.hasUntold == (told.count < finished.count), "whether something is untold")
        let isFull =
            sizeSinceReport.frames >= max(1, min(batch, window.frameCount / 4))
            || sizeSinceReport.bytes >= min(32_768, window.byteCount / 4)
        let isDue = isOverdue || isFull
        let deadline = firstUntold.map { $0 + 20 }
        check(lane.isReportDue(now: at(now)) == (isDue || deadline.map { $0 <= now } ?? false), "whether it is due")
        check(lane.nextDeadline == (isDue ? nil : deadline.map { at($0) }), "when it is due")
        check(lane.hasUntold == (lane.nextDeadline != nil || lane.isReportDue(now: at(now))), "nothing is forgotten")
    }
}
