internal import Crypto
package import Foundation
internal import SwiftASN1
internal import X509

/// A certificate made for a test, and its key.
package struct TestCertificate: Sendable {
    /// What a certificate states. Valid from an hour ago for a day unless a test says otherwise.
    package struct Content: Sendable {
        package var commonName = "leaf"
        package var names: [String] = []
        /// Four or sixteen bytes each.
        package var addresses: [[UInt8]] = []
        package var notBefore = Date(timeIntervalSinceNow: -3600)
        package var notAfter = Date(timeIntervalSinceNow: 86400)
        package var isAuthority = false
        package var isForServers = true
        package var isForClients = true
        /// Whether the names and addresses are stated, even when there are none; nil when there are some.
        package var statesNames: Bool?
        /// What an authority may vouch for, by its name constraints; nil for everything.
        package var permittedDomain: String?
        /// Whether the key says that it is for signing certificates, or for something else; nil when it says nothing.
        package var signsCertificates: Bool?
        /// Whether it has a critical extension that nobody knows: 1.3.6.1.4.1.99999.7.
        package var hasUnknownExtension = false

        package init() {}
    }

    private let certificate: Certificate
    private let key: P256.Signing.PrivateKey

    /// Issued by `issuer`, or by itself.
    ///
    /// - Parameter key: whose key it has; nil for a new one.
    package init(
        issuedBy issuer: TestCertificate? = nil,
        keyOf other: TestCertificate? = nil,
        _ configure: (inout Content) -> Void = { _ in }
    ) throws {
        var content = Content()
        configure(&content)
        key = other?.key ?? P256.Signing.PrivateKey()
        let subject = try DistinguishedName { CommonName(content.commonName) }
        let names: [GeneralName] =
            content.names.map { .dnsName($0) }
            + content.addresses.map { .ipAddress(ASN1OctetString(contentBytes: $0[...])) }
        let usages =
            (content.isForServers ? [.serverAuth] : [])
            + (content.isForClients ? [ExtendedKeyUsage.Usage.clientAuth] : [])
        certificate = try Certificate(
            version: .v3,
            serialNumber: .init(),
            publicKey: .init(key.publicKey),
            notValidBefore: content.notBefore,
            notValidAfter: content.notAfter,
            issuer: issuer?.certificate.subject ?? subject,
            subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(
                    content.isAuthority
                        ? BasicConstraints.isCertificateAuthority(maxPathLength: nil)
                        : BasicConstraints.notCertificateAuthority
                )
                if !content.isAuthority { try ExtendedKeyUsage(usages) }
                if content.statesNames ?? !names.isEmpty { SubjectAlternativeNames(names) }
                if let domain = content.permittedDomain { Critical(NameConstraints(permittedDNSDomains: [domain])) }
                if let signs = content.signsCertificates {
                    Critical(KeyUsage(digitalSignature: !signs, keyCertSign: signs))
                }
                if content.hasUnknownExtension {
                    Certificate.Extension(oid: [1, 3, 6, 1, 4, 1, 99999, 7], critical: true, value: [5, 0])
                }
            },
            issuerPrivateKey: .init(issuer?.key ?? key)
        )
    }

    /// An authority's own.
    package static func authority(
        _ name: String = "Test root",
        issuedBy issuer: TestCertificate? = nil,
        keyOf other: TestCertificate? = nil,
        _ configure: (inout Content) -> Void = { _ in }
    ) throws -> TestCertificate {
        try TestCertificate(issuedBy: issuer, keyOf: other) {
            $0.commonName = name
            $0.isAuthority = true
            configure(&$0)
        }
    }

    /// For `localhost` and the loopback addresses.
    package static func localhost(
        issuedBy issuer: TestCertificate?,
        _ configure: (inout Content) -> Void = { _ in }
    ) throws -> TestCertificate {
        try TestCertificate(issuedBy: issuer) {
            $0.names = ["localhost"]
            $0.addresses = [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]]
            configure(&$0)
        }
    }

    package var pem: [UInt8] { get throws { Array(try certificate.serializeAsPEM().pemString.utf8) + [0x0A] } }

    package var keyPEM: [UInt8] { Array(key.pemRepresentation.utf8) + [0x0A] }

    package var der: [UInt8] {
        get throws {
            var serializer = DER.Serializer()
            try serializer.serialize(certificate)
            return serializer.serializedBytes
        }
    }

    /// As RFC 7469 writes a pin.
    package var publicKeyPin: String {
        "sha256/" + Data(SHA256.hash(data: key.publicKey.derRepresentation)).base64EncodedString()
    }

    /// As `openssl x509 -fingerprint -sha256` writes it.
    package var fingerprint: String {
        get throws { SHA256.hash(data: try der).map { String(format: "%02X", $0) }.joined(separator: ":") }
    }
}
