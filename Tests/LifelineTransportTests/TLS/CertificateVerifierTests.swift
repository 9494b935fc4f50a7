import Foundation
import LifelineCore
import LifelineTestSupport
import Logging
import NIOSSL
import Testing

@testable import LifelineTransport

@Suite(.timeLimit(.minutes(1))) struct CertificateVerifierTests {
    private let root: TestCertificate

    init() throws { root = try .authority() }

    /// The code of the refusal of a chain; nil if it is accepted.
    private func verify(
        _ chain: [TestCertificate],
        as host: String = "localhost",
        trusting roots: [TestCertificate]? = nil,
        pins: [String] = []
    ) async throws -> ConnectionError? {
        let trust = try TLSTrust.roots((roots ?? [root]).map { .bytes(try $0.pem) })
        return try await verify(chain, by: .server(TLSHost(host)), trust: trust, pins: pins)
    }

    private func verify(
        _ chain: [TestCertificate],
        by peer: CertificateVerifier.Peer,
        trust: TLSTrust,
        pins: [String] = []
    ) async throws -> ConnectionError? {
        let verifier = try CertificateVerifier(peer: peer, trust: trust, pins: pins.map { try CertificatePin($0) })
        let presented = try chain.map { try NIOSSLCertificate(bytes: $0.der, format: .der) }
        do {
            try await verifier.verify(presented)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Chains

    @Test func acceptsWhatARootVouchesFor() async throws {
        #expect(try await verify([.localhost(issuedBy: root)]) == nil)
    }

    @Test func findsItsWayOverAuthoritiesInAnyOrder() async throws {
        let upper = try TestCertificate.authority("Upper", issuedBy: root)
        let lower = try TestCertificate.authority("Lower", issuedBy: upper)
        let leaf = try TestCertificate.localhost(issuedBy: lower)
        #expect(try await verify([leaf, lower, upper]) == nil)
        #expect(try await verify([leaf, upper, root, lower]) == nil)
        let missing = try await verify([leaf, lower])
        #expect(missing?.code == .certificateUntrusted)
        #expect(missing?.message.contains("Lower") == true, "the chain as far as it goes")
    }

    @Test func knowsNoOtherRoots() async throws {
        let leaf = try TestCertificate.localhost(issuedBy: .authority("Somebody else"))
        let error = try await verify([leaf])
        #expect(error?.code == .certificateUntrusted)
        #expect(error?.message.contains("CN=leaf") == true)
        #expect(error?.message.contains("CN=Somebody else") == true)
    }

    /// The name of a root proves nothing.
    @Test func aRootOfTheSameNameIsNotTheRoot() async throws {
        let error = try await verify([.localhost(issuedBy: .authority())])
        #expect(error?.code == .certificateUntrusted)
    }

    @Test func selfSignedIsUntrusted() async throws {
        let error = try await verify([.localhost(issuedBy: nil)])
        #expect(error?.code == .certificateUntrusted)
        #expect(error?.message.contains("self-signed") == true)
    }

    @Test func aLeafVouchesForNobody() async throws {
        let leaf = try TestCertificate.localhost(issuedBy: root)
        let error = try await verify([.localhost(issuedBy: leaf), leaf])
        #expect(error?.code == .certificateUntrusted)
        #expect(error?.message.contains("not marked as a CA") == true)
    }

    @Test func nothingShownIsRefused() async throws {
        #expect(try await verify([])?.code == .tlsRejected)
    }

    /// Twelve authorities that all sign each other make a billion chains, none of which leads to the root.
    @Test func aMazeOfAuthoritiesIsLeft() async throws {
        let authorities = try (0..<12).map { try TestCertificate.authority("Authority \($0)") }
        var maze: [TestCertificate] = []
        for subject in authorities {
            for (number, issuer) in authorities.enumerated() {
                maze.append(try .authority("Authority \(number)", issuedBy: subject, keyOf: issuer))
            }
        }
        let error = try await verify([.localhost(issuedBy: authorities[0])] + maze)
        #expect(error?.code == .certificateUntrusted)
    }

    @Test func textOfAPeerDoesNotBreakLogs() async throws {
        let leaf = try TestCertificate.localhost(issuedBy: nil) {
            $0.commonName = "evil\nnew line\u{1B}[2J" + String(repeating: "x", count: 5000)
        }
        let message = try #require(try await verify([leaf])).message
        #expect(message.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        #expect(message.utf8.count < 2000)
    }

    // MARK: Refusals

    /// The library then has no chain to report.
    @Test func anExtensionThatNobodyKnowsIsNamed() async throws {
        let leaf = try TestCertificate.localhost(issuedBy: root) { $0.hasUnknownExtension = true }
        let authority = try TestCertificate.authority("Authority", issuedBy: root) { $0.hasUnknownExtension = true }
        let below = try TestCertificate.localhost(issuedBy: authority)
        for (chain, name) in [([leaf], "CN=leaf"), ([below, authority], "CN=Authority")] {
            let error = try await verify(chain)
            #expect(error?.code == .certificateUntrusted)
            #expect(error?.message.contains("the extension 1.3.6.1.4.1.99999.7 of \"\(name)\" is critical") == true)
        }
        // The search does not cover all certificates that a peer may send, because each step checks a signature.
        let many = Array(repeating: try TestCertificate.authority("Authority"), count: 5)
        let late = try await verify([below] + many + [authority])
        #expect(late?.message.contains("the extension") == false)
        // It signs no certificate here.
        #expect(try await verify([.localhost(issuedBy: root), authority]) == nil)
        let stranger = try TestCertificate.localhost(issuedBy: .authority("Somebody else"))
        let error = try await verify([stranger, authority])
        #expect(error?.message.contains("Somebody else, is not known") == true, "\(error?.message ?? "")")
    }

    @Test func aServersCertificateAmongTheRootsIsNoRoot() async throws {
        let selfSigned = try TestCertificate.localhost(issuedBy: nil)
        let issued = try TestCertificate.localhost(issuedBy: .authority("Somebody else"))
        for leaf in [selfSigned, issued] {
            let error = try await verify([leaf], trusting: [leaf])
            #expect(error?.code == .certificateUntrusted)
            #expect(error?.message.contains("stands among the roots") == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("elf-signed") == false)
        }
        let authority = try TestCertificate.authority("localhost") { $0.names = ["localhost"] }
        #expect(try await verify([authority], trusting: [authority]) == nil)
    }

    /// Only a signature proves this.
    @Test func theNameOfTheIssuerMakesNothingSelfSigned() async throws {
        let issuer = try TestCertificate.authority("leaf")
        let error = try await verify([.localhost(issuedBy: issuer)])
        #expect(error?.code == .certificateUntrusted)
        #expect(error?.message.contains("CN=leaf, is not known") == true, "\(error?.message ?? "")")
    }

    // MARK: Time

    @Test func expired() async throws {
        let error = try await verify([
            .localhost(issuedBy: root) {
                $0.notBefore = Date(timeIntervalSince1970: 1_700_000_000)
                $0.notAfter = Date(timeIntervalSince1970: 1_750_000_000)
            }
        ])
        #expect(error?.code == .certificateExpired)
        #expect(error?.message.contains("expired on 2025-06-15T15:06:40Z") == true)
    }

    @Test func notYetValid() async throws {
        let error = try await verify([
            .localhost(issuedBy: root) { $0.notBefore = Date(timeIntervalSinceNow: 3600) }
        ])
        #expect(error?.code == .certificateExpired)
        #expect(error?.message.contains("is not valid before") == true)
    }

    @Test func anExpiredAuthorityIsNamed() async throws {
        let old = try TestCertificate(issuedBy: root) {
            $0.commonName = "Old authority"
            $0.isAuthority = true
            $0.notAfter = Date(timeIntervalSinceNow: -60)
        }
        let error = try await verify([.localhost(issuedBy: old), old])
        #expect(error?.code == .certificateExpired)
        #expect(error?.message.contains("certificate \"CN=Old authority\"") == true)
    }

    /// Whether a certificate has expired matters only if it is trusted.
    @Test func anExpiredStrangerIsAStranger() async throws {
        let leaf = try TestCertificate.localhost(issuedBy: nil) { $0.notAfter = Date(timeIntervalSinceNow: -60) }
        #expect(try await verify([leaf])?.code == .certificateUntrusted)
    }

    // MARK: Names

    @Test(arguments: [
        ("localhost", true), ("LOCALHOST", true), ("localhost.", true), ("other.example", false),
        ("a.wild.example", true), ("a.wild.example.", true), ("wild.example", false), ("a.b.wild.example", false),
        ("127.0.0.1", true), ("127.0.0.2", false), ("::1", true), ("0:0:0:0:0:0:0:1", true), ("::1%lo", true),
        ("::2", false), ("1.2.3.4", false), ("leaf", false), ("", false), ("A.WILD.example", true),
        // Names that RFC 6125 allowed and RFC 9525 does not.
        ("abc.partial.example", false), ("abc.suffix.example", false), ("single", false), ("any.tld", false),
        ("tld", false), ("a.b.inner.example", false), ("*.wild.example", false), (".wild.example", false),
        ("dotted.example", false), ("a b.wild.example", false),
    ]) func isMadeOutTo(host: String, isAccepted: Bool) async throws {
        let leaf = try TestCertificate.localhost(issuedBy: root) {
            // An address in a name field is a name.
            $0.names += ["*.wild.example", "1.2.3.4", "a*.partial.example", "*c.suffix.example", "*", "*.tld"]
            $0.names += ["a.*.inner.example", "dotted.example."]
        }
        let error = try await verify([leaf], as: host)
        #expect(error?.code == (isAccepted ? nil : .certificateHostMismatch))
        #expect(error.map { $0.message.contains("\"\(host)\"") } ?? true)
    }

    /// No authority's constraints apply to a common name (RFC 9525, section 2).
    @Test(arguments: [nil, true] as [Bool?]) func aCommonNameIsNoName(statesNames: Bool?) async throws {
        let constrained = try TestCertificate.authority("Constrained", issuedBy: root) {
            $0.permittedDomain = "allowed.example"
        }
        for issuer in [root, constrained] {
            let leaf = try TestCertificate(issuedBy: issuer) {
                $0.commonName = "localhost"
                $0.statesNames = statesNames
            }
            let error = try await verify([leaf, constrained])
            #expect(error?.code == .certificateHostMismatch)
            #expect(error?.message.contains("no alternative names (SAN)") == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("Have it issued again") == true)
        }
        // The constraint is an address.
        let inside = try TestCertificate(issuedBy: constrained) { $0.names = ["a.allowed.example"] }
        #expect(try await verify([inside, constrained], as: "a.allowed.example") == nil)
        let outside = try TestCertificate.localhost(issuedBy: constrained)
        #expect(try await verify([outside, constrained])?.code == .certificateUntrusted)
    }

    @Test(
        arguments: [
            ("example.org", "example.org"), ("example.org.", "example.org"), ("127.0.0.1", nil), ("::1", nil),
            ("fe80::1%eth0", nil),
        ] as [(String, String?)]
    ) func asksForNamesOnly(host: String, name: String?) {
        #expect(TLSHost(host).name == name)
    }

    // MARK: Use

    @Test func aClientsCertificateIsNoServers() async throws {
        let leaf = try TestCertificate.localhost(issuedBy: root) { $0.isForServers = false }
        let error = try await verify([leaf])
        #expect(error?.code == .certificateUntrusted)
        #expect(error?.message.contains("another use") == true)
    }

    @Test func aServersCertificateIsNoClients() async throws {
        let trust = try TLSTrust.roots(.bytes(root.pem))
        let server = try TestCertificate.localhost(issuedBy: root) { $0.isForClients = false }
        #expect(try await verify([server], by: .client, trust: trust)?.code == .certificateUntrusted)
        let client = try TestCertificate(issuedBy: root) { $0.isForServers = false }
        #expect(try await verify([client], by: .client, trust: trust) == nil, "whatever its name")
    }

    @Test(arguments: [true, false, nil] as [Bool?]) func theKeyOfAnAuthorityIsForSigning(signs: Bool?) async throws {
        let authority = try TestCertificate.authority("Authority", issuedBy: root) { $0.signsCertificates = signs }
        let newRoot = try TestCertificate.authority("New root") { $0.signsCertificates = signs }
        let chains = [
            [try .localhost(issuedBy: authority), authority], [try TestCertificate.localhost(issuedBy: newRoot)],
        ]
        for chain in chains {
            let error = try await verify(chain, trusting: [root, newRoot])
            #expect(error?.code == (signs == false ? .certificateUntrusted : nil))
            #expect(error.map { $0.message.contains("is not for signing certificates") } ?? true)
        }
        // The server's own is not.
        let leaf = try TestCertificate.localhost(issuedBy: root) { $0.signsCertificates = false }
        #expect(try await verify([leaf]) == nil)
    }

    // MARK: Pins

    @Test func aPinOfAnyCertificateOfTheChainWillDo() async throws {
        let authority = try TestCertificate.authority("Authority", issuedBy: root)
        let leaf = try TestCertificate.localhost(issuedBy: authority)
        let other = try TestCertificate.localhost(issuedBy: authority)
        for pinned in [leaf, authority, root] {
            #expect(try await verify([leaf, authority], pins: [other.publicKeyPin, pinned.publicKeyPin]) == nil)
            #expect(try await verify([leaf, authority], pins: [pinned.fingerprint]) == nil)
        }
        // An additional certificate that signs nothing does not count.
        let error = try await verify([leaf, authority, other], pins: [other.publicKeyPin])
        #expect(error?.code == .certificatePinMismatch)
        #expect(error?.message.contains(leaf.publicKeyPin) == true, "what to pin, if it is to be trusted")
        #expect(try await verify([leaf, authority], pins: [other.fingerprint])?.code == .certificatePinMismatch)
    }

    @Test func aPinOutlivesTheCertificate() async throws {
        let old = try TestCertificate.localhost(issuedBy: root)
        let renewed = try TestCertificate(issuedBy: root, keyOf: old) { $0.names = ["localhost"] }
        #expect(try await verify([renewed], pins: [old.publicKeyPin]) == nil)
        #expect(try await verify([renewed], pins: [old.fingerprint])?.code == .certificatePinMismatch)
    }

    @Test func aPinIsNoReasonToTrust() async throws {
        let leaf = try TestCertificate.localhost(issuedBy: nil)
        #expect(try await verify([leaf], pins: [leaf.publicKeyPin])?.code == .certificateUntrusted)
        let elsewhere = try TestCertificate.localhost(issuedBy: root) { $0.names = ["other.example"] }
        let error = try await verify([elsewhere], pins: [elsewhere.publicKeyPin])
        #expect(error?.code == .certificateHostMismatch)
    }

    @Test func trustsExactlyThePinnedOnes() async throws {
        let server = CertificateVerifier.Peer.server(TLSHost("device.example"))
        let (leaf, other) = (try TestCertificate(), try TestCertificate())
        func verify(_ chain: [TestCertificate], pins: [String]) async throws -> ConnectionError? {
            try await self.verify(chain, by: server, trust: .pinnedCertificates, pins: pins)
        }
        #expect(try await verify([leaf], pins: [leaf.publicKeyPin]) == nil)
        #expect(try await verify([leaf], pins: [leaf.fingerprint]) == nil)
        #expect(try await verify([leaf], pins: [other.publicKeyPin])?.code == .certificatePinMismatch)
        // The peer has proved that it has the key of the first certificate.
        #expect(try await verify([other, leaf], pins: [leaf.publicKeyPin])?.code == .certificatePinMismatch)
        let error = await #expect(throws: ConnectionError.self) { try await verify([leaf], pins: []) }
        #expect(error?.code == .invalidConfiguration)
    }

    // MARK: The system's roots

    @Test func theSystemsRootsDoNotKnowUs() async throws {
        let error = try await verify([.localhost(issuedBy: root)], by: .server(TLSHost("localhost")), trust: .system)
        #expect(error?.code == .certificateUntrusted)
    }

    @Test func noRootsAreNoConfiguration() throws {
        let error = #expect(throws: ConnectionError.self) {
            try CertificateVerifier(peer: .client, trust: .roots([]), pins: [])
        }
        #expect(error?.code == .invalidConfiguration)
        var server = TLSServerConfiguration(
            identity: TLSIdentity(certificateChain: .bytes(try root.pem), privateKey: .bytes(root.keyPEM))
        )
        server.clientRoots = []
        let other = #expect(throws: ConnectionError.self) {
            try ServerCertificates(server, logger: Logger(label: "test"))
        }
        #expect(other?.code == .invalidConfiguration)
    }

    @Test func theSystemsRootsAreLookedForUntilTheyAreThere() async throws {
        try await withTemporaryPath("roots.pem") { path in
            let roots = SystemRoots(paths: ["/nowhere.pem", path])
            func expectFailure() async {
                let error = await #expect(throws: ConnectionError.self) { try await roots.loaded() }
                #expect(error?.code == .invalidConfiguration)
                #expect(error?.message.contains("/nowhere.pem, \(path). Install") == true)
            }
            await expectFailure()
            for text in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
                try Data(text.utf8).write(to: URL(filePath: path))
                await expectFailure()
            }
            try Data(root.pem).write(to: URL(filePath: path))
            let loaded = try await roots.loaded()
            try FileManager.default.removeItem(atPath: path)
            #expect(try await roots.loaded() == loaded, "they are kept")
        }
    }
}
