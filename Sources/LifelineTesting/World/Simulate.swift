internal import Foundation
internal import LifelineCore
internal import NIOConcurrencyHelpers

/// Runs a story in a world of its own for each seed. If one fails, throws its seed, the fewest faults with which it
/// still fails, the command that replays it, and its events as text and as a page.
///
///     try await simulate(seeds: 1...1000) { world in
///         let bank = world.host("bank")
///         bank.serve { try await withServer(on: "tcp://bank:7000") { … } }
///         world.faults = .harsh
///         …
///     }
///
/// Two environment variables select one story, and print its trace: `LIFELINE_SEED`, a seed, and `LIFELINE_FAULTS`, the
/// numbers of the faults that happen, or `none`.
///
/// A third one, `LIFELINE_STORIES`, names the folder for pages. Default: `.build/lifeline-stories`.
///
/// - Parameters:
///   - seeds: the seeds of the stories.
///   - limits: the time that a story may take.
///   - name: the test's name, for the command that replays a story.
///   - story: builds servers and clients in the world, and says what must hold. The story ends when it returns.
/// - Throws: `SimulationFailure`; `CancellationError`.
public func simulate(
    seeds: ClosedRange<UInt64> = 1...100,
    limits: SimulationLimits = SimulationLimits(),
    name: String = #function,
    _ story: @escaping @Sendable (World) async throws -> Void
) async throws {
    let runner = StoryRunner(limits: limits, story: story)
    let environment = ProcessInfo.processInfo.environment
    if let text = environment["LIFELINE_SEED"] {
        guard let seed = UInt64(text) else {
            throw WorldFailure("LIFELINE_SEED is \(text.escaped()), which is no number of a story.")
        }
        let faults = try environment["LIFELINE_FAULTS"].map(StoryRunner.faults)
        let played = await runner.play(seed, faults, isTracing: true)
        for line in played.trace { print(line.escaped()) }
        if let failure = played.failure { throw await runner.report(failure, seed, faults, name: name) }
        return
    }
    let progress = NIOLockedValueBox(SeedProgress(next: seeds.lowerBound, last: seeds.upperBound))
    await withTaskGroup { group in
        for _ in 0..<max(1, ProcessInfo.processInfo.activeProcessorCount) {
            group.addTask {
                while !Task.isCancelled, let seed = progress.withLockedValue({ $0.takeSeed() }) {
                    guard let failure = await runner.play(seed, nil, isTracing: false).failure else { continue }
                    progress.withLockedValue { $0.failed(seed, failure) }
                }
            }
        }
    }
    try Task.checkCancellation()
    if let (seed, failure) = progress.withLockedValue({ $0.failure }) {
        throw await runner.report(failure, seed, nil, name: name)
    }
}

/// The seeds that have not been played yet.
private struct SeedProgress {
    /// Nil: none.
    var next: UInt64?
    let last: UInt64
    /// The failure of the smallest seed.
    private(set) var failure: (seed: UInt64, failure: WorldFailure)?

    init(next: UInt64, last: UInt64) { (self.next, self.last) = (next, last) }

    mutating func takeSeed() -> UInt64? {
        guard failure == nil, let seed = next else { return nil }
        next = seed < last ? seed + 1 : nil
        return seed
    }

    mutating func failed(_ seed: UInt64, _ failure: WorldFailure) {
        if seed < self.failure?.seed ?? .max { self.failure = (seed, failure) }
    }
}

/// A story has failed.
public struct SimulationFailure: Error, CustomStringConvertible {
    /// The seed of the story's world.
    public let seed: UInt64
    /// The reason why the story failed.
    public let failure: WorldFailure
    /// The faults of the shortest story that fails, in words.
    public let faults: [String]
    /// The trace of the shortest story that fails, a line for each event.
    public let trace: [String]
    /// The path of a page that shows it; nil if it could not be written.
    public let page: String?
    /// The failure, the faults that it needs, the command that replays it, and the last events.
    public let description: String
}
