import Foundation
import Lifeline
import LifelineCore
import LifelineTestSupport
import Testing

/// WebSocket with PyPI's `websockets` at the other end, plain and over TLS.
@Suite(.timeLimit(.minutes(2)), .serialized) struct WebSocketInteropTests {
    private static let schemes = ["ws", "wss"]

    private let certificates: CertificateFiles
    private let peer = Checkout.folder.appending(path: ".build-peers/bin/websockets-peer")
    private let messages: [WebSocketMessage] = [
        .text("Grüezi 🎉"), .text(""), .binary([]), .binary([0, 255]), .text(String(repeating: "x", count: 300_000)),
    ]

    init() throws { certificates = try CertificateFiles() }

    // MARK: Our client

    @Test(arguments: schemes, Corpus.allCases)
    func ourClientSendsFramesToItsServer(scheme: String, corpus: Corpus) async throws {
        let stream = try [UInt8](corpus.reference)
        let echoed = try await withEchoServer(scheme) { endpoint, configuration in
            try await withConnection(
                to: endpoint,
                configuration: configuration,
                receiving: ChatMessage.self,
                sending: ChatMessage.self
            ) { connection in
                #expect(connection.webSocket?.subprotocol == "chat.v1")
                let messages = try ChatMessage.all(in: stream)
                async let sending: Void = connection.send(contentsOf: messages)
                var count = 0
                for try await message in connection.messages {
                    #expect(message == messages[count])
                    count += 1
                    if count == messages.count { break }
                }
                try await sending
                return count
            }
        }
        #expect(echoed == corpus.count)
    }

    @Test(arguments: schemes) func ourClientSendsTextsToItsServer(scheme: String) async throws {
        let messages = messages
        let echoed = try await withEchoServer(scheme) { endpoint, configuration in
            try await withConnection(
                to: endpoint,
                configuration: configuration,
                receiving: WebSocketMessage.self,
                sending: WebSocketMessage.self
            ) { try await echoes(of: messages, on: $0) }
        }
        #expect(echoed == messages)
    }

    /// Sends all messages, and receives as many.
    private func echoes(
        of messages: [WebSocketMessage],
        on connection: Connection<WebSocketMessage, WebSocketMessage>
    ) async throws -> [WebSocketMessage] {
        for message in messages { try await connection.send(message) }
        var echoed: [WebSocketMessage] = []
        for try await message in connection.messages {
            echoed.append(message)
            if echoed.count == messages.count { break }
        }
        return echoed
    }

    @Test(arguments: schemes) func ourClientIsRefusedByItsServer(scheme: String) async throws {
        try await withEchoServer(scheme) { endpoint, configuration in
            var wrong = configuration
            wrong.webSocket.credentials?.password = "wrong"
            let error = await #expect(throws: ConnectionError.self) {
                try await connect(to: endpoint, configuration: wrong)
            }
            #expect((error?.cause as? WebSocketRefusal)?.status == 401)
            // Its server serves one client.
            try await connect(to: endpoint, configuration: configuration)
        }
    }

    private func connect(to endpoint: Endpoint, configuration: ConnectionConfiguration) async throws {
        try await withConnection(
            to: endpoint,
            configuration: configuration,
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { _ in }
    }

    /// `configuration` has the server's requirements and the trusted roots.
    private func withEchoServer<Result>(
        _ scheme: String,
        _ body: (_ endpoint: Endpoint, _ configuration: ConnectionConfiguration) async throws -> Result
    ) async throws -> Result {
        let files = scheme == "wss" ? [certificates.certificate, certificates.key] : []
        return try await Program(peer, ["echo-server"] + files).run { port in
            var configuration = ConnectionConfiguration()
            configuration.tls.trust = .roots(.file(certificates.authority))
            configuration.webSocket.credentials = WebSocketCredentials(user: "ada", password: "secret")
            configuration.webSocket.subprotocols = ["chat.v1"]
            return try await body(Endpoint("\(scheme)://127.0.0.1:\(port)"), configuration)
        }
    }

    // MARK: Our server

    @Test(arguments: schemes, Corpus.allCases)
    func itsClientSendsFramesToOurServer(scheme: String, corpus: Corpus) async throws {
        try await withServer(
            listeningOn: Endpoint("\(scheme)://127.0.0.1:0"),
            configuration: certificates.server,
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: { server in
            try await runClient("echo-client", "\(server.boundEndpoint)", corpus.rawValue)
        }
    }

    @Test(arguments: schemes) func itsClientSendsTextsToOurServer(scheme: String) async throws {
        var configuration = certificates.server
        configuration.webSocket.subprotocols = ["chat.v2", "chat.v1"]
        try await withServer(
            listeningOn: Endpoint("\(scheme)://127.0.0.1:0"),
            configuration: configuration,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self
        ) { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: { server in
            try await runClient("texts", "\(server.boundEndpoint)")
        }
    }

    @Test(arguments: schemes) func itsClientIsRefusedByOurServer(scheme: String) async throws {
        try await withServer(
            listeningOn: Endpoint("\(scheme)://127.0.0.1:0"),
            configuration: certificates.server,
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            for try await _ in connection.messages {}
        } _: { server in
            try await runClient("refused", "\(server.boundEndpoint)", "403")
            try await runClient("refused", "\(server.boundEndpoint)elsewhere", "404")
            try await runClient("closed", "\(server.boundEndpoint)", "1003")
        }
    }

    /// Runs the peer's client, which trusts our server.
    private func runClient(_ command: String, _ endpoint: String, _ arguments: String...) async throws {
        let authority = endpoint.hasPrefix("wss:") ? [certificates.authority] : []
        _ = try await Program(peer, [command, endpoint] + arguments + authority).run()
    }

    // MARK: Through a proxy

    @Test(arguments: ProxyProgram.allCases) func ourClientGoesThroughAProxyToItsServer(program: ProxyProgram)
        async throws
    {
        try await program.run(wantingCredentials: true) { port in
            let messages = messages
            let echoed = try await withEchoServer("wss") { endpoint, configuration in
                var configuration = configuration
                configuration.proxy = program.configuration(port: port, credentials: ProxyProgram.credentials)
                return try await withConnection(
                    to: endpoint,
                    configuration: configuration,
                    receiving: WebSocketMessage.self,
                    sending: WebSocketMessage.self
                ) { try await echoes(of: messages, on: $0) }
            }
            #expect(echoed == messages)
        }
    }
}

extension ChatMessage {
    fileprivate static func all(in stream: [UInt8]) throws -> [ChatMessage] {
        struct Collector: FrameSink {
            var messages: [ChatMessage] = []
            mutating func receive(frame: UnsafeRawBufferPointer) throws {
                messages.append(try ChatMessage(serializedBytes: frame))
            }
        }
        var collector = Collector()
        var assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: 4 << 20))
        try stream.withUnsafeBytes { try assembler.receive($0, into: &collector) }
        try assembler.finish()
        return collector.messages
    }
}

/// A certificate for `localhost` and its authority, in files that exist as long as this object.
private final class CertificateFiles: Sendable {
    let server: ServerConfiguration
    private let folder: URL

    init() throws {
        let root = try TestCertificate.authority()
        let leaf = try TestCertificate.localhost(issuedBy: root)
        folder = FileManager.default.temporaryDirectory.appending(path: "websockets-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, content) in [("ca.pem", try root.pem), ("cert.pem", try leaf.pem), ("key.pem", leaf.keyPEM)] {
            try Data(content).write(to: folder.appending(path: name))
        }
        let files = ["cert.pem", "key.pem"].map { [folder] in PEMSource.file(folder.appending(path: $0).path) }
        var server = ServerConfiguration()
        server.tls = TLSServerConfiguration(identity: TLSIdentity(certificateChain: files[0], privateKey: files[1]))
        self.server = server
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    var authority: String { folder.appending(path: "ca.pem").path }
    var certificate: String { folder.appending(path: "cert.pem").path }
    var key: String { folder.appending(path: "key.pem").path }
}
