import Lifeline
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// The README's configurations for TLS, as they stand there but for the files and the pin.
@Suite(.timeLimit(.minutes(1))) struct TLSReadmeExampleTests {
    @Test func overTLS() async throws {
        let (root, scene) = try (TestCertificate.authority(), TLSScene())
        let client = try TestCertificate(issuedBy: root)
        let files = [
            ("ca.pem", try scene.root.pem), ("client.pem", try client.pem), ("client-key.pem", client.keyPEM),
            ("server.pem", try scene.certificate.pem), ("server-key.pem", scene.certificate.keyPEM),
            ("client-ca.pem", try root.pem),
        ]
        try await withTemporaryPath("ca.pem") { path in
            func file(_ name: String) -> String { path.replacing("ca.pem", with: name) }
            for (name, content) in files { writeFile(content, to: file(name)) }
            defer { for (name, _) in files { removeFile(at: file(name)) } }

            var server = ServerConfiguration()
            server.tls = TLSServerConfiguration(
                identity: TLSIdentity(
                    certificateChain: .file(file("server.pem")),
                    privateKey: .file(file("server-key.pem"))
                )
            )
            server.tls?.clientRoots = [.file(file("client-ca.pem"))]

            var configuration = ConnectionConfiguration()
            configuration.tls.trust = .roots(.file(file("ca.pem")))
            configuration.tls.pins = [try CertificatePin(scene.certificate.publicKeyPin)]
            configuration.tls.identity = TLSIdentity(
                certificateChain: .file(file("client.pem")),
                privateKey: .file(file("client-key.pem"))
            )
            try await withTestServer(
                on: .tls(host: "127.0.0.1", port: 0),
                configuration: server,
                handler: echo
            ) { server in
                try await withTestConnection(to: server.endpoint, configuration: configuration) { connection in
                    let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                    #expect(reply?.number == 1)
                }
            }
        }
    }
}
