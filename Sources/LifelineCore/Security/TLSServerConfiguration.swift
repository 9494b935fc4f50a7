/// How a server speaks TLS, and whom it lets in.
///
/// With TLS 1.2, only cipher suites with forward secrecy and authenticated encryption (AES-GCM, ChaCha20) are taken,
/// and no signatures with SHA-1.
public struct TLSServerConfiguration: Sendable, Hashable {
    /// The server's certificate and key. When they are files and those change, they are loaded again: the next
    /// connection that is accepted has them looked at, at most once a second, and those after it get the new
    /// certificate. Files that cannot be used change nothing, and are logged as a `warning`. `reloadCertificate()` of
    /// the server loads them at once. Connections that stand go on either way.
    public var identity: TLSIdentity

    /// When not nil, every client must show a certificate that one of these roots vouches for. They are loaded again
    /// with the certificate. Default: nil, no client is asked for one.
    ///
    /// A client that resumes a session, which it may for two hours, is not verified again, unless the certificate was
    /// loaded again meanwhile. Whether a certificate was revoked is not looked up: leave a root out instead.
    public var clientRoots: [PEMSource]?

    /// The application protocols to choose from (ALPN, RFC 7301), the best one first. A client that offers none of them
    /// is accepted; `Connection.applicationProtocol` tells what was chosen. A name has 1 to 255 bytes of ASCII.
    /// Default: none.
    public var applicationProtocols: [String] = []

    /// The oldest version to accept. Default: TLS 1.2. Older ones are never accepted (RFC 8996).
    public var minimumVersion = TLSProtocolVersion.tls12

    /// Makes a configuration with the default values.
    public init(identity: TLSIdentity) {
        self.identity = identity
    }
}
