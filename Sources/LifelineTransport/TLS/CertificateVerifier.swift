internal import Crypto
internal import FoundationEssentials
internal import LifelineCore
internal import NIOSSL
internal import SwiftASN1
internal import X509

/// Decides whether a peer's certificates are accepted, and gives the reason when they are not.
struct CertificateVerifier: Sendable {
    /// The required identity of the peer.
    enum Peer: Sendable {
        case server(TLSHost)
        /// Any client whose certificate leads to a root.
        case client
    }

    private enum Trust: Sendable {
        case system
        case roots(CertificateStore)
        /// Only the pinned certificates.
        case pinnedCertificates
    }

    private let peer: Peer
    private let trust: Trust
    private let pins: [CertificatePin]

    /// - Throws: `invalidConfiguration`.
    init(peer: Peer, trust: TLSTrust, pins: [CertificatePin]) throws(ConnectionError) {
        self.peer = peer
        self.pins = pins
        switch trust.kind {
        case .system: self.trust = .system
        case .roots(let sources):
            if sources.isEmpty {
                throw ConnectionError(
                    code: .invalidConfiguration,
                    message: "The list of roots is empty, so no peer could be trusted. Give at least one."
                )
            }
            self.trust = .roots(try CertificateStore(sources))
        case .pinnedCertificates:
            if pins.isEmpty {
                throw ConnectionError(
                    code: .invalidConfiguration,
                    message: "Only pinned certificates are to be trusted, and there are no pins."
                )
            }
            self.trust = .pinnedCertificates
        }
    }

    /// Verifies the peer's certificates, its own one first. TLS itself proves that the peer has the key.
    func verify(_ presented: [NIOSSLCertificate]) async throws(ConnectionError) {
        let certificates: [Certificate]
        do {
            certificates = try presented.map(Certificate.init)
        } catch {
            throw ConnectionError(
                code: .certificateUntrusted,
                message: "A certificate of \(peer) cannot be read.",
                cause: error
            )
        }
        guard let leaf = certificates.first else {
            throw ConnectionError(code: .tlsRejected, message: "No certificate of \(peer) was presented.")
        }
        switch trust {
        case .pinnedCertificates: try checkPins(of: [leaf])
        case .system: try await verify(leaf, certificates, roots: SystemRoots.shared.loaded())
        case .roots(let roots): try await verify(leaf, certificates, roots: roots)
        }
    }

    private func verify(
        _ leaf: Certificate,
        _ presented: [Certificate],
        roots: CertificateStore
    ) async throws(ConnectionError) {
        var verifier = Verifier(rootCertificates: roots) { policy }
        let issuers = CertificateStore(custom: BoundedCertificates(presented.dropFirst()))
        switch await verifier.validate(leaf: leaf, intermediates: issuers) {
        case .validCertificate(let chain): try checkPins(of: Array(chain))
        case .couldNotValidate(let failures): throw refusal(of: leaf, presented, failures)
        }
    }

    @PolicyBuilder private var policy: some VerifierPolicy {
        RFC5280Policy()
        UsagePolicy(usage: peer.usage)
        IdentityPolicy(peer: peer)
    }

    // MARK: Pins

    private func checkPins(of chain: [Certificate]) throws(ConnectionError) {
        if pins.isEmpty || chain.contains(where: isPinned) { return }
        let found = chain.compactMap { try? $0.publicKeyPin.description }.joined(separator: ", ")
        throw ConnectionError(
            code: .certificatePinMismatch,
            message:
                "The certificate of \(peer) has none of the pins. Its keys: \(found). \(Self.describe(chain)). Unless "
                + "the key was replaced and nobody told you, somebody else answers in its place."
        )
    }

    private func isPinned(_ certificate: Certificate) -> Bool {
        pins.contains { pin in
            switch pin.kind {
            case .publicKey: (try? certificate.publicKeyPin) == pin
            case .certificate: (try? certificate.pin) == pin
            }
        }
    }

    // MARK: Reasons

