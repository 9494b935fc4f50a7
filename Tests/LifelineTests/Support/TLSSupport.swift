import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import NIOConcurrencyHelpers

extension TLSScene {
    /// A server of this scene.
    func withServer<Result>(
        log: TestLog = TestLog(),
        handler: @escaping @Sendable (TestConnection) async throws -> Void = echo,
        _ body: nonisolated(nonsending) (Server) async throws -> Result
    ) async throws -> Result {
        try await withConfiguredServer(log: log, { _ in }, handler: handler, body)
    }

    /// A server of this scene, with a configuration that a test changes.
    func withConfiguredServer<Result>(
        log: TestLog = TestLog(),
        _ configure: (inout ServerConfiguration) throws -> Void,
        handler: @escaping @Sendable (TestConnection) async throws -> Void = echo,
        _ body: nonisolated(nonsending) (Server) async throws -> Result
    ) async throws -> Result {
        var configuration = try server
        try configure(&configuration)
        return try await withTestServer(
            on: .tls(host: "127.0.0.1", port: 0),
            configuration: configuration,
            log: log,
            handler: handler,
            body
        )
    }

    /// A client of this scene.
    func withConnection<Result>(
        to endpoint: Endpoint,
        configure: (inout ConnectionConfiguration) throws -> Void = { _ in },
        _ body: nonisolated(nonsending) (TestConnection) async throws -> Result
    ) async throws -> Result {
        var configuration = try client
        try configure(&configuration)
        return try await withTestConnection(to: endpoint, configuration: configuration, body)
    }

    /// Returns the error with which a client of this scene fails to connect or to exchange a message.
    func refusal(
        of endpoint: Endpoint,
        configure: (inout ConnectionConfiguration) throws -> Void = { _ in }
    ) async -> ConnectionError? {
        await connectionError {
            try await withConnection(to: endpoint, configure: configure) {
                try await roundTrip(TestMessage(number: 1), on: $0)
            }
        }
    }
}

extension Endpoint {
    /// The TLS endpoint of a raw listener.
    static func tls(_ listener: RawSocket) -> Endpoint { .tls(host: "127.0.0.1", port: UInt16(listener.port)) }
}

/// Passes bytes on between a client and a server, as slowly and as long as a test wants.
struct Relay: Sendable {
    let listener: RawSocket
    private let server: Endpoint
    private let chunk: Int
    private let isProxy: Bool

    /// - Parameters:
    ///   - chunk: the largest number of bytes that it passes on at once.
    ///   - isProxy: whether it expects a request to connect, as an HTTP proxy does. It always connects to `server`.
    init(to server: Endpoint, chunk: Int = 64 << 10, isProxy: Bool = false) async throws {
        listener = try await RawSocket.listen()
        self.server = server
        self.chunk = chunk
        self.isProxy = isProxy
    }

    var endpoint: Endpoint { .tls(listener) }

    /// Passes one connection's bytes on until both ends have ended, or until `body`, which gets both sockets, returns.
    func run<Result: Sendable>(
        _ body: @escaping @Sendable (_ client: RawSocket, _ server: RawSocket) async throws -> Result
    ) async throws -> Result {
        let client = try await listener.accept()
        if isProxy {
            let request = try await client.readHead()
            guard request.hasPrefix("CONNECT ") else { throw RawSocket.Unexpected(head: request) }
            try await client.write(Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8))
        }
        let server = try await RawSocket.connect(toPort: server.port ?? 0)
        async let up: Void = pump(client, server)
        async let down: Void = pump(server, client)
        let result = try await body(client, server)
        _ = await (up, down)
        return result
    }

    private func pump(_ source: RawSocket, _ sink: RawSocket) async {
        while let bytes = try? await source.readSome(chunk), !bytes.isEmpty, (try? await sink.write(bytes)) != nil {}
        try? sink.finish()
    }
}
