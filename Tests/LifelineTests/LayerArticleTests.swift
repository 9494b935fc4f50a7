import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// Uses the configurations of the articles about TLS, WebSocket and proxies, with files of the test.
@Suite(.timeLimit(.minutes(1))) struct LayerArticleTests {
    /// Checks the articles' values. `overTLS` and `webSocketServer` use the same configurations with real files.
    @Test func configurations() throws {
        let client = try Shown.clientOverTLS()
        #expect(client.tls.pins.count == 1 && client.tls.identity != nil)
        #expect(Shown.serverOverTLS().tls?.clientRoots == [.file("client-ca.pem")])
        let (all, last) = try Shown.proxies()
        let credentials = ProxyConfiguration.Credentials(user: "ada", password: "p@ss")
        #expect(all == [.environment, .socks5(host: "proxy.example", port: 1080, credentials: credentials)])
        #expect(last == .http(host: "proxy.example", port: 3128))
    }

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

/// The articles' code. Its files and hosts do not exist.
private enum Shown {
    static func clientOverTLS() throws -> ConnectionConfiguration {
        // snippet.tls-client
        var configuration = ConnectionConfiguration()  // for a Client: ClientConfiguration().connection
        configuration.tls.trust = .roots(.file("ca.pem"))
        configuration.tls.pins = [try CertificatePin("sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")]
        configuration.tls.identity = TLSIdentity(
            certificateChain: .file("client.pem"),
            privateKey: .file("client-key.pem")
        )
        // snippet.end
        return configuration
    }

    static func serverOverTLS() -> ServerConfiguration {
        // snippet.tls-server
        var configuration = ServerConfiguration()
        configuration.tls = TLSServerConfiguration(
            identity: TLSIdentity(
                certificateChain: .file("server.pem"),
                privateKey: .file("server-key.pem")
            )
        )
        configuration.tls?.clientRoots = [.file("client-ca.pem")]
        // snippet.end
        return configuration
    }

    static func proxies() throws -> (before: [ProxyConfiguration?], last: ProxyConfiguration?) {
        var before: [ProxyConfiguration?] = []
        // snippet.proxies
        var configuration = ConnectionConfiguration()  // `connection` of a ClientConfiguration
        configuration.proxy = .environment  // https_proxy, all_proxy, no_proxy … by curl's rules
        // snippet.hide
        before.append(configuration.proxy)
        // snippet.show
        configuration.proxy = try ProxyConfiguration("socks5://ada:p%40ss@proxy.example:1080")
        // snippet.hide
        before.append(configuration.proxy)
        // snippet.show
        configuration.proxy = .http(host: "proxy.example", port: 3128)
        // snippet.end
        return (before, configuration.proxy)
    }

    private static func isKnown(_ user: String, _ password: String) async -> Bool { user == password }

    static func webSocketServer() async throws {
        // snippet.websocket-server
        var configuration = ServerConfiguration()
        configuration.webSocket.subprotocols = ["chat.v1"]
        configuration.webSocket.origins = .only(["https://chat.example.org"])  // default: pages of the same host
        configuration.webSocket.authorize = { await isKnown($0.user, $0.password) }  // readable without TLS: use wss
        configuration.tls = TLSServerConfiguration(
            identity: TLSIdentity(
                certificateChain: .file("server.pem"),
                privateKey: .file("server-key.pem")
            )
        )
        try await withServer(
            listeningOn: Endpoint("wss://0.0.0.0:8443/chat"),
            configuration: configuration,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self
        ) { connection in
            print(connection.webSocket?.subprotocol ?? "none", connection.webSocket?.headers["User-Agent"] ?? "unknown")
            for try await case .text(let text) in connection.messages {
                try await connection.send(.text(text.uppercased()))
            }
        } _: { server in
            try await server.waitUntilShutDown()
        }
        // snippet.end
    }

    static func webSocketClient() async throws {
        // snippet.websocket-client
        var configuration = ClientConfiguration()
        configuration.connection.webSocket.headers = ["X-Room": "7"]
        configuration.connection.webSocket.subprotocols = ["chat.v1"]
        try await withClient(
            to: Endpoint("wss://chat.example.org/chat"),
            configuration: configuration,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self
        ) { client in
            try await client.send(.text("Hello"))
            for try await message in client.messages {
                switch message {
                case .text(let text): print(text)
                case .binary(let bytes): print(bytes.count)
                }
            }
        }
        // snippet.end
    }
}
