package import LifelineCore
package import NIOCore
internal import NIOSSL

/// TLS for a client. Making the layer reads files and builds the context that all connections share: do it once, and
/// not on an event loop.
package struct TLSClientLayer: ChannelLayer {
    package let handshakeName = "the TLS handshake"

    private let context: NIOSSLContext
    private let verifier: CertificateVerifier
    private let host: TLSHost

    /// - Parameter host: the host of the endpoint.
    /// - Throws: `invalidConfiguration`.
    package init(_ configuration: TLSClientConfiguration, host: String) throws(ConnectionError) {
        self.host = TLSHost(configuration.serverName ?? host)
        verifier = try CertificateVerifier(
            peer: .server(self.host),
            trust: configuration.trust,
            pins: configuration.pins
        )
        var tls = TLSConfiguration.makeClientConfiguration()
        // The verifier is used instead of these.
        tls.trustRoots = .certificates([])
        tls.certificateVerification = .noHostnameVerification
        if let identity = configuration.identity { try tls.use(LoadedIdentity(identity)) }
        try tls.offer(applicationProtocols: configuration.applicationProtocols)
        tls.restrict(to: configuration.minimumVersion)
        context = try NIOSSLContext.make(tls)
    }

    package func add(to channel: any Channel) -> EventLoopFuture<Void> {
        let handler = TLSHandler(peer: "the server", handshakeDone: channel.eventLoop.makePromise())
        do {
            let tls = try NIOSSLClientHandler(
                context: context,
                serverHostname: host.name,
                customVerificationCallback: handler.verificationCallback(verifier)
            )
            return handler.add(behind: tls, to: channel)
        } catch {
            let invalid = ConnectionError(
                code: .invalidEndpoint,
                message: "\"\(host.text)\" is not a valid name for TLS.",
                cause: error
            )
            return handler.fail(invalid)
        }
    }
}
