import LifelineMessages
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

private typealias Timestamp = Google_Protobuf_Timestamp
private typealias Span = Google_Protobuf_Duration

/// Sums, differences and the order of moments and durations, with any numbers from a peer.
@Suite struct TimeArithmeticTests {
    private static let first = Timestamp(seconds: .min)
    private static let last = Timestamp(seconds: .max, nanos: 999_999_999)
    private static let shortest = Span(seconds: .min, nanos: -999_999_999)
    private static let longest = Span(seconds: .max, nanos: 999_999_999)

    /// Numbers of all magnitudes, those at the edges more often than others.
    private static func number<Number: FixedWidthInteger>(using generator: inout SeededGenerator) -> Number {
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: Number.min
        case 1: Number.max
        default: Number.random(in: .min ... .max, using: &generator) >> Number.random(in: 0..<64, using: &generator)
        }
    }

    private static func valid(using generator: inout SeededGenerator) -> Swift.Duration {
        .seconds(Int64.random(in: -100_000_000_000...100_000_000_000, using: &generator))
            + .nanoseconds(Int64.random(in: -999_999_999...999_999_999, using: &generator))
    }

    @Test func aSumIsThatOfSwiftsDurations() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2_000 {
            let (a, b) = (Self.valid(using: &generator), Self.valid(using: &generator))
            let moment = Timestamp(sinceEpoch: a)
            #expect((moment + b).sinceEpoch == a + b && (moment - b).sinceEpoch == a - b)
            #expect(moment + Span(b) == moment + b && Span(b) + moment == moment + b && moment - Span(b) == moment - b)
            #expect(moment - Timestamp(sinceEpoch: b) == a - b)
            #expect((Span(a) + Span(b)).duration == a + b && (Span(a) - Span(b)).duration == a - b)
            #expect((-Span(a)).duration == .zero - a)
            #expect((moment < Timestamp(sinceEpoch: b)) == (a < b) && (Span(a) < Span(b)) == (a < b))

            var (later, longer) = (moment, Span(a))
            later += b
            longer += Span(b)
            #expect(later == moment + b && longer == Span(a) + Span(b))
            later -= b
            longer -= Span(b)
            #expect(later == moment && longer == Span(a))
            later += Span(b)
            later -= Span(b)
            #expect(later == moment)
        }
    }

    @Test func anyNumbersAddUpWithinTheRangesOfTheFields() {
        var generator = SeededGenerator(seed: 2)
        func clamped(_ time: Swift.Duration, _ range: ClosedRange<Swift.Duration>) -> Swift.Duration {
            min(max(time, range.lowerBound), range.upperBound)
        }
        let moments = Self.first.sinceEpoch...Self.last.sinceEpoch
        let spans = Self.shortest.duration...Self.longest.duration
        for _ in 0..<2_000 {
            let moment = Timestamp(seconds: Self.number(using: &generator), nanos: Self.number(using: &generator))
            let span = Span(seconds: Self.number(using: &generator), nanos: Self.number(using: &generator))
            let other = Span(seconds: Self.number(using: &generator), nanos: Self.number(using: &generator))
            for (sum, expected) in [
                (moment + span, moment.sinceEpoch + span.duration), (moment - span, moment.sinceEpoch - span.duration),
            ] {
                #expect(sum.sinceEpoch == clamped(expected, moments) && 0..<1_000_000_000 ~= sum.nanos)
            }
            for (sum, expected) in [
                (span + other, span.duration + other.duration), (span - other, span.duration - other.duration),
                (-span, .zero - span.duration),
            ] {
                #expect(sum.duration == clamped(expected, spans) && abs(sum.nanos) < 1_000_000_000)
                #expect(sum.seconds.signum() * Int64(sum.nanos.signum()) >= 0)
            }
        }
    }

    @Test func overflowStopsAtTheLimits() {
        #expect(Self.last + .nanoseconds(1) == Self.last && Self.last + Self.longest == Self.last)
        #expect(Self.first - .nanoseconds(1) == Self.first && Self.first + Self.shortest == Self.first)
        #expect(Self.last - Self.first == .seconds(Int64.max) + .seconds(Int64.max) + .seconds(2) - .nanoseconds(1))
        #expect(-Self.shortest == Self.longest && -Self.longest != Self.shortest)
        #expect(-Span(seconds: .min) == Self.longest)
        #expect(Self.longest + Self.longest == Self.longest && Self.shortest - Self.longest == Self.shortest)
        let huge = Swift.Duration(attoseconds: .max)
        let negative = Swift.Duration(attoseconds: .min)
        #expect(Self.last + huge == Self.last && Self.first - huge == Self.first)
        #expect(Self.last - negative == Self.last && Self.first + negative == Self.first)
        #expect(Span(huge) == Self.longest && Span(negative) == Self.shortest)
        #expect(Span(rounding: huge) == Self.longest && Span(rounding: negative) == Self.shortest)
        #expect(Timestamp(sinceEpoch: huge) == Self.last && Timestamp(sinceEpoch: negative) == Self.first)
    }

    @Test func partsOfANanosecondAreCutOffFromTheDuration() {
        let moment = Timestamp(seconds: -1, nanos: 5)
        let almost = Swift.Duration(attoseconds: 1_999_999_999)
        #expect(moment + almost == Timestamp(seconds: -1, nanos: 6))
        #expect(moment - almost == Timestamp(seconds: -1, nanos: 4))
    }

    @Test func sumsAreNormal() {
        #expect(Span(seconds: 1, nanos: -1) + Span() == Span(nanos: 999_999_999))
        #expect(Span(seconds: -1, nanos: 1) + Span() == Span(nanos: -999_999_999))
        #expect(Timestamp(nanos: -1) + Span() == Timestamp(seconds: -1, nanos: 999_999_999))
        #expect(Span(seconds: 1, nanos: -1).nanos == -1)
    }

    // MARK: Order

    @Test func theOrderAgreesWithEquality() throws {
        var generator = SeededGenerator(seed: 3)
        var moments: [Timestamp] = []
        for _ in 0..<60 {
            let seconds = Int64.random(in: -2...2, using: &generator)
            let excess = Int64.random(in: -1...1, using: &generator)
            var moment = Timestamp(seconds: seconds - excess, nanos: Int32(excess) * 1_000_000_000)
            // A field that no version of the message knows yet.
            if Bool.random(using: &generator) { try moment.merge(serializedBytes: [0x18, 1]) }
            moments.append(moment)
        }
        for a in moments {
            for b in moments {
                #expect([a < b, a == b, a > b].filter(\.self).count == 1)
                if a.sinceEpoch != b.sinceEpoch { #expect((a < b) == (a.sinceEpoch < b.sinceEpoch)) }
                for c in moments where a < b && b < c { #expect(a < c) }
            }
        }
        #expect(moments.sorted().map(\.sinceEpoch) == moments.map(\.sinceEpoch).sorted())
        #expect(max(Span(seconds: 1), Span(nanos: 999_999_999)) == Span(seconds: 1))
        #expect(Span(seconds: .min, nanos: .min) < Self.shortest && Self.longest < Span(seconds: .max, nanos: .max))
    }
}
