internal import LifelineCore
internal import NIOConcurrencyHelpers
internal import SwiftASN1
internal import X509

/// Checks that a server's certificate is issued for the requested host, by RFC 9525's rules.
///
/// swift-certificates' own policy follows the older RFC 6125, where `a*.example.org` and `*.org` stand for hosts.
struct IdentityPolicy: VerifierPolicy {
    let peer: CertificateVerifier.Peer

    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [.X509ExtensionID.subjectAlternativeName]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        guard case .server(let host) = peer else { return .meetsPolicy }
        // An authority's constraints do not apply to a common name.
        if chain.leaf.hasNoAlternativeNames {
            return .failsToMeetPolicy(
                reason: "It has no alternative names (SAN), and its subject does not count (RFC 9525)"
            )
        }
        do {
            let names = try chain.leaf.extensions.subjectAlternativeNames ?? SubjectAlternativeNames()
            for name in names {
                switch name {
                case .dnsName(let name) where host.matches(dnsName: name): return .meetsPolicy
                case .ipAddress(let address) where host.matches(address: address.bytes): return .meetsPolicy
                default: continue
                }
            }
            return .failsToMeetPolicy(reason: "It is made out to \(names)")
        } catch {
            return .failsToMeetPolicy(reason: "Its alternative names (SAN) cannot be read: \(error)")
        }
    }
}

extension Certificate {
    /// Whether there are no alternative names; false when they cannot be read.
    var hasNoAlternativeNames: Bool {
        do { return try extensions.subjectAlternativeNames?.isEmpty ?? true } catch { return false }
    }
}

/// Checks three things that `RFC5280Policy` does not. The certificates, including those of the chain's authorities,
/// must be meant for this use (RFC 5280, section 4.2.1.12). The authorities' keys must be meant for signing
/// certificates, if their usage is restricted (section 4.2.1.3). No signature may use SHA-1, which can be forged (RFC
/// 9155).
struct UsagePolicy: VerifierPolicy {
    let usage: ExtendedKeyUsage.Usage

    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [.X509ExtensionID.extendedKeyUsage]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        // A root is trusted as it is.
        for certificate in chain.count == 1 ? chain[...] : chain.dropLast() {
            if certificate.signatureAlgorithm == .sha1WithRSAEncryption, chain.count > 1 {
                return .failsToMeetPolicy(reason: "\(certificate.subject) is signed with SHA-1")
            }
            do {
                guard let usages = try certificate.extensions.extendedKeyUsage else { continue }
                if !usages.contains(usage), !usages.contains(.any) {
                    return .failsToMeetPolicy(reason: "\(certificate.subject) is meant for another use: \(usages)")
                }
            } catch {
                return .failsToMeetPolicy(reason: "The key usage of \(certificate.subject) cannot be read: \(error)")
            }
        }
        for issuer in chain.dropFirst() {
            do {
                guard let usage = try issuer.extensions.keyUsage, !usage.keyCertSign else { continue }
                return .failsToMeetPolicy(reason: "The key of \(issuer.subject) is not for signing certificates")
            } catch {
                return .failsToMeetPolicy(reason: "The key usage of \(issuer.subject) cannot be read: \(error)")
            }
        }
        return .meetsPolicy
    }
}

/// The certificates that a peer has sent, with a limit for the search of a chain. Authorities that issue certificates
/// for each other form too many chains to try them all; Go has the same limit.
struct BoundedCertificates: CustomCertificateStore {
    private static let limit = 100

    private let certificates: [DistinguishedName: [Certificate]]
    private let rest: Budget

    init(_ certificates: some Sequence<Certificate>) {
        self.certificates = Dictionary(grouping: certificates, by: \.subject)
        rest = Budget(BoundedCertificates.limit)
    }

    subscript(subject: DistinguishedName) -> [Certificate]? {
        guard let found = certificates[subject] else { return nil }
        let granted = found.prefix(rest.take(found.count))
        return granted.isEmpty ? nil : Array(granted)
    }

    func contains(_ certificate: Certificate) -> Bool {
        certificates[certificate.subject]?.contains(certificate) == true
    }

    /// Does nothing: no certificates are added during a search.
    mutating func append(contentsOf certificates: some Sequence<Certificate>) {
        self = BoundedCertificates(self.certificates.values.joined() + Array(certificates))
    }

    static func == (first: BoundedCertificates, second: BoundedCertificates) -> Bool {
        first.certificates == second.certificates
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(certificates)
    }

    private final class Budget: Sendable {
        private let rest: NIOLockedValueBox<Int>

        init(_ count: Int) { rest = NIOLockedValueBox(count) }

        func take(_ count: Int) -> Int {
            rest.withLockedValue { rest in
                let taken = min(rest, count)
                rest -= taken
                return taken
            }
        }
    }
}
