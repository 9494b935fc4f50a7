package import LifelineCore
package import Logging
package import NIOCore
internal import NIOSSL

/// TLS as a server speaks it.
package struct TLSServerLayer: ChannelLayer {
    package let handshakeName = "the TLS handshake"

    /// What loads the certificate, and loads it again.
    package let certificates: ServerCertificates

    /// Reads files: not on an event loop.
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
