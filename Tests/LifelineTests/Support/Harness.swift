import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import Synchronization

typealias TestConnection = Connection<TestMessage, TestMessage>

/// A server of test messages.
func withTestServer<Result>(
    on endpoint: Endpoint = anyPort,
    configuration: ServerConfiguration = ServerConfiguration(),
    log: TestLog = TestLog(),
    heartbeat: HeartbeatMessages<TestMessage, TestMessage>? = nil,
    handler: @escaping @Sendable (TestConnection) async throws -> Void,
    _ body: nonisolated(nonsending) (Server) async throws -> Result
) async throws -> Result {
    try await withServer(
        listeningOn: endpoint,
        configuration: configuration,
        logger: log.logger,
        receiving: TestMessage.self,
        sending: TestMessage.self,
        heartbeat: heartbeat,
        handler: handler,
        body
    )
}

/// A client of test messages.
func withTestConnection<Result>(
    to endpoint: Endpoint,
    configuration: ConnectionConfiguration = ConnectionConfiguration(),
    heartbeat: HeartbeatMessages<TestMessage, TestMessage>? = nil,
    _ body: nonisolated(nonsending) (TestConnection) async throws -> Result
) async throws -> Result {
    try await withConnection(
        to: endpoint,
        configuration: configuration,
        receiving: TestMessage.self,
        sending: TestMessage.self,
        heartbeat: heartbeat,
        body
    )
}

/// A client of test messages that stays connected.
func withTestClient<Result>(
    to endpoint: Endpoint,
    configuration: ClientConfiguration,
    _ body: nonisolated(nonsending) (Client<TestMessage, TestMessage>) async throws -> Result
) async throws -> Result {
    try await withClient(
        to: endpoint,
        configuration: configuration,
        receiving: TestMessage.self,
        sending: TestMessage.self,
        logger: TestLog().logger,
        body
    )
}

/// Sends back each message.
@Sendable func echo(_ connection: TestConnection) async throws {
    for try await message in connection.messages { try await connection.send(message) }
}

/// Sends one message, and returns the reply.
func roundTrip(_ message: TestMessage, on connection: TestConnection) async throws -> TestMessage? {
    try await connection.send(message)
    var iterator = connection.messages.makeAsyncIterator()
    return try await iterator.next()
}

/// Returns when `count` has not changed during a hundred round trips on the same event loops.
func settle(_ count: borrowing Atomic<Int>, on other: Server) async throws {
    try await withTestConnection(to: other.boundEndpoint) { connection in
        var last = -1
        while count.load(ordering: .relaxed) != last {
            last = count.load(ordering: .relaxed)
            for number in 0..<100 { _ = try await roundTrip(TestMessage(number: number), on: connection) }
        }
    }
}
