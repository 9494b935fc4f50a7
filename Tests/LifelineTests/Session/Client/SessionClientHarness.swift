import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import NIOConcurrencyHelpers

@testable import Lifeline

/// A session client on a scripted transport. The test controls its server, frame by frame, and time.
struct SessionClientHarness: Sendable {
    let transport = ScriptedTransport()
    let clock = ManualClock()
    let network = ManualNetwork()
    let log = TestLog()
    let client: SessionClient
    /// The method names of both sides in the current session, across all of its connections.
    private let names = NIOLockedValueBox(ScriptedSessionServer.MethodNames())

    init(
        interceptors: [any SessionClientInterceptor] = [],
        configure: (inout SessionClientConfiguration) -> Void = { _ in }
    ) {
        var configuration = SessionClientConfiguration()
        configuration.client.backoff.jitter = 0
        configure(&configuration)
        client = SessionClient(
            to: .unix(path: "/scripted"),
            configuration: configuration,
            interceptors: interceptors,
            logger: log.logger,
            environment: ClientEnvironment(transport: transport, clock: clock, network: network, seed: 1)
        )
    }

    /// Runs the client and `body`, and then ends the session at once.
    func run(_ body: (SessionClient) async throws -> Void) async throws {
        let running = Task { try await client.run() }
        do {
            try await body(client)
        } catch {
            running.cancel()
            _ = await running.result
            throw error
        }
        running.cancel()
        _ = await running.result
    }

    /// Accepts the next connection. Its server has seen nothing yet.
    func accept() async throws -> ScriptedSessionServer {
        ScriptedSessionServer(peer: try await transport.nextAttempt().accept(), names: names)
    }

    /// Whether the session knows of a connection.
    var hasOutlet: Bool { client.engine.state.withLock { $0.outlet != nil } }

    /// The number of calls that wait for their responses.
    var requestCount: Int { client.engine.state.withLock { $0.machine.requestCount } }

    /// The number of messages that wait for credit or room.
    var waitingCount: Int { client.engine.state.withLock { $0.machine.waitingCount } }

    /// Moves time to the next attempt to connect.
    func waitForBackoff() async throws {
        try await until { client.state == .backingOff }
        try await until { clock.nextWakeUp != nil }
        clock.advance(by: .seconds(60))
    }

    /// Loses the connection, and accepts the next one.
    func reconnect(_ server: ScriptedSessionServer) async throws -> ScriptedSessionServer {
        server.peer.close(.lost)
        try await waitForBackoff()
        return try await accept()
    }

    /// Moves time until the client has acknowledged the ordinary frames up to a place.
    func moveToAcknowledgement(of place: UInt64, by server: ScriptedSessionServer) async throws {
        let due = clock.now + .milliseconds(20)
        try await until { clock.nextWakeUp == due }
        clock.advance(to: due)
        try await server.waitForAcknowledgement(of: place)
    }
}

extension ConnectionError {
    static var lost: ConnectionError { ConnectionError(code: .closedByPeer, message: "Lost by the test.") }
}
