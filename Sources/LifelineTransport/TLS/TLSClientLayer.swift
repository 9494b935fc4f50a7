package import LifelineCore
package import NIOCore
internal import NIOSSL

/// TLS as a client speaks it. Making one reads files and builds the context that all connections share: do it once, and
/// not on an event loop.
package struct TLSClientLayer: ChannelLayer {
    package let handshakeName = "the TLS handshake"

    private let context: NIOSSLContext
    private let verifier: CertificateVerifier
    private let host: TLSHost

    /// - Parameter host: the endpoint's.
    /// - Throws: `invalidConfiguration`.
    package init(_ configuration: TLSClientConfiguration, host: String) throws(ConnectionError) {
        self.host = TLSHost(configuration.serverName ?? host)
        verifier = try CertificateVerifier(
            peer: .server(self.host),
            trust: configuration.trust,
            pins: configuration.pins
        )
        var tls = TLSConfiguration.makeClientConfiguration()
        // The verifier is asked instead of these.
        tls.trustRoots = .certificates([])
        tls.certificateVerification = .noHostnameVerification
        if let identity = configuration.identity { try tls.use(LoadedIdentity(identity)) }
        try tls.offer(applicationProtocols: configuration.applicationProtocols)
        tls.minimumTLSVersion = TLSVersion(configuration.minimumVersion)
        context = try NIOSSLContext.make(tls)
    }

    package func add(to channel: any Channel) -> EventLoopFuture<Void> {
        let handler = TLSHandler(peer: "the server", handshakeDone: channel.eventLoop.makePromise())
        do {
            let tls = try NIOSSLClientHandler(
                context: context,
                serverHostname: host.nameToSend,
                customVerificationCallback: handler.verificationCallback(verifier)
            )
            return handler.add(behind: tls, to: channel)
        } catch {
            let invalid = ConnectionError(
                code: .invalidEndpoint,
                message: "\"\(host.text)\" is no name that TLS could ask a server for.",
                cause: error
            )
            return handler.fail(invalid)
        }
    }
}

/// Whom a server's certificate must be made out to: a name or an address.
struct TLSHost: Sendable {
    /// As it was given.
    let text: String
    /// Nil for an address.
    let name: String?
    let address: String?

    init(_ text: String) {
        self.text = text
        // What stands behind a percent sign is this machine's name of the interface (RFC 4007).
        let address = String(text.prefix { $0 != "%" })
        if TLSHost.isAddress(address) {
            self.address = address
            name = nil
        } else {
            // A dot at the end is for the name service; certificates and the request for one have none (RFC 6066).
            name = text.last == "." ? String(text.dropLast()) : text
            self.address = nil
        }
    }

    /// What the server is told of whom is meant (SNI), which must be no address.
    var nameToSend: String? { name }

    private static func isAddress(_ text: String) -> Bool {
        (try? SocketAddress(ipAddress: text, port: 0)) != nil
    }
}
