import Foundation
import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import Testing

/// A client that reconnects, and servers that it must not trust: it reports the reason once, and does not try again.
@Suite(.timeLimit(.minutes(1))) struct TLSClientTests {
    private let root: TestCertificate

    init() throws { root = try .authority() }

    /// Runs a client, and returns the result of its only attempt.
    private func onlyAttempt(
        at endpoint: Endpoint,
        pins: [String] = []
    ) async throws -> (reason: TransitionReason, attemptCount: Int) {
        var configuration = ClientConfiguration()
        configuration.connection.tls.trust = .roots(.bytes(try root.pem))
        configuration.connection.tls.pins = try pins.map { try CertificatePin($0) }
        configuration.backoff.initialDelay = .milliseconds(1)
        configuration.connection.connectTimeout = TLSScene.handshakeTimeout
        configuration.watchesNetwork = false
        return try await withTestClient(to: endpoint, configuration: configuration) { client in
            var events = client.events.makeAsyncIterator()
            let event = try await events.reach(.gaveUp)
            return (event.transition.reason, client.history.count { $0.transition.to == .connecting })
        }
    }

    private func checkRefusal(
        of certificate: TestCertificate,
        pins: [String] = [],
        _ code: ConnectionError.Code
    ) async throws {
        var configuration = ServerConfiguration()
        configuration.tls = TLSServerConfiguration(identity: try certificate.identity)
        configuration.connection.connectTimeout = TLSScene.handshakeTimeout
        try await withTestServer(on: .tls(host: "127.0.0.1", port: 0), configuration: configuration, handler: echo) {
            server in
            let (reason, attemptCount) = try await onlyAttempt(at: server.boundEndpoint, pins: pins)
            #expect(reason.code == .tlsRejected)
            #expect(reason.error?.code == code)
            #expect(reason.error?.message.contains("CN=leaf") == true, "\(reason)")
            #expect(attemptCount == 1)
        }
    }

    @Test func expired() async throws {
        let certificate = try TestCertificate.localhost(issuedBy: root) {
            $0.notAfter = Date(timeIntervalSinceNow: -60)
        }
        try await checkRefusal(of: certificate, .certificateExpired)
    }

    @Test func ofAnotherHost() async throws {
        let certificate = try TestCertificate.localhost(issuedBy: root) {
            ($0.names, $0.addresses) = (["other.example"], [])
        }
        try await checkRefusal(of: certificate, .certificateHostMismatch)
    }

    @Test func selfSigned() async throws {
        try await checkRefusal(of: .localhost(issuedBy: nil), .certificateUntrusted)
    }

    @Test func notPinned() async throws {
        let other = try TestCertificate.localhost(issuedBy: root)
        try await checkRefusal(of: .localhost(issuedBy: root), pins: [other.publicKeyPin], .certificatePinMismatch)
    }

    /// A fatal alert, "protocol version", is what a server that knows TLS 1.1 at most answers (see InteropTests, too).
    @Test func tooOldATLS() async throws {
        let listener = try await RawSocket.listen()
        async let attempt = onlyAttempt(at: .tls(listener))
        let peer = try await listener.accept()
        _ = try await peer.read(100)
        try await peer.write([0x15, 3, 2, 0, 2, 2, 70])
        let (reason, attemptCount) = try await attempt
        #expect(reason.code == .tlsRejected)
        #expect(reason.error?.code == .tlsVersionUnsupported)
        #expect(attemptCount == 1)
    }

    @Test func filesThatAreMissingAreLookedForAgain() async throws {
        try await withTemporaryPath("root.pem") { path in
            var server = ServerConfiguration()
            server.tls = TLSServerConfiguration(identity: try TestCertificate.localhost(issuedBy: root).identity)
            try await withTestServer(on: .tls(host: "127.0.0.1", port: 0), configuration: server, handler: echo) {
                server in
                var configuration = ClientConfiguration()
                configuration.connection.tls.trust = .roots(.file(path))
                configuration.watchesNetwork = false
                try await withTestClient(to: server.boundEndpoint, configuration: configuration) { client in
                    var events = client.events.makeAsyncIterator()
                    let event = try await events.reach(.gaveUp)
                    #expect(event.transition.reason.error?.code == .invalidConfiguration)
                    writeFile(try root.pem, to: path)
                    client.reconnect()
                    _ = try await events.reach(.ready)
                    try await client.send(TestMessage(number: 1))
                    var messages = client.messages.makeAsyncIterator()
                    #expect(try await messages.next()?.number == 1)
                }
            }
        }
    }
}
