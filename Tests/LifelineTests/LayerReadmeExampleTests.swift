import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// The README's configurations for TLS and WebSocket, as they stand there but for files, pins and endpoints.
@Suite(.timeLimit(.minutes(1))) struct LayerReadmeExampleTests {
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
            server.connection.connectTimeout = TLSScene.handshakeTimeout
            configuration.connectTimeout = TLSScene.handshakeTimeout
            try await withTestServer(
                on: .tls(host: "127.0.0.1", port: 0),
                configuration: server,
                handler: echo
            ) { server in
                try await withTestConnection(to: server.boundEndpoint, configuration: configuration) { connection in
                    let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                    #expect(reply?.number == 1)
                }
            }
        }
    }

    @Sendable private func isKnown(_ user: String, _ password: String) async -> Bool { user == password }

    @Test func webSocketServer() async throws {
        let scene = try TLSScene()
        var configuration = ServerConfiguration()
        configuration.webSocket.subprotocols = ["chat.v1"]
        configuration.webSocket.origins = .only(["https://chat.example.org"])
        configuration.webSocket.authorize = { await isKnown($0.user, $0.password) }
        configuration.tls = TLSServerConfiguration(identity: try scene.certificate.identity)
        configuration.connection.connectTimeout = TLSScene.handshakeTimeout
        let reply: WebSocketMessage? = try await withServer(
            listeningOn: Endpoint("wss://127.0.0.1:0/chat"),
            configuration: configuration,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self
        ) { connection in
            #expect(connection.webSocket?.subprotocol ?? "none" == "chat.v1")
            for try await case .text(let text) in connection.messages {
                try await connection.send(.text(text.uppercased()))
            }
        } _: { server in
            var client = ConnectionConfiguration()
            client.tls.trust = .roots(.bytes(try scene.root.pem))
            client.connectTimeout = TLSScene.handshakeTimeout
            client.webSocket.subprotocols = ["chat.v1"]
            client.webSocket.origin = "https://chat.example.org"
            client.webSocket.credentials = WebSocketCredentials(user: "ada", password: "ada")
            return try await withConnection(
                to: server.boundEndpoint,
                configuration: client,
                receiving: WebSocketMessage.self,
                sending: WebSocketMessage.self
            ) { connection in
                try await connection.send(.text("hello"))
                for try await reply in connection.messages { return reply }
                return nil
            }
        }
        #expect(reply == .text("HELLO"))
    }
}
