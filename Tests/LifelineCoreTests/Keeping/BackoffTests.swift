import LifelineCore
import Testing

@Suite struct BackoffTests {
    private func delays(_ configuration: BackoffConfiguration, seed: UInt64 = 1, count: Int) -> [Duration] {
        var backoff = Backoff(configuration, seed: seed)
        return (0..<count).compactMap { _ in
            backoff.attemptStarted()
            if case .wait(let delay) = backoff.attemptEnded() { return delay } else { return nil }
        }
    }

    private func unlimited(jitter: Double = 0) -> BackoffConfiguration {
        var configuration = BackoffConfiguration()
        configuration.jitter = jitter
        configuration.maximumAttempts = nil
        return configuration
    }

    @Test func delaysDoubleUpToTheCap() {
        #expect(delays(unlimited(), count: 8) == [1, 2, 4, 8, 16, 30, 30, 30].map { .seconds($0) })
    }

    @Test func fourAttemptsByDefault() {
        var backoff = Backoff(BackoffConfiguration(), seed: 1)
        for _ in 1...3 {
            backoff.attemptStarted()
            guard case .wait = backoff.attemptEnded() else {
                Issue.record("gave up too early")
                return
            }
        }
        backoff.attemptStarted()
        #expect(backoff.attemptsUsed == 4)
        #expect(backoff.attemptEnded() == .giveUp)
        #expect(backoff.attemptEnded() == .giveUp)
    }

    @Test func refillStartsOver() {
        var backoff = Backoff(unlimited(), seed: 1)
        #expect(backoff.attemptEnded() == .connect)
        for delay in [1, 2] {
            backoff.attemptStarted()
            #expect(backoff.attemptEnded() == .wait(.seconds(delay)))
        }
        backoff.refill()
        #expect(backoff.attemptEnded() == .connect)
        backoff.attemptStarted()
        #expect(backoff.attemptEnded() == .wait(.seconds(1)))
    }

    /// The delays stay within the bounds for every seed, and are spread evenly.
    @Test func jitterStaysInItsBounds() {
        let plain = delays(unlimited(), count: 8)
        var shares: [Double] = []
        for seed in 0..<500 as Range<UInt64> {
            for (delay, middle) in zip(delays(unlimited(jitter: 0.2), seed: seed, count: 8), plain) {
                shares.append(delay / middle)
            }
        }
        #expect(shares.count == 4000)
        #expect(shares.allSatisfy { (0.8 - 1e-9...1.2 + 1e-9).contains($0) })
        #expect((shares.min() ?? 1) < 0.805 && (shares.max() ?? 1) > 1.195)
        // The mean's standard deviation is 0.4 / √12 / √4000 = 0.0018; this is five of them.
        #expect(abs(shares.reduce(0, +) / 4000 - 1) < 0.009)
    }

    @Test func delaysFollowFromTheSeed() {
        #expect(
            delays(unlimited(jitter: 0.2), seed: 7, count: 20) == delays(unlimited(jitter: 0.2), seed: 7, count: 20)
        )
        #expect(
            delays(unlimited(jitter: 0.2), seed: 7, count: 20) != delays(unlimited(jitter: 0.2), seed: 8, count: 20)
        )
    }

    // MARK: Absurd configurations

    private static let durations: [Duration] = [
        Duration(secondsComponent: .min, attosecondsComponent: 0), .seconds(-1), .zero, .nanoseconds(1), .seconds(5),
        .seconds(Int64.max), Duration(secondsComponent: .max, attosecondsComponent: 999_999_999_999_999_999),
    ]

    @Test(arguments: durations, durations)
    func absurdDurationsCountAsTheNearest(initial: Duration, cap: Duration) {
        for factor in [-1, 0, 0.5, 1, 1e300, Double.infinity, .nan] {
            for jitter in [-1, 0, 1, 7, Double.infinity, .nan] {
                var configuration = BackoffConfiguration()
                configuration.initialDelay = initial
                configuration.cap = cap
                configuration.factor = factor
                configuration.jitter = jitter
                configuration.maximumAttempts = nil
                let share = jitter >= 1 ? 2.0 : 1.0
                let delays = delays(configuration, count: 5)
                #expect(delays.count == 5)
                #expect(delays.allSatisfy { $0 >= .zero && $0 <= .seconds(365 * 24 * 3600) * share })
                if share == 1 { #expect(delays.allSatisfy { $0 >= .milliseconds(1) }) }
            }
        }
    }

    @Test(arguments: [Int.min, -1, 0, 1])
    func aBudgetIsAtLeastOneAttempt(attempts: Int) {
        var configuration = BackoffConfiguration()
        configuration.maximumAttempts = attempts
        var backoff = Backoff(configuration, seed: 1)
        backoff.attemptStarted()
        #expect(backoff.attemptEnded() == .giveUp)
    }

    /// The reference implementation's numbers for this seed.
    @Test func splitMix64() {
        var generator = SplitMix64(seed: 1_234_567)
        let expected: [UInt64] = [
            6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423, 4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ]
        #expect(expected.allSatisfy { $0 == generator.next() })
    }
}
