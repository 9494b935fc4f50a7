import Testing

@testable import LifelineCLI

/// The durations of calls.
@Suite struct CallTallyTests {
    @Test func aPercentileIsOffByThreePercentAtMost() {
        var histogram = LatencyHistogram()
        #expect(histogram.percentile(0.5) == .zero)
        for microseconds in 1...1000 { histogram.add(.microseconds(microseconds)) }
        for share in [0.01, 0.1, 0.5, 0.9, 0.99, 1] {
            let expected = Duration.microseconds(Int(share * 1000))
            let found = histogram.percentile(share)
            #expect(found >= expected && found <= expected * 1.032, "\(share): \(found)")
        }
        #expect(histogram.longest == .microseconds(1000))
        #expect(histogram.percentile(1) == .microseconds(1000), "no call took longer than the longest")
    }

    @Test(arguments: [Duration.zero, .nanoseconds(1), .nanoseconds(31), .nanoseconds(32), .seconds(1_000_000)])
    func anyLatencyIsItsOwnPercentile(latency: Duration) {
        var histogram = LatencyHistogram()
        histogram.add(latency)
        #expect(histogram.percentile(0.5) == latency)
        histogram.add(.seconds(1 << 33))
        #expect(histogram.percentile(0.5) >= latency && histogram.percentile(0.5) <= latency * 1.032)
    }

    @Test func aSummaryHasRatesAndTimes() throws {
        var tally = CallTally()
        #expect(tally.summary(duration: .seconds(1)) == "0 calls in 1.00 s")
        tally.replied(after: .milliseconds(2))
        let one = "1 call in 0.50 s, 2 a second; half within 2.00 ms, 99 % within 2.00 ms, all within 2.00 ms"
        #expect(tally.summary(duration: .milliseconds(500)) == one)
        tally.wasInDoubt()
        #expect(tally.summary(duration: .milliseconds(500)) == one + "; 1 in doubt when a session was lost")
        #expect(
            try jsonLine(tally.report(duration: .milliseconds(500)))
                == Array(#"{"calls":1,"inDoubt":1,"late":0,"max":0.002,"p50":0.002,"p99":0.002,"seconds":0.5}"#.utf8)
        )
    }
}
