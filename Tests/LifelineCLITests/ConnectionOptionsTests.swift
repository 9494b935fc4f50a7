import Foundation
import Lifeline
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import Testing

/// The options of `lifeline send` and `lifeline receive`, except those for message types.
@Suite(.timeLimit(.minutes(2)), .serialized) struct ConnectionOptionsTests {
    private static let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)

    private func lifeline(_ arguments: [String], input: Data = Data()) async throws -> Program.Outcome {
        try await Program.product("lifeline", arguments).outcome(input: input)
    }

    /// Runs a server of chat messages, and `body` with its endpoint.
    private func withChatServer(
        handler: @escaping @Sendable (Connection<ChatMessage, ChatMessage>) async throws -> Void,
        _ body: (_ endpoint: String) async throws -> Void
    ) async throws {
        try await withServer(
            listeningOn: Self.anyPort,
            receiving: ChatMessage.self,
            sending: ChatMessage.self,
            handler: handler
        ) { server in
            try await body("\(server.boundEndpoint)")
        }
    }

    private func text(_ data: Data) -> String { String(decoding: data, as: UTF8.self) }

    // MARK: Receiving from a server

    /// A server that greets, and ends the connection.
    private func withGreeter(_ body: (_ endpoint: String) async throws -> Void) async throws {
        try await withChatServer { connection in
            for text in ["one", "two", "three"] { try await connection.send(.with { $0.text = text }) }
            try await connection.finishSending()
        } _: {
            try await body($0)
        }
    }

    @Test func aServersMessagesArePrinted() async throws {
        try await withGreeter { endpoint in
            let outcome = try await lifeline(["receive", "--to", endpoint, "--count", "2"] + chatSchema)
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(text(outcome.output) == #"{"text":"one"}"# + "\n" + #"{"text":"two"}"# + "\n")
            #expect(outcome.errorText.hasPrefix("lifeline: connected to 127.0.0.1:"), "\(outcome.errorText)")
        }
    }

    @Test func aServerThatEndsInOrderIsNoFailure() async throws {
        try await withGreeter { endpoint in
            let arguments = ["receive", "--to", endpoint, "--attempts", "1", "--quiet"] + chatSchema
            let outcome = try await lifeline(arguments)
            #expect(outcome.status == 0)
            #expect(text(outcome.output).split(separator: "\n").count == 3)
            #expect(outcome.errorText.isEmpty, "\(outcome.errorText)")
        }
    }

    @Test func aServerThatIsNotThereIs69() async throws {
        let port = try TestPort.next()
        let outcome = try await lifeline(["receive", "--to", "tcp://127.0.0.1:\(port)", "--attempts", "1"])
        #expect(outcome.status == 69)
        #expect(outcome.errorText.hasPrefix("lifeline: 127.0.0.1:\(port) refused the connection. Check that "))
    }

    @Test func aBadMessageOfAServerIs65UnlessItIsLeftOut() async throws {
        for (options, status) in [([], 65), (["--skip-bad"], 0)] as [([String], Int32)] {
            let listener = try await RawSocket.listen()
            let arguments = ["receive", "--to", "tcp://127.0.0.1:\(listener.port)", "--count", "2"] + chatSchema
            async let running = lifeline(arguments + options)
            let server = try await listener.accept()
            try await server.write([3, 0x22, 1, 0x61, 2, 0x22, 9, 3, 0x22, 1, 0x62])
            let outcome = try await running
            #expect(outcome.status == status)
            let lines = text(outcome.output).split(separator: "\n")
            #expect(lines == (status == 0 ? [#"{"text":"a"}"#, #"{"text":"b"}"#] : [#"{"text":"a"}"#]))
            let place = "message 2 of 127.0.0.1:\(listener.port)"
            #expect(outcome.errorText.contains(status == 0 ? "left out \(place): " : "Cannot decode \(place). "))
        }
    }

    @Test func aServerThatSendsNoFramesIs65() async throws {
        let listener = try await RawSocket.listen()
        async let running = lifeline(["receive", "--to", "tcp://127.0.0.1:\(listener.port)", "--limit", "10"])
        let server = try await listener.accept()
        try await server.write([11])
        let outcome = try await running
        #expect(outcome.status == 65)
        let words = "127.0.0.1:\(listener.port) sent a message that is longer than --limit allows."
        #expect(outcome.errorText.contains(words), "\(outcome.errorText)")
    }

    // MARK: Receiving

    @Test func aBadMessageClosesItsConnection() async throws {
        for (options, count) in [([], 1), (["--skip-bad"], 2)] {
            let receiver = try RunningCommand(["receive", "--on", "tcp://127.0.0.1:0"] + chatSchema + options)
            try await receiver.wait { $0.errorText.contains("listening on ") && $0.errorText.contains("\n") }
            let port = try #require(Int(receiver.errorText.split(whereSeparator: { ":\n".contains($0) }).last ?? ""))
            let client = try await RawSocket.connect(toPort: port)
            try await client.write([3, 0x22, 1, 0x61, 2, 0x22, 9, 3, 0x22, 1, 0x62])
            // The command may have reset it by now.
            try? client.finish()
            _ = try? await client.read()
            let words = options.isEmpty ? "Cannot decode message 2 of it. " : "left out message 2 of it: "
            try await receiver.wait { $0.errorText.contains(words) && $0.lines.count == count }
            receiver.send(SIGTERM)
            #expect(await receiver.finish() == 0)
        }
    }

    @Test func messagesGoToAFileForATime() async throws {
        try await withTemporaryPath("messages") { path in
            let arguments = ["receive", "--on", "tcp://127.0.0.1:0", "--for", "1e-3", "--output", path]
            let outcome = try await lifeline(arguments)
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(FileManager.default.contents(atPath: path) == Data())
            let nowhere = try await lifeline(["receive", "--on", "tcp://127.0.0.1:0", "--output", "\(path)/nowhere"])
            #expect(nowhere.status == 74)
            #expect(nowhere.errorText.contains("\(path)/nowhere: Not a directory"), "\(nowhere.errorText)")
            try await withGreeter { endpoint in
                let to = ["receive", "--to", endpoint, "--count", "3", "--output", path] + chatSchema
                let received = try await lifeline(to)
                #expect(received.output.isEmpty)
                let lines = text(FileManager.default.contents(atPath: path) ?? Data()).split(separator: "\n")
                #expect(lines == ["one", "two", "three"].map { #"{"text":"\#($0)"}"# })
            }
        }
    }

    /// A file keeps its old data until there is something new to write.
    @Test func aFailedStartLeavesTheOutputFileAlone() async throws {
        let taken = try await RawSocket.listen()
        let absent = "tcp://127.0.0.1:\(try TestPort.next())"
        try await withTemporaryPath("messages") { path in
            writeFile(Array("old".utf8), to: path)
            for arguments in [
                ["receive", "--on", "tcp://127.0.0.1:\(taken.port)"],
                ["receive", "--to", absent, "--attempts", "1"],
                ["send", "--to", absent, "--attempts", "1", "--both"] + chatMessage("one"),
            ] {
                let outcome = try await lifeline(arguments + ["--output", path])
                #expect(outcome.status == 69, "\(outcome.errorText)")
                #expect(FileManager.default.contents(atPath: path) == Data("old".utf8), "\(arguments)")
            }
            try await withGreeter { endpoint in
                let to = ["receive", "--to", endpoint, "--count", "1", "--output", path] + chatSchema
                let outcome = try await lifeline(to)
                #expect(outcome.status == 0, "\(outcome.errorText)")
                #expect(FileManager.default.contents(atPath: path) == Data("{\"text\":\"one\"}\n".utf8))
            }
            writeFile(Array("old".utf8), to: path)
            let nothing = ["receive", "--on", "tcp://127.0.0.1:0", "--for", "1e-3", "--output", path]
            #expect(try await lifeline(nothing).status == 0)
            #expect(FileManager.default.contents(atPath: path) == Data())
        }
    }

    // MARK: Reports for programs

    @Test func reportsAreJSON() async throws {
        try await withEcho { endpoint in
            let send = ["send", "--to", endpoint, "--json", "--both", "--replies", "1", "--quiet"]
            let outcome = try await lifeline(send + chatMessage("one"))
            #expect(outcome.status == 0, "\(outcome.errorText)")
            let reports = outcome.errorText.split(separator: "\n")
            let sent = #"{"lostConnections":0,"sent":1,"undelivered":0}"#
            #expect(reports == [#"{"leftOut":0,"received":1}"#, sent[...]])
        }
        let absent = "tcp://127.0.0.1:\(try TestPort.next())"
        let failed = try await lifeline(["send", "--to", absent, "--json", "--attempts", "1"] + chatMessage("one"))
        #expect(failed.status == 69)
        #expect(
            failed.errorText.hasPrefix(#"{"lostConnections":0,"sent":0,"undelivered":0}"# + "\n"),
            "\(failed.errorText)"
        )
        try await withGreeter { endpoint in
            let receive = ["receive", "--to", endpoint, "--count", "2", "--json", "--quiet"] + chatSchema
            let outcome = try await lifeline(receive)
            #expect(outcome.status == 0)
            #expect(outcome.errorText == #"{"leftOut":0,"received":2}"# + "\n")
        }
    }

    // MARK: Both directions

    /// A server that answers each message with its text twice.
    private func withEcho(_ body: (_ endpoint: String) async throws -> Void) async throws {
        try await withChatServer { connection in
            for try await message in connection.messages {
                try await connection.send(.with { $0.text = message.text + message.text })
                if message.text == "bye" { return try await connection.finishSending() }
            }
        } _: {
            try await body($0)
        }
    }

    @Test func repliesArePrintedUntilThereAreEnough() async throws {
        try await withEcho { endpoint in
            let arguments = ["send", "--to", endpoint, "--both", "--replies", "2"] + chatSchema
            let outcome = try await lifeline(arguments, input: Data(#"{"text": "a"} {"text": "b"}"#.utf8))
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(text(outcome.output) == #"{"text":"aa"}"# + "\n" + #"{"text":"bb"}"# + "\n")
        }
    }

    @Test func repliesArePrintedUntilThePeerEnds() async throws {
        try await withEcho { endpoint in
            let arguments = ["send", "--to", endpoint, "--both", "--reply-format", "text"] + chatMessage("bye")
            let outcome = try await lifeline(arguments)
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(text(outcome.output) == "text: \"byebye\"\n---\n")
            #expect(outcome.errorText.isEmpty, "\(outcome.errorText)")
        }
    }

    /// Its standard input stays open.
    @Test func anInterruptEndsASenderThatWaitsForInput() async throws {
        try await withEcho { endpoint in
            let sender = try RunningCommand(["send", "--to", endpoint, "--both"] + chatSchema)
            try sender.type(#"{"text": "a"}"#)
            try await sender.wait { $0.lines == [#"{"text":"aa"}"#] }
            sender.send(SIGINT)
            #expect(await sender.finish() == 0, "\(sender.errorText)")
        }
    }

    @Test func aReplyThatIsNoneOfTheTypeIs65() async throws {
        let listener = try await RawSocket.listen()
        let to = ["send", "--to", "tcp://127.0.0.1:\(listener.port)", "--both"]
        async let running = lifeline(to + chatMessage("a"))
        let server = try await listener.accept()
        try await server.write([2, 0x22, 9])
        let outcome = try await running
        #expect(outcome.status == 65)
        #expect(outcome.errorText.contains("Cannot decode message 1 of 127.0.0.1:\(listener.port). "))
    }

    // MARK: Heartbeat

    @Test(arguments: ["send", "receive"]) func aSilentPeerIsAskedForASignOfLife(command: String) async throws {
        let listener = try await RawSocket.listen()
        let heartbeat = ["--heartbeat", #"{"text": "ping"}"#, "--heartbeat-interval", "0.5"]
        let both = command == "send" ? ["--both"] : []
        let to = [command, "--to", "tcp://127.0.0.1:\(listener.port)"] + both
        let running = try RunningCommand(to + chatSchema + heartbeat)
        let server = try await listener.accept()
        let ping: [UInt8] = [6, 0x22, 4] + "ping".utf8
        for _ in 0..<2 {
            #expect(try await server.read(ping.count) == ping)
            // An answer that equals the question is not printed.
            try await server.write(ping)
        }
        try await server.write([3, 0x22, 1, 0x61])
        try await running.wait { $0.lines == [#"{"text":"a"}"#] }
        running.send(SIGINT)
        try server.finish()
        #expect(await running.finish() == 0, "\(running.errorText)")
    }

    // MARK: Framing

    @Test(arguments: ["fixed-header", "head-line"]) func messagesGoOverOlderFramings(framing: String) async throws {
        let options = ["--framing", framing] + chatSchema
        let output = try await receive(options: options, count: 2, format: "json") { endpoint in
            let url = framing == "fixed-header" ? ["--frame-url", "0x500"] : ["--head-type", "chat"]
            let outcome = try await lifeline(
                ["send", "--to", endpoint] + options + url,
                input: Data(#"{"text": "a"} {"text": "b"}"#.utf8)
            )
            #expect(outcome.status == 0, "\(outcome.errorText)")
        }
        #expect(text(output) == #"{"text":"a"}"# + "\n" + #"{"text":"b"}"# + "\n")
    }

    @Test(
        arguments: [
            (["fixed-header"], [0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3]),
            (["fixed-header", "--frame-url", "0x500"], [0, 0, 5, 0, 0, 0, 4, 1, 0, 0, 0, 3]),
            (["head-line", "--head-type", "chat"], Array(#"{"type":"chat","size":3}"#.utf8) + [0x0D, 0x0A]),
        ] as [([String], [UInt8])]
    )
    func headsSayWhatTheOptionsSay(options: [String], head: [UInt8]) async throws {
        let listener = try await RawSocket.listen()
        let to = ["send", "--to", "tcp://127.0.0.1:\(listener.port)", "--framing"]
        async let running = lifeline(to + options + chatMessage("a"))
        let server = try await listener.accept()
        #expect(try await server.read(head.count + 3) == head + [0x22, 1, 0x61])
        try server.finish()
        #expect(try await running.status == 0)
    }

    // MARK: Terminals

    /// - Returns: the text on a terminal.
    private func shown(_ variables: String, _ arguments: [String]) async throws -> (status: Int32, text: String) {
        let lifeline = try Program.product("lifeline", []).path
        let command = (["env", "TERM=xterm"] + [variables, lifeline] + arguments).joined(separator: " ")
        let outcome = try await Program(URL(filePath: "/usr/bin/script"), ["-qec", command, "/dev/null"]).outcome()
        return (outcome.status, text(outcome.output))
    }

    @Test func failuresAreRedOnATerminalUnlessColorIsUnwanted() async throws {
        let arguments = ["send", "--to", "unix:///tmp/no-such-socket", "--format", "delimited", "/nowhere"]
        let colored = try await shown("NO_COLOR=", arguments)
        #expect(colored.text.contains("\u{1b}[31mlifeline: "), "\(colored.text)")
        let plain = try await shown("NO_COLOR=1", arguments)
        #expect(plain.text.contains("lifeline: ") && !plain.text.contains("\u{1b}[31m"), "\(plain.text)")
    }

    @Test func aTerminalGetsNoBinaryMessages() async throws {
        let shown = try await shown("NO_COLOR=1", ["receive", "--on", "tcp://127.0.0.1:0", "--format", "delimited"])
        #expect(shown.status == 64)
        #expect(shown.text.contains("Messages are binary"))
    }
}
