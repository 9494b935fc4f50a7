import LifelineCore
import Testing

@Suite struct MonotonicTimeTests {
    @Test func arithmetic() {
        #expect(at(1.5) + .milliseconds(250) == at(1.75))
        #expect(at(1.5) - .milliseconds(250) == at(1.25))
        #expect(at(2) - at(1.5) == .milliseconds(500))
        #expect(at(1) - at(1.5) == .milliseconds(-500))
        #expect(at(1) < at(1.000000001))
    }

    @Test func arithmeticEndsAtTheEdge() {
        let first = MonotonicTime(nanoseconds: .min)
        let last = MonotonicTime(nanoseconds: .max)
        let eon = Duration.seconds(Int64.max)
        #expect(at(1) + eon == last)
        #expect(at(-1) - eon == first)
        #expect(last + .nanoseconds(1) == last)
        #expect(first - .nanoseconds(1) == first)
        #expect(last + .nanoseconds(Int64.min) == MonotonicTime(nanoseconds: -1))
        #expect(last - first == .nanoseconds(Int64.max))
        #expect(first - last == .nanoseconds(Int64.min))
        #expect(last - eon == at(0) && first + eon == MonotonicTime(nanoseconds: -1))
    }

    @Test(
        arguments: [
            (Duration.zero, 0), (.nanoseconds(-1), -1), (.seconds(5), 5_000_000_000), (.seconds(Int64.max), .max),
            (.seconds(Int64.min), .min), (Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999), 1),
            (Duration(secondsComponent: 0, attosecondsComponent: -1_999_999_999), -1),
            (Duration(secondsComponent: 9_223_372_036, attosecondsComponent: 854_775_807_000_000_000), .max),
            (Duration(secondsComponent: 9_223_372_036, attosecondsComponent: 854_775_808_000_000_000), .max),
            (Duration(secondsComponent: -9_223_372_036, attosecondsComponent: -854_775_808_000_000_000), .min),
            (Duration(secondsComponent: -9_223_372_036, attosecondsComponent: -854_775_809_000_000_000), .min),
            (Duration(secondsComponent: .max, attosecondsComponent: 999_999_999_999_999_999), .max),
        ] as [(Duration, Int64)]
    )
    func saturatedNanoseconds(duration: Duration, nanoseconds: Int64) {
        #expect(duration.saturatedNanoseconds == nanoseconds)
    }

    @Test func clamping() {
        #expect(Duration.seconds(-1).clamped(atLeast: .zero) == .zero)
        #expect(Duration.seconds(3).clamped(atLeast: .seconds(1)) == .seconds(3))
        #expect(Duration.seconds(Int64.max).clamped(atLeast: .zero) == .seconds(31_536_000))
    }

    @Test func description() {
        #expect("\(at(12.345))" == "12.345000000 s")
        #expect("\(MonotonicTime(nanoseconds: -1))" == "-0.000000001 s")
        #expect("\(MonotonicTime(nanoseconds: .min))" == "-9223372036.854775808 s")
    }
}
