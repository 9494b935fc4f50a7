import LifelineClientTestSupport
import LifelineCore
import LifelineProtos
import LifelineTestSupport
import LifelineTransport

@testable import Lifeline

/// Runs a server of sessions on a clock that a test moves.
func withServer(
    _ methods: SessionMethod...,
    log: TestLog = TestLog(),
    configure: (inout SessionServerConfiguration) -> Void = { _ in },
    _ body: (SessionServer, ManualClock) async throws -> Void
) async throws {
    var configuration = SessionServerConfiguration()
    configuration.server.shutdownGracePeriod = .zero
    configure(&configuration)
    let clock = ManualClock()
    try await withSessionServer(
        listeningOn: [anyPort],
        configuration: configuration,
        services: methods.map { TestService($0) },
        interceptors: [],
        logger: log.logger,
        transport: NIOTransport.shared,
        clock: clock
    ) { server in
        try await body(server, clock)
    }
}

/// A client that says what a test says.
struct RawSessionClient {
    typealias Frame = Lifeline_Session_V1_Frame

    let socket: RawSocket

    static func connect(to server: SessionServer) async throws -> RawSessionClient {
        guard case .tcp(_, let port) = try await server.boundEndpoints[0].address else { throw CancellationError() }
        return RawSessionClient(socket: try await RawSocket.connect(toPort: Int(port)))
    }

    func send(_ frame: Frame) async throws {
        try await socket.write(try frame.withDelimitedBytes { Array($0) })
    }

    /// Says hello; returns the answer.
    func hello(_ populate: (inout Lifeline_Session_V1_Hello) -> Void = { _ in }) async throws -> Frame {
        try await sayHello(populate)
        return try await next()
    }

    func sayHello(_ populate: (inout Lifeline_Session_V1_Hello) -> Void = { _ in }) async throws {
        var hello = Lifeline_Session_V1_Hello.with {
            ($0.minimumVersion, $0.maximumVersion) = (1, 1)
            ($0.window.frames, $0.window.bytes) = (100, 100_000)
        }
        hello.attempt = 1
        populate(&hello)
        try await send(.with { $0.hello = hello })
    }

    /// The next frame that is not only an acknowledgement.
    func next() async throws -> Frame {
        while true {
            var length = 0
            for index in 0..<5 {
                guard let byte = try await socket.read(1).first else { throw CancellationError() }
                length |= Int(byte & 0x7F) << (7 * index)
                if byte < 0x80 { break }
            }
            let frame = try Frame(serializedBytes: try await socket.read(length))
            if frame.kind != nil { return frame }
        }
    }

    /// Whether the server has ended its side, but for acknowledgements.
    func isEnded() async throws -> Bool {
        do {
            _ = try await next()
            return false
        } catch {
            return true
        }
    }
}
