/// A certificate, its chain of issuers, and its private key.
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

/// The source of certificates or a key in PEM (RFC 7468).
public struct PEMSource: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case file(String)
        case bytes([UInt8])
    }

    package let kind: Kind

    /// Returns a source that reads a file when it is needed.
    public static func file(_ path: String) -> PEMSource { PEMSource(kind: .file(path)) }

    /// Returns a source with the PEM text itself.
    public static func bytes(_ bytes: [UInt8]) -> PEMSource { PEMSource(kind: .bytes(bytes)) }

    /// The file's path; nil for bytes.
    package var path: String? {
        if case .file(let path) = kind { path } else { nil }
    }
}

extension PEMSource: CustomStringConvertible {
    /// The file's path, or a fixed text, because the bytes may be a key.
    public var description: String { path ?? "the bytes given" }
}
