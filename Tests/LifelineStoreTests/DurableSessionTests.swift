#if Store
import GRDB
import Lifeline
import LifelineRuntime
import LifelineStore
import LifelineTestSupport
import LifelineWellKnownTypes
import NIOConcurrencyHelpers
import Testing

/// Durable pushes between clients and servers that are started again, over Unix sockets and databases.
@Suite(.timeLimit(.minutes(2))) struct DurableSessionTests {
    private typealias Number = Google_Protobuf_Int64Value

    private struct Counter: SessionService {
        let methods: [SessionMethod]
    }

    /// The received messages, in order.
    private final class Notes: Sendable {
        private struct State {
            var numbers: [Int64] = []
            var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?
        }

        private let state = NIOLockedValueBox(State())

        var all: [Int64] { state.withLockedValue { $0.numbers } }

        func add(_ number: Int64) {
            let waiter = state.withLockedValue { state -> CheckedContinuation<Void, Never>? in
                state.numbers.append(number)
                guard let waiter = state.waiter, state.numbers.count >= waiter.count else { return nil }
                state.waiter = nil
                return waiter.continuation
            }
            waiter?.resume()
        }

        /// Waits for a number of messages. Only one task at a time may wait.
        func wait(for count: Int) async {
            await withCheckedContinuation { continuation in
                let isThere = state.withLockedValue { state in
                    if state.numbers.count >= count { return true }
                    state.waiter = (count, continuation)
                    return false
                }
                if isThere { continuation.resume() }
            }
        }
    }

    /// A server's configuration, and the sessions that begin.
    private func configuration(
        _ store: SQLiteSessionStore? = nil
    ) -> (SessionServerConfiguration, sessions: AsyncStream<SessionServerEnd>) {
        let (sessions, continuation) = AsyncStream.makeStream(of: SessionServerEnd.self)
        var configuration = SessionServerConfiguration()
        configuration.store = store
        configuration.server.shutdownGracePeriod = .zero
        configuration.drainSpread = .zero
        configuration.whenOpened = { session, _ in continuation.yield(session) }
        return (configuration, sessions)
    }

    private func withServer(
        _ place: DurablePlace,
        _ notes: Notes,
        _ body: (SessionServer) async throws -> Void
    ) async throws {
        let store = try SQLiteSessionStore(path: place.serverPath, for: .server)
        let (configuration, _) = configuration(store)
        let count = SessionMethod.push("t.T/Count") { (number: Number, _) async throws in notes.add(number.value) }
        try await withSessionServer(
            listeningOn: place.endpoint,
            configuration: configuration,
            services: [Counter(methods: [count])],
            body
        )
        try store.close()
    }

    @Test func pushesAreProcessed() async throws {
        try await withDurablePlace { place in
            let notes = Notes()
            try await withServer(place, notes) { _ in
                try await place.withClient { client in
                    for number in 1...20 {
                        try await client.push("t.T/Count", Number(Int64(number)), delivery: .durable, until: .processed)
                    }
                }
            }
            #expect(notes.all == Array(1...20))
        }
    }

    @Test func acceptedMessagesSurviveTheClient() async throws {
        try await withDurablePlace { place in
            // There is no server.
            try await place.withClient { client in
                for number in 1...20 { try await client.push("t.T/Count", Number(Int64(number)), delivery: .durable) }
            }
            try await place.withClient { client in
                for number in 21...30 { try await client.push("t.T/Count", Number(Int64(number)), delivery: .durable) }
            }
            let notes = Notes()
            try await withServer(place, notes) { _ in
                try await place.withClient { client in
                    try await client.push("t.T/Count", Number(31), delivery: .durable, until: .processed)
                }
                #expect(notes.all == Array(1...31))
                // No message arrives again.
                try await place.withClient { client in
                    try await client.push("t.T/Count", Number(32), delivery: .durable, until: .processed)
                }
            }
            #expect(notes.all == Array(1...32))
        }
    }

    /// Messages that are only in the store are also sent before a client closes.
    @Test func closingWaitsForWhatWasKept() async throws {
        try await withDurablePlace { place in
            try await place.withClient { client in
                for number in 1...20 { try await client.push("t.T/Count", Number(Int64(number)), delivery: .durable) }
            }
            let notes = Notes()
            try await withServer(place, notes) { _ in
                try await place.withClient(closeTimeout: .seconds(60)) { _ in }
                #expect(notes.all == Array(1...20))
            }
        }
    }

    @Test func nothingIsInDoubtWhenAServerIsStartedAgain() async throws {
        try await withDurablePlace { place in
            let notes = Notes()
            try await place.withClient { client in
                try await withThrowingTaskGroup { group in
                    group.addTask {
                        for number in 1...1_000 {
                            try await client.push("t.T/Count", Number(Int64(number)), delivery: .durable)
                        }
                        try await client.push("t.T/Count", Number(1_001), delivery: .durable, until: .processed)
                    }
                    for round in 1...4 {
                        try await withServer(place, notes) { server in
                            // Each server is shut down while it is busy, except the last one.
                            await notes.wait(for: round * 100)
                            if round == 4 { try await group.waitForAll() }
                        }
                    }
                }
                for event in client.sessionHistory {
                    if case .lost(let inDoubt) = event.kind { #expect(inDoubt.isEmpty) }
                }
            }
            #expect(notes.all == Array(1...1_001))
        }
    }

    @Test func aServersPushesSurviveIt() async throws {
        try await withDurablePlace { place in
            let notes = Notes()
            // The client does not read, and leaves.
            var store = try SQLiteSessionStore(path: place.serverPath, for: .server)
            let (first, sessions) = configuration(store)
            try await withSessionServer(listeningOn: place.endpoint, configuration: first, services: []) { _ in
                try await place.withClient { client in
                    _ = client.pushes("t.T/Tell", of: Number.self)
                    let session = try #require(await sessions.first { _ in true })
                    for number in 1...10 {
                        try await session.push("t.T/Tell", Number(Int64(number)), delivery: .durable)
                    }
                }
            }
            try store.close()
            store = try SQLiteSessionStore(path: place.serverPath, for: .server)
            let (second, _) = configuration(store)
            try await withSessionServer(listeningOn: place.endpoint, configuration: second, services: []) { _ in
                try await place.withClient { client in
                    for try await number in client.pushes("t.T/Tell", of: Number.self) {
                        notes.add(number.value)
                        if number.value == 10 { break }
                    }
                }
            }
            try store.close()
            #expect(notes.all == Array(1...10))
        }
    }

    /// Each payment happens once, although the server ends between the handler's transaction and its return.
    @Test func aTransactionMarksTheMessage() async throws {
        try await withDurablePlace { place in
            try await place.withClient { client in
                try await client.push("t.T/Pay", Number(7), delivery: .durable)
                for round in 1...2 {
                    let store = try SQLiteSessionStore(path: place.serverPath, for: .server)
                    try await store.database.write {
                        try $0.execute(sql: "CREATE TABLE IF NOT EXISTS payments (amount INTEGER)")
                    }
                    let (paid, continuation) = AsyncStream.makeStream(of: Void.self)
                    let pay = SessionMethod.push("t.T/Pay") { (number: Number, context) async throws in
                        #expect(context.durableMessage?.number == (number.value == 7 ? 1 : 2))
                        try await context.transaction { db in
                            try db.execute(sql: "INSERT INTO payments VALUES (?)", arguments: [number.value])
                        }
                        // The mark is stored.
                        try await context.transaction { _ in }
                        continuation.yield()
                        // Until it is cancelled.
                        if number.value == 7 { try await Latch<Void>().wait() }
                    }
                    let (configuration, _) = configuration(store)
                    try await withSessionServer(
                        listeningOn: place.endpoint,
                        configuration: configuration,
                        services: [Counter(methods: [pay])]
                    ) { _ in
                        if round == 2 { try await client.push("t.T/Pay", Number(8), delivery: .durable) }
                        _ = await paid.first { _ in true }
                    }
                    try store.close()
                }
            }
            let store = try SQLiteSessionStore(path: place.serverPath, for: .server)
            let payments = try await store.database.read { try Int.fetchAll($0, sql: "SELECT amount FROM payments") }
            #expect(payments == [7, 8])
        }
    }

    /// A transaction that throws writes nothing, and does not affect the others.
    @Test func transactionsThatComeTogether() async throws {
        try await withDurablePlace { place in
            struct Failure: Error {}
            let store = try SQLiteSessionStore(path: place.serverPath, for: .server)
            try await store.database.write { try $0.execute(sql: "CREATE TABLE numbers (number INTEGER)") }
            let add = SessionMethod.push("t.T/Add") { (number: Number, context) async throws in
                try await context.transaction { db in
                    try db.execute(sql: "INSERT INTO numbers VALUES (?)", arguments: [number.value])
                    if number.value % 3 == 0 { throw Failure() }
                }
            }
            let (configuration, _) = configuration(store)
            try await withSessionServer(
                listeningOn: place.endpoint,
                configuration: configuration,
                services: [Counter(methods: [add])]
            ) { _ in
                try await withThrowingTaskGroup { group in
                    for client in 0..<5 {
                        group.addTask {
                            let endpoint = place.endpoint
                            let path = place.clientPath + "\(client)"
                            var configuration = SessionClientConfiguration()
                            configuration.store = try SQLiteSessionStore(path: path, for: .client(of: endpoint))
                            try await withSessionClient(to: endpoint, configuration: configuration) { client in
                                for number in 1...20 as ClosedRange<Int64> {
                                    try await client.push("t.T/Add", Number(number), delivery: .durable)
                                }
                                try await client.push("t.T/Add", Number(100), delivery: .durable, until: .processed)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let counts = try await store.database.read { db in
                try Int.fetchAll(db, sql: "SELECT count(*) FROM numbers GROUP BY number")
            }
            #expect(counts == [Int](repeating: 5, count: 15))
        }
    }

    /// A server sends its kept messages at once. A client that asks for them later gets them.
    @Test func aClientKeepsWhatNobodyHasAskedFor() async throws {
        try await withDurablePlace { place in
            let store = try SQLiteSessionStore(path: place.serverPath, for: .server)
            let (configuration, sessions) = configuration(store)
            try await withSessionServer(listeningOn: place.endpoint, configuration: configuration, services: []) { _ in
                try await place.withClient { client in
                    let session = try #require(await sessions.first { _ in true })
                    try await session.push("t.T/Tell", Number(1), delivery: .durable)
                    // Behind it.
                    async let told: Void = session.push("t.T/Tell", Number(2), delivery: .durable, until: .processed)
                    while client.statistics.receivedPushCount < 2 { await Task.yield() }
                    var numbers: [Int64] = []
                    for try await number in client.pushes("t.T/Tell", of: Number.self) {
                        numbers.append(number.value)
                        if numbers.count == 2 { break }
                    }
                    #expect(numbers == [1, 2])
                    try await told
                }
            }
            try store.close()
        }
    }

    @Test func aPushThatWaitsForTheStoreCanBeCancelled() async throws {
        try await withDurablePlace { place in
            let store = try SQLiteSessionStore(path: place.clientPath, for: .client(of: place.endpoint))
            var configuration = SessionClientConfiguration()
            configuration.store = store
            configuration.closeTimeout = .zero
            configuration.maximumStoredByteCount = 1
            try await withSessionClient(to: place.endpoint, configuration: configuration) { client in
                try await client.push("t.T/Count", Number(1), delivery: .durable)
                let push = Task { try await client.push("t.T/Count", Number(2), delivery: .durable) }
                push.cancel()
                await #expect { try await push.value } throws: { ($0 as? SessionError)?.code == .cancelled }
                // A push that waits until it is processed reports that it is kept.
                let (kept, begun) = (NIOLockedValueBox<SessionError.Code?>(nil), Latch<Void>())
                let observed = Task {
                    begun.open(with: ())
                    do {
                        try await client.push("t.T/Count", Number(3), delivery: .durable, until: .processed)
                    } catch let error as SessionError {
                        kept.withLockedValue { $0 = error.code }
                    }
                }
                try await begun.wait()
                await client.close()
                try await observed.value
                #expect([.closedLocally, .messageUnsent].contains(kept.withLockedValue { $0 }))
            }
        }
    }

    @Test func waitersOfAKeptPushGetAnError() async throws {
        try await withDurablePlace { place in
            try await place.withClient { client in
                let payload = Google_Protobuf_BytesValue([UInt8](repeating: 1, count: 300 << 10))
                let codes = NIOLockedValueBox<[SessionError.Code]>([])
                try await withThrowingDiscardingTaskGroup { group in
                    // More than is kept in memory; the last one is stored behind the others.
                    for _ in 1...4 {
                        group.addTask {
                            do {
                                try await client.push("t.T/Count", payload, delivery: .durable, until: .processed)
                            } catch let error as SessionError {
                                codes.withLockedValue { $0.append(error.code) }
                            }
                        }
                    }
                    group.addTask {
                        for _ in 1...5 { try await client.push("t.T/Count", Number(1), delivery: .durable) }
                        await client.close()
                    }
                }
                #expect(codes.withLockedValue { $0 }.count == 4)
                #expect(codes.withLockedValue { $0 }.allSatisfy { $0 == .messageKept || $0 == .closedLocally })
            }
        }
    }

    @Test func aClientThatCannotRunRefusesDurablePushes() async throws {
        try await withDurablePlace { place in
            var configuration = SessionClientConfiguration()
            configuration.store = try SQLiteSessionStore(path: place.clientPath, for: .client(of: place.endpoint))
            configuration.name = String(repeating: "n", count: 20 << 10)
            let client = SessionClient(to: place.endpoint, configuration: configuration)
            await #expect(throws: ConnectionError.self) { try await client.run() }
            await #expect(throws: SessionError.self) {
                try await client.push("t.T/Count", Number(1), delivery: .durable)
            }
        }
    }

    @Test func messagesThatCannotBeDurableAreRefused() async throws {
        try await withDurablePlace { place in
            let (configuration, sessions) = configuration()
            try await withSessionServer(listeningOn: place.endpoint, configuration: configuration, services: []) { _ in
                try await withSessionClient(to: place.endpoint) { client in
                    await #expect { try await client.push("t.T/Count", Number(1), delivery: .durable) } throws: {
                        error in
                        (error as? SessionError)?.code == .noStore
                    }
                    let session = try #require(await sessions.first { _ in true })
                    await #expect { try await session.push("t.T/Tell", Number(1), delivery: .durable) } throws: {
                        error in
                        (error as? SessionError)?.code == .noStore
                    }
                }
            }
        }
    }

    @Test func aStoreThatCannotBeUsedEndsTheClient() async throws {
        try await withDurablePlace { place in
            let store = try SQLiteSessionStore(path: place.clientPath, for: .client(of: place.endpoint))
            try store.close()
            var configuration = SessionClientConfiguration()
            configuration.store = store
            let client = SessionClient(to: place.endpoint, configuration: configuration)
            let push = Task { try await client.push("t.T/Count", Number(1), delivery: .durable) }
            await #expect(throws: StoreError.self) { try await client.run() }
            await #expect { try await push.value } throws: { ($0 as? SessionError)?.code == .storeFailed }
        }
    }
}
#endif
