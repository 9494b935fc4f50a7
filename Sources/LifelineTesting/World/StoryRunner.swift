internal import Foundation
internal import LifelineCore

/// Plays stories, each on a thread of its own.
package struct StoryRunner: Sendable {
    private let limits: SimulationLimits
    /// The folder for the pages of failed stories.
    var pages = StoryPage.folder()
    private let story: @Sendable (World) async throws -> Void

    package init(
        limits: SimulationLimits = SimulationLimits(),
        story: @escaping @Sendable (World) async throws -> Void
    ) {
        (self.limits, self.story) = (limits, story)
    }

    /// The result of a story.
    package struct Played: Sendable {
        package let failure: WorldFailure?
        let faults: [Fault]
        /// The names of the hosts.
        let hosts: [String]
        let notes: [Note]
        package var trace: [String] { notes.map(\.line) }
    }

    /// - Parameter faults: the numbers of the faults that happen; nil for all.
    package func play(_ seed: UInt64, _ faults: Set<Int>?, isTracing: Bool) async -> Played {
        let world = World(seed: seed, limits: limits, keptFaults: faults, isTracing: isTracing)
        world.begin(story)
        return await withCheckedContinuation { continuation in
            // Debug builds need more stack than a thread of Foundation has by default.
            let thread = Thread {
                let result = world.run()
                let failure: WorldFailure? = if case .failure(let failure) = result { failure } else { nil }
                continuation.resume(
                    returning: Played(
                        failure: failure,
                        faults: world.plan.happened,
                        hosts: world.hosts.map(\.name),
                        notes: world.simulation.notes
                    )
                )
            }
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    /// Reads `LIFELINE_FAULTS`.
    static func faults(_ text: String) throws -> Set<Int> {
        if text == "none" { return [] }
        return try Set(
            text.split(separator: ",").map { part in
                guard let number = Int(part) else {
                    throw WorldFailure(
                        "LIFELINE_FAULTS is \(text.escaped()): it takes numbers with commas between, or none."
                    )
                }
                return number
            }
        )
    }

    /// Searches for a shorter story that fails, and reports it.
    package func report(_ failure: WorldFailure, _ seed: UInt64, _ faults: Set<Int>?, name: String) async
        -> SimulationFailure
    {
        let first = await play(seed, faults, isTracing: true)
        let second = await play(seed, faults, isTracing: true)
        let isSame = first.trace == second.trace && first.failure == failure
        var shortest = first
        var shrunk = faults
        if isSame, faults == nil {
            let kept = await fewestFaults(seed, first)
            shrunk = kept
            shortest = await play(seed, kept, isTracing: true)
        }
        let name = String(name.prefix { $0 != "(" })
        let numbers = shrunk.map { $0.sorted().map(String.init).joined(separator: ",") }
        var lines = [(shortest.failure ?? failure).description.escaped(limit: 10_000), "Seed \(seed)."]
        if let numbers {
            lines[1] += numbers.isEmpty ? " It needs no faults." : " It needs these faults, of \(first.faults.count):"
        }
        let needed = shortest.faults.map { "\($0.number), after \($0.time): \($0.text)" }
        lines += needed.map { "  \($0)" }
        let variable = numbers.map { " LIFELINE_FAULTS=\($0.isEmpty ? "none" : $0)" } ?? ""
        let isPlainWord = name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        // In quotes if a shell would not read the name as one word.
        let filter = isPlainWord ? name : "'\(name.replacing("'", with: #"'\''"#))'"
        let command = "LIFELINE_SEED=\(seed)\(variable) swift test --filter \(filter)"
        lines.append("To play it again: \(command)")
        let remark =
            isSame
            ? nil
            : "It is not the same each time: something in it comes from outside the world, such as the address of an "
                + "object, a thread, or a file."
        if let remark {
            lines.append("\(remark) Once and then again:")
            let differing = zip(first.trace, second.trace).first { $0 != $1 }
            lines += [differing?.0 ?? "\(failure)", differing?.1 ?? second.failure.map { "\($0)" } ?? "it passed"]
                .map { "  \($0.escaped())" }
        }
        let page = StoryPage(
            name: name,
            seed: seed,
            failure: shortest.failure ?? failure,
            command: command,
            remark: remark,
            shortest
        )
        var path: String?
        do {
            let file = try page.write(to: pages)
            lines.append("To look at it: \(file)")
            path = file
        } catch {
            lines.append("No page shows it, for it could not be written to \(pages.path): \(error)")
        }
        lines.append("What happened last:")
        // Reads and writes would crowd out their consequences.
        lines += shortest.notes.filter { !$0.isTransfer }.suffix(30).map { "  \($0.line.escaped())" }
        return SimulationFailure(
            seed: seed,
            failure: shortest.failure ?? failure,
            faults: needed,
            trace: shortest.trace,
            page: path,
            description: lines.joined(separator: "\n")
        )
    }

    /// Removes faults while the story fails in the same way: half of them, a quarter, and so on, down to one at a time.
    private func fewestFaults(_ seed: UInt64, _ played: Played) async -> Set<Int> {
        var kept = played.faults.map(\.number)
        var attempts = 0
        var size = kept.count
        while size > 0, attempts < 200 {
            var start = 0
            while start < kept.count, attempts < 200 {
                var candidate = kept
                candidate.removeSubrange(start..<min(start + size, kept.count))
                attempts += 1
                let other = await play(seed, Set(candidate), isTracing: false).failure
                if let other, let failure = played.failure, other.isLike(failure) {
                    kept = candidate
                } else {
                    start += size
                }
            }
            size /= 2
        }
        return Set(kept)
    }
}
