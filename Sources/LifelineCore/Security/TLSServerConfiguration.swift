/// The TLS settings of a server, and the clients that it lets in.
///
/// With TLS 1.2, only cipher suites with forward secrecy and authenticated encryption (AES-GCM, ChaCha20) are accepted,
/// and no signatures with SHA-1.
public struct TLSServerConfiguration: Sendable, Hashable {
    /// The server's certificate and key. If they are files and change, they are loaded again. The next accepted
    /// connection starts the check, at most once a second, and later ones get the new certificate. Files that cannot be
    /// used change nothing, and are logged as a `warning`. `reloadCertificate()` of the server loads them at once. Open
    /// connections go on either way.
    public var identity: TLSIdentity

    /// When not nil, every client must present a certificate that leads to one of these roots. They are loaded again
    /// together with the certificate. Default: nil, clients are not asked for one.
    ///
    /// A client that resumes a TLS session, which is possible for two hours, is not verified again, unless the
    /// certificate was loaded again meanwhile. Revocation is not checked: remove a root instead.
    public var clientRoots: [PEMSource]?

    /// The application protocols to choose from (ALPN, RFC 7301), the best one first. A client that offers none of them
    /// is accepted; `Connection.applicationProtocol` has the choice. A name has 1 to 255 bytes of ASCII. Default: none.
    public var applicationProtocols: [String] = []

    /// The oldest version to accept. Default: TLS 1.2. Older ones are never accepted (RFC 8996).
    public var minimumVersion = TLSProtocolVersion.tls12

    /// Makes a configuration with the default values.
    public init(identity: TLSIdentity) {
        self.identity = identity
    }
}
