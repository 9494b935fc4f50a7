internal import Glibc
internal import LifelineCore
internal import SwiftASN1
internal import X509

/// The certificate authorities that the system trusts, loaded once in a process; after a failure, the next call tries
/// again.
actor SystemRoots {
    /// The files in which distributions keep them.
    private static let paths = [
        "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch, Alpine
        "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora, Red Hat
        "/etc/ssl/ca-bundle.pem",  // openSUSE
    ]

    static let shared = SystemRoots(
        paths: getenv("SSL_CERT_FILE").map { [String(cString: $0)] } ?? SystemRoots.paths
    )

    private let paths: [String]
    private var roots: CertificateStore?

    /// - Parameter paths: files of certificates; the first one with certificates is used.
    init(paths: [String]) { self.paths = paths }

    /// - Throws: `invalidConfiguration`.
    func loaded() throws(ConnectionError) -> CertificateStore {
        if let roots { return roots }
        let loaded = try load()
        roots = loaded
        return loaded
    }

    private func load() throws(ConnectionError) -> CertificateStore {
        for path in paths {
            guard let text = try? PEMSource.file(path).bytes(),
                let documents = try? PEMDocument.parseMultiple(pemString: String(decoding: text, as: UTF8.self))
            else { continue }
            // A certificate that cannot be read is ignored; the others are still trusted.
            let certificates = documents.compactMap { try? Certificate(pemDocument: $0) }
            if !certificates.isEmpty { return CertificateStore(certificates) }
        }
        throw ConnectionError(
            code: .invalidConfiguration,
            message:
                "None of the system's certificate authorities was found in \(paths.joined(separator: ", ")). Install "
                + "them (Debian: ca-certificates), have SSL_CERT_FILE name a file of them in PEM, or set "
                + "TLSClientConfiguration.trust."
        )
    }
}
