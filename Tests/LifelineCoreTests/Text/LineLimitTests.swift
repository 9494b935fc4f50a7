import LifelineCore
import Testing

@Suite struct LineLimitTests {
    private func time(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test func theFirstLinesOfEachKindAreWritten() {
        var limit = LineLimit(lineCount: 2, period: .seconds(10))
        for kind in ["a", "b"] {
            let verdicts = (0..<4).map { _ in limit.verdict(on: kind, now: time(0)) }
            #expect(verdicts == [.write(leftOut: 0), .write(leftOut: 0), .leaveOut, .leaveOut])
        }
        #expect(limit.takeLeftOut().map { "\($0.kind) \($0.count)" } == ["a 2", "b 2"])
        #expect(limit.takeLeftOut().isEmpty, "they were told of")
    }

    @Test func theNextPeriodTellsOfTheLast() {
        var limit = LineLimit(lineCount: 1, period: .seconds(10))
        #expect(limit.verdict(on: "a", now: time(5)) == .write(leftOut: 0))
        #expect(limit.verdict(on: "a", now: time(14)) == .leaveOut)
        #expect(limit.verdict(on: "a", now: time(15)) == .write(leftOut: 1))
        #expect(limit.verdict(on: "a", now: time(16)) == .leaveOut)
        #expect(limit.verdict(on: "a", now: time(99)) == .write(leftOut: 1))
        #expect(limit.takeLeftOut().isEmpty)
    }

    /// For any kinds of lines, memory is bounded, and every line is counted.
    @Test func manyKindsCountAsOne() {
        var limit = LineLimit(lineCount: 1, period: .seconds(10))
        let written = (0..<10_000).filter { limit.verdict(on: "\($0)", now: time(0)) != .leaveOut }.count
        #expect(written == 65)
        #expect(limit.takeLeftOut().map(\.count) == [10_000 - 65])
    }
}
