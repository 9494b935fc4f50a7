internal import ArgumentParser
internal import Lifeline
internal import LifelineCore
internal import LifelineProtos
internal import SampleServices

struct CallChat: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat",
        abstract: "Says the lines of standard input, and prints what is said in the room.",
        discussion: """
            Prints a line for each thing that is said, one's own included: who said it, and what. Leaves the room at the end of \
            standard input (^D) when what it said has come back, after --count lines, or when it is interrupted.

            A line that had been said and not answered when the server was killed is in doubt. It is not said again, since the \
            room may have heard it; the command tells which it was, goes on, and exits with 74 in the end.

            Examples:
              lifeline call chat --name Ada
              date | lifeline call chat --name Clock
              lifeline call chat --name Log --count 100 < /dev/null > room.txt
            """
    )

    @Option(help: "Who one is in the room.")
    var name = ""

    @Option(help: "Leave when so many lines have been printed, and not at the end of standard input.")
    var count: Int?

    @OptionGroup var call: CallOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
    }

    func run() async throws {
        try await exitingOnFailure {
            let chat = Chat(count: count)
            do {
                try await call.withRoom(name: name) { try await chat.run(in: $0) }
            } catch is Interrupted {
                // So one leaves.
            }
            guard await chat.isAnythingInDoubt else { return }
            throw CommandFailure(status: .inputOutput, message: "Not everything that was said is known to be heard.")
        }
    }
}

/// One visit to the room.
private actor Chat {
    /// What was said here, as the room counts it.
    private struct Said {
        let number: UInt64
        let text: String
        /// How many sessions had begun before it was said.
        let sessionCount: Int
    }

    private let count: Int?
    private var printedCount = 0
    /// What is being said, and under which numbers it has been printed since: the room's news may overtake its reply.
    private var asking = (text: "", sessionCount: 0, printedNumbers: Set<UInt64>())
    /// The last thing that was said here, until it has come back.
    private var awaited: Said?
    private var hasInputEnded = false
    /// How many sessions were lost.
    private var lossCount = 0
    private(set) var isAnythingInDoubt = false
    private nonisolated let left: AsyncStream<Never>
    private nonisolated let leaver: AsyncStream<Never>.Continuation

    init(count: Int?) {
        self.count = count
        (left, leaver) = AsyncStream.makeStream(of: Never.self)
    }

    nonisolated func run(in room: Sample_Room_V1_RoomClient) async throws {
        let events = room.session.sessionEvents.makeAsyncIterator()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for try await item in room.news { try await self.print(item) }
                await self.leave()
            }
            group.addTask { try await self.say(to: room) }
            group.addTask {
                var events = events
                while let event = await events.next() { await self.received(event) }
            }
            group.addTask { for await _ in self.left {} }
            // The errors of the others end it, too; their ends do not.
            while try await group.next() != nil, await !self.hasLeft {}
            group.cancelAll()
        }
    }

    private var hasLeft = false

    private func leave() {
        hasLeft = true
        leaver.finish()
    }

    private func leaveIfDone() {
        if let count {
            if printedCount >= count { leave() }
        } else if hasInputEnded, awaited == nil {
            leave()
        }
    }

    private func print(_ item: Sample_Room_V1_NewsItem) async throws {
        // What came before it was told to leave.
        if hasLeft { return }
        try await writeToStandardOutput(Array(item.line.utf8))
        printedCount += 1
        if item.text == asking.text { asking.printedNumbers.insert(item.number) }
        if let awaited, item.isOrFollowsLong(awaited.number, awaited.text) { self.awaited = nil }
        leaveIfDone()
    }

    /// What was to come back over a session that is lost does not come any more; what was said since, which may have
    /// come before the news of the loss, does.
    private func received(_ event: SessionEvent) {
        guard case .lost = event.kind else { return }
        lossCount += 1
        if let awaited, awaited.sessionCount <= lossCount { self.awaited = nil }
        leaveIfDone()
    }

    private nonisolated func say(to room: Sample_Room_V1_RoomClient) async throws {
        var lines = LineReader()
        while let line = try await lines.next() {
            await willSay(line, sessionCount: room.session.statistics.sessionCount)
            do throws(SessionError) {
                await said(line, try await room.say(.with { $0.text = line }, timeout: nil).number)
            } catch {
                guard error.code == .sessionLost else { throw error }
                await inDoubt(line)
            }
        }
        await inputEnded()
    }

    private func willSay(_ line: String, sessionCount: Int) { asking = (line, sessionCount, []) }

    private func said(_ line: String, _ number: UInt64) {
        awaited =
            asking.printedNumbers.contains(number)
            ? nil : Said(number: number, text: line, sessionCount: asking.sessionCount)
    }

    private func inDoubt(_ line: String) {
        isAnythingInDoubt = true
        writeErrorLine("lifeline: nobody knows whether the room has heard: \(line.escaped(limit: .max))")
    }

    private func inputEnded() {
        hasInputEnded = true
        leaveIfDone()
    }
}

extension Sample_Room_V1_NewsItem {
    /// Whether it is what was said with this number, or so much later that the room has dropped that for a slow
    /// visitor.
    ///
    /// The number alone does not tell: what comes may be of the room before a restart, which counted for itself.
    fileprivate func isOrFollowsLong(_ number: UInt64, _ text: String) -> Bool {
        if self.number == number, self.text == text { return true }
        // Numbers are the server's, and any.
        return self.number >= number && self.number - number >= UInt64(Room.keptNewsCount)
    }
}
