#if Store
import GRDB
import Lifeline
import LifelineStore
import LifelineTestSupport
import LifelineWellKnownTypes
import NIOConcurrencyHelpers
import Testing

/// Expired durable messages.
@Suite(.timeLimit(.minutes(2))) struct DurableExpiryTests {
    private typealias Number = Google_Protobuf_Int64Value

    private struct Services: SessionService {
        let methods: [SessionMethod]
    }

    /// Waits for the client's events with the outcomes of expired messages.
    private func expired(_ client: SessionClient) async -> [SessionDeliveryOutcome] {
        for await event in client.sessionEvents {
            if case .expired(let messages) = event.kind { return messages.map(\.outcome) }
        }
        return []
    }

    /// Messages that no server has seen are reported, and leave the disk; the others are processed.
    @Test func clientsMessagesExpire() async throws {
        try await withDurablePlace { place in
            let numbers = NIOLockedValueBox<[Int64]>([])
            try await place.withClient(closeTimeout: .seconds(60)) { client in
                for number in 1...5 as ClosedRange<Int64> {
                    let delivery = number == 3 ? SessionDelivery.durable(expiringAfter: .milliseconds(1)) : .durable
                    try await client.push("t.T/Count", Number(number), delivery: delivery)
                }
                #expect(await expired(client) == [.expired])
                await #expect {
                    try await client.push(
                        "t.T/Count",
                        Number(6),
                        delivery: .durable(expiringAfter: .milliseconds(1)),
                        until: .processed
                    )
                } throws: { error in
                    (error as? SessionError)?.code == .messageExpired
                }
                let count = SessionMethod.push("t.T/Count") { (number: Number, _) async throws in
                    numbers.withLockedValue { $0.append(number.value) }
                }
                var server = SessionServerConfiguration()
                server.store = try SQLiteSessionStore(path: place.serverPath, for: .server)
                let services = [Services(methods: [count])]
                try await withSessionServer(listeningOn: place.endpoint, configuration: server, services: services) {
                    _ in
                    try await client.push("t.T/Count", Number(7), delivery: .durable, until: .processed)
                }
            }
            #expect(numbers.withLockedValue { $0 } == [1, 2, 4, 5, 7])
            let store = try SQLiteSessionStore(path: place.clientPath, for: .client(of: place.endpoint))
            let content = try await store.content(for: nil)
            #expect(content.first == content.next && content.byteCount == 0)
        }
    }

    /// The next process does not know whether the previous one has sent the message.
    @Test func aMessageExpiresWhileNoProcessRuns() async throws {
        try await withDurablePlace { place in
            try await place.withClient { client in
                try await client.push("t.T/Count", Number(1), delivery: .durable(expiringAfter: .seconds(1_000)))
            }
            // The clock was set forward.
            let store = try SQLiteSessionStore(path: place.clientPath, for: .client(of: place.endpoint))
            try await store.database.write { try $0.execute(sql: "UPDATE lifeline_group SET added = added - 1000000") }
            try store.close()
            try await place.withClient { client in #expect(await expired(client) == [.inDoubt]) }
        }
    }

    /// Calls end with their replies, or not at all.
    @Test func callsDoNotExpire() async throws {
        try await withDurablePlace { place in
            try await place.withClient { client in
                await #expect {
                    _ = try await client.call(
                        "t.T/Call",
                        Number(1),
                        returning: Number.self,
                        delivery: .durable(expiringAfter: .seconds(1))
                    )
                } throws: { error in
                    (error as? SessionError)?.code == .messageRefused
                }
            }
        }
    }

    /// A server removes the messages for a client that did not come back, but keeps the numbering.
    @Test func aServerForgetsClients() async throws {
        try await withDurablePlace { place in
            for round in 1...2 {
                let store = try SQLiteSessionStore(path: place.serverPath, for: .server)
                let (sessions, continuation) = AsyncStream.makeStream(of: SessionServerEnd.self)
                var server = SessionServerConfiguration()
                (server.store, server.maximumStoredDuration) = (store, .seconds(1_000))
                server.whenOpened = { session, _ in continuation.yield(session) }
                try await withSessionServer(listeningOn: place.endpoint, configuration: server, services: []) { _ in
                    if round == 2 {
                        let count = "SELECT count(*) FROM lifeline_group"
                        while try await store.database.read({ try Int.fetchOne($0, sql: count) }) != 0 {
                            await Task.yield()
                        }
                    }
                    try await place.withClient { client in
                        var told = client.pushes("t.T/Told", of: Number.self).makeAsyncIterator()
                        let session = try #require(await sessions.first { _ in true })
                        try await session.push("t.T/Told", Number(Int64(round)), delivery: .durable)
                        // The first one is not processed.
                        if round == 2 { #expect(try await told.next()?.value == 2) }
                    }
                }
                let numbers = try await store.database.write { db in
                    try db.execute(sql: "UPDATE lifeline_group SET added = added - 2000000")
                    return try Int.fetchOne(db, sql: "SELECT next FROM lifeline_peer")
                }
                #expect(numbers == round + 1)
                try store.close()
            }
        }
    }
}
#endif
