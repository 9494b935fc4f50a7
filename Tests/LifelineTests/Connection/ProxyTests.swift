import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import Testing

/// Connections through a proxy that each test scripts.
@Suite(.timeLimit(.minutes(1))) struct ProxyTests {
    /// Only the proxy could find it: RFC 6761 keeps .invalid from ever existing.
    private let endpoint = Endpoint.tcp(host: "chat.invalid", port: 7000)
    private let request = Array("CONNECT chat.invalid:7000 HTTP/1.1\r\nHost: chat.invalid:7000\r\n\r\n".utf8)
    private let accepted = Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)

    private func configuration(_ proxy: RawSocket) -> ConnectionConfiguration {
        var configuration = ConnectionConfiguration()
        configuration.proxy = .http(host: "127.0.0.1", port: UInt16(proxy.port))
        return configuration
    }

    @Test func theDescriptionNamesTheProxy() throws {
        var configuration = ConnectionConfiguration()
        configuration.proxy = .http(host: "proxy.example", port: 3128)
        #expect("\(configuration)".contains("http://proxy.example:3128"))
    }

    @Test func aTunnelCarriesMessages() async throws {
        let listener = try await RawSocket.listen()
        async let connecting: Void = withTestConnection(to: endpoint, configuration: configuration(listener)) {
            #expect($0.remoteEndpoint == endpoint)
            let reply = try await roundTrip(TestMessage(number: 1), on: $0)
            #expect(reply?.number == 2)
        }
        let proxy = try await listener.accept()
        #expect(try await proxy.read(request.count) == request)
        // The endpoint's first bytes arrive with the proxy's last byte.
        try await proxy.write(accepted + TestMessage(number: 2).delimitedBytes)
        let frame = try TestMessage(number: 1).delimitedBytes
        #expect(try await proxy.read(frame.count) == frame)
        #expect(try await proxy.read() == [], "and nothing else")
        try proxy.finish()
        try await connecting
    }

    @Test(
        arguments: [
            ("HTTP/1.1 403 Filtered\r\n\r\n", .proxyRefused), ("HTTP/1.1 503 Later\r\n\r\n", .proxyConnectFailed),
            ("HTTP/1.1 407 Auth\r\n\r\n", .proxyAuthenticationRequired), ("+OK POP3\r\n", .proxyProtocolViolation),
        ] as [(String, ConnectionError.Code)]
    )
    func refusalsAreTyped(answer: String, code: ConnectionError.Code) async throws {
        let listener = try await RawSocket.listen()
        async let error = connectionError {
            try await withTestConnection(to: endpoint, configuration: configuration(listener)) { _ in }
        }
        let proxy = try await listener.accept()
        #expect(try await proxy.read(request.count) == request)
        try await proxy.write(Array(answer.utf8))
        #expect(await error?.code == code)
        #expect(try await proxy.read() == [], "the connection is closed")
    }

    @Test func aProxyThatEndsItsSide() async throws {
        let listener = try await RawSocket.listen()
        async let error = connectionError {
            try await withTestConnection(to: endpoint, configuration: configuration(listener)) { _ in }
        }
        let proxy = try await listener.accept()
        try proxy.finish()
        let failure = await error
        #expect(failure?.code == .proxyConnectFailed, "\(failure as Any)")
    }

    @Test func aProxyThatSaysNothing() async throws {
        let listener = try await RawSocket.listen()
        var configuration = configuration(listener)
        // Reaching the proxy takes far less, even on a busy machine.
        configuration.connectTimeout = .seconds(5)
        let error = await connectionError {
            try await withTestConnection(to: endpoint, configuration: configuration) { _ in }
        }
        #expect(error?.code == .connectTimeout)
        #expect(error?.message.contains("the handshake with the proxy http://127.0.0.1:\(listener.port)") == true)
    }

    @Test func aProxyThatIsNotThere() async throws {
        let port = try TestPort.next()
        var configuration = ConnectionConfiguration()
        configuration.proxy = .socks5(host: "127.0.0.1", port: port)
        let refused = await connectionError {
            try await withTestConnection(to: endpoint, configuration: configuration) { _ in }
        }
        #expect(refused?.code == .connectFailed)
        #expect(refused?.message.contains("the proxy 127.0.0.1:\(port)") == true)
        #expect(refused?.message.contains("\(endpoint) was not asked for") == true)
        configuration.proxy = .socks5(host: "proxy.invalid", port: 1080)
        // The name service may take long to answer that the name does not exist.
        configuration.connectTimeout = .seconds(50)
        let unknown = await connectionError {
            try await withTestConnection(to: endpoint, configuration: configuration) { _ in }
        }
        #expect(unknown?.code == .connectFailed)
        #expect(unknown?.message.contains("The host of the proxy proxy.invalid:1080 was not found") == true)
    }

    @Test func unixSocketsAreConnectedToDirectly() async throws {
        try await withTemporaryPath { path in
            try await withTestServer(on: .unix(path: path), handler: echo) { server in
                var configuration = ConnectionConfiguration()
                configuration.proxy = .http(host: "proxy.invalid", port: 1)
                try await withTestConnection(to: server.boundEndpoint, configuration: configuration) {
                    let reply = try await roundTrip(TestMessage(number: 3), on: $0)
                    #expect(reply?.number == 3)
                }
            }
        }
    }

    // MARK: The client

    private func withProxiedClient<Result>(
        to endpoint: Endpoint? = nil,
        through proxy: ProxyConfiguration,
        _ body: nonisolated(nonsending) (TestClient) async throws -> Result
    ) async throws -> Result {
        var configuration = ClientConfiguration()
        configuration.backoff.initialDelay = .milliseconds(1)
        configuration.backoff.maximumAttempts = nil
        configuration.connection.proxy = proxy
        return try await withTestClient(to: endpoint ?? self.endpoint, configuration: configuration, body)
    }

    /// The client needs only a network to the proxy, which is on this machine. Without a proxy, it would wait for a
    /// network that leads to the name.
    @Test func aClientTriesAgainWhereThereIsHope() async throws {
        let listener = try await RawSocket.listen()
        try await withProxiedClient(through: .http(host: "127.0.0.1", port: UInt16(listener.port))) { client in
            var events = client.events.makeAsyncIterator()
            #expect(await events.next()?.transition.to == .connecting)
            for _ in 0..<2 {
                let proxy = try await listener.accept()
                _ = try await proxy.read(request.count)
                try await proxy.write(Array("HTTP/1.1 502 Bad Gateway\r\n\r\n".utf8))
                let event = try await events.reach(.backingOff)
                #expect(event.transition.reason.error?.code == .proxyConnectFailed)
            }
            let proxy = try await listener.accept()
            _ = try await proxy.read(request.count)
            try await proxy.write(accepted)
            _ = try await events.reach(.ready)
            try await client.send(TestMessage(number: 1))
            let frame = try TestMessage(number: 1).delimitedBytes
            let read = try await proxy.read(frame.count)
            #expect(read == frame)
            try proxy.resetWhenReleased()
            try proxy.finish()
            let lost = try await events.reach(.backingOff)
            #expect(lost.undeliveredMessageCount == nil, "what the proxy has, the endpoint need not have")
        }
    }

    @Test func aClientGivesUpWhereThereIsNone() async throws {
        let listener = try await RawSocket.listen()
        try await withProxiedClient(through: .http(host: "127.0.0.1", port: UInt16(listener.port))) { client in
            var events = client.events.makeAsyncIterator()
            let proxy = try await listener.accept()
            _ = try await proxy.read(request.count)
            try await proxy.write(Array("HTTP/1.1 407 Auth\r\nProxy-Authenticate: Basic\r\n\r\n".utf8))
            let event = try await events.reach(.gaveUp)
            #expect(event.transition.reason.error?.code == .proxyAuthenticationRequired)
            #expect(event.transition.attempt == 1)
        }
    }

    @Test(
        arguments: [
            (.tcp(host: "chat.invalid", port: 1), .http(host: "127.0.0.1", port: 0), .invalidConfiguration),
            (.tcp(host: "bücher.example", port: 1), .http(host: "127.0.0.1", port: 1), .invalidEndpoint),
        ] as [(Endpoint, ProxyConfiguration, ConnectionError.Code)]
    )
    func wrongConfigurationsAreNotTried(
        endpoint: Endpoint,
        proxy: ProxyConfiguration,
        code: ConnectionError.Code
    ) async throws {
        var configuration = ClientConfiguration()
        configuration.watchesNetwork = false
        configuration.connection.proxy = proxy
        try await withTestClient(to: endpoint, configuration: configuration) { client in
            var events = client.events.makeAsyncIterator()
            let event = try await events.reach(.gaveUp)
            #expect(event.transition.reason.error?.code == code)
        }
        let error = await connectionError {
            try await withTestConnection(to: endpoint, configuration: configuration.connection) { _ in }
        }
        #expect(error?.code == code)
    }
}
