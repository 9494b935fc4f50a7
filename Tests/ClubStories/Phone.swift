internal import Club
internal import ClubProtos
package import Lifeline
package import Logging
internal import Synchronization

/// A member's phone. Its storage outlives the program on it, which may be killed and started again.
package final class Phone: Sendable {
    struct Storage {
        /// The number of finished steps of the plan.
        var stepCount = 0
        /// The number of messages that the room has confirmed.
        var saidCount: UInt64 = 0
        /// The transfer that was requested and not answered.
        var pending: Example_Club_V1_TransferRequest?
        var paid: [String] = []
        /// The transfers that the server has refused.
        var refused: [String] = []
        var heard: UInt64 = 0
        var entryCount: UInt64 = 0
    }

    static let stepCount = 18
    static let room = "hall"

    let name: String
    private let others: [String]
    private let cast: Cast
    /// The time that it takes to handle a message.
    private let slowness: Duration
    /// The maximum pause between two steps of the plan.
    private let maximumPause: Duration
    private let book: Book
    private let content = Mutex(Storage())

    init(_ name: String, others: [String], slowness: Duration, maximumPause: Duration, cast: Cast, book: Book) {
        (self.name, self.others, self.cast, self.book) = (name, others, cast, book)
        (self.slowness, self.maximumPause) = (slowness, maximumPause)
    }

    var storage: Storage { content.withLock { $0 } }

    var hasFinished: Bool { storage.stepCount == Phone.stepCount }

    /// Does the rest of the plan, and listens until the story is over.
    package func run(at endpoint: Endpoint, logger: Logger) async throws {
        var configuration = SessionClientConfiguration()
        configuration.name = name
        configuration.client.backoff.maximumAttempts = nil
        configuration.client.backoff.cap = .seconds(2)
        // A silent cut is noticed after 20 s instead of a minute, because a story has many.
        (configuration.client.connection.heartbeat.interval, configuration.client.connection.heartbeat.timeout) =
            (.seconds(5), .seconds(5))
        try await withSessionClient(to: endpoint, configuration: configuration, logger: logger) { session in
            let club = ClubClient(session, patience: .seconds(3))
            try await withThrowingTaskGroup { group in
                group.addTask { try await self.listen(club) }
                group.addTask { try await self.readStatements(club) }
                group.addTask {
                    while !self.hasFinished {
                        try await self.doStep(club)
                        try await Task.sleep(for: self.maximumPause * Double.random(in: 0...1))
                    }
                    while !self.book.isOver { try await Task.sleep(for: .milliseconds(500)) }
                    throw StoryIsOver()
                }
                do { while try await group.next() != nil {} } catch is StoryIsOver { group.cancelAll() }
            }
        }
    }

    // MARK: The plan

    private func doStep(_ club: ClubClient) async throws {
        if storage.stepCount % 3 == 2 { try await pay(club) } else { try await say(club) }
        content.withLock { $0.stepCount += 1 }
    }

    private func say(_ club: ClubClient) async throws {
        let sequence = storage.saidCount + 1
        _ = try await club.say(
            .with {
                ($0.room, $0.speaker, $0.sequence) = (Phone.room, name, sequence)
                $0.text = Phone.text(of: name, sequence)
            }
        )
        content.withLock { $0.saidCount = sequence }
    }

    /// Returns a long text, so that a few messages fill the server's buffer for a member.
    static func text(of speaker: String, _ sequence: UInt64) -> String {
        "\(speaker) \(sequence) " + String(repeating: "x", count: 300)
    }

    private func pay(_ club: ClubClient) async throws {
        let request = content.withLock { content in
            let request = content.pending ?? makeTransfer(content.stepCount)
            content.pending = request
            return request
        }
        do {
            let (receipt, balance) = try await cast.payAndLook(club, cast, request)
            if balance.number < receipt.number { book.complain("a balance has all that was paid before") }
            content.withLock { $0.paid.append(request.memo) }
        } catch let error as SessionError where error.status?.code == .failedPrecondition {
            content.withLock { $0.refused.append(request.memo) }
        }
        content.withLock { $0.pending = nil }
    }

    /// Makes a transfer. About one in four exceeds every balance.
    private func makeTransfer(_ step: Int) -> Example_Club_V1_TransferRequest {
        .with {
            ($0.key, $0.from, $0.to) = ("\(name)/\(step)", name, others.randomElement() ?? name)
            ($0.amount, $0.memo) = (
                Int.random(in: 0...3) == 0 ? 1_000_000 : Int64.random(in: 1...60), "\(name)/\(step)"
            )
        }
    }

    // MARK: Messages and entries

    private func listen(_ club: ClubClient) async throws {
        try await club.listen(in: Phone.room, after: storage.heard) { message in
            let last = self.storage.heard
            if message.number != last + 1 + message.missedCount {
                self.book.complain(
                    "\(self.name) hears every message, or how many are missing: \(message.number) came after \(last)"
                )
            }
            self.book.heard(message)
            self.content.withLock { $0.heard = message.number }
            if self.slowness > .zero { try await Task.sleep(for: self.slowness) }
        }
    }

    private func readStatements(_ club: ClubClient) async throws {
        try await cast.readStatements(club, name, storage.entryCount) { entry in
            let last = self.storage.entryCount
            if entry.number != last + 1 {
                self.book.complain("\(self.name) reads each entry once: \(entry.number) came after \(last)")
            }
            self.content.withLock { $0.entryCount = entry.number }
            let balance = try await club.balance(of: self.name)
            if balance.number < entry.number { self.book.complain("a balance has all entries that were read before") }
        }
    }
}

/// Ends the tasks of a phone.
private struct StoryIsOver: Error {}
