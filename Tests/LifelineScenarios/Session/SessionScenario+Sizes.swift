internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

extension SessionScenario {
    /// How large messages, windows and connections are.
    struct Sizes {
        /// Whether windows have room for all the credit of some streams, so that credit is used up. Otherwise they are
        /// small, so that every other limit is met.
        let isRoomy: Bool
        /// Bytes that a connection takes in each direction.
        let capacity: Int
        let largestFiller: Int
        /// About how many bytes an end writes at a time.
        let offeredByteCount: Int

        static func random(using random: inout SimulationRandom) -> Sizes {
            let isRoomy = Int.random(in: 0..<4, using: &random) == 0
            let capacities = isRoomy ? [1_000, 20_000, 100_000] : [60, 200, 1_000, 5_000]
            // The largest are too long for some peers.
            let fillers = isRoomy ? [3_000, 12_000] : [10, 60, 210, 5_000]
            return Sizes(
                isRoomy: isRoomy,
                capacity: capacities.randomElement(using: &random) ?? 200,
                largestFiller: fillers.randomElement(using: &random) ?? 60,
                offeredByteCount: [1, 100, 10_000].randomElement(using: &random) ?? 100
            )
        }

        /// The most that a message costs: beside the filler it has the head of a note, a number, a name or metadata.
        var largestCost: Int { largestFiller + 150 + SessionSize.frameOverhead }

        /// The last frames that were begun when there was room, of both lanes; messages that are sent at most once, of
        /// which there are a few; and acknowledgements, credits and an opening.
        var largestLinkByteCount: Int {
            capacity + 2 * (offeredByteCount + largestCost) + 6 * largestCost + 2_000
        }
    }
}

extension SimulatedSessionBudget {
    /// A small one: some sessions, and sometimes a single one, reach its limits.
    static func random(
        _ sizes: SessionScenario.Sizes,
        using random: inout SimulationRandom
    ) -> SimulatedSessionBudget {
        var limit = SessionAllowance.unlimited
        // Twice as much as a message costs, so that each can come.
        limit.byteCount = Int.random(in: 2_000...12_000, using: &random) + 3 * sizes.largestCost
        limit.handlerCount = Int.random(in: 1...6, using: &random)
        return SimulatedSessionBudget(limit: limit, pause: SessionScenario.budgetPause)
    }
}

extension SessionOptions {
    /// Mostly small ones, so that every limit is met, and each end has its own.
    static func random(_ sizes: SessionScenario.Sizes, using random: inout SimulationRandom) -> SessionOptions {
        var options = SessionOptions()
        if sizes.isRoomy {
            // Two streams that nobody reads have 70,000 bytes each, and a frame; others have to go beside them.
            options.outboundLimit = SessionWindow(
                frameCount: Int.random(in: 1_200...2_000, using: &random),
                byteCount: Int.random(in: 200_000...400_000, using: &random)
            )
            options.inboundWindow = SessionWindow(
                frameCount: Int.random(in: 1_200...2_000, using: &random),
                byteCount: Int.random(in: 200_000...400_000, using: &random)
            )
            options.maximumFrameLength = [20_000, 4 << 20].randomElement(using: &random) ?? 4 << 20
        } else {
            options.outboundLimit = SessionWindow(
                frameCount: Int.random(in: 2...24, using: &random),
                byteCount: Int.random(in: 1_000...20_000, using: &random)
            )
            options.inboundWindow = SessionWindow(
                frameCount: Int.random(in: 1...10, using: &random),
                byteCount: Int.random(in: 4_096...10_000, using: &random)
            )
            options.maximumFrameLength = [4_096, 4_500, 4 << 20].randomElement(using: &random) ?? 4 << 20
        }
        options.inboundCredit = Int.random(in: SessionTerms.smallestCredit...70_000, using: &random)
        options.maximumRequestCount = Int.random(in: 1...8, using: &random)
        options.maximumRunningCount = Int.random(in: 1...6, using: &random)
        options.acknowledgementBatchSize = Int.random(in: 1...5, using: &random)
        options.welcomeTimeout = .milliseconds(Int64.random(in: 100...2_000, using: &random))
        return options
    }
}
