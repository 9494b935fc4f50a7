#if Store
import GRDB
import Lifeline
import LifelineStore
import LifelineWellKnownTypes
import Testing

private typealias Payment = Google_Protobuf_Int64Value
private typealias Order = Google_Protobuf_Int64Value
private typealias Receipt = Google_Protobuf_Int64Value

extension Google_Protobuf_Int64Value {
    fileprivate var amount: Int64 { value }
    fileprivate var id: Int64 { value }
    fileprivate var order: Int64 {
        get { value }
        set { value = newValue }
    }
}

/// Runs the code of the README and docs/durable-messages.md.
@Suite(.timeLimit(.minutes(1))) struct ArticleTests {
    @Test func effectsAndRepliesArrive() async throws {
        try await withDurablePlace { place in
            let shown = Shown(place: place)
            let tables = SessionMethod.unary("sample.Bank/Create") { (_: Order, context) in
                try await context.transaction { db in
                    try db.execute(sql: "CREATE TABLE payments (amount)")
                    try db.execute(sql: "CREATE TABLE orders (id)")
                    return Receipt()
                }
            }
            let reports = SessionMethod.push("sample.Meter/Report") { (_: Payment, _) in }
            let service = Bank(methods: [tables, shown.pay(), shown.transfer(), reports])
            try await withSessionServer(
                listeningOn: place.endpoint,
                configuration: shown.server(),
                services: [service]
            ) { _ in
                try await place.withClient { session in
                    let _: Receipt = try await session.call("sample.Bank/Create", Order(1), delivery: .durable)
                    try await session.push("sample.Bank/Pay", Payment(3), delivery: .durable, until: .processed)
                    #expect(try await shown.call(session).order == 7)
                }
                try await shown.readme(place.endpoint)
            }
        }
    }

    private struct Bank: SessionService {
        let methods: [SessionMethod]
    }
}

/// The documents' code, with the parts that they leave out.
private struct Shown {
    let place: DurablePlace
    let reading = Payment(5)
    let order = Order(7)

    /// Replaces the names of files by those of the test.
    private func SQLiteSessionStore(
        path: String,
        for use: LifelineStore.SQLiteSessionStore.Use
    ) throws -> LifelineStore.SQLiteSessionStore {
        try .init(path: path == "server.sqlite" ? place.serverPath : place.clientPath + path, for: use)
    }

    func readme(_ endpoint: Endpoint) async throws {
        // snippet.durable-push
        var configuration = SessionClientConfiguration()
        configuration.store = try SQLiteSessionStore(path: "readings.sqlite", for: .client(of: endpoint))
        try await withSessionClient(to: endpoint, configuration: configuration) { session in
            try await session.push("sample.Meter/Report", reading, delivery: .durable, until: .processed)
        }
        // snippet.end
    }

    func client(_ endpoint: Endpoint) async throws {
        // snippet.client-with-store
        var configuration = SessionClientConfiguration()
        configuration.store = try SQLiteSessionStore(path: "outbox.sqlite", for: .client(of: endpoint))
        try await withSessionClient(to: endpoint, configuration: configuration) { session in
            try await session.push("sample.Meter/Report", reading, delivery: .durable)
        }
        // snippet.end
    }

    func server() throws -> SessionServerConfiguration {
        // snippet.server-with-store
        var configuration = SessionServerConfiguration()
        configuration.store = try SQLiteSessionStore(path: "server.sqlite", for: .server)
        // snippet.end
        return configuration
    }

    func call(_ session: SessionClient) async throws -> Receipt {
        // snippet.durable-call
        let receipt: Receipt = try await session.call("sample.Bank/Transfer", order, timeout: nil, delivery: .durable)
        // snippet.end
        return receipt
    }

    func lateReplies(_ session: SessionClient) async throws {
        // snippet.late-replies
        for try await late in session.lateReplies(to: "sample.Bank/Transfer", of: Receipt.self) {
            print(try late.result.get())
        }
        // snippet.end
    }

    func expiring(_ session: SessionClient) async throws {
        // snippet.durable-expiring
        try await session.push("sample.Meter/Report", reading, delivery: .durable(expiringAfter: .seconds(86_400)))
        // snippet.end
    }

    func pay() -> SessionMethod {
        // snippet.transaction-of-a-push
        SessionMethod.push("sample.Bank/Pay") { (payment: Payment, context) in
            try await context.transaction { db in
                try db.execute(sql: "INSERT INTO payments VALUES (?)", arguments: [payment.amount])
            }
        }
        // snippet.end
    }

    func transfer() -> SessionMethod {
        // snippet.transaction-of-a-call
        SessionMethod.unary("sample.Bank/Transfer") { (order: Order, context) in
            try await context.transaction { db in
                try db.execute(sql: "INSERT INTO orders VALUES (?)", arguments: [order.id])
                return Receipt.with { $0.order = order.id }
            }
        }
        // snippet.end
    }
}
#endif
