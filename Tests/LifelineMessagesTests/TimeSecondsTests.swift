import LifelineMessages
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

private typealias Timestamp = Google_Protobuf_Timestamp
private typealias Span = Google_Protobuf_Duration

/// Moments and durations from and to seconds as `Double`, and how they are rounded.
@Suite struct TimeSecondsTests {
    @Test(arguments: [
        (0, 0, 0), (-0.0, 0, 0), (1.5, 1, 500_000_000), (-1.5, -1, -500_000_000), (0.25e-9, 0, 0), (0.5e-9, 0, 1),
        (-0.5e-9, 0, -1), (0.999_999_999_9, 1, 0), (-0.999_999_999_9, -1, 0), (1e-9, 0, 1), (0.1, 0, 100_000_000),
        (0x1p62, 1 << 62, 0), (0x1p63, .max, 999_999_999), (-0x1p63, .min, 0), (1e300, .max, 999_999_999),
        (-1e300, .min, -999_999_999), (.infinity, .max, 999_999_999), (-.infinity, .min, -999_999_999), (.nan, 0, 0),
        (.signalingNaN, 0, 0), (.leastNonzeroMagnitude, 0, 0),
    ])
    func secondsAreRoundedToANanosecond(seconds: Double, whole: Int64, nanos: Int32) {
        #expect(Span(timeInterval: seconds) == Span(seconds: whole, nanos: nanos))
        #expect(Span(rounding: seconds) == Span(seconds: whole, nanos: nanos))
        let moment = Timestamp(timeIntervalSince1970: seconds)
        #expect(moment == Timestamp(roundingTimeIntervalSince1970: seconds))
        if whole == .min {
            #expect(moment == Timestamp(seconds: .min))
        } else {
            #expect(moment.sinceEpoch == Span(seconds: whole, nanos: nanos).duration)
            #expect(0..<1_000_000_000 ~= moment.nanos)
        }
    }

    @Test func aRuleSaysHowToRound() {
        #expect(Span(rounding: -1.5e-9, rule: .up) == Span(nanos: -1))
        #expect(Span(rounding: -1.5e-9, rule: .down) == Span(nanos: -2))
        #expect(Span(rounding: 2.5e-9, rule: .toNearestOrEven) == Span(nanos: 2))
        let early = Timestamp(roundingTimeIntervalSince1970: -1.5e-9, rule: .down)
        #expect(early == Timestamp(seconds: -1, nanos: 999_999_998))
        #expect(Span(rounding: 0.999_999_999_9, rule: .towardZero) == Span(nanos: 999_999_999))

        let rules: [FloatingPointRoundingRule] = [
            .toNearestOrAwayFromZero, .toNearestOrEven, .up, .down, .towardZero, .awayFromZero,
        ]
        for rule in rules {
            for tenths in -40...40 {
                let duration = Swift.Duration(attoseconds: Int128(tenths) * 100_000_000)
                let expected = (Double(tenths) / 10).rounded(rule)
                #expect(Span(rounding: duration, rule: rule) == Span(nanos: Int32(expected)), "\(tenths), \(rule)")
            }
        }
        #expect(Span(Swift.Duration(attoseconds: -1_900_000_000)) == Span(nanos: -1))
    }

    @Test func secondsComeBack() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2_000 {
            let seconds = Double.random(in: -4e6...4e6, using: &generator)
            let moment = Timestamp(timeIntervalSince1970: seconds)
            for again in [Span(timeInterval: seconds).timeInterval, moment.timeIntervalSince1970] {
                #expect(abs(again - seconds) <= 0.5e-9 + seconds.ulp)
            }
            let nanos = Int64.random(in: -4_000_000_000_000_000...4_000_000_000_000_000, using: &generator)
            let span = Span(.nanoseconds(nanos))
            #expect(Span(timeInterval: span.timeInterval) == span)
            #expect(span.duration == .nanoseconds(nanos))
        }
        for seconds in [Int64.min, .max] {
            for nanos in [Int32.min, .max] {
                let time = Double(seconds) + Double(nanos) / 1e9
                #expect(Span(seconds: seconds, nanos: nanos).timeInterval == time)
                #expect(Timestamp(seconds: seconds, nanos: nanos).timeIntervalSince1970 == time)
            }
        }
    }

    @Test func literals() {
        let span: Google_Protobuf_Duration = -1.5
        #expect(span == Span(seconds: -1, nanos: -500_000_000))
        #expect(Timestamp(seconds: 1) + 0.5 == Timestamp(seconds: 1, nanos: 500_000_000))
        #expect(Timestamp(seconds: 1) - .milliseconds(500) == Timestamp(nanos: 500_000_000))
        #expect(Timestamp(seconds: 0) == Timestamp() && Span() == Span(seconds: 0, nanos: 0))
    }
}
