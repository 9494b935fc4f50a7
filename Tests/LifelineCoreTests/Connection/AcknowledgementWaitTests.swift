import LifelineCore
import Testing

@Suite struct AcknowledgementWaitTests {
    private func time(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }

    @Test func pausesGrow() {
        var wait = AcknowledgementWait(timeout: .seconds(5), now: time(0))
        let pauses = (0..<8).map { _ in wait.checked(isOver: false, now: time(0)) }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 50, 50].map { .milliseconds($0) })
    }

    @Test func theTimeCountsAsAWhole() {
        var wait = AcknowledgementWait(timeout: .seconds(5), now: time(1_000))
        #expect(wait.checked(isOver: false, now: time(4_000)) != nil)
        #expect(wait.checked(isOver: false, now: time(5_999)) == .milliseconds(1))
        #expect(wait.checked(isOver: false, now: time(6_000)) == nil)
    }

    @Test func nothingIsWaitedForAtTheEnd() {
        var wait = AcknowledgementWait(timeout: .seconds(5), now: time(0))
        #expect(wait.checked(isOver: true, now: time(0)) == nil)
        var hasNoTime = AcknowledgementWait(timeout: .zero, now: time(0))
        #expect(hasNoTime.checked(isOver: false, now: time(0)) == nil)
    }
}
