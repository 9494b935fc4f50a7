import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import Logging
import Testing

/// TLS on real sockets: negotiation and refusals.
@Suite(.timeLimit(.minutes(2))) struct TLSTests {
    private let scene: TLSScene

    init() throws { scene = try TLSScene() }

    // MARK: Agreement

    @Test(arguments: ["localhost", "127.0.0.1"]) func messagesGoToAndFro(host: String) async throws {
        try await scene.withServer { server in
            #expect(try await server.boundEndpoint.isEncrypted)
            let endpoint = Endpoint.tls(host: host, port: UInt16(try #require(await server.boundEndpoint.port)))
            try await scene.withConnection(to: endpoint) { connection in
                #expect(try await connection.remoteEndpoint == server.boundEndpoint)
                #expect(connection.applicationProtocol == nil)
                for size in [0, 1, 16_383, 16_384, 65_536, 70_000, 3 << 20] {
                    let message = TestMessage((0..<size).map { UInt8(truncatingIfNeeded: $0) })
                    let reply = try await roundTrip(message, on: connection)
                    #expect(reply == message)
                }
            }
        }
    }

    @Test func nobodyInBetweenReadsIt() async throws {
        let listener = try await RawSocket.listen()
        async let refusal = scene.refusal(of: .tls(listener))
        let peer = try await listener.accept()
        // A TLS handshake record without a server name, because the endpoint is an address.
        #expect(try await peer.read(3) == [0x16, 3, 1])
        try peer.finish()
        #expect(await refusal?.code == .connectFailed)
    }

    @Test func theHandshakeComesInSmallPieces() async throws {
        try await scene.withConfiguredServer {
            $0.connection.connectTimeout = .seconds(100)
        } _: { server in
            let relay = try await Relay(to: server.boundEndpoint, chunk: 5)
            async let relaying: Void = relay.run { _, _ in }
            try await scene.withConnection(to: relay.endpoint) {
                $0.connectTimeout = .seconds(100)
            } _: { connection in
                let reply = try await roundTrip(TestMessage(number: 7), on: connection)
                #expect(reply?.number == 7)
            }
            try await relaying
        }
    }

    @Test(
        arguments: [
            (["a", "b"], ["b", "a"], "b"), (["a"], ["b"], nil), ([], ["b"], nil), (["a"], [], nil),
        ] as [([String], [String], String?)]
    )
    func applicationProtocols(offered: [String], known: [String], agreed: String?) async throws {
        try await scene.withConfiguredServer {
            $0.tls?.applicationProtocols = known
        } handler: { connection in
            #expect(connection.applicationProtocol == agreed)
            try await echo(connection)
        } _: { server in
            try await scene.withConnection(to: server.boundEndpoint) {
                $0.tls.applicationProtocols = offered
            } _: { connection in
                #expect(connection.applicationProtocol == agreed)
                let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                #expect(reply?.number == 1)
            }
        }
    }

    @Test func anotherNameThanTheEndpoints() async throws {
        let scene = try TLSScene { ($0.names, $0.addresses) = (["chat.example"], []) }
        try await scene.withServer { server in
            let endpoint = try await server.boundEndpoint
            #expect(await scene.refusal(of: endpoint)?.code == .certificateHostMismatch)
            #expect(await scene.refusal(of: endpoint) { $0.tls.serverName = "chat.example" } == nil)
        }
    }

    // MARK: Clients' certificates

    @Test func aClientShowsItsCertificate() async throws {
        let client = try TestCertificate(issuedBy: scene.root) { $0.isForServers = false }
        try await scene.withConfiguredServer {
            $0.tls?.clientRoots = [.bytes(try scene.root.pem)]
        } _: { server in
            let endpoint = try await server.boundEndpoint
            #expect(await scene.refusal(of: endpoint) { $0.tls.identity = try client.identity } == nil)
        }
    }

    /// With TLS 1.3, a client can send everything and end before the server has verified its certificate.
    @Test func aClientMayBeDoneBeforeItsCertificateIsVerified() async throws {
        let client = try TestCertificate(issuedBy: scene.root)
        try await scene.withConfiguredServer {
            $0.tls?.clientRoots = [.bytes(try scene.root.pem)]
        } _: { server in
            for _ in 0..<50 {
                try await scene.withConnection(to: server.boundEndpoint) {
                    $0.tls.identity = try client.identity
                } _: { connection in
                    try await connection.send(TestMessage(number: 1))
                    try await connection.finishSending()
                    var numbers: [Int?] = []
                    for try await message in connection.messages { numbers.append(message.number) }
                    #expect(numbers == [1])
                }
            }
        }
    }

    /// With TLS 1.3, a client learns only after its handshake that it is refused.
    @Test(arguments: [true, false]) func aClientIsRefused(hasCertificate: Bool) async throws {
        let log = TestLog()
        let stranger = try TestCertificate(issuedBy: .authority("Stranger"))
        try await scene.withConfiguredServer(log: log) {
            $0.tls?.clientRoots = [.bytes(try scene.root.pem)]
            $0.maximumConnections = 1
        } _: { server in
            for _ in 0..<3 {
                let error = await connectionError {
                    try await scene.withConnection(to: server.boundEndpoint) {
                        if hasCertificate { $0.tls.identity = try stranger.identity }
                        $0.tls.minimumVersion = .tls13
                    } _: { connection in
                        var messages = connection.messages.makeAsyncIterator()
                        return try await messages.next()
                    }
                }
                #expect(error?.code == .tlsRejected)
                #expect(error?.message.contains("did not accept this side's certificate") == true)
            }
        }
        let line = try #require(log.entries.first { $0.text.contains("could not be set up") })
        #expect(line.level == .info)
        #expect(line.text.contains(hasCertificate ? "certificateUntrusted" : "presented no certificate"))
    }

    /// A refused client that has sent bytes meanwhile can still read the reason.
    @Test func aClientThatSendsMuchLearnsThatItIsRefused() async throws {
        let stranger = try TestCertificate(issuedBy: .authority("Stranger"))
        try await scene.withConfiguredServer {
            $0.tls?.clientRoots = [.bytes(try scene.root.pem)]
        } _: { server in
            for _ in 0..<5 {
                let error = await connectionError {
                    try await scene.withConnection(to: server.boundEndpoint) {
                        $0.tls.identity = try stranger.identity
                    } _: { connection in
                        while true { try await connection.send(TestMessage([UInt8](repeating: 1, count: 100_000))) }
                    }
                }
                #expect(error?.code == .tlsRejected, "\(String(describing: error))")
            }
        }
    }

    // MARK: Refusals

    @Test func theConfigurationIsChecked() async throws {
        let error = await connectionError {
            try await withTestServer(on: .tls(host: "127.0.0.1", port: 0), handler: echo) { _ in }
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(await scene.refusal(of: anyPort) { $0.tls.trust = .roots(.file("/nowhere")) }?.code == .connectFailed)
        let unreadable = await scene.refusal(of: .tls(host: "127.0.0.1", port: 1)) {
            $0.tls.trust = .roots(.file("/nowhere"))
        }
        #expect(unreadable?.code == .invalidConfiguration)
    }

    @Test func noCommonVersion() async throws {
        try await scene.withServer { server in
            let peer = try await RawSocket.connect(toPort: try #require(await server.boundEndpoint.port))
            // A hello of TLS 1.1 that offers one cipher, and nothing else.
            let hello: [UInt8] = [3, 2] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0, 0x2F, 1, 0]
            let body = [1, 0, 0, UInt8(hello.count)] + hello
            try await peer.write([0x16, 3, 1, 0, UInt8(body.count)] + body)
            // An alert: fatal, protocol version.
            #expect(try await peer.read() == [0x15, 3, 1, 0, 2, 2, 70])
        }
        let listener = try await RawSocket.listen()
        async let refusal = scene.refusal(of: .tls(listener))
        let peer = try await listener.accept()
        _ = try await peer.read(100)
        try await peer.write([0x15, 3, 1, 0, 2, 2, 70])
        #expect(await refusal?.code == .tlsVersionUnsupported)
    }

    @Test(
        arguments: [
            ("HTTP/1.1 400 Bad Request\r\n\r\n", .tlsRejected, "does not speak TLS"),
            ("\u{15}\u{3}\u{3}\u{0}\u{2}\u{2}\u{28}", .tlsRejected, "could not agree"),
            ("\u{15}\u{3}\u{3}\u{0}\u{2}\u{2}\u{50}", .connectFailed, "a reason of its own"),
            ("\u{15}\u{3}\u{3}\u{0}\u{2}\u{2}\u{2A}", .tlsRejected, "did not accept"),
            ("", .connectFailed, "closed it before"),
            ("\u{16}\u{3}\u{3}", .connectFailed, "closed it before"),
        ] as [(String, ConnectionError.Code, String)]
    )
    func serversThatAnswerWithoutTLS(answer: String, code: ConnectionError.Code, text: String) async throws {
        let listener = try await RawSocket.listen()
        async let refusal = scene.refusal(of: .tls(listener))
        let peer = try await listener.accept()
        _ = try await peer.read(100)
        try await peer.write(Array(answer.utf8))
        try peer.finish()
        let error = await refusal
        #expect(error?.code == code)
        #expect(error?.message.contains(text) == true, "\(error?.description ?? "")")
    }

    @Test func silentAndTalkativeClientsKeepNoPlace() async throws {
        let log = TestLog()
        try await scene.withConfiguredServer(log: log) {
            $0.maximumConnections = 1
            $0.connection.connectTimeout = .milliseconds(50)
        } _: { server in
            let port = try #require(await server.boundEndpoint.port)
            for bytes in [
                "", "GET / HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}\u{1}", String(repeating: "\u{0}", count: 1000),
            ] {
                let peer = try await RawSocket.connect(toPort: port)
                try await peer.write(Array(bytes.utf8))
                // The connection ends, by an end or a reset.
                _ = try? await peer.read()
            }
            try await RawSocket.connect(toPort: port).reset()
            let endpoint = try await server.boundEndpoint
            // A slow machine may need more than one attempt in this time.
            try await untilAsync {
                await scene.refusal(of: endpoint) { $0.connectTimeout = .seconds(60) } == nil
            }
        }
        #expect(log.entries.contains { $0.text.contains("the TLS handshake was not done in time") })
        #expect(log.entries.allSatisfy { $0.level <= .notice })
    }

    /// `LayerClosingTests` test the timeout itself in simulated time.
    @Test func aSilentServerIsLeft() async throws {
        let listener = try await RawSocket.listen()
        let error = await scene.refusal(of: .tls(listener)) { $0.connectTimeout = .seconds(1) }
        #expect(error?.code == .connectTimeout)
    }

    // MARK: Reloading

    @Test func connectionsOutliveTheCertificate() async throws {
        try await withTemporaryPath("certificate.pem") { path in
            let files = TLSIdentity(certificateChain: .file(path), privateKey: .bytes(scene.certificate.keyPEM))
            writeFile(try scene.certificate.pem, to: path)
            try await scene.withConfiguredServer {
                $0.tls = TLSServerConfiguration(identity: files)
            } _: { server in
                try await scene.withConnection(to: server.boundEndpoint) { connection in
                    let renewed = try TestCertificate(issuedBy: .authority("New root"), keyOf: scene.certificate) {
                        $0.addresses = [[127, 0, 0, 1]]
                    }
                    writeFile(try renewed.pem, to: path)
                    try await server.reloadCertificate()
                    #expect(
                        try await scene.refusal(of: server.boundEndpoint)?.code == .certificateUntrusted,
                        "it is the new one"
                    )
                    let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                    #expect(reply?.number == 1)
                    writeFile([], to: path)
                    let error = await connectionError { try await server.reloadCertificate() }
                    #expect(error?.code == .invalidConfiguration)
                    #expect(try await scene.refusal(of: server.boundEndpoint)?.code == .certificateUntrusted, "still")
                }
            }
        }
    }
}
