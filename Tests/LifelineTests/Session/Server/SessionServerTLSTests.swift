import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import Testing

/// A session server over TLS.
@Suite(.timeLimit(.minutes(2))) struct SessionServerTLSTests {
    private let scene: TLSScene

    init() throws { scene = try TLSScene() }

    @Test func connectionsOutliveTheCertificate() async throws {
        try await withTemporaryPath("certificate.pem") { path in
            writeFile(try scene.certificate.pem, to: path)
            var configuration = SessionServerConfiguration()
            configuration.server = try scene.server
            configuration.server.tls = TLSServerConfiguration(
                identity: TLSIdentity(certificateChain: .file(path), privateKey: .bytes(scene.certificate.keyPEM))
            )
            let echo = TestService(.unary("t.T/Echo") { (message: TestMessage, _) in message })
            let endpoint = Endpoint.tls(host: "127.0.0.1", port: 0)
            try await withSessionServer(
                listeningOn: [endpoint, endpoint],
                configuration: configuration,
                services: [echo],
                logger: TestLog().logger
            ) { server in
                let endpoints = try await server.boundEndpoints
                var client = SessionClientConfiguration()
                client.client.connection = try scene.client
                try await withSessionClient(to: endpoints[0], configuration: client, logger: TestLog().logger) {
                    session in
                    _ = try await session.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
                    let renewed = try TestCertificate(issuedBy: .authority("New root"), keyOf: scene.certificate) {
                        $0.addresses = [[127, 0, 0, 1]]
                    }
                    writeFile(try renewed.pem, to: path)
                    try await server.reloadCertificate()
                    for endpoint in endpoints {
                        #expect(await scene.refusal(of: endpoint)?.code == .certificateUntrusted, "it is the new one")
                    }
                    _ = try await session.call("t.T/Echo", TestMessage(number: 2), returning: TestMessage.self)
                    #expect(session.statistics.openingCount == 1)
                    writeFile([], to: path)
                    let error = await connectionError { try await server.reloadCertificate() }
                    #expect(error?.code == .invalidConfiguration)
                    #expect(await scene.refusal(of: endpoints[0])?.code == .certificateUntrusted, "still")
                }
            }
        }
    }
}
