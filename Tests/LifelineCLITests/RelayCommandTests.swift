import Foundation
import Lifeline
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import Testing

@testable import LifelineCLI

/// `lifeline relay` between clients and servers, and `lifeline replay`.
@Suite(.timeLimit(.minutes(2)), .serialized) struct RelayCommandTests {
    private static let protos = URL(filePath: #filePath).appending(path: "../../../Protos").standardized.path

    private func lifeline(_ arguments: [String], input: Data = Data()) async throws -> Program.Outcome {
        try await Program.product("lifeline", arguments).outcome(input: input)
    }

    private func text(_ data: Data) -> String { String(decoding: data, as: UTF8.self) }

    private func frame(_ text: String) throws -> [UInt8] {
        try ChatMessage.with { $0.text = text }.withDelimitedBytes { Array($0) }
    }

    /// Starts a relay to a server.
    private func relay(to endpoint: String, _ options: [String] = []) async throws -> (RunningCommand, port: Int) {
        let relay = try RunningCommand(["relay", "--listen", "tcp://127.0.0.1:0", "--to", endpoint] + options)
        try await relay.wait { $0.errorText.contains("listening on ") && $0.errorText.contains("\n") }
        let line = relay.errorText.split(separator: "\n").first { $0.hasPrefix("listening on ") } ?? ""
        return (relay, try #require(Int(line.split(separator: ":").last ?? "")))
    }

    private func end(_ relay: RunningCommand) async {
        relay.send(SIGTERM)
        #expect(await relay.finish() == 0, "\(relay.errorText)")
    }

    /// Runs a server that answers each message with its text twice, and ends when its client does.
    private func withEcho(_ body: (_ endpoint: String) async throws -> Void) async throws {
        try await withServer(
            listeningOn: .tcp(host: "127.0.0.1", port: 0),
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            for try await message in connection.messages {
                try await connection.send(.with { $0.text = message.text + message.text })
            }
        } _: { server in
            try await body("\(server.boundEndpoint)")
        }
    }

    // MARK: Output

    @Test func bothDirectionsAreShown() async throws {
        try await withEcho { server in
            let (relay, port) = try await relay(to: server, ["--format", "lines"] + chatSchema)
            let send = ["send", "--to", "tcp://127.0.0.1:\(port)", "--both", "--quiet", "--replies", "1"]
            for _ in 1...2 {
                let sent = try await lifeline(send + chatMessage("one\\u009b"))
                #expect(
                    sent.status == 0 && text(sent.output) == "{\"text\":\"one\u{9b}one\u{9b}\"}\n",
                    "\(sent.errorText)"
                )
            }
            try await relay.wait { $0.lines.count == 4 && $0.errorText.contains("connection 2 is over") }
            let shown = relay.lines.map { line in
                String(line.wholeMatch(of: /[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3} (.*)/)?.output.1 ?? "\(line)")
            }
            // The text cannot control a terminal.
            let (one, two) = (#"{"text":"one\u009b"}"#, #"{"text":"one\u009bone\u009b"}"#)
            #expect(shown == ["#1 → \(one)", "#1 ← \(two)", "#2 → \(one)", "#2 ← \(two)"])
            await end(relay)
        }
    }

    @Test func aPipeGetsJSON() async throws {
        try await withEcho { server in
            let reply = ["--reply-type", "sample.chat.v1.ChatMessage"]
            let (relay, port) = try await relay(to: server, chatSchema + reply)
            let client = try await RawSocket.connect(toPort: port)
            try await client.write(frame("one"))
            #expect(try await client.readSome(frame("oneone").count) == frame("oneone"))
            // A string that is not UTF-8 is malformed for the server, too: it ends the connection.
            try await client.write([3, 0x22, 1, 0xFF])
            _ = try? await client.read()
            try await relay.wait { $0.lines.count == 3 }
            let objects = try relay.lines.map { line in
                try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            }
            #expect(objects.allSatisfy { $0["time"] is Double && $0["connection"] as? Int == 1 })
            let toServer = objects.filter { $0["direction"] as? String == "toServer" }
            let toClient = objects.filter { $0["direction"] as? String == "toClient" }
            #expect(toServer.first?["message"] as? [String: String] == ["text": "one"])
            #expect(toServer.last?["frame"] as? String == "IgH/" && toServer.last?["message"] == nil)
            #expect((toServer.last?["error"] as? String)?.isEmpty == false)
            #expect(toClient.map { $0["message"] as? [String: String] } == [["text": "oneone"]])
            await end(relay)
        }
    }

    @Test func aTerminalGetsLines() async throws {
        try await withEcho { server in
            let terminal = try Terminal()
            let command = ["relay", "--listen", "tcp://127.0.0.1:0", "--to", server] + chatSchema
            let relay = try RunningCommand(command, after: "exec 1<>\(terminal.path)")
            try await relay.wait { $0.errorText.contains("listening on ") && $0.errorText.contains("\n") }
            let port = try #require(Int(relay.errorText.split(whereSeparator: { ":\n".contains($0) }).last ?? ""))
            let client = try await RawSocket.connect(toPort: port)
            try await client.write(frame("one"))
            var screen = ""
            while screen.count(where: \.isNewline) < 2 { screen += await terminal.read() }
            let lines = screen.split(whereSeparator: \.isNewline)
            #expect(lines[0].hasSuffix(#" #1 → {"text":"one"}"#) && lines[1].hasSuffix(#" #1 ← {"text":"oneone"}"#))
            await relay.killAndWait()
        }
    }

    /// Malformed messages are passed on unchanged, and shown as such.
    @Test func aFrameThatCannotBeDecodedIsPassedOn() async throws {
        let listener = try await RawSocket.listen()
        let (relay, port) = try await relay(
            to: "tcp://127.0.0.1:\(listener.port)",
            ["--format", "lines"] + chatSchema
        )
        let client = try await RawSocket.connect(toPort: port)
        let sent = [2, 0x22, 9] + (try frame("a")) + [0]
        try await client.write(sent)
        let server = try await listener.accept()
        #expect(try await server.readSome(sent.count) == sent)
        try await server.write([1, 0xFF])
        #expect(try await client.readSome(2) == [1, 0xFF])
        try await relay.wait { $0.lines.count == 4 }
        #expect(relay.lines[0].contains(" #1 → cannot be decoded: "), "\(relay.output)")
        #expect(relay.lines[0].hasSuffix(" 2 bytes: 22 09"), "\(relay.output)")
        #expect(relay.lines[1].hasSuffix(#" #1 → {"text":"a"}"#) && relay.lines[2].hasSuffix(" #1 → {}"))
        #expect(relay.lines[3].contains(" #1 ← cannot be decoded: ") && relay.lines[3].hasSuffix(" 1 byte: ff"))
        await relay.killAndWait()
    }

    @Test func withoutATypeFieldsHaveNumbers() async throws {
        try await withEcho { server in
            let expected = ["lines": #"#1 → 4: "a\302\233""#, "json": #""fields":"4: \"a\\302\\233\"""#]
            for (format, shown) in expected {
                let (relay, port) = try await relay(to: server, ["--format", format])
                let client = try await RawSocket.connect(toPort: port)
                try await client.write(frame("a\u{9b}"))
                _ = try await client.readSome(1)
                try await relay.wait { $0.lines.count == 2 }
                #expect(relay.lines[0].contains(shown), "\(relay.output)")
                await relay.killAndWait()
            }
        }
    }

    // MARK: How connections end

    /// The relay cuts the client, so that it does not see a regular end. The next client is served.
    @Test func aServerThatIsNotThereCutsTheClient() async throws {
        let serverPort = try TestPort.next()
        let (relay, port) = try await relay(to: "tcp://127.0.0.1:\(serverPort)")
        for _ in 1...2 {
            let client = try await RawSocket.connect(toPort: port)
            await #expect(throws: RawSocket.Failure.self) { _ = try await client.read() }
        }
        let words = ": 127.0.0.1:\(serverPort) refused the connection\n"
        try await relay.wait { $0.errorText.components(separatedBy: words).count == 3 }
        await end(relay)
    }

    @Test func theEndOfOneSideIsThatOfTheOther() async throws {
        let listener = try await RawSocket.listen()
        let (relay, port) = try await relay(to: "tcp://127.0.0.1:\(listener.port)")
        // A client that has ended its side still receives messages.
        let client = try await RawSocket.connect(toPort: port)
        let server = try await listener.accept()
        try await client.write([1, 1])
        try client.finish()
        #expect(try await server.read() == [1, 1])
        try await server.write([1, 2])
        try server.finish()
        #expect(try await client.read() == [1, 2])
        try await relay.wait { $0.errorText.contains("connection 1 is over") }
        await relay.killAndWait()
    }

    /// The other side gets the earlier messages, and is then reset.
    @Test(
        arguments: [
            ([], PeerEnd.reset, "reset the connection"),
            ([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .none, "sent a message with an invalid length"),
            ([5, 1], .finish, "ended the connection inside a message"),
        ] as [([UInt8], PeerEnd, String)]
    )
    func theFailureOfOneSideIsThatOfTheOther(bytes: [UInt8], peerEnd: PeerEnd, words: String) async throws {
        let listener = try await RawSocket.listen()
        let (relay, port) = try await relay(to: "tcp://127.0.0.1:\(listener.port)")
        for (number, name) in [(1, "client"), (2, "server")] {
            let client = try await RawSocket.connect(toPort: port)
            let server = try await listener.accept()
            let (failing, other) = name == "client" ? (client, server) : (server, client)
            try await failing.write([1, 4])
            #expect(try await other.readSome(2) == [1, 4])
            try await failing.write([1, 5] + bytes)
            if peerEnd == .finish { try failing.finish() }
            #expect(try await other.readSome(2) == [1, 5])
            if peerEnd == .reset { try failing.reset() }
            await #expect(throws: RawSocket.Failure.self) { _ = try await other.read() }
            try await relay.wait { $0.errorText.contains("connection \(number): the \(name) \(words)") }
            try await relay.wait { $0.errorText.contains("connection \(number) is over\n") }
        }
        #expect(!relay.errorText.contains("closed the connection of"), "\(relay.errorText)")
        await end(relay)
    }

    enum PeerEnd { case reset, finish, none }

    /// More than the systems have room for between the relay and a server that does not read yet.
    @Test func messagesBeforeAFailureAreDelivered() async throws {
        let listener = try await RawSocket.listen()
        let (relay, port) = try await relay(to: "tcp://127.0.0.1:\(listener.port)")
        let client = try await RawSocket.connect(toPort: port)
        let server = try await listener.accept()
        let frame = [0xE8, 0x07] + [UInt8](repeating: 0, count: 1000)
        let frames = Array(repeatElement(frame, count: 1000).joined())
        try await client.write(frames + [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        try await relay.wait { $0.errorText.contains("connection 1 is over\n") }
        #expect(try await server.read(frames.count) == frames)
        await #expect(throws: RawSocket.Failure.self) { _ = try await server.read() }
        await end(relay)
    }

    /// Neither side may see this as a regular end of the other.
    @Test(arguments: [SIGTERM, SIGINT]) func anInterruptCutsBothSides(signal: Int32) async throws {
        let listener = try await RawSocket.listen()
        let (relay, port) = try await relay(to: "tcp://127.0.0.1:\(listener.port)")
        let client = try await RawSocket.connect(toPort: port)
        let server = try await listener.accept()
        try await client.write([1, 1])
        #expect(try await server.readSome(2) == [1, 1])
        relay.send(signal)
        await #expect(throws: RawSocket.Failure.self) { _ = try await client.read() }
        await #expect(throws: RawSocket.Failure.self) { _ = try await server.read() }
        #expect(await relay.finish() == 0)
        let told = relay.errorText.split(separator: "\n").dropFirst(2)
        #expect(told == ["lifeline: the relay ends"], "\(relay.errorText)")
    }

    /// A client that does not read holds up only its server, and the relay's memory does not grow.
    @Test func aClientThatStallsHoldsItsServerUp() async throws {
        let listener = try await RawSocket.listen()
        let (relay, port) = try await relay(to: "tcp://127.0.0.1:\(listener.port)", ["--format", "json"])
        let stalled = try await RawSocket.connect(toPort: port)
        let server = try await listener.accept()
        let frame = [0xE8, 0x07] + [UInt8](repeating: 0, count: 1000)
        let chunk = Array(repeatElement(frame, count: 100).joined())
        let flood = Task { while true { try await server.write(chunk) } }
        try await KernelSocket.wait { $0.localPort == listener.port && $0.isStuck }
        // The memory of a debug build, and a few times the water marks of the two connections.
        let status = try String(contentsOfFile: "/proc/\(relay.processIdentifier)/status", encoding: .utf8)
        let peak = try #require(status.firstMatch(of: /VmHWM:\s+([0-9]+) kB/)?.output.1).description
        #expect(try #require(Int(peak)) < 200_000, "kB")
        let other = try await RawSocket.connect(toPort: port)
        let otherServer = try await listener.accept()
        try await otherServer.write([1, 2])
        #expect(try await other.readSome(2) == [1, 2])
        flood.cancel()
        try server.reset()
        try stalled.reset()
        await relay.killAndWait()
    }

    // MARK: Sessions

    /// Calls of each kind pass. The passed messages are session frames.
    @Test func sessionsPass() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let schema = ["--proto", "\(Self.protos)/lifeline/session/v1/session.proto", "-I", Self.protos]
        let (relay, port) = try await relay(to: endpoint, schema + ["--type", "lifeline.session.v1.Frame"])
        let to = "tcp://127.0.0.1:\(port)"
        let echo = try await call(to, "Echo", "--data", #"{"text": "one"}"#)
        #expect(echo.status == 0 && text(echo.output) == "{\"text\":\"one\",\"count\":\"1\"}\n", "\(echo.errorText)")
        let watch = try await call(to, "Watch", "--data", #"{"count": 3, "interval": "0.001s"}"#)
        #expect(watch.status == 0 && text(watch.output).split(separator: "\n").count == 3, "\(watch.errorText)")
        let talk = try RunningCommand(["call", to, "Room/Talk", "--name", "Ada"])
        try talk.type(#"{"text": "Hello"}"#)
        try await talk.wait { $0.output.contains(#""from":"Ada","text":"Hello""#) }
        try talk.endInput()
        #expect(await talk.finish() == 0, "\(talk.errorText)")
        try await relay.wait { $0.errorText.contains("connection 3 is over") }
        #expect(relay.lines.first?.contains(#""direction":"toServer","#) == true)
        #expect(relay.lines.first?.contains(#""message":{"hello":{"#) == true, "\(relay.lines.first ?? "")")
        #expect(relay.lines.contains { $0.contains(#""direction":"toClient","#) && $0.contains(#"{"welcome":{"#) })
        #expect(!relay.output.contains(#""error""#), "all of it is decoded")
        await relay.killAndWait()
        await server.killAndWait()
    }

    @Test func otherTransportsAreCarriedOver() async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: "ws://127.0.0.1:0/room")
        try await withTemporaryPath { socket in
            let relay = try RunningCommand(["relay", "--listen", "unix://\(socket)", "--to", endpoint])
            try await relay.wait { $0.errorText.contains("listening on ") && $0.errorText.contains("\n") }
            let echo = try await call("unix://\(socket)", "Echo", "--data", #"{"text": "one"}"#)
            #expect(
                echo.status == 0 && text(echo.output) == "{\"text\":\"one\",\"count\":\"1\"}\n",
                "\(echo.errorText)"
            )
            try await relay.wait { $0.errorText.contains("connection 1 is over") }
            #expect(relay.lines.first?.contains(#""direction":"toServer","#) == true)
            await relay.killAndWait()
        }
        await server.killAndWait()
    }

    // MARK: Records

    @Test func recordedMessagesArePrintedAndSentAgain() async throws {
        try await withTemporaryPath("record.jsonl") { record in
            try await withEcho { server in
                let options = ["--record", record]
                for run in 1...2 {
                    let (relay, port) = try await relay(to: server, options)
                    let client = try await RawSocket.connect(toPort: port)
                    for number in 1...run {
                        let text = "\(run)\(number)\u{9b}"
                        try await client.write(frame(text))
                        #expect(try await client.readSome(frame(text + text).count) == frame(text + text))
                    }
                    await relay.killAndWait()
                    // A time that no clock can show, and a truncated last line.
                    let file = try #require(FileHandle(forWritingAtPath: record))
                    try file.seekToEnd()
                    let bad = #"{"time":1e300,"connection":1,"direction":"toServer","frame":""}"#
                    try file.write(contentsOf: Data("\(bad)\n{\"time\":".utf8))
                    try file.close()
                }
                let printed = try await lifeline(["replay", record, "--format", "lines"] + chatSchema)
                #expect(printed.status == 0, "\(printed.errorText)")
                let shown = text(printed.output).split(separator: "\n").map { line in
                    String(line.wholeMatch(of: /[0-9]+\.[0-9]{6} (.*)/)?.output.1 ?? line)
                }
                func texts(_ connection: Int, _ text: String) -> [String] {
                    let text = text + "\\u009b"
                    return [
                        "#\(connection) → {\"text\":\"\(text)\"}", "#\(connection) ← {\"text\":\"\(text)\(text)\"}",
                    ]
                }
                #expect(shown == texts(1, "11") + texts(2, "21") + texts(2, "22"))
                let words = { (line: Int) in
                    "lifeline: left out line \(line) of \(record), which is no recorded message\n"
                }
                #expect(printed.errorText == words(3) + words(4) + words(9) + words(10))
                let one = try await lifeline(["replay", record, "--connection", "1"] + chatSchema)
                #expect(text(one.output).split(separator: "\n").count == 2)
                let none = try await lifeline(["replay", record, "--connection", "3"])
                #expect(none.status == 65 && none.errorText.contains("There is no message of connection 3 in "))

                let again = ["replay", record, "--to", server, "--speed", "0", "--connection", "2"] + chatSchema
                let replayed = try await lifeline(again)
                #expect(replayed.status == 0, "\(replayed.errorText)")
                let replies = ["21", "22"].map { "{\"text\":\"\($0)\u{9b}\($0)\u{9b}\"}\n" }.joined()
                #expect(text(replayed.output) == replies)
                #expect(replayed.errorText.hasSuffix("sent 2 messages of connection 2; 2 replies came, as recorded\n"))
                let first = try await lifeline(["replay", record, "--to", server, "--speed", "1000", "--quiet"])
                #expect(first.status == 0 && text(first.output).contains("11"), "\(first.errorText)")
            }
        }
    }

    @Test func anotherNumberOfRepliesIs65() async throws {
        try await withTemporaryPath("record.jsonl") { record in
            let line = { (direction: String, time: String) in
                #"{"connection":4,"direction":"\#(direction)","frame":"IgFh","time":\#(time)}"# + "\n"
            }
            let lines = line("toServer", "1.5") + line("toClient", "1.6") + line("toClient", "1.7")
            try Data(lines.utf8).write(to: URL(filePath: record))
            try await withEcho { server in
                let outcome = try await lifeline(["replay", record, "--to", server, "--wait", "1", "--json"])
                #expect(outcome.status == 65)
                let report = #"{"recordedReplies":2,"replies":1,"sent":1}"# + "\n"
                let words = "sent 1 message of connection 4; 1 reply came, and 2 were recorded."
                #expect(
                    outcome.errorText == "\(report)lifeline: Another number of replies: \(words)\n",
                    "\(outcome.errorText)"
                )
            }
            let absent = "127.0.0.1:\(try TestPort.next())"
            let outcome = try await lifeline(["replay", record, "--to", "tcp://\(absent)"])
            #expect(outcome.status == 69)
            #expect(outcome.errorText.contains("\(absent) refused the connection."), "\(outcome.errorText)")
        }
    }

    /// A line of a record.
    private func line(_ direction: String = "toServer", at time: String = "1", connection: Int = 1) -> String {
        #"{"connection":\#(connection),"direction":"\#(direction)","frame":"IgFh","time":\#(time)}"# + "\n"
    }

    private func write(_ lines: String, to path: String) throws {
        // Accessible only to this user, as a relay requires.
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        #expect(FileManager.default.createFile(atPath: path, contents: Data(lines.utf8), attributes: attributes))
    }

    /// A relay records only to an existing record of this user or to a new file, and does not touch other files.
    @Test func otherFilesAreNotOverwritten() async throws {
        let relay = ["relay", "--listen", "tcp://127.0.0.1:0", "--to", "tcp://127.0.0.1:1", "--record"]
        for path in ["/dev/zero", "/dev/full", "/dev/stdout"] {
            let outcome = try await lifeline(relay + [path])
            #expect(outcome.status == 74 && outcome.errorText.hasPrefix("lifeline: Cannot "), "\(outcome.errorText)")
        }
        try await withTemporaryPath("record") { path in
            func expect(_ status: Int32, _ words: String) async throws {
                let outcome = try await lifeline(relay + [path])
                #expect(outcome.status == status)
                #expect(outcome.errorText.contains(words), "\(outcome.errorText)")
            }
            #expect(mkfifo(path, 0o600) == 0)
            try await expect(74, "it is no regular file.")
            try FileManager.default.removeItem(atPath: path)
            try write("precious notes", to: path)
            try await expect(65, "it has something, and no recorded message.")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious notes")
            #expect(chmod(path, 0o644) == 0)
            try await expect(74, "other users may open it.")
            // A number after which no further number exists.
            try write(line(connection: .max), to: path)
            try await expect(65, "no recorded message")
        }
    }

    /// The file of a relay that was killed while it wrote its first line.
    @Test(arguments: [#"{"connection":1,"direction":"toSer"#, #"{"conn"#])
    func aRecordOfOneTornLineIsContinued(line: String) async throws {
        try await withTemporaryPath("record") { path in
            try write(line, to: path)
            // By a relay without traffic, and then by another one.
            #expect(try await TrafficRecord(appendingTo: path).connectionCount == 0)
            let record = try await TrafficRecord(appendingTo: path)
            #expect(record.connectionCount == 0)
            try record.append([PassedMessage(time: 0, connection: 1, direction: .toClient, frame: Data([1]))])
            var reader = TrafficRecordReader(try InputFile(path: path), isQuiet: true)
            #expect(try await reader.next()?.map(\.connection) == [1])
        }
    }

    /// As long as a process that another thread starts has not run its program.
    @Test func aCopiedDescriptorDoesNotKeepTheLock() async throws {
        try await withTemporaryPath("record") { path in
            var copy: Int32 = -1
            defer { close(copy) }
            do {
                let record = try await TrafficRecord(appendingTo: path)
                copy = try copyOfDescriptor(of: path)
                #expect(record.connectionCount == 0)
            }
            #expect(try await TrafficRecord(appendingTo: path).connectionCount == 0)
        }
    }

    private func copyOfDescriptor(of path: String) throws -> Int32 {
        let folder = "/proc/self/fd/"
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: folder).filter { name in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: folder + name)) == path
        }
        return dup(try #require(descriptors.compactMap { Int32($0) }.first))
    }

    @Test func oneRelayRecordsAtATime() async throws {
        try await withTemporaryPath("record.jsonl") { record in
            let (relay, port) = try await relay(to: "tcp://127.0.0.1:1", ["--record", record])
            let options = ["--to", "tcp://127.0.0.1:1", "--record", record]
            let second = try await lifeline(["relay", "--listen", "tcp://127.0.0.1:0"] + options)
            #expect(second.status == 74)
            #expect(second.errorText.contains("another lifeline records in it"), "\(second.errorText)")
            try FileManager.default.removeItem(atPath: record)
            let listening = try await lifeline(["relay", "--listen", "tcp://127.0.0.1:\(port)"] + options)
            #expect(listening.status == 69, "\(listening.errorText)")
            #expect(!fileExists(at: record), "one that cannot listen records nothing")
            await end(relay)
        }
    }

    /// As on a full disk: the record ends with a whole line, and no message is passed on that is not recorded.
    @Test func aFullRecordIs74() async throws {
        try await withTemporaryPath("record.jsonl") { record in
            try write(line(), to: record)
            let listener = try await RawSocket.listen()
            let relay = try RunningCommand(
                ["relay", "--listen", "tcp://127.0.0.1:0", "--record", record]
                    + ["--to", "tcp://127.0.0.1:\(listener.port)"],
                after: "ulimit -f 2"
            )
            try await relay.wait { $0.errorText.contains("listening on ") && $0.errorText.contains("\n") }
            let port = try #require(Int(relay.errorText.split(whereSeparator: { ":\n".contains($0) }).last ?? ""))
            let client = try await RawSocket.connect(toPort: port)
            let server = try await listener.accept()
            try await client.write([0xD0, 0x0F] + [UInt8](repeating: 0, count: 2000))
            #expect(await relay.finish() == 74)
            #expect(relay.errorText.contains("Cannot write to \(record): File too large."), "\(relay.errorText)")
            await #expect(throws: RawSocket.Failure.self) { _ = try await server.read() }
            #expect(try String(contentsOfFile: record, encoding: .utf8) == line())
        }
    }

    /// Nothing is sent for a minute, and the end is still noticed.
    @Test func aReplayEndsInAPause() async throws {
        try await withTemporaryPath("record.jsonl") { record in
            try write(line() + line(at: "61") + line("toClient", at: "62"), to: record)
            let listener = try await RawSocket.listen()
            let replay = ["replay", record, "--to", "tcp://127.0.0.1:\(listener.port)", "--json"]
            let report = #"{"recordedReplies":1,"replies":0,"sent":1}"# + "\n"

            let reset = try RunningCommand(replay)
            let first = try await listener.accept()
            #expect(try await first.readSome(4) == [3, 0x22, 1, 0x61])
            try first.reset()
            #expect(await reset.finish() == 74)
            #expect(reset.errorText.hasPrefix(report) && reset.errorText.contains("reset the connection."))

            let unread = try RunningCommand(replay, after: "exec >/dev/full")
            let second = try await listener.accept()
            try await second.write([3, 0x22, 1, 0x61])
            #expect(await unread.finish() == 74)
            #expect(unread.errorText.contains("Cannot write to standard output"), "\(unread.errorText)")

            for (signal, options) in [(SIGINT, []), (SIGTERM, ["--json"])] as [(Int32, [String])] {
                let interrupted = try RunningCommand(Array(replay.dropLast()) + options)
                let third = try await listener.accept()
                #expect(try await third.readSome(4) == [3, 0x22, 1, 0x61])
                if options.isEmpty {
                    try third.finish()
                    try await interrupted.wait { $0.errorText.contains(" has ended its side, ") }
                }
                interrupted.send(signal)
                #expect(await interrupted.finish() == 128 + signal)
                let words = "lifeline: sent 1 message of connection 1; 0 replies came, and 1 was recorded\n"
                #expect(interrupted.errorText.hasSuffix(options.isEmpty ? words : report), "\(interrupted.errorText)")
            }
        }
    }

    /// The error does not blame the server for other causes.
    @Test func aReplayBlamesWhoIsToBlame() async throws {
        try await withTemporaryPath("record.jsonl") { record in
            try write(line() + line("toClient"), to: record)
            let listener = try await RawSocket.listen()
            let replay = ["replay", record, "--to", "tcp://127.0.0.1:\(listener.port)", "--quiet"]
            let long = try await lifeline(replay + ["--limit", "2"])
            #expect(long.status == 65)
            let peer = "127.0.0.1:\(listener.port)"
            #expect(long.errorText == "lifeline: A message to \(peer) is longer than --limit allows.\n")
            _ = try await listener.accept()
            async let outcome = lifeline(replay)
            let server = try await listener.accept()
            try await server.write([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
            #expect(try await outcome.status == 65)
            #expect(try await outcome.errorText == "lifeline: \(peer) sent a message with an invalid length.\n")
        }
    }

    @Test func aFileThatIsNoRecordIsSaidSoInFewLines() async throws {
        try await withTemporaryPath("notes") { notes in
            try write(String(repeating: "a note\n", count: 100), to: notes)
            let outcome = try await lifeline(["replay", notes])
            #expect(outcome.status == 65)
            let lines = outcome.errorText.split(separator: "\n")
            #expect(lines.count == 7, "\(outcome.errorText)")
            let count = "lifeline: lines of \(notes) that are not recorded messages: 100 in all"
            #expect(lines.dropFirst(5).first == count[...])
            #expect(lines.last == "lifeline: There is no message in \(notes).")
        }
    }

    /// The pauses between messages are the recorded ones, divided by --speed.
    @Test func theRecordedPaceIsKept() async throws {
        try await withTemporaryPath("record.jsonl") { record in
            let lines = ["5", "5.2", "5.4"].map {
                #"{"connection":1,"direction":"toServer","frame":"IgFh","time":\#($0)}"# + "\n"
            }
            try Data(lines.joined().utf8).write(to: URL(filePath: record))
            for (options, shortest) in [([], 0.4), (["--speed", "4"], 0.1)] as [([String], Double)] {
                let listener = try await RawSocket.listen()
                let to = ["replay", record, "--to", "tcp://127.0.0.1:\(listener.port)", "--wait", "10"] + options
                // Taken before the command starts: it cannot have been faster, however late its messages are read here.
                let start = ContinuousClock.now
                async let outcome = lifeline(to)
                let server = try await listener.accept()
                #expect(try await server.readSome(4) == [3, 0x22, 1, 0x61])
                _ = try await server.read()
                #expect((ContinuousClock.now - start) / .seconds(1) >= shortest)
                try server.finish()
                #expect(try await outcome.status == 0)
            }
        }
    }

    @Test(arguments: [
        ["relay", "--listen", "tcp://127.0.0.1:0"],
        ["relay", "--listen", "tls://127.0.0.1:0", "--to", "tcp://127.0.0.1:1"],
        ["relay", "--listen", "tcp://127.0.0.1:0", "--to", "tcp://127.0.0.1:1", "--ca", "ca.pem"],
        ["relay", "--listen", "tcp://127.0.0.1:0", "--to", "tcp://127.0.0.1:1", "--reply-type", "A"],
        ["relay", "--listen", "tcp://127.0.0.1:0", "--to", "udp://127.0.0.1:1"],
        ["relay", "--listen", "tcp://127.0.0.1:7", "--to", "tcp://127.0.0.1:7"],
        ["relay", "--listen", "tcp://0.0.0.0:7", "--to", "tcp://127.0.0.1:7"],
        ["relay", "--listen", "tcp://[::]:7", "--to", "tcp://localhost:7"],
        ["relay", "--listen", "tcp://127.0.0.1:7", "--to", "tcp://localhost:7"],
        ["relay", "--listen", "tcp://localhost:7", "--to", "tcp://127.0.0.1:7"],
        ["relay", "--listen", "tcp://127.0.0.1:7", "--to", "tcp://0.0.0.0:7"],
        [
            "relay", "--listen", "tcp://127.0.0.1:0", "--to", "tcp://127.0.0.1:1", "--framing", "head-line", "--record",
            "/tmp/no-such-record",
        ],
        ["replay"],
        ["replay", "file", "--speed", "2"],
        ["replay", "file", "--connection", "0"],
        ["replay", "file", "--to", "tcp://127.0.0.1:1", "--format", "json"],
        ["replay", "file", "--to", "tcp://127.0.0.1:1", "--speed", "-1"],
    ])
    func wrongUsageIs64(arguments: [String]) async throws {
        let outcome = try await lifeline(arguments)
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains("lifeline \(arguments[0]) --help"), "\(outcome.errorText)")
    }

    /// An IPv4 socket accepts no IPv6 connection, so this is not a relay to itself.
    @Test func aRelayBetweenVersionsOfOnePort() async throws {
        let options = ["--listen", "tcp://0.0.0.0:1", "--to", "tcp://[::1]:1", "--ca", "ca.pem"]
        let outcome = try await lifeline(["relay"] + options)
        // The option for certificates is refused, after those for endpoints.
        #expect(outcome.status == 64 && !outcome.errorText.contains("itself"), "\(outcome.errorText)")
    }

    /// The heads are included.
    @Test func olderFramingsPass() async throws {
        let listener = try await RawSocket.listen()
        let options = ["--framing", "fixed-header", "--format", "lines"] + chatSchema
        let (relay, port) = try await relay(to: "tcp://127.0.0.1:\(listener.port)", options)
        let client = try await RawSocket.connect(toPort: port)
        let server = try await listener.accept()
        let content: [UInt8] = [0x22, 1, 0x61]
        let request: [UInt8] = [0, 0, 5, 0, 0, 0, 4, 7, 0, 0, 0, 3] + content
        try await client.write(request)
        #expect(try await server.readSome(request.count) == request)
        let response: [UInt8] = [0, 0, 5, 0, 0, 0, 0, 9, 0, 0, 4, 7, 0, 0, 0, 3] + content
        try await server.write(response)
        #expect(try await client.readSome(response.count) == response)
        try await relay.wait { $0.lines.count == 2 }
        #expect(relay.lines.allSatisfy { $0.hasSuffix(#"{"text":"a"}"#) })
        await relay.killAndWait()
    }
}