    /// Returns the reason why no chain is accepted. A failure has a chain with valid signatures up to a root.
    private func refusal(
        of leaf: Certificate,
        _ presented: [Certificate],
        _ failures: [CertificateValidationResult.PolicyFailure]
    ) -> ConnectionError {
        let now = Date()
        for failure in failures {
            guard let bad = failure.chain.first(where: { !$0.isValid(at: now) }) else { continue }
            let state =
                now > bad.notValidAfter
                ? "expired on \(bad.notValidAfter.formatted(.iso8601))"
                : "is not valid before \(bad.notValidBefore.formatted(.iso8601))"
            return ConnectionError(
                code: .certificateExpired,
                message:
                    "The certificate \(bad.shortSubject) of \(peer) \(state). \(Self.describe(Array(failure.chain))). "
                    + "Renew it, or set this machine's clock."
            )
        }
        for failure in failures {
            guard
                case .failsToMeetPolicy(let reason) = IdentityPolicy(peer: peer).chainMeetsPolicyRequirements(
                    chain: failure.chain
                )
            else { continue }
            return ConnectionError(
                code: .certificateHostMismatch,
                message: "The certificate is not made out to \(peer). \("\(reason)".escaped(limit: 300)). "
                    + "\(Self.describe(Array(failure.chain))). "
                    + (failure.chain.leaf.hasNoAlternativeNames
                        ? "Have it issued again with the host as an alternative name."
                        : "Connect to a name that it has.")
            )
        }
        if let failure = failures.first {
            return ConnectionError(
                code: .certificateUntrusted,
                message: "The certificate of \(peer) is not to be trusted: "
                    + "\(Self.reason(failure)). \(Self.describe(Array(failure.chain)))."
            )
        }
        if let (certificate, critical) = unknownExtension(leaf, presented) {
            return ConnectionError(
                code: .certificateUntrusted,
                message: "The certificate of \(peer) is not to be trusted: the extension \(critical) of "
                    + "\(certificate.shortSubject) is critical, and nobody here knows it. \(Self.describe(presented)). "
                    + "Have it issued without."
            )
        }
        let reason =
            leaf.isSelfSigned
            ? "it is self-signed"
            : "its issuer, \("\(leaf.issuer)".escaped(limit: 300)), is not known, or did not issue it so"
        return ConnectionError(
            code: .certificateUntrusted,
            message: "The certificate of \(peer) is not to be trusted: \(reason). \(Self.describe(presented)). Have it "
                + "issued by an authority that this side trusts, or trust its root, or pin it."
        )
    }

    /// Returns the unknown critical extension that excludes a certificate from every chain (RFC 5280, section 4.2): of
    /// the peer's own certificate, or of an issuer that it sent.
    private func unknownExtension(
        _ leaf: Certificate,
        _ presented: [Certificate]
    ) -> (Certificate, ASN1ObjectIdentifier)? {
        let known = policy.verifyingCriticalExtensions
        // Only a few, because each may cost the check of a signature, and the peer chooses how many it sends.
        let candidates = presented.prefix(6)
        let issuers = candidates.dropFirst().filter { issuer in
            candidates.contains { $0 != issuer && issuer.hasSigned($0) }
        }
        for certificate in [leaf] + issuers {
            let unknown = certificate.extensions.first { $0.critical && !known.contains($0.oid) }
            if let unknown { return (certificate, unknown.oid) }
        }
        return nil
    }

    /// Returns the library's words, with subjects in place of whole certificates.
    private static func reason(_ failure: CertificateValidationResult.PolicyFailure) -> String {
        let leaf = failure.chain.leaf
        if failure.chain.count == 1, leaf.version != .v1, !leaf.isAuthority {
            // The library reports any such certificate as self-signed.
            return "it stands among the roots itself, and is not marked as an authority (CA). To trust it and nobody "
                + "else, pin it (TLSTrust.pinnedCertificates)"
        }
        let text = failure.chain.reduce("\(failure.policyFailureReason)") { text, certificate in
            text.replacing("\(certificate)", with: certificate.shortSubject)
        }
        return text.escaped(limit: 300)
    }

    private static func describe(_ chain: [Certificate]) -> String {
        "Its chain: " + chain.prefix(5).map(\.shortSubject).joined(separator: ", issued by ")
    }
}

extension CertificateVerifier.Peer: CustomStringConvertible {
    var description: String {
        switch self {
        case .server(let host): "\"\(host.text.escaped(limit: 300))\""
        case .client: "the client"
        }
    }

    fileprivate var usage: ExtendedKeyUsage.Usage {
        switch self {
        case .server: .serverAuth
        case .client: .clientAuth
        }
    }
}

extension Certificate {
    fileprivate func isValid(at time: Date) -> Bool { notValidBefore <= time && time <= notValidAfter }

    fileprivate var isAuthority: Bool {
        if case .isCertificateAuthority? = try? extensions.basicConstraints { true } else { false }
    }

    fileprivate var isSelfSigned: Bool { subject == issuer && hasSigned(self) }

    fileprivate func hasSigned(_ other: Certificate) -> Bool {
        other.issuer == subject && publicKey.isValidSignature(other.signature, for: other)
    }

    fileprivate var shortSubject: String { "\"\("\(subject)".escaped(limit: 300))\"" }
}
