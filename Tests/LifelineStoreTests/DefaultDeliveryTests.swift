#if Store
import GRDB
import Lifeline
import LifelineStore
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// The delivery of messages that name none.
@Suite(.timeLimit(.minutes(2))) struct DefaultDeliveryTests {
    private typealias Number = Google_Protobuf_Int64Value

    private struct Doubling: SessionService {
        let methods: [SessionMethod] = [
            .push("t.T/Count") { (_: Number, context) async throws in
                let message = context.durableMessage
                try await context.session.push("t.T/Told", Number(message == nil ? 0 : Int64(message?.number ?? 0)))
            },
            .unary("t.T/Double") { (number: Number, context) async throws -> Number in
                #expect(context.durableMessage?.isCall == true)
                return Number(2 * number.value)
            },
        ]
    }

    @Test func messagesThatNameNoDeliveryHaveTheDefault() async throws {
        try await withDurablePlace { place in
            let store = try SQLiteSessionStore(path: place.serverPath, for: .server)
            var server = SessionServerConfiguration()
            (server.store, server.defaultDelivery) = (store, .durable)
            var client = SessionClientConfiguration()
            client.store = try SQLiteSessionStore(path: place.clientPath, for: .client(of: place.endpoint))
            client.defaultDelivery = .durable
            let services = [Doubling()]
            try await withSessionServer(listeningOn: place.endpoint, configuration: server, services: services) { _ in
                try await withSessionClient(to: place.endpoint, configuration: client) { session in
                    var told = session.pushes("t.T/Told", of: Number.self).makeAsyncIterator()
                    try await session.push("t.T/Count", Number(1))
                    #expect(try await told.next()?.value == 1)
                    #expect(try await session.call("t.T/Double", Number(4), returning: Number.self).value == 8)
                    // A message that names a delivery has that one.
                    try await session.push("t.T/Count", Number(1), delivery: .reliable)
                    #expect(try await told.next()?.value == 0)
                }
            }
            // The server's pushes and its reply were durable, too.
            let next = try await store.database.read { try Int.fetchOne($0, sql: "SELECT next FROM lifeline_peer") }
            #expect(next == 4)
        }
    }

    @Test(arguments: [SessionDelivery.durable, .atMostOnce, .expiring(after: .seconds(1))])
    func aDefaultThatCannotBeIsRefused(_ delivery: SessionDelivery) async throws {
        var client = SessionClientConfiguration()
        client.defaultDelivery = delivery
        let session = SessionClient(to: .unix(path: "/nowhere"), configuration: client)
        await #expect { try await session.run() } throws: { error in
            (error as? ConnectionError)?.code == .invalidConfiguration
        }
        var server = SessionServerConfiguration()
        server.defaultDelivery = delivery
        #expect {
            try SessionServer(listeningOn: .unix(path: "/nowhere"), configuration: server, services: [])
        } throws: { error in
            (error as? ConnectionError)?.code == .invalidConfiguration
        }
    }
}
#endif
