import LifelineClientTestSupport
import LifelineCore
import LifelineProtos
import LifelineTestSupport
import LifelineTransport
import NIOConcurrencyHelpers

@testable import Lifeline

/// A session's client on a scripted transport, and what a test moves: its server, frame by frame, and time.
struct SessionClientHarness: Sendable {
    typealias Frame = Lifeline_Session_V1_Frame

    let transport = ScriptedTransport()
    let clock = ManualClock()
    let network = ManualNetwork()
    let log = TestLog()
    let client: SessionClient

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

    /// Runs the client and `body`, and ends the session at once then.
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
        ScriptedSessionServer(peer: try await transport.nextAttempt().accept())
    }

    /// Whether the session has a connection, as far as it knows.
    var hasOutlet: Bool { client.engine.state.withLockedValue { $0.outlet != nil } }

    /// How many calls wait for their responses.
    var requestCount: Int { client.engine.state.withLockedValue { $0.machine.requestCount } }

    /// Moves time to the next attempt to connect.
    func waitForBackoff() async throws {
        try await until { client.state == .backingOff }
        try await until { clock.nextWakeUp != nil }
        clock.advance(by: .seconds(60))
    }
}

/// The server's end of one connection, which does what a test says.
final class ScriptedSessionServer: Sendable {
    typealias Frame = Lifeline_Session_V1_Frame

    let peer: ScriptedPeer
    private let unread = NIOLockedValueBox<[Frame]>([])

    init(peer: ScriptedPeer) { self.peer = peer }

    /// The next frame of the client's that is not only an acknowledgement.
    func next() async throws -> Frame {
        while true {
            let new = try sessionFrames(in: peer.read()).filter { $0.kind != nil }
            let frame = unread.withLockedValue { unread -> Frame? in
                unread += new
                return unread.isEmpty ? nil : unread.removeFirst()
            }
            if let frame { return frame }
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    func send(_ frames: Frame...) throws {
        _ = peer.send(try frames.map { try $0.serializedBytes() })
    }

    /// Reads the hello and welcomes the client.
    @discardableResult
    func welcome(
        id: UInt8 = 1,
        resumed: Bool = false,
        processed: UInt64 = 0,
        received: UInt64 = 0,
        windowFrames: UInt32 = 1_000,
        maximumFrame: UInt32 = 0
    ) async throws -> Lifeline_Session_V1_Hello {
        let frame = try await next()
        try sendWelcome(
            id: id,
            resumed: resumed,
            processed: processed,
            received: received,
            windowFrames: windowFrames,
            maximumFrame: maximumFrame
        )
        return frame.hello
    }

    func sendWelcome(
        id: UInt8 = 1,
        resumed: Bool = false,
        processed: UInt64 = 0,
        received: UInt64 = 0,
        windowFrames: UInt32 = 1_000,
        maximumFrame: UInt32 = 0
    ) throws {
        try send(
            .with {
                $0.welcome.version = 1
                $0.welcome.sessionID = [UInt8](repeating: id, count: 16)
                $0.welcome.token = [UInt8](repeating: 9, count: 16)
                $0.welcome.resumed = resumed
                $0.welcome.processed = processed
                $0.welcome.received = received
                $0.welcome.window.frames = windowFrames
                $0.welcome.window.bytes = 1 << 20
                $0.welcome.maximumRequests = 100
                $0.welcome.maximumFrame = maximumFrame
            }
        )
    }

    /// Replies to a request with what it asked with.
    func reply(to frame: Frame, urgentSequence: UInt64) throws {
        try send(
            .with {
                $0.urgentSequence = urgentSequence
                $0.acknowledgement = frame.sequence
                $0.response.serial = frame.request.serial
                $0.response.payload = frame.request.payload
            }
        )
    }
}
