internal import Glibc
internal import LifelineCore
internal import SwiftASN1
internal import X509

/// The certificate authorities that the system trusts, loaded once in a process.
enum SystemRoots {
    /// Where distributions keep them.
    private static let paths = [
        "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch, Alpine
        "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora, Red Hat
        "/etc/ssl/ca-bundle.pem",  // openSUSE
    ]

    private static let roots = Task<Result<CertificateStore, ConnectionError>, Never> { load() }

    static func loaded() async throws(ConnectionError) -> CertificateStore {
        try await roots.value.get()
    }

    private static func load() -> Result<CertificateStore, ConnectionError> {
        let named = getenv("SSL_CERT_FILE").map { String(cString: $0) }
        for path in named.map({ [$0] }) ?? paths {
            guard let text = try? PEMSource.file(path).bytes(),
                let documents = try? PEMDocument.parseMultiple(pemString: String(decoding: text, as: UTF8.self))
            else { continue }
            // One that cannot be read vouches for nobody, and is no reason to distrust the others.
            return .success(CertificateStore(documents.compactMap { try? Certificate(pemDocument: $0) }))
        }
        return .failure(
            ConnectionError(
                code: .invalidConfiguration,
                message: "The system's certificate authorities were not found in "
                    + "\((named.map { [$0] } ?? paths).joined(separator: ", ")). Install them (Debian: ca-certificates), or "
                    + "set TLSClientConfiguration.trust."
            )
        )
    }
}
