package import Lifeline
package import LifelineTestSupport

/// An authority, and a server with a certificate from it.
package struct TLSScene: Sendable {
    package let root: TestCertificate
    package let certificate: TestCertificate
    /// Long enough for a busy machine: handshakes need much computing.
    package static let handshakeTimeout = Duration.seconds(60)

    package init(_ configure: (inout TestCertificate.Content) -> Void = { _ in }) throws {
        root = try .authority()
        certificate = try .localhost(issuedBy: root, configure)
    }

    package var server: ServerConfiguration {
        get throws {
            var configuration = ServerConfiguration()
            configuration.tls = TLSServerConfiguration(identity: try certificate.identity)
            configuration.connection.connectTimeout = TLSScene.handshakeTimeout
            return configuration
        }
    }

    package var client: ConnectionConfiguration {
        get throws {
            var configuration = ConnectionConfiguration()
            configuration.tls.trust = .roots(.bytes(try root.pem))
            configuration.connectTimeout = TLSScene.handshakeTimeout
            return configuration
        }
    }
}

extension TestCertificate {
    package var identity: TLSIdentity {
        get throws { TLSIdentity(certificateChain: .bytes(try pem), privateKey: .bytes(keyPEM)) }
    }
}
