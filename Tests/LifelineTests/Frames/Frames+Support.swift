import Lifeline
import LifelineClientTestSupport
import LifelineRuntime
import LifelineTestSupport
import LifelineTransport

/// A handler that a test scripts. It reports the end of the input.
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
    /// Sends back each frame.
    static func echo(end: FrameEnd = FrameEnd()) -> TestHandler {
        TestHandler(end: end) { frames, replies in
            for payload in frames { try replies.write(payload) }
        }
    }
}

/// The end of a handler's input.
struct FrameEnd: Sendable {
    fileprivate let latch = Latch<ConnectionError?>()

    /// Waits for the end. Returns nil if it was regular.
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
