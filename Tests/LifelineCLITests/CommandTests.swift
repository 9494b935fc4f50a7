import Foundation
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import Testing

typealias ChatMessage = Sample_Chat_V1_ChatMessage

/// The `lifeline` command as a script uses it: standard streams and exit codes.
@Suite(.timeLimit(.minutes(2)), .serialized) struct CommandTests {
    private func lifeline(_ arguments: String..., input: Data = Data()) async throws -> Program.Outcome {
        try await Program.product("lifeline", arguments).outcome(input: input)
    }

    private func stream(_ texts: String...) throws -> Data {
        var stream = Data()
        for text in texts {
            try ChatMessage.with { $0.text = text }.withDelimitedBytes { stream.append(contentsOf: $0) }
        }
        return stream
    }

    // MARK: What arrives

    @Test func aTextIsPrintedAsTextFormat() async throws {
        let output = try await receive(count: 2, format: "text") { endpoint in
            let outcome = try await lifeline(
                "send",
                "--to",
                endpoint,
                "--text",
                "Grüezi",
                "--from",
                "Ada",
                "--count",
                "2"
            )
            #expect(outcome.status == 0)
            #expect(outcome.output.isEmpty)
            #expect(outcome.errorText.isEmpty, "it is quiet when no terminal listens")
        }
        let text = String(decoding: output, as: UTF8.self)
        #expect(text.contains("id: \"1\"\nfrom: \"Ada\"\ntext: \"Grüezi\"\nkind: KIND_TEXT\n"))
        #expect(text.contains("id: \"2\"\n"))
    }

    @Test func aStreamGoesOverWebSocket() async throws {
        let sent = try stream("one", String(repeating: "two ", count: 100_000), "three")
        let output = try await receive(on: "ws://127.0.0.1:0/chat", count: 3, format: "delimited") { endpoint in
            #expect(endpoint.hasPrefix("ws://127.0.0.1:") && endpoint.hasSuffix("/chat"))
            let elsewhere = try await lifeline("send", "--to", "\(endpoint)/elsewhere", "--text", "x")
            #expect(elsewhere.status == 69)
            #expect(elsewhere.errorText.contains("webSocketRefused"), "\(elsewhere.errorText)")
            #expect(elsewhere.errorText.split(separator: "\n").count == 1, "it is not tried again")
            let outcome = try await lifeline("send", "--to", endpoint, "--format", "delimited", input: sent)
            #expect(outcome.status == 0, "\(outcome.errorText)")
        }
        #expect(output == sent)
    }

    @Test(arguments: ["send", "receive"]) func helpHasAnExampleOfEachScheme(command: String) async throws {
        let help = String(decoding: try await lifeline(command, "--help").output, as: UTF8.self)
        for scheme in ["tcp", "tls", "ws", "wss", "unix"] {
            let option = command == "send" ? "--to" : "--on"
            #expect(help.contains("lifeline \(command) \(option) \(scheme)://"), "\(scheme)")
        }
    }

    @Test func aFileIsSentOverAUnixSocket() async throws {
        try await withTemporaryPath { socket in
            try await withTemporaryPath("stream") { file in
                let sent = try stream("one", "two", "three")
                try sent.write(to: URL(filePath: file))
                let output = try await receive(on: "unix://\(socket)", count: 3, format: "delimited") { endpoint in
                    let outcome = try await lifeline("send", "--to", endpoint, "--file", file)
                    #expect(outcome.status == 0)
                }
                #expect(output == sent)
            }
        }
    }

    @Test func countLimitsAStream() async throws {
        let input = try stream("one", "two", "three")
        let output = try await receive(count: 2, format: "delimited") { endpoint in
            let outcome = try await lifeline(
                "send",
                "--to",
                endpoint,
                "--format",
                "delimited",
                "--count",
                "2",
                input: input
            )
            #expect(outcome.status == 0)
        }
        #expect(try output == stream("one", "two"))
    }

    @Test func theMessagesBeforeBadDataAreSent() async throws {
        var input = try stream("one", "two")
        input += [2, 0x0A, 0xFF]
        let output = try await receive(count: 2, format: "delimited") { endpoint in
            let outcome = try await lifeline("send", "--to", endpoint, "--format", "delimited", input: input)
            #expect(outcome.status == 65)
            #expect(outcome.errorText.contains("truncated"))
        }
        #expect(try output == stream("one", "two"))
    }

    @Test func aStreamThatEndsInsideAMessageIsBadData() async throws {
        let input = try stream("one", "two").dropLast()
        let output = try await receive(count: 1, format: "delimited") { endpoint in
            let outcome = try await lifeline("send", "--to", endpoint, "--format", "delimited", input: input)
            #expect(outcome.status == 65)
            #expect(outcome.errorText.contains("truncatedFrame"))
        }
        #expect(try output == stream("one"))
    }

    // MARK: Exit codes

    @Test(arguments: [
        ["send", "--to", "tcp://127.0.0.1:1"],
        ["send", "--to", "tcp://127.0.0.1:1", "--text", "a", "--file", "b"],
        ["send", "--to", "nowhere", "--text", "a"],
        ["send", "--to", "tcp://127.0.0.1:1", "--text", "a", "--count", "0"],
        ["send", "--to", "tcp://127.0.0.1:1", "--text", "a", "--attempts", "0"],
        ["send", "--to", "tcp://127.0.0.1:1", "--format", "text"],
        ["send", "--to", "tcp://127.0.0.1:1", "--file", "a", "--from", "b"],
        ["send", "--to", "tcp://127.0.0.1:1", "--text", "a", "--proxy", "ftp://proxy"],
        ["send", "--to", "tcp://127.0.0.1:1", "--text", "a", "--proxy", "http://proxy", "--no-proxy"],
        ["receive"],
        ["receive", "--on", "tcp://127.0.0.1:0", "--format", "json"],
        ["unknown"],
    ])
    func wrongUsageIs64(arguments: [String]) async throws {
        let outcome = try await Program.product("lifeline", arguments).outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains("--help"))
    }

    @Test func anUnavailablePeerIs69() async throws {
        let outcome = try await lifeline("send", "--to", "unix:///tmp/no-such-socket", "--text", "a", "--attempts", "1")
        #expect(outcome.status == 69)
        #expect(outcome.errorText.hasPrefix("lifeline: connectFailed"))
    }

    @Test func anEndpointInUseIs69() async throws {
        let listener = try await RawSocket.listen()
        let outcome = try await lifeline("receive", "--on", "tcp://127.0.0.1:\(listener.port)", "--count", "1")
        #expect(outcome.status == 69)
        #expect(outcome.errorText.contains("addressInUse"))
    }

    @Test func aMissingFileIs74() async throws {
        let listener = try await RawSocket.listen()
        let outcome = try await lifeline(
            "send",
            "--to",
            "tcp://127.0.0.1:\(listener.port)",
            "--file",
            "/tmp/no-such-file"
        )
        #expect(outcome.status == 74)
        #expect(outcome.errorText.contains("/tmp/no-such-file"))
    }

    @Test func aFullOutputIs74() async throws {
        let command = "exec 3>&1; \"$0\" receive --on tcp://127.0.0.1:0 2>&3 3>&- >/dev/full; [ $? -eq 74 ]"
        let lifeline = try Program.product("lifeline", []).path
        try await Program(URL(filePath: "/bin/sh"), ["-c", command, lifeline]).run { line in
            let endpoint = String(line.split(separator: " ").last ?? "")
            _ = try await self.lifeline("send", "--to", endpoint, "--text", "a")
        }
    }

    @Test func helpTeaches() async throws {
        for arguments in [["--help"], ["send", "--help"], ["receive", "--help"]] {
            let outcome = try await Program.product("lifeline", arguments).outcome()
            #expect(outcome.status == 0)
            #expect(String(decoding: outcome.output, as: UTF8.self).contains(" tcp://127.0.0.1:7000"), "an example")
        }
    }
}
