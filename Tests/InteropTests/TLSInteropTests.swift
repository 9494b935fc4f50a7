import Foundation
import Lifeline
import LifelineProtos
import LifelineTestSupport
import Logging
import Synchronization
import Testing

/// OpenSSL's client with our server, and our client with OpenSSL's server.
@Suite(.timeLimit(.minutes(2)), .serialized) struct TLSInteropTests {
    private let root: TestCertificate
    private let certificate: TestCertificate

    init() throws {
        root = try .authority()
        certificate = try .localhost(issuedBy: root)
    }

    private func openssl(_ arguments: String...) -> Program {
        Program(URL(filePath: "/usr/bin/openssl"), arguments)
    }

    /// Runs `body` with PEM files, which are removed afterwards.
    private func withFiles<Result>(
        _ contents: [String: [UInt8]],
        _ body: (_ path: (String) -> String) async throws -> Result
    ) async throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "openssl-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, content) in contents { try Data(content).write(to: folder.appending(path: name)) }
        return try await body { folder.appending(path: $0).path }
    }

    // MARK: Our server

    private func withEchoServer<Result>(
        messageCount: Int,
        log: TestLog = TestLog(),
        clientRoots: [PEMSource]? = nil,
        minimumVersion: TLSProtocolVersion = .tls12,
        _ body: (_ port: Int) async throws -> Result
    ) async throws -> Result {
        var configuration = ServerConfiguration()
        configuration.tls = TLSServerConfiguration(
            identity: TLSIdentity(certificateChain: .bytes(try certificate.pem), privateKey: .bytes(certificate.keyPEM))
        )
        configuration.tls?.clientRoots = clientRoots
        configuration.tls?.minimumVersion = minimumVersion
        return try await withServer(
            listeningOn: .tls(host: "127.0.0.1", port: 0),
            configuration: configuration,
            logger: log.logger,
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            var count = 0
            for try await message in connection.messages {
                try await connection.send(message)
                count += 1
                if count == messageCount { return }
            }
        } _: { server in
            try await body(try #require(await server.boundEndpoint.port))
        }
    }

    private static func messages() throws -> Data {
        var stream = Data()
        for text in ["one", "Grüezi", String(repeating: "long ", count: 100_000)] {
            try ChatMessage.with { $0.text = text }.withDelimitedBytes { stream.append(contentsOf: $0) }
        }
        return stream
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func opensslsClientTalksToUs(version: String) async throws {
        let stream = try Self.messages()
        try await withFiles(["root.pem": root.pem]) { path in
            try await withEchoServer(messageCount: 3) { port in
                let outcome = try await openssl(
                    "s_client",
                    "-connect",
                    "127.0.0.1:\(port)",
                    version,
                    "-CAfile",
                    path("root.pem"),
                    "-verify_return_error",
                    "-verify_ip",
                    "127.0.0.1",
                    "-quiet"
                ).outcome(input: stream)
                #expect(outcome.output == stream)
                #expect(outcome.status == 0, "\(outcome.errorText)")
                #expect(!outcome.errorText.contains("unexpected eof"), "we say that it is the end")
            }
        }
    }

    @Test func anOldClientIsRefused() async throws {
        let log = TestLog()
        try await withEchoServer(messageCount: 1, log: log) { port in
            let outcome = try await openssl(
                "s_client",
                "-connect",
                "127.0.0.1:\(port)",
                "-tls1_1",
                "-cipher",
                "DEFAULT@SECLEVEL=0"
            ).outcome()
            #expect(outcome.status != 0)
            #expect(outcome.errorText.contains("alert protocol version"))
        }
        #expect(log.entries.contains { $0.text.contains("tlsVersionUnsupported") })
    }

    @Test func aClientBelowTheMinimumIsRefused() async throws {
        let log = TestLog()
        try await withEchoServer(messageCount: 1, log: log, minimumVersion: .tls13) { port in
            let outcome = try await openssl("s_client", "-connect", "127.0.0.1:\(port)", "-tls1_2").outcome()
            #expect(outcome.status != 0)
            #expect(outcome.errorText.contains("alert protocol version"))
        }
        #expect(log.entries.contains { $0.text.contains("tlsVersionUnsupported") })
    }

    @Test(arguments: [true, false], ["-tls1_2", "-tls1_3"])
    func weAskForACertificate(isShown: Bool, version: String) async throws {
        let client = try TestCertificate(issuedBy: root)
        let stream = try Self.messages()
        let log = TestLog()
        try await withFiles(["cert.pem": client.pem, "key.pem": client.keyPEM]) { path in
            try await withEchoServer(messageCount: 3, log: log, clientRoots: [.bytes(root.pem)]) { port in
                let identity = isShown ? ["-cert", path("cert.pem"), "-key", path("key.pem")] : []
                let arguments = ["s_client", "-connect", "127.0.0.1:\(port)", version, "-quiet"] + identity
                let outcome = try await Program(URL(filePath: "/usr/bin/openssl"), arguments).outcome(input: stream)
                #expect((outcome.output == stream) == isShown)
            }
        }
        #expect(log.entries.contains { $0.text.contains("presented no certificate") } == !isShown)
    }

    // MARK: Our client

    /// Runs `openssl s_server` for one connection, and `body` with its endpoint.
    private func withOpenSSLServer<Result: Sendable>(
        _ arguments: String,
        _ body: @escaping @Sendable (Endpoint, _ trust: TLSClientConfiguration) async throws -> Result
    ) async throws -> Result {
        var configuration = TLSClientConfiguration()
        configuration.trust = .roots(.bytes(try root.pem))
        let client = try TestCertificate(issuedBy: root)
        configuration.identity = TLSIdentity(
            certificateChain: .bytes(try client.pem),
            privateKey: .bytes(client.keyPEM)
        )
        let files = ["root.pem": try root.pem, "cert.pem": try certificate.pem, "key.pem": certificate.keyPEM]
        return try await withFiles(files) { [configuration] path in
            let folder = path("")
            // Its output about the connection follows the port.
            let command = """
                cd '\(folder)' && openssl s_server -accept 127.0.0.1:0 -naccept 1 -cert cert.pem -key key.pem \
                -CAfile root.pem \(arguments) 2>/dev/null </dev/null | sed -un 's/^ACCEPT.*://p'
                """
            return try await Program(URL(filePath: "/bin/sh"), ["-c", command]).run { line in
                try await body(.tls(host: "127.0.0.1", port: try #require(UInt16(line))), configuration)
            }
        }
    }

    private func connect(_ endpoint: Endpoint, _ tls: TLSClientConfiguration) async throws {
        var configuration = ConnectionConfiguration()
        configuration.tls = tls
        try await withConnection(
            to: endpoint,
            configuration: configuration,
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            try await connection.finishSending()
            for try await _ in connection.messages {}
        }
    }

    @Test(arguments: ["-tls1_2 -rev", "-tls1_3 -rev", "-tls1_2 -rev -Verify 1 -verify_return_error", "-rev -Verify 1"])
    func weTalkToOpenSSLsServer(arguments: String) async throws {
        try await withOpenSSLServer(arguments) { endpoint, tls in try await connect(endpoint, tls) }
    }

    @Test(arguments: ["-rev -tls1_1 -cipher DEFAULT@SECLEVEL=0", "-rev -tls1 -cipher DEFAULT@SECLEVEL=0"])
    func anOldServerIsRefused(arguments: String) async throws {
        let error = try await withOpenSSLServer(arguments) { endpoint, tls in
            await #expect(throws: ConnectionError.self) { try await connect(endpoint, tls) }
        }
        #expect(error?.code == .tlsVersionUnsupported)
    }

    @Test func aServerBelowTheMinimumIsRefused() async throws {
        let error = try await withOpenSSLServer("-rev -tls1_2") { endpoint, tls in
            var newer = tls
            newer.minimumVersion = .tls13
            let configuration = newer
            return await #expect(throws: ConnectionError.self) { try await connect(endpoint, configuration) }
        }
        #expect(error?.code == .tlsVersionUnsupported)
    }

    /// TLS 1.3 reports it after the handshake, TLS 1.2 during it.
    @Test(arguments: [true, false]) func ourCertificateIsRefusedOverTLS12(isShown: Bool) async throws {
        let stranger = try TestCertificate(issuedBy: .authority("Stranger"))
        let identity = TLSIdentity(certificateChain: .bytes(try stranger.pem), privateKey: .bytes(stranger.keyPEM))
        let error = try await withOpenSSLServer("-rev -tls1_2 -Verify 1 -verify_return_error") { endpoint, tls in
            var other = tls
            other.identity = isShown ? identity : nil
            let configuration = other
            return await #expect(throws: ConnectionError.self) { try await connect(endpoint, configuration) }
        }
        #expect(error?.code == .tlsRejected)
    }

    private static let weakSuites = ["AES128-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA"]
    private static let strongSuites = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305",
    ]

    @Test(arguments: weakSuites) func aServerWithWeakCiphersIsRefused(suite: String) async throws {
        let error = try await withOpenSSLServer("-rev -tls1_2 -cipher \(suite):@SECLEVEL=0") { endpoint, tls in
            await #expect(throws: ConnectionError.self) { try await connect(endpoint, tls) }
        }
        #expect(error?.code == .tlsRejected)
    }

    @Test(arguments: strongSuites) func aServerWithAuthenticatedCiphersIsTaken(suite: String) async throws {
        try await withOpenSSLServer("-rev -tls1_2 -cipher \(suite)") { endpoint, tls in
            try await connect(endpoint, tls)
        }
    }

    @Test func aServerThatSignsWithSHA1IsRefused() async throws {
        let arguments = "-rev -tls1_2 -sigalgs ECDSA+SHA1 -cipher DEFAULT:@SECLEVEL=0"
        let error = try await withOpenSSLServer(arguments) { endpoint, tls in
            await #expect(throws: ConnectionError.self) { try await connect(endpoint, tls) }
        }
        #expect(error?.code == .tlsRejected)
    }

    @Test(arguments: weakSuites + strongSuites) func ourServerTakesAuthenticatedCiphersOnly(suite: String) async throws
    {
        try await withEchoServer(messageCount: 0) { port in
            let outcome = try await openssl(
                "s_client",
                "-connect",
                "127.0.0.1:\(port)",
                "-tls1_2",
                "-cipher",
                "\(suite):@SECLEVEL=0"
            ).outcome()
            let isStrong = Self.strongSuites.contains(suite)
            #expect(outcome.errorText.contains("alert handshake failure") == !isStrong, "\(outcome.errorText)")
        }
    }

    /// The pin that the documentation tells users to compute.
    @Test func opensslComputesThePin() async throws {
        try await withFiles(["cert.pem": certificate.pem]) { path in
            let command = """
                openssl x509 -in '\(path("cert.pem"))' -noout -pubkey | openssl pkey -pubin -outform der \
                | openssl dgst -sha256 -binary | openssl base64; \
                openssl x509 -in '\(path("cert.pem"))' -noout -fingerprint -sha256
                """
            let output = try await Program(URL(filePath: "/bin/sh"), ["-c", command]).run()
            let lines = String(decoding: output, as: UTF8.self).split(separator: "\n")
            #expect("sha256/\(lines[0])" == certificate.publicKeyPin)
            #expect(try lines[1].split(separator: "=").last.map(String.init) == certificate.fingerprint)
        }
    }
}
