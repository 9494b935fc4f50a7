internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// A random story of durable messages that a seed determines: a client and a server with stores on the disks of their
/// hosts. Connections are cut, disks fail, and processes are killed. In the end every accepted message was processed
/// once, and those of a method in their order; every call, too, and its reply.
package struct DurableScenario: Sendable {
    /// The result of a story.
    package struct Result: Sendable {
        /// The first violation, if any.
        package let failure: String?
        package let totals: Totals
        /// Empty without tracing.
        package let trace: [String]
    }

    /// The events of one or many stories.
    package struct Totals: Sendable, Equatable {
        package var (kills, connections, messages, processed) = (0, 0, 0, 0)
        /// Messages that could not be stored.
        package var refused = 0
        /// Of those, the ones that the next process found stored nevertheless.
        package var commitsThatReturned = 0
        /// Messages that have expired, counted by each process that learnt of it.
        package var expired = 0
        /// Calls; replies that found their callers; and those that came when nobody waited any more.
        package var (calls, replies, lateReplies) = (0, 0, 0)

        package init() {}

        package static func += (sum: inout Totals, more: Totals) {
            let fields: [WritableKeyPath<Totals, Int>] = [
                \.kills, \.connections, \.messages, \.processed, \.refused, \.commitsThatReturned, \.expired, \.calls,
                \.replies, \.lateReplies,
            ]
            for field in fields { sum[keyPath: field] += more[keyPath: field] }
        }
    }

    private let seed: UInt64
    private let isTracing: Bool

    package init(seed: UInt64, isTracing: Bool = false) { (self.seed, self.isTracing) = (seed, isTracing) }

    /// Plays the story in a world of its own.
    package func run() async -> Result {
        var limits = SimulationLimits()
        (limits.time, limits.endTime) = (.seconds(1_000), .seconds(10))
        let outcome = Outcome()
        let runner = StoryRunner(limits: limits) { world in
            let story = DurableStory(in: world)
            try await story.play()
            outcome.totals = story.totals
        }
        let played = await runner.play(seed, nil, isTracing: isTracing)
        return Result(failure: played.failure?.description, totals: outcome.totals, trace: played.trace)
    }

    /// Unchecked: only the story's thread uses it until the story ends.
    private final class Outcome: @unchecked Sendable {
        var totals = Totals()
    }

    /// Describes a failure, with the command that replays it.
    package static func failureMessage(_ seed: UInt64, _ what: String) -> String {
        "durable scenario \(seed) failed: \(what); replay: scripts/soak --durable-scenario \(seed)"
    }
}
