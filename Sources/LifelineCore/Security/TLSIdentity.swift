/// A certificate, the certificates that lead from it to a root, and its private key.
public struct TLSIdentity: Sendable, Hashable {
    /// The certificate first, then each one's issuer. The root may be left out.
    public var certificateChain: PEMSource

    /// The key of the first certificate, without a passphrase.
    public var privateKey: PEMSource

    /// Makes an identity.
    public init(certificateChain: PEMSource, privateKey: PEMSource) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }
}

/// Where certificates or a key are found, in PEM (RFC 7468).
public struct PEMSource: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case file(String)
        case bytes([UInt8])
    }

    package let kind: Kind

    /// A file. It is read when it is needed.
    public static func file(_ path: String) -> PEMSource { PEMSource(kind: .file(path)) }

    /// The text itself.
    public static func bytes(_ bytes: [UInt8]) -> PEMSource { PEMSource(kind: .bytes(bytes)) }

    /// The file's path; nil when it is none.
    package var path: String? {
        if case .file(let path) = kind { path } else { nil }
    }
}

extension PEMSource: CustomStringConvertible {
    /// The file's path, or that there is none: what it holds may be a key.
    public var description: String { path ?? "the bytes given" }
}
