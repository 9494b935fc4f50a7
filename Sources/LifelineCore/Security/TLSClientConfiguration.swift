/// The TLS settings of a client, and the servers that it trusts.
///
/// The server's certificate is always verified: against the roots of `trust`, for the endpoint's host, for its time,
/// and against `pins` if there are some. The host must be among its alternative names. A common name does not count,
/// and an asterisk only stands for a whole first label, followed by at least two labels (RFC 9525). Verification cannot
/// be turned off; `TLSTrust.pinnedCertificates` is for servers with self-signed certificates.
///
/// With TLS 1.2, only cipher suites with forward secrecy and authenticated encryption (AES-GCM, ChaCha20) are accepted,
/// and no signatures with SHA-1.
public struct TLSClientConfiguration: Sendable, Hashable {
    /// The roots that the client trusts. Default: the system's roots.
    public var trust = TLSTrust.system

    /// When not empty, one certificate of the verified chain, or its key, must be among these (RFC 7469, section 2.6).
    /// Give several, so that keys can be replaced: the present one, and the next. Default: none.
    ///
    /// A pin of the server's own key admits only that key; a pin of an issuer's key admits all certificates of that
    /// issuer.
    public var pins: [CertificatePin] = []

    /// The certificate that the client presents to a server that asks for one. Default: nil.
    public var identity: TLSIdentity?

    /// The name that the server's certificate must be issued for, if that is not the endpoint's host. An IP address is
    /// compared with the certificate's addresses, and is not sent to the server. Default: nil, the endpoint's host.
    public var serverName: String?

    /// The application protocols to offer (ALPN, RFC 7301), the best one first. A server that chooses none of them is
    /// accepted; `Connection.applicationProtocol` has its choice. A name has 1 to 255 bytes of ASCII. Default: none.
    public var applicationProtocols: [String] = []

    /// The oldest version to accept. Default: TLS 1.2, which every maintained server supports. Older ones are never
    /// accepted (RFC 8996).
    public var minimumVersion = TLSProtocolVersion.tls12

    /// Makes a configuration with the default values.
    public init() {}
}

/// The roots that a client trusts to identify a server.
public struct TLSTrust: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case system
        case roots([PEMSource])
        case pinnedCertificates
    }

    package let kind: Kind

    /// The system's certificate authorities: those in the file that the environment variable `SSL_CERT_FILE` names,
    /// else the distribution's.
    public static let system = TLSTrust(kind: .system)

    /// Returns a trust in which only these certificates are roots.
    public static func roots(_ sources: PEMSource...) -> TLSTrust {
        roots(sources)
    }

    /// Returns a trust in which only these certificates are roots.
    public static func roots(_ sources: [PEMSource]) -> TLSTrust {
        TLSTrust(kind: .roots(sources))
    }

    /// Exactly the certificates and keys in `pins`: the server's own certificate must be one of them, and may be
    /// self-signed.
    ///
    /// The pin identifies the server, so neither the name nor the validity period of the certificate is checked, as
    /// with a "DANE-EE" record (RFC 7671, section 5.1). The server still proves that it has the key.
    public static let pinnedCertificates = TLSTrust(kind: .pinnedCertificates)
}

/// A version of TLS.
public struct TLSProtocolVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    package let minor: Int

    /// TLS 1.2 (RFC 5246).
    public static let tls12 = TLSProtocolVersion(minor: 2)
    /// TLS 1.3 (RFC 8446).
    public static let tls13 = TLSProtocolVersion(minor: 3)

    /// Whether `first` is older.
    public static func < (first: TLSProtocolVersion, second: TLSProtocolVersion) -> Bool { first.minor < second.minor }

    /// The version in words: `TLS 1.2`.
    public var description: String { "TLS 1.\(minor)" }
}
