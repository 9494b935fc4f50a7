internal import Crypto
package import Foundation
internal import SwiftASN1
internal import X509

/// A certificate for a test, and its key.
package struct TestCertificate: Sendable {
    /// The contents of a certificate. By default, it is valid from an hour ago for a day.
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
        /// Whether it has the extension for names and addresses although there are none; nil if there are some.
        package var statesNames: Bool?
        /// The name constraints of an authority; nil for none.
        package var permittedDomain: String?
        /// Whether the key usage allows signing certificates; nil if there is no key usage.
        package var signsCertificates: Bool?
        /// Whether it has an unknown critical extension: 1.3.6.1.4.1.99999.7.
        package var hasUnknownExtension = false

        package init() {}
    }

    private let certificate: Certificate
    private let key: P256.Signing.PrivateKey

    /// Issued by `issuer`, or by itself.
    ///
    /// - Parameter key: a certificate whose key it shares; nil for a new key.
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

    /// The certificate of an authority.
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

    /// The pin in the form of RFC 7469.
    package var publicKeyPin: String {
        "sha256/" + Data(SHA256.hash(data: key.publicKey.derRepresentation)).base64EncodedString()
    }

    /// The fingerprint in the form of `openssl x509 -fingerprint -sha256`.
    package var fingerprint: String {
        get throws { SHA256.hash(data: try der).map { String(format: "%02X", $0) }.joined(separator: ":") }
    }
}
