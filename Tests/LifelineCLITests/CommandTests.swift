import Foundation
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import Testing

typealias ChatMessage = Sample_Chat_V1_ChatMessage

/// The `lifeline` command in scripts: standard streams and exit codes.
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

    // MARK: Received messages

    @Test(arguments: [
        ("json", #"{"from":"Ada","text":"Grüezi"}"# + "\n"), ("text", "from: \"Ada\"\ntext: \"Grüezi\"\n---\n"),
    ])
    func aMessageIsPrintedInEachForm(format: String, expected: String) async throws {
        let output = try await receive(options: chatSchema, count: 2, format: format) { endpoint in
            let data = ["--data", #"{"text": "Grüezi", "from": "Ada"}"#, "--count", "2"]
            let send = ["send", "--to", endpoint] + chatSchema + data
            let outcome = try await Program.product("lifeline", send).outcome()
            #expect(outcome.status == 0)
            #expect(outcome.output.isEmpty)
            #expect(outcome.errorText.isEmpty, "it is quiet when no terminal listens")
        }
        #expect(String(decoding: output, as: UTF8.self) == expected + expected)
    }

    @Test(arguments: [
        (["--format", "text"], "text: \"one\"\n---\ntext: \"two\"\n"),
        (["--format", "json"], #"{"text":"one"}{"text":"two"}"#),
        ([], #"{"text": "one", "other": 1} {"text": "two"}"#),
    ])
    func textIsSentAsMessages(format: [String], input: String) async throws {
        let output = try await receive(count: 2, format: "delimited") { endpoint in
            let arguments = ["send", "--to", endpoint, "--ignore-unknown"] + chatSchema + format
            let outcome = try await Program.product("lifeline", arguments).outcome(input: Data(input.utf8))
            #expect(outcome.status == 0, "\(outcome.errorText)")
        }
        #expect(try output == stream("one", "two"))
    }

    @Test func withoutATypeFieldsHaveNumbers() async throws {
        let output = try await receive(count: 1, format: "text") { endpoint in
            let sent = try stream("one")
            _ = try await lifeline("send", "--to", endpoint, "--format", "delimited", input: sent)
        }
        #expect(String(decoding: output, as: UTF8.self) == "4: \"one\"\n---\n")
    }

    @Test func aStreamGoesOverWebSocket() async throws {
        let sent = try stream("one", String(repeating: "two ", count: 100_000), "three")
        let output = try await receive(on: "ws://127.0.0.1:0/chat", count: 3, format: "delimited") { endpoint in
            #expect(endpoint.hasPrefix("ws://127.0.0.1:") && endpoint.hasSuffix("/chat"))
            let elsewhere = try await Program.product(
                "lifeline",
                ["send", "--to", "\(endpoint)/elsewhere"] + chatMessage("x")
            ).outcome()
            #expect(elsewhere.status == 69)
            #expect(elsewhere.errorText.contains("The server did not open a WebSocket"), "\(elsewhere.errorText)")
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
                    let outcome = try await lifeline("send", "--to", endpoint, "--format", "delimited", file)
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
            let arguments = ["send", "--to", endpoint, "--format", "delimited"] + chatSchema
            let outcome = try await Program.product("lifeline", arguments).outcome(input: input)
            #expect(outcome.status == 65)
            let place = "lifeline: Cannot decode message 3 of standard input, at byte \(input.count - 3). "
            #expect(outcome.errorText.hasPrefix(place), "\(outcome.errorText)")
        }
        #expect(try output == stream("one", "two"))
    }

    @Test func aStreamThatEndsInsideAMessageIsBadData() async throws {
        let input = try stream("one", "two").dropLast()
        let output = try await receive(count: 1, format: "delimited") { endpoint in
            let outcome = try await lifeline("send", "--to", endpoint, "--format", "delimited", input: input)
            #expect(outcome.status == 65)
            #expect(outcome.errorText.contains("The stream ends inside a message."))
        }
        #expect(try output == stream("one"))
    }

    // MARK: Exit codes

    @Test(arguments: [
        ["send", "--to", "tcp://127.0.0.1:1"],
        ["send", "--to", "tcp://127.0.0.1:1", "--format", "text"],
        ["send", "--to", "nowhere", "--format", "delimited"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--data", "{}", "b"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--data", "{}", "--count", "0"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--data", "{}", "--attempts", "0"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--data", "{}", "--proxy", "ftp://proxy"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--proxy", "http://proxy", "--no-proxy"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--replies", "1"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--both", "--for", "0"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--heartbeat-interval", "1"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--framing", "fixed-header", "--heartbeat", "{}"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--framing", "fixed-header", "--frame-url", "1"],
        ["send", "--to", "tcp://127.0.0.1:1", "--type", "a", "--head-type", "x"],
        ["receive"],
        ["receive", "--on", "tcp://127.0.0.1:0", "--to", "tcp://127.0.0.1:1"],
        ["receive", "--on", "tcp://127.0.0.1:0", "--format", "json"],
        ["receive", "--on", "tcp://127.0.0.1:0", "--attempts", "1"],
        ["receive", "--to", "tcp://127.0.0.1:1", "--quiet", "--verbose"],
        ["unknown"],
    ])
    func wrongUsageIs64(arguments: [String]) async throws {
        let outcome = try await Program.product("lifeline", arguments).outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains("--help"))
    }

    @Test func anUnavailablePeerIs69() async throws {
        let arguments = ["send", "--to", "unix:///tmp/no-such-socket", "--attempts", "1"] + chatMessage("a")
        let outcome = try await Program.product("lifeline", arguments).outcome()
        #expect(outcome.status == 69)
        let words = "lifeline: There is no socket /tmp/no-such-socket. Check that a program listens there.\n"
        #expect(outcome.errorText == words)
        let verbose = try await Program.product("lifeline", arguments + ["--verbose"]).outcome()
        #expect(verbose.errorText.contains("lifeline: #1 idle → connecting: started"), "\(verbose.errorText)")
        #expect(verbose.errorText.contains("\nlifeline: connectFailed: "), "\(verbose.errorText)")
    }

    @Test func anEndpointInUseIs69() async throws {
        let listener = try await RawSocket.listen()
        let outcome = try await lifeline("receive", "--on", "tcp://127.0.0.1:\(listener.port)", "--count", "1")
        #expect(outcome.status == 69)
        #expect(outcome.errorText.contains("127.0.0.1:\(listener.port)"), "\(outcome.errorText)")
    }

    @Test func aMissingFileIs74() async throws {
        let listener = try await RawSocket.listen()
        let outcome = try await lifeline(
            "send",
            "--to",
            "tcp://127.0.0.1:\(listener.port)",
            "--format",
            "delimited",
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
            _ = try await Program.product("lifeline", ["send", "--to", endpoint] + chatMessage("a")).outcome()
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
