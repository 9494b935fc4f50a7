internal import Glibc
internal import LifelineCore
internal import NIOSSL
internal import SwiftASN1
internal import X509

/// A certificate chain and its key, parsed.
struct LoadedIdentity: Sendable {
    let certificateChain: [NIOSSLCertificate]
    let privateKey: NIOSSLPrivateKey

    init(_ identity: TLSIdentity) throws(ConnectionError) {
        certificateChain = try identity.certificateChain.certificates()
        do {
            privateKey = try NIOSSLPrivateKey(bytes: identity.privateKey.bytes(), format: .pem)
        } catch let error as ConnectionError {
            throw error
        } catch {
            throw ConnectionError(
                code: .invalidConfiguration,
                message: "There is no private key without a passphrase, in PEM, in \(identity.privateKey).",
                cause: error
            )
        }
    }
}

extension TLSConfiguration {
    mutating func use(_ identity: LoadedIdentity) {
        certificateChain = identity.certificateChain.map { .certificate($0) }
        privateKey = .privateKey(identity.privateKey)
    }

    /// Sets the application protocols to offer. Invalid names, for which NIOSSL would end the process, are an error
    /// here.
    ///
    /// - Throws: `invalidConfiguration`.
    mutating func offer(applicationProtocols names: [String]) throws(ConnectionError) {
        for name in names where !(1...255).contains(name.utf8.count) || !name.utf8.allSatisfy({ $0 < 0x80 }) {
            throw ConnectionError(
                code: .invalidConfiguration,
                message:
                    "\"\(name.escaped(limit: 300))\" is no application protocol: its name must be 1 to 255 bytes of ASCII."
            )
        }
        // Each name has a length of one byte, and all together have a length of two bytes (RFC 7301, section 3.1).
        guard names.reduce(0, { $0 + 1 + $1.utf8.count }) <= UInt16.max else {
            throw ConnectionError(
                code: .invalidConfiguration,
                message: "The names of all application protocols together must not be longer than 65535 bytes."
            )
        }
        applicationProtocols = names
    }
}

extension TLSConfiguration {
    /// Restricts the versions, ciphers and signatures to those without known weakness.
    ///
    /// With TLS 1.2, both sides must use authenticated encryption (AEAD) with keys made for the connection, and sign
    /// with SHA-2 (RFC 9325, section 4.2; RFC 9155). TLS 1.3 has only such suites.
    mutating func restrict(to minimumVersion: TLSProtocolVersion) {
        minimumTLSVersion = minimumVersion >= .tls13 ? .tlsv13 : .tlsv12
        cipherSuiteValues = [
            .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ]
        let signatures: [SignatureAlgorithm] = [
            .ecdsaSecp256R1Sha256, .rsaPssRsaeSha256, .rsaPkcs1Sha256,
            .ecdsaSecp384R1Sha384, .rsaPssRsaeSha384, .rsaPkcs1Sha384,
            .ecdsaSecp521R1Sha512, .rsaPssRsaeSha512, .rsaPkcs1Sha512, .ed25519,
        ]
        verifySignatureAlgorithms = signatures
        signingSignatureAlgorithms = signatures
    }
}

extension NIOSSLContext {
    static func make(_ configuration: TLSConfiguration) throws(ConnectionError) -> NIOSSLContext {
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw ConnectionError(
                code: .invalidConfiguration,
                message: "The certificate and the private key do not belong together, or cannot be used.",
                cause: error
            )
        }
    }
}

extension PEMSource {
    /// The largest file: a file of certificates has some kilobytes, that of the system's roots some hundred.
    private static let largestFile = 16 << 20

    func bytes() throws(ConnectionError) -> [UInt8] {
        switch kind {
        case .bytes(let bytes): return bytes
        case .file(let path):
            guard let bytes = PEMSource.read(path) else {
                throw ConnectionError(
                    code: .invalidConfiguration,
                    message: "\(path) cannot be read: \(String(cString: strerror(errno)))."
                )
            }
            return bytes
        }
    }

    private static func read(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var (bytes, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 64 << 10))
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            if count < 0 { return nil }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            if bytes.count > largestFile {
                errno = EFBIG
                return nil
            }
        }
    }

    /// Returns the certificates, at least one.
    func certificates() throws(ConnectionError) -> [NIOSSLCertificate] {
        let cause: (any Error)?
        do {
            let certificates = try NIOSSLCertificate.fromPEMBytes(bytes())
            if !certificates.isEmpty { return certificates }
            cause = nil
        } catch let error as ConnectionError {
            throw error
        } catch {
            cause = error
        }
        throw ConnectionError(
            code: .invalidConfiguration,
            message: "There is no certificate in PEM in \(self).",
            cause: cause
        )
    }
}

extension Certificate {
    init(_ certificate: NIOSSLCertificate) throws {
        try self.init(derEncoded: certificate.toDERBytes())
    }
}

extension CertificateStore {
    init(_ sources: [PEMSource]) throws(ConnectionError) {
        var certificates: [Certificate] = []
        for source in sources {
            for certificate in try source.certificates() {
                do {
                    certificates.append(try Certificate(certificate))
                } catch {
                    throw ConnectionError(
                        code: .invalidConfiguration,
                        message: "A certificate in \(source) cannot be used as a root.",
                        cause: error
                    )
                }
            }
        }
        self.init(certificates)
    }
}
