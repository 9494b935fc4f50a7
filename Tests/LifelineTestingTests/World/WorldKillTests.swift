import Lifeline
import LifelineTesting
import NIOConcurrencyHelpers
import Testing

/// Programs whose process is killed do nothing any more.
@Suite(.timeLimit(.minutes(10))) struct WorldKillTests {
    @Test func aKilledProgramIsNotCancelled() async throws {
        try await simulate(seeds: 1...5) { world in
            let isCancelled = NIOLockedValueBox(false)
            let host = world.host("a")
            let program = host.run {
                try await withTaskCancellationHandler {
                    try await Task.sleep(for: .seconds(100))
                } onCancel: {
                    isCancelled.withLockedValue { $0 = true }
                }
            }
            try await Task.sleep(for: .seconds(1))
            host.kill()
            program.cancel()
            try await Task.sleep(for: .seconds(10))
            try world.expect(!isCancelled.withLockedValue { $0 }, "nothing cancels a killed program")
        }
    }

    /// The work of a store that a kill interrupts fails, and nobody tries it again.
    @Test func aKilledClientCommitsNothing() async throws {
        try await simulate(seeds: 1...5) { world in
            let host = world.host("shop")
            let database = host.database(0)
            database.longestCommit = .seconds(2)
            let store = CountingStore(database: database)
            host.run {
                var configuration = SessionClientConfiguration()
                configuration.store = store
                try await withSessionClient(
                    to: Endpoint("tcp://bank:7000"),
                    configuration: configuration,
                    logger: world.logger
                ) { session in
                    let message = RawMessage(bytes: [1])
                    try await session.push("Bank/Pay", message, delivery: .durable)
                    try await Task.sleep(for: .seconds(100))
                }
            }
            try await world.until("a commit begins") { store.commitCount == 1 }
            host.kill()
            try await Task.sleep(for: .seconds(30))
            try world.expect(store.commitCount == 1, "a killed client does not try again")
        }
    }

    /// A handler may try a transaction again that has happened, although it threw.
    @Test func theFirstMarkOfAMessageCounts() {
        let store = SimulatedSessionStore(id: .random())
        let sender = SessionStoreID.random()
        store.mark(7, of: sender, reply: [1])
        store.mark(7, of: sender, reply: [2])
        #expect(store.content(for: sender).marked[sender] == [SessionStoreMark(number: 7, reply: [1])])
    }
}

/// Counts commits. Unchecked: only the thread of a world uses it.
private final class CountingStore: SessionStore, @unchecked Sendable {
    private let database: WorldDatabase<Int>
    private(set) var commitCount = 0

    init(database: WorldDatabase<Int>) { self.database = database }

    var id: SessionStoreID { database.id }

    func content(for peer: SessionStoreID?) async throws(StoreError) -> SessionStoreContent {
        try await database.content(for: peer)
    }

    func groups(
        for peer: SessionStoreID?,
        from number: UInt64,
        byteCount: Int
    ) async throws(StoreError) -> [SessionStoreGroup] {
        try await database.groups(for: peer, from: number, byteCount: byteCount)
    }

    func commit(_ changes: SessionStoreChanges, for peer: SessionStoreID?) async throws(StoreError) {
        commitCount += 1
        try await database.commit(changes, for: peer)
    }

    func removeGroups(
        addedUntil date: Int64,
        except peers: Set<SessionStoreID>
    ) async throws(StoreError) -> Int {
        try await database.removeGroups(addedUntil: date, except: peers)
    }
}
