import Foundation
import LifelineCore
import LifelineTestSupport
import Logging
import NIOConcurrencyHelpers
import NIOSSL
import Testing

@testable import LifelineTransport

/// Files are loaded again: the certificate of the next connection shows it.
@Suite(.timeLimit(.minutes(1))) struct ServerCertificatesTests {
    private let root: TestCertificate
    private let log = TestLog()

    init() throws { root = try .authority() }

    private func withFiles<Result>(
        of certificate: TestCertificate,
        _ body:
            nonisolated(nonsending) (TLSIdentity, (TestCertificate?, TestCertificate?) throws -> Void) async throws ->
            Result
    ) async throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = ["certificate.pem", "key.pem"].map { folder.appending(path: $0) }
        func replace(_ certificate: TestCertificate?, _ key: TestCertificate?) throws {
            if let certificate { try Data(certificate.pem).write(to: files[0], options: .atomic) }
            if let key { try Data(key.keyPEM).write(to: files[1], options: .atomic) }
        }
        try replace(certificate, certificate)
        let identity = TLSIdentity(certificateChain: .file(files[0].path), privateKey: .file(files[1].path))
        return try await body(identity, replace)
    }

    private func current(_ certificates: ServerCertificates) -> [UInt8]? {
        guard case .certificate(let certificate)? = certificates.loaded.context.configuration.certificateChain.first
        else { return nil }
        return try? certificate.toDERBytes()
    }

    @Test func changedFilesAreLoaded() async throws {
        let (first, second) = (
            try TestCertificate.localhost(issuedBy: root), try TestCertificate.localhost(issuedBy: root)
        )
        try await withFiles(of: first) { identity, replace in
            let certificates = try ServerCertificates(TLSServerConfiguration(identity: identity), logger: log.logger)
            #expect(try current(certificates) == first.der)
            certificates.reloadIfChanged()
            #expect(log.entries.isEmpty, "nothing has changed")
            try replace(second, second)
            #expect(try current(certificates) == first.der, "nobody has looked")
            certificates.reloadIfChanged()
            #expect(try current(certificates) == second.der)
            #expect(log.entries.count == 1)
            #expect(log.entries.first?.level == .notice)
        }
    }

    @Test func brokenFilesAreNotLoaded() async throws {
        let (first, second) = (
            try TestCertificate.localhost(issuedBy: root), try TestCertificate.localhost(issuedBy: root)
        )
        try await withFiles(of: first) { identity, replace in
            let certificates = try ServerCertificates(TLSServerConfiguration(identity: identity), logger: log.logger)
            // The key still belongs to the other certificate.
            try replace(second, nil)
            certificates.reloadIfChanged()
            certificates.reloadIfChanged()
            #expect(try current(certificates) == first.der)
            #expect(log.entries.count == 1, "once, not at every look")
            #expect(log.entries.first?.level == .warning)
            #expect(log.entries.first?.text.contains("invalidConfiguration") == true)
            let error = await #expect(throws: ConnectionError.self) { try await certificates.reload() }
            #expect(error?.code == .invalidConfiguration)
            #expect(try current(certificates) == first.der)
            // Now it fits.
            try replace(nil, second)
            certificates.reloadIfChanged()
            #expect(try current(certificates) == second.der)

            try FileManager.default.removeItem(atPath: try #require(identity.privateKey.path))
            certificates.reloadIfChanged()
            #expect(try current(certificates) == second.der)
            #expect(log.entries.last?.text.contains("cannot be read: No such file") == true)
        }
    }

    @Test func reloadsWhenAsked() async throws {
        let (first, second) = (
            try TestCertificate.localhost(issuedBy: root), try TestCertificate.localhost(issuedBy: root)
        )
        try await withFiles(of: first) { identity, replace in
            let certificates = try ServerCertificates(TLSServerConfiguration(identity: identity), logger: log.logger)
            try replace(second, second)
            try await certificates.reload()
            #expect(try current(certificates) == second.der)
            certificates.reloadIfChanged()
            #expect(log.entries.isEmpty, "there is nothing new")
        }
    }

    /// The files are replaced as by certbot and Kubernetes.
    @Test func linksThatLeadElsewhereAreFollowed() async throws {
        let (first, second) = (
            try TestCertificate.localhost(issuedBy: root), try TestCertificate.localhost(issuedBy: root)
        )
        try await withFiles(of: first) { old, _ in
            try await withFiles(of: second) { new, _ in
                let link = FileManager.default.temporaryDirectory.appending(path: "link-\(UUID().uuidString)").path
                defer { try? FileManager.default.removeItem(atPath: link) }
                func lead(to identity: TLSIdentity) throws {
                    let file = URL(filePath: try #require(identity.certificateChain.path))
                    try? FileManager.default.removeItem(atPath: link)
                    try FileManager.default.createSymbolicLink(
                        atPath: link,
                        withDestinationPath: file.deletingLastPathComponent().path
                    )
                }
                try lead(to: old)
                let identity = TLSIdentity(
                    certificateChain: .file(link + "/certificate.pem"),
                    privateKey: .file(link + "/key.pem")
                )
                let certificates = try ServerCertificates(
                    TLSServerConfiguration(identity: identity),
                    logger: log.logger
                )
                try lead(to: new)
                certificates.reloadIfChanged()
                #expect(try current(certificates) == second.der, "\(log.entries.map(\.text))")
            }
        }
    }

    /// The check that a connection requests is made in the background, at most once a second.
    @Test func connectionsHaveTheFilesLookedAt() async throws {
        let (first, second) = (
            try TestCertificate.localhost(issuedBy: root), try TestCertificate.localhost(issuedBy: root)
        )
        let time = NIOLockedValueBox(MonotonicTime(nanoseconds: 0))
        try await withFiles(of: first) { identity, replace in
            let certificates = try ServerCertificates(TLSServerConfiguration(identity: identity), logger: log.logger) {
                time.withLockedValue { $0 }
            }
            try replace(second, second)
            time.withLockedValue { $0 = MonotonicTime(nanoseconds: 999_999_999) }
            _ = certificates.forNextConnection()
            #expect(!certificates.isChecking, "it is too early")
            time.withLockedValue { $0 = MonotonicTime(nanoseconds: 1_000_000_000) }
            _ = certificates.forNextConnection()
            while try current(certificates) != second.der { await Task.yield() }
            while certificates.isChecking { await Task.yield() }
            _ = certificates.forNextConnection()
            #expect(!certificates.isChecking, "a second later at the earliest")
        }
    }

    /// The first one has read the old certificate, and is slow; the second one begins after the new one is there.
    @Test func theNewerOfTwoReloadsCounts() async throws {
        let old = try TestCertificate.localhost(issuedBy: root)
        let new = try TestCertificate(issuedBy: root, keyOf: old)
        try await withFiles(of: old) { identity, replace in
            let path = try #require(identity.certificateChain.path)
            let certificates = try ServerCertificates(TLSServerConfiguration(identity: identity), logger: log.logger)
            try FileManager.default.removeItem(atPath: path)
            try #require(mkfifo(path, 0o600) == 0)
            async let slow: Void = certificates.reload()
            // The file opens for writing as soon as a reader has it open.
            var writer: Int32 = -1
            while writer < 0 {
                writer = open(path, O_WRONLY | O_NONBLOCK)
                await Task.yield()
            }
            try replace(new, nil)
            let isDone = NIOLockedValueBox(false)
            async let fast: Void = {
                try await certificates.reload()
                isDone.withLockedValue { $0 = true }
            }()
            // It has to wait for the first one. One that did not wait would have finished in this time.
            for _ in 0..<20_000 where !isDone.withLockedValue({ $0 }) { await Task.yield() }
            let pem = try old.pem
            #expect(write(writer, pem, pem.count) == pem.count)
            close(writer)
            try await slow
            try await fast
            #expect(try current(certificates) == new.der)
            certificates.reloadIfChanged()
            #expect(try current(certificates) == new.der)
        }
    }

    // MARK: Unusable files

    /// NIOSSL would end the process.
    @Test(arguments: [
        [""], ["chat", "grüezi"], [String(repeating: "x", count: 256)],
        (0..<300).map { String(repeating: "x", count: 250) + "\($0)" },
    ]) func namesOfProtocolsAreChecked(names: [String]) throws {
        let certificate = try TestCertificate()
        let identity = TLSIdentity(
            certificateChain: .bytes(try certificate.pem),
            privateKey: .bytes(certificate.keyPEM)
        )
        var (server, client) = (TLSServerConfiguration(identity: identity), TLSClientConfiguration())
        (server.applicationProtocols, client.applicationProtocols) = (names, names)
        let errors = [
            #expect(throws: ConnectionError.self) { try ServerCertificates(server, logger: log.logger) },
            #expect(throws: ConnectionError.self) { try TLSClientLayer(client, host: "localhost") },
        ]
        for error in errors {
            #expect(error?.code == .invalidConfiguration)
            #expect(error?.message.contains("application protocol") == true)
        }
        client.applicationProtocols = [String(repeating: "x", count: 255), "y"]
        _ = try TLSClientLayer(client, host: "localhost")
    }

    @Test func saysWhatIsWrong() async throws {
        let (one, other) = (try TestCertificate(), try TestCertificate())
        let (pem, key) = (PEMSource.bytes(try one.pem), PEMSource.bytes(one.keyPEM))
        let cases: [(TLSIdentity, String)] = [
            (TLSIdentity(certificateChain: .file("/nowhere.pem"), privateKey: key), "/nowhere.pem cannot be read"),
            (TLSIdentity(certificateChain: .bytes([]), privateKey: key), "no certificate in PEM in the bytes given"),
            (TLSIdentity(certificateChain: key, privateKey: key), "no certificate"),
            (TLSIdentity(certificateChain: pem, privateKey: pem), "no private key"),
            (TLSIdentity(certificateChain: pem, privateKey: .bytes(other.keyPEM)), "do not belong together"),
        ]
        for (identity, text) in cases {
            let error = #expect(throws: ConnectionError.self) {
                try ServerCertificates(TLSServerConfiguration(identity: identity), logger: log.logger)
            }
            #expect(error?.code == .invalidConfiguration)
            #expect(error?.message.contains(text) == true)
            var client = TLSClientConfiguration()
            client.identity = identity
            #expect(throws: ConnectionError.self) { try TLSClientLayer(client, host: "localhost") }
        }
    }
}
