import Foundation
import LifelineCore
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import Testing

/// `lifeline send` and `lifeline receive` over TLS, without and with WebSocket above it.
@Suite(.timeLimit(.minutes(2)), .serialized) struct TLSCommandTests {
    private let root: TestCertificate
    private let certificate: TestCertificate
    private let client: TestCertificate

    init() throws {
        root = try .authority()
        certificate = try .localhost(issuedBy: root)
        client = try TestCertificate(issuedBy: root)
    }

    private func lifeline(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.product("lifeline", arguments).outcome()
    }

    /// Runs `body` with a folder of PEM files, which is removed afterwards.
    private func withFiles(_ body: (_ path: (String) -> String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = [
            "ca.pem": try root.pem, "cert.pem": try certificate.pem, "key.pem": certificate.keyPEM,
            "client.pem": try client.pem, "client-key.pem": client.keyPEM,
        ]
        for (name, content) in files { try Data(content).write(to: folder.appending(path: name)) }
        try await body { folder.appending(path: $0).path }
    }

    @Test(arguments: ["tls://127.0.0.1:0", "wss://127.0.0.1:0/chat"])
    func aTextGoesOverTLS(listening: String) async throws {
        try await withFiles { path in
            let server = ["--certificate", path("cert.pem"), "--key", path("key.pem"), "--client-ca", path("ca.pem")]
            let output = try await receive(
                on: listening,
                options: server + chatSchema,
                count: 2,
                format: "text"
            ) { endpoint in
                #expect(endpoint.split(separator: ":")[..<2] == listening.split(separator: ":")[..<2])
                #expect(endpoint.hasSuffix("/chat") == listening.hasSuffix("/chat"))
                let identity = ["--certificate", path("client.pem"), "--key", path("client-key.pem")]
                for trust in [
                    ["--ca", path("ca.pem"), "--pin", root.publicKeyPin],
                    ["--trust-pins", "--pin", try certificate.fingerprint],
                ] {
                    let arguments = ["send", "--to", endpoint] + chatMessage("Grüezi") + trust + identity
                    let outcome = try await Program.product("lifeline", arguments).outcome()
                    #expect(outcome.status == 0, "\(outcome.errorText)")
                    #expect(outcome.errorText.isEmpty, "\(outcome.errorText)")
                }
            }
            #expect(String(decoding: output, as: UTF8.self).split(separator: "Grüezi").count == 3)
        }
    }

    @Test func theSystemsAuthoritiesAreTrusted() async throws {
        try await withFiles { path in
            let server = ["--certificate", path("cert.pem"), "--key", path("key.pem")]
            _ = try await receive(on: "tls://127.0.0.1:0", options: server, count: 1, format: "text") { endpoint in
                // The variable names the system's file, for this process only.
                let lifeline = try Program.product("lifeline", []).path
                let send = ["SSL_CERT_FILE=\(path("ca.pem"))", lifeline, "send", "--to", endpoint]
                let outcome = try await Program(URL(filePath: "/usr/bin/env"), send + chatMessage("x")).outcome()
                #expect(outcome.status == 0, "\(outcome.errorText)")
            }
        }
    }

    @Test(arguments: ["tls", "wss"]) func refusalsAreNotTriedAgain(scheme: String) async throws {
        try await withFiles { path in
            let server = ["--certificate", path("cert.pem"), "--key", path("key.pem")]
            _ = try await receive(on: "\(scheme)://127.0.0.1:0", options: server, count: 1, format: "text") {
                endpoint in
                let cases = [
                    ([], 69, "is not to be trusted"),
                    (["--ca", path("ca.pem"), "--pin", client.publicKeyPin], 69, "has none of the pins"),
                    (["--ca", path("nothing.pem")], 65, "nothing.pem cannot be read"),
                    (["--ca", path("key.pem")], 65, "no certificate in PEM"),
                ]
                for (options, status, text) in cases {
                    let outcome = try await Program.product(
                        "lifeline",
                        ["send", "--to", endpoint] + chatMessage("x") + options
                    )
                    .outcome()
                    #expect(outcome.status == Int32(status))
                    #expect(outcome.errorText.contains(text), "\(outcome.errorText)")
                    #expect(outcome.errorText.split(separator: "\n").count == 1, "\(outcome.errorText)")
                }
                let send = ["send", "--to", endpoint, "--ca", path("ca.pem")] + chatMessage("x")
                let outcome = try await Program.product("lifeline", send).outcome()
                #expect(outcome.status == 0)
            }
        }
    }

    /// With TLS 1.3, the command learns this after it has sent.
    @Test func aSenderThatIsRefusedFailsWith69() async throws {
        try await withFiles { path in
            let server = ["--certificate", path("cert.pem"), "--key", path("key.pem"), "--client-ca", path("ca.pem")]
            _ = try await receive(on: "tls://127.0.0.1:0", options: server, count: 1, format: "text") { endpoint in
                let send = ["send", "--to", endpoint, "--ca", path("ca.pem")] + chatMessage("x")
                let refused = try await Program.product("lifeline", send).outcome()
                #expect(refused.status == 69, "\(refused.errorText)")
                #expect(refused.errorText.contains("did not accept this side's certificate"), "\(refused.errorText)")
                let identity = ["--certificate", path("client.pem"), "--key", path("client-key.pem")]
                let outcome = try await Program.product("lifeline", send + identity).outcome()
                #expect(outcome.status == 0, "\(outcome.errorText)")
            }
        }
    }

    @Test(arguments: [
        ["send", "--format", "delimited", "--to"], ["receive", "--on"], ["monitor", "--reach"],
    ]) func endpointsArePrintedWithoutPasswords(arguments: [String]) async throws {
        for endpoint in ["wss://ada:s3cret@host/", "wss://ada:s3cret", "ada:s3cret@host:1", "wss://ada:s3cret%40host/"]
        {
            let outcome = try await Program.product("lifeline", arguments + [endpoint]).outcome()
            #expect(outcome.status == 64)
            #expect(outcome.errorText.contains("is no endpoint"), "\(outcome.errorText)")
            let output = outcome.errorText + String(decoding: outcome.output, as: UTF8.self)
            #expect(!output.contains("s3cret"), "\(output)")
        }
    }

    /// The test's environment.
    @Test func programsInheritNoProxiesAndNoAuthorities() {
        for name in ProxyConfiguration.environmentVariables + ["SSL_CERT_FILE"] {
            #expect(Program.environment(from: [name: "x", "PATH": "y"]) == ["PATH": "y"])
        }
    }

    @Test(arguments: [
        (["send", "--to", "tcp://127.0.0.1:1", "--format", "delimited", "--ca", "ca.pem"], "endpoints tls://"),
        (["send", "--to", "tls://127.0.0.1:1", "--format", "delimited", "--key", "key.pem"], "go together"),
        (["send", "--to", "tls://127.0.0.1:1", "--format", "delimited", "--trust-pins"], "needs --pin"),
        (["send", "--to", "tls://127.0.0.1:1", "--format", "delimited", "--pin", "sha256/x"], "no certificate pin"),
        (
            [
                "send", "--to", "ws://127.0.0.1:1", "--format", "delimited", "--pin",
                "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            ], "endpoints tls:// and wss://"
        ),
        (["receive", "--on", "wss://127.0.0.1:0"], "needs --certificate FILE and --key FILE"),
        (["receive", "--on", "tls://127.0.0.1:0"], "needs --certificate FILE and --key FILE"),
        (["receive", "--on", "tcp://127.0.0.1:0", "--client-ca", "ca.pem"], "endpoints tls://"),
    ]) func wrongUsage(arguments: [String], text: String) async throws {
        let outcome = try await Program.product("lifeline", arguments).outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains(text), "\(outcome.errorText)")
    }

    @Test func aServerWithoutItsFilesDoesNotStart() async throws {
        let outcome = try await lifeline(
            "receive",
            "--on",
            "tls://127.0.0.1:0",
            "--certificate",
            "/nowhere.pem",
            "--key",
            "/nowhere.pem"
        )
        #expect(outcome.status == 65)
        #expect(outcome.errorText.contains("/nowhere.pem cannot be read: No such file"))
    }
}
