package import LifelineCore
package import Logging
package import NIOCore
internal import NIOSSL

/// TLS for a server.
package struct TLSServerLayer: ChannelLayer {
    package let handshakeName = "the TLS handshake"

    /// Loads and reloads the certificate.
    package let certificates: ServerCertificates

    /// Reads files, so do not call it on an event loop.
    ///
    /// - Throws: `invalidConfiguration`.
    package init(_ configuration: TLSServerConfiguration, logger: Logger) throws(ConnectionError) {
        certificates = try ServerCertificates(configuration, logger: logger)
    }

    package func add(to channel: any Channel) -> EventLoopFuture<Void> {
        let loaded = certificates.forNextConnection()
        let handler = TLSHandler(peer: "the client", handshakeDone: channel.eventLoop.makePromise())
        let tls: NIOSSLServerHandler
        if let verifier = loaded.clientVerifier {
            tls = NIOSSLServerHandler(
                context: loaded.context,
                customVerificationCallback: handler.verificationCallback(verifier)
            )
        } else {
            tls = NIOSSLServerHandler(context: loaded.context)
        }
        return handler.add(behind: tls, to: channel)
    }
}
