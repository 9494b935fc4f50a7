internal import Club
internal import ClubProtos
internal import Lifeline
package import LifelineTesting
internal import Logging

/// A story of the club: three members talk and pay each other on a bad day, and a visitor comes and goes.
package func playClub(_ cast: Cast, in world: World) async throws {
    let database = world.host("club").database(Book.tables)
    database.longestCommit = .milliseconds(20)
    let book = Book {
        (database.content, database.transactionCount)
    } complain: { [weak world] in
        world?.fail($0)
    }
    let endpoint = try Endpoint("tcp://club:7000")
    world.host("club").serve {
        let staff = Staff(SimulatedClubDatabase(database: database))
        book.staff = staff
        var configuration = SessionServerConfiguration()
        configuration.limits.maximumKeptByteCount = 4_096
        configuration.keptDuration = .seconds(15)
        try await withSessionServer(
            listeningOn: endpoint,
            configuration: configuration,
            services: staff.services(cast),
            logger: world.logger
        ) { _ in
            while !book.isOver { try await Task.sleep(for: .milliseconds(500)) }
            // Waits until the last session has expired.
            while staff.rooms.memberCount > 0 { try await Task.sleep(for: .seconds(1)) }
        }
        book.hasServerEnded = true
    }
    let phones = book.phones(cast, slowness: .seconds(1), maximumPause: .milliseconds(400))
    for phone in phones { world.host(phone.name).serve { try await phone.run(at: endpoint, logger: world.logger) } }
    world.host("visitor").run {
        while !book.isOver {
            try await visit(endpoint, book: book, logger: world.logger)
            try await Task.sleep(for: .seconds(2))
        }
    }
    world.always("no money is made or lost") { book.isMoneyThere }
    world.always("the room has its newest messages") { book.isRoomInOrder }
    world.always("at most a page of messages waits for each member") { book.isBounded(cast) }

    // Every fourth story has no faults, because a kill would end a hanging program and so hide the bug.
    if world.seed % 4 != 0 {
        // snippet.failing-disks
        var faults = Faults.harsh
        (faults.slowDisks, faults.fullDisks, faults.failedCommits) = (.seconds(10), .seconds(20), .seconds(3))
        world.faults = faults
        // snippet.end
    }
    try await book.wait("all members have done what they wanted to", within: .seconds(200)) {
        phones.allSatisfy(\.hasFinished)
    }
    world.faults = Faults()
    try await book.wait("all members have heard and read everything", within: .seconds(90)) {
        book.haveAllDoneEverything(phones)
    }
    if let complaint = book.complaint(about: phones) { throw WorldFailure(complaint) }
    book.isOver = true
    try await book.wait("all sessions and handlers end, and with them the server", within: .seconds(150)) {
        book.hasServerEnded
    }
}

/// The club's database on the disk of its host.
private struct SimulatedClubDatabase: ClubDatabase {
    let database: WorldDatabase<ClubTables>

    func run<Result: Sendable>(_ body: @Sendable (inout ClubTables) throws -> Result) async throws -> Result {
        try await database.transaction(body)
    }
}

extension Book {
    /// Like `World.until`, but checks only twice a second, which costs less.
    fileprivate func wait(_ text: String, within timeout: Duration, _ condition: () -> Bool) async throws {
        let deadline = ContinuousClock.now + timeout
        while !condition() {
            if ContinuousClock.now >= deadline {
                throw WorldFailure("Within \(timeout), this did not come to hold: \(text)")
            }
            try await Task.sleep(for: .milliseconds(500))
        }
    }
}

/// Joins a room with a short timeout, leaves it, and keeps the session for a while.
private func visit(_ endpoint: Endpoint, book: Book, logger: Logger) async throws {
    try? await withSessionClient(to: endpoint, logger: logger) { session in
        let rooms = ClubClient(session).rooms
        let history = try await rooms.history(.with { $0.room = Phone.room }, timeout: .seconds(2))
        let patience = Duration.milliseconds(Int.random(in: 1...60))
        _ = try? await rooms.join(.with { ($0.room, $0.after) = (Phone.room, history.lastNumber) }, timeout: patience)
        _ = try await rooms.leave(.with { $0.room = Phone.room }, timeout: .seconds(2))
        let (count, sessionCount) = (session.statistics.receivedPushCount, session.statistics.sessionCount)
        try await Task.sleep(for: .seconds(2))
        if session.statistics.receivedPushCount > count, session.statistics.sessionCount == sessionCount {
            book.complain("a session that has left a room hears nothing of it")
        }
    }
}

extension Example_Club_V1_HistoryReply {
    fileprivate var lastNumber: UInt64 { messages.last?.number ?? 0 }
}
