/// A certificate, or the key of one, identified by its SHA-256 digest.
public struct CertificatePin: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// The digest of the DER-encoded SubjectPublicKeyInfo. It stays valid when the certificate is renewed for the
        /// same key.
        case publicKey
        /// The digest of the DER-encoded certificate.
        case certificate
    }

    package let kind: Kind
    package let digest: [UInt8]

    package init(kind: Kind, digest: [UInt8]) {
        self.kind = kind
        self.digest = digest
    }

    /// Reads a public key's pin, `sha256/` and the digest in Base64, as in RFC 7469 and curl's `--pinnedpubkey` (which
    /// writes two slashes); or a certificate's, the digest in hexadecimal, with or without colons, as
    /// `openssl x509 -fingerprint -sha256` prints it.
    ///
    /// To get a key's pin:
    ///
    ///     openssl x509 -in server.pem -noout -pubkey | openssl pkey -pubin -outform der \
    ///         | openssl dgst -sha256 -binary | openssl base64
    /// - Throws: `ConnectionError` `invalidConfiguration`. Its message has the reason.
    public init(_ text: String) throws(ConnectionError) {
        let prefix = "sha256/"
        if text.hasPrefix(prefix) {
            var encoded = text.dropFirst(prefix.count)
            // The Base64 text itself may begin with a slash.
            if encoded.utf8.count == 45, encoded.first == "/" { encoded.removeFirst() }
            guard let digest = Base64.decode(encoded), digest.count == CertificatePin.digestLength else {
                throw CertificatePin.invalid(
                    text,
                    "after sha256/ must come the 44 characters of a SHA-256 digest in Base64"
                )
            }
            self.init(kind: .publicKey, digest: digest)
        } else {
            guard let digest = CertificatePin.digest(hexadecimal: text.utf8) else {
                throw CertificatePin.invalid(
                    text,
                    "it is neither sha256/ and Base64 nor the 64 hexadecimal digits of SHA-256"
                )
            }
            self.init(kind: .certificate, digest: digest)
        }
    }

    private static let digestLength = 32

    private static func digest(hexadecimal text: String.UTF8View) -> [UInt8]? {
        let text = Array(text)
        let separated = text.count == digestLength * 3 - 1
        guard separated || text.count == digestLength * 2 else { return nil }
        var bytes: [UInt8] = []
        for index in 0..<digestLength {
            let start = index * (separated ? 3 : 2)
            guard let high = hexadecimalValue(text[start]), let low = hexadecimalValue(text[start + 1]) else {
                return nil
            }
            if separated, index > 0, text[start - 1] != UInt8(ascii: ":") { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func hexadecimalValue(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    private static func invalid(_ text: String, _ reason: String) -> ConnectionError {
        ConnectionError(code: .invalidConfiguration, message: "\"\(text)\" is no certificate pin: \(reason).")
    }
}

extension CertificatePin: CustomStringConvertible {
    /// The pin in the form that `init(_:)` reads.
    public var description: String {
        switch kind {
        case .publicKey: "sha256/\(Base64.encode(digest))"
        case .certificate: digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
    }
}
