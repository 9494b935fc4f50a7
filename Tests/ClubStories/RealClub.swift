internal import Club
internal import Lifeline
internal import Logging
internal import Synchronization

/// Plays the members over real connections of this machine, without faults.
///
/// - Parameters:
///   - slowness: the time that the last member takes to handle a message.
///   - maximumPause: the maximum pause between two steps of a member.
/// - Returns: the first violation, or nil.
package func playClubOverLoopback(slowness: Duration, maximumPause: Duration) async throws -> String? {
    let database = MemoryDatabase(Book.tables)
    let complaints = Mutex<[String]>([])
    let readCount = Atomic(0)
    let book = Book {
        // Counts each reading as a transaction, because `MemoryDatabase` counts none.
        (database.tables, readCount.add(1, ordering: .relaxed).newValue)
    } complain: { complaint in
        complaints.withLock { $0.append(complaint) }
    }
    let services = Staff(database).services(Cast())
    let logger = Logger(label: "club") { _ in SwiftLogNoOpLogHandler() }
    let phones = book.phones(Cast(), slowness: slowness, maximumPause: maximumPause)
    try await withSessionServer(listeningOn: Endpoint("tcp://127.0.0.1:0"), services: services) { server in
        let endpoint = try await server.boundEndpoints[0]
        try await withThrowingTaskGroup { group in
            for phone in phones { group.addTask { try await phone.run(at: endpoint, logger: logger) } }
            let deadline = ContinuousClock.now + .seconds(300)
            while !book.haveAllDoneEverything(phones) && ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(20))
            }
            book.isOver = true
            try await group.waitForAll()
        }
    }
    if !book.isMoneyThere { return "money was made or lost" }
    if !book.isRoomInOrder { return "the room has not its newest messages" }
    return complaints.withLock { $0.first } ?? book.complaint(about: phones)
}
