import Lifeline
import LifelineClientTestSupport
import LifelineRuntime
import LifelineTestSupport
import LifelineTransport

/// Does what a test says, and tells it how the input has ended.
final class TestHandler: FrameHandler {
    typealias Receive = (FrameRun, inout FrameWriter) throws -> Void

    private let receive: Receive
    private let end: FrameEnd

    init(end: FrameEnd = FrameEnd(), receive: @escaping Receive) {
        self.end = end
        self.receive = receive
    }

    func received(_ frames: FrameRun, _ replies: inout FrameWriter) throws { try receive(frames, &replies) }

    func ended(_ error: ConnectionError?) { end.latch.open(with: error) }
}

extension TestHandler {
    /// Sends back whatever comes.
    static func echo(end: FrameEnd = FrameEnd()) -> TestHandler {
        TestHandler(end: end) { frames, replies in
            for payload in frames { try replies.write(payload) }
        }
    }
}

/// How a handler's input has ended.
struct FrameEnd: Sendable {
    fileprivate let latch = Latch<ConnectionError?>()

    /// Waits for the end. Nil when it was in order.
    func wait() async throws -> ConnectionError? { try await latch.wait() }

    var hasCome: Bool { latch.value != nil }
}

/// A server of frames.
func withTestFrameServer<Handler: FrameHandler & ~Copyable, Result>(
    on endpoint: Endpoint = anyPort,
    configuration: ServerConfiguration = ServerConfiguration(),
    log: TestLog = TestLog(),
    handler: @escaping @Sendable (FrameConnection) -> Handler,
    _ body: nonisolated(nonsending) (Server) async throws -> Result
) async throws -> Result {
    try await withFrameServer(
        listeningOn: endpoint,
        configuration: configuration,
        logger: log.logger,
        handler: handler,
        body
    )
}

extension FrameConnection {
    func send(bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try send($0) }
    }
}
