internal import LifelineCore

/// Random numbers that follow from a seed.
package struct SimulationRandom: RandomNumberGenerator, Sendable {
    private var generator: SplitMix64

    /// Makes a generator. The same seed gives the same numbers, in every process.
    package init(seed: UInt64) {
        generator = SplitMix64(seed: seed)
    }

    /// The next random number.
    package mutating func next() -> UInt64 {
        generator.next()
    }

    /// A random duration from zero up to `limit`, in whole nanoseconds.
    mutating func duration(upTo limit: Duration) -> Duration {
        let nanoseconds = limit.saturatedNanoseconds
        return nanoseconds > 0 ? .nanoseconds(Int64.random(in: 0...nanoseconds, using: &self)) : .zero
    }
}
