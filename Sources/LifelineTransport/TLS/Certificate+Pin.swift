internal import Crypto
internal import LifelineCore
internal import NIOSSL
internal import SwiftASN1
internal import X509

extension Certificate {
    /// The pin of this certificate.
    var pin: CertificatePin {
        get throws { CertificatePin(kind: .certificate, sha256Of: try derBytes) }
    }

    /// The pin of this certificate's key.
    var publicKeyPin: CertificatePin {
        get throws {
            let certificate = try NIOSSLCertificate(bytes: derBytes, format: .der)
            return CertificatePin(kind: .publicKey, sha256Of: try certificate.extractPublicKey().toSPKIBytes())
        }
    }

    private var derBytes: [UInt8] {
        get throws {
            var serializer = DER.Serializer()
            try serializer.serialize(self)
            return serializer.serializedBytes
        }
    }
}

extension CertificatePin {
    fileprivate init(kind: Kind, sha256Of bytes: [UInt8]) {
        self.init(kind: kind, digest: Array(SHA256.hash(data: bytes)))
    }
}
