import Foundation
import LifelineTestSupport
import Testing

/// `lifeline serve` and `lifeline call`: what a session is for, in each of its shapes.
@Suite(.timeLimit(.minutes(2)), .serialized) struct RoomCommandTests {
    private func text(_ outcome: Program.Outcome) -> String { String(decoding: outcome.output, as: UTF8.self) }

    @Test(arguments: ["tcp://127.0.0.1:0", "ws://127.0.0.1:0/room"])
    func echoesComeBack(listening: String) async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: listening)
        let one = try await call("--to", endpoint, "--text", "Grüezi")
        #expect(one.status == 0 && text(one) == "Grüezi\n")
        #expect(one.errorText.isEmpty, "\(one.errorText)")
        let many = try await call("echo", "--to", endpoint, "--text", "x", "--count", "500", "--concurrency", "7")
        #expect(many.status == 0 && text(many) == String(repeating: "x\n", count: 500))
        #expect(many.errorText == "lifeline: 500 calls: 500 replied\n")
        let counted = try await call("--to", endpoint, "--count", "1000")
        #expect(counted.status == 0 && counted.output.isEmpty, "results only")
        #expect(counted.errorText == "lifeline: 1000 calls: 1000 replied\n")
        let quiet = try await call("--to", endpoint, "--count", "3", "--quiet")
        #expect(quiet.status == 0 && quiet.errorText.isEmpty)
        server.send(SIGINT)
        #expect(await server.finish() == 0)
    }

    @Test func echoesAreRecordedBeforeTheyAreAnswered() async throws {
        try await withTemporaryPath("record") { path in
            let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--record", path)
            #expect(try await call("--to", endpoint, "--count", "100").status == 0)
            let first = try Record(path: path)
            #expect(first.counts.count == 100 && first.counts.values.allSatisfy { $0 == 1 })
            #expect(first.sessions.count == 1)
            #expect(try await call("--to", endpoint, "--count", "2").status == 0)
            let second = try Record(path: path)
            #expect(second.counts[1] == 2 && second.counts[2] == 2 && second.sessions.count == 2)
            await server.killAndWait()
        }
    }

    @Test func echoesGoOverTLS() async throws {
        let root = try TestCertificate.authority()
        let certificate = try TestCertificate.localhost(issuedBy: root)
        try await withTemporaryPath("ca.pem") { ca in
            try await withTemporaryPath("cert.pem") { cert in
                try await withTemporaryPath("key.pem") { key in
                    try Data(root.pem).write(to: URL(filePath: ca))
                    try Data(certificate.pem).write(to: URL(filePath: cert))
                    try Data(certificate.keyPEM).write(to: URL(filePath: key))
                    let (server, endpoint) = try await RunningCommand.serve(
                        on: "tls://127.0.0.1:0",
                        "--certificate",
                        cert,
                        "--key",
                        key
                    )
                    let trusting = try await call("--to", endpoint, "--text", "Grüezi", "--ca", ca)
                    #expect(trusting.status == 0 && text(trusting) == "Grüezi\n", "\(trusting.errorText)")
                    let untrusting = try await call("--to", endpoint, "--text", "Grüezi")
                    #expect(untrusting.status == 69)
                    #expect(untrusting.errorText.contains("certificateUntrusted"), "\(untrusting.errorText)")
                    await server.killAndWait()
                }
            }
        }
    }

    @Test func ticksAreWatched() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let outcome = try await call("watch", "--to", endpoint, "--count", "3", "--interval", "0.01")
        #expect(outcome.status == 0 && outcome.errorText.isEmpty)
        #expect(
            text(outcome).wholeMatch(of: /1 [0-9:.]{12}\n2 [0-9:.]{12}\n3 [0-9:.]{12}\n/) != nil,
            "\(text(outcome))"
        )
        // Without a count, it is watched until it is interrupted.
        let watch = try RunningCommand(["call", "watch", "--to", endpoint, "--interval", "0.01"])
        try await watch.wait { $0.lines.count > 3 }
        watch.send(SIGINT)
        #expect(await watch.finish() == 0)
        #expect(watch.errorText.isEmpty)
        await server.killAndWait()
    }

    @Test func aStatusIsReported() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let outcome = try await call("report", "--to", endpoint, "--name", "Ada", "--text", "at lunch\u{1b}[2J")
        #expect(outcome.status == 0 && outcome.output.isEmpty && outcome.errorText.isEmpty)
        // What somebody else's terminal would obey is shown.
        try await server.wait { $0.errorText.contains("Ada left; last status: at lunch\\u{1b}[2J\n") }
        #expect(server.errorText.contains("Ada joined\nAda reports: at lunch\\u{1b}[2J\n"))
        await server.killAndWait()
    }

    @Test func twoTalk() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let ada = try RunningCommand(["call", "chat", "--to", endpoint, "--name", "Ada"])
        let bob = try RunningCommand(["call", "chat", "--to", endpoint, "--name", "Bob", "--count", "3"])
        try await server.wait { $0.errorText.contains("Ada joined") && $0.errorText.contains("Bob joined") }
        try ada.type("Hello")
        try await bob.wait { $0.lines == ["Ada: Hello"] }
        try bob.type("Grüezi\n")
        try await ada.wait { $0.lines == ["Ada: Hello", "Bob: Grüezi"] }
        try ada.type("Bye")
        try ada.endInput()
        #expect(await ada.finish() == 0)
        #expect(await bob.finish() == 0, "it has had its three lines, and its input goes on")
        #expect(ada.lines == ["Ada: Hello", "Bob: Grüezi", "Ada: Bye"])
        #expect(bob.lines == ada.lines)
        #expect(ada.errorText.isEmpty && bob.errorText.isEmpty)
        try await server.wait { $0.errorText.contains("Ada left") && $0.errorText.contains("Bob left") }
        #expect(server.errorText.contains("\nAda: Hello\nBob: Grüezi\nAda: Bye\n"))
        await server.killAndWait()
    }

    @Test func aPipeIsSaid() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        // An empty line is nothing to say, and the last one needs no end.
        let outcome = try await call("chat", "--to", endpoint, "--name", "Ada", input: "one\r\n\ntwo\nthree")
        #expect(outcome.status == 0 && outcome.errorText.isEmpty)
        #expect(text(outcome) == "Ada: one\nAda: two\nAda: three\n")
        // The line's end does not count.
        let longest = String(repeating: "x", count: 4096)
        let whole = try await call("chat", "--to", endpoint, "--name", "Ada", input: longest + "\r\n")
        #expect(whole.status == 0 && text(whole) == "Ada: \(longest)\n", "\(whole.errorText)")
        let long = try await call("chat", "--to", endpoint, input: "short\n" + String(repeating: "x", count: 4097))
        #expect(long.status == 65)
        #expect(long.errorText.contains("longer than the 4096 bytes"), "\(long.errorText)")
        await server.killAndWait()
    }

    @Test func allLinesAreSaidInOneCall() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        // An empty line is nothing to say, and the last one needs no end.
        let outcome = try await call("say-all", "--to", endpoint, "--name", "Ada", input: "one\r\n\ntwo\nthree")
        #expect(outcome.status == 0 && outcome.errorText.isEmpty)
        #expect(text(outcome) == "3 said, the last one as number 3\n")
        let more = try await call("say-all", "--to", endpoint, "--name", "Bob", input: "four\n")
        #expect(more.status == 0 && text(more) == "1 said, the last one as number 4\n")
        let nothing = try await call("say-all", "--to", endpoint, input: "")
        #expect(nothing.status == 0 && text(nothing) == "nothing said\n")
        #expect(server.errorText.contains("\nAda: one\nAda: two\nAda: three\n"))
        await server.killAndWait()
    }

    /// What is said comes back while standard input goes on.
    @Test func twoTalkInOneCallEach() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let ada = try RunningCommand(["call", "talk", "--to", endpoint, "--name", "Ada"])
        try ada.type("Hello")
        try await ada.wait { $0.lines == ["Ada: Hello"] }
        let bob = try RunningCommand(["call", "talk", "--to", endpoint, "--name", "Bob"])
        try bob.type("Grüezi")
        try await ada.wait { $0.lines == ["Ada: Hello", "Bob: Grüezi"] }
        try await bob.wait { $0.lines == ["Bob: Grüezi"] }
        // Others hear it, whatever they do it with.
        let chat = try await call("chat", "--to", endpoint, "--name", "Eve", input: "Bye")
        #expect(text(chat) == "Eve: Bye\n")
        try await ada.wait { $0.lines.last == "Eve: Bye" }
        try ada.endInput()
        #expect(await ada.finish() == 0)
        try bob.type("Alone")
        try await bob.wait { $0.lines == ["Bob: Grüezi", "Eve: Bye", "Bob: Alone"] }
        try bob.endInput()
        #expect(await bob.finish() == 0)
        #expect(ada.lines == ["Ada: Hello", "Bob: Grüezi", "Eve: Bye"])
        #expect(ada.errorText.isEmpty && bob.errorText.isEmpty)
        await server.killAndWait()
    }

    @Test func whatIsPipedIntoATalkComesBack() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let outcome = try await call("talk", "--to", endpoint, "--name", "Ada", input: "one\r\n\ntwo\nthree")
        #expect(outcome.status == 0 && outcome.errorText.isEmpty)
        #expect(text(outcome) == "Ada: one\nAda: two\nAda: three\n")
        let nothing = try await call("talk", "--to", endpoint, input: "")
        #expect(nothing.status == 0 && nothing.output.isEmpty && nothing.errorText.isEmpty)
        await server.killAndWait()
    }

    @Test(arguments: ["say-all", "talk"])
    func aLineThatIsTooLongEndsTheCall(mode: String) async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let longest = String(repeating: "x", count: 4096)
        let whole = try await call(mode, "--to", endpoint, "--name", "Ada", input: longest + "\r\n")
        #expect(whole.status == 0, "\(whole.errorText)")
        let long = try await call(mode, "--to", endpoint, input: "short\n\(longest)x\n")
        #expect(long.status == 65)
        #expect(long.errorText.contains("longer than the 4096 bytes"), "\(long.errorText)")
        await server.killAndWait()
    }

    /// The call ends, and not only the command: the room has lost its visitor.
    @Test(arguments: [("talk", 0), ("say-all", 128 + SIGINT)] as [(String, Int32)])
    func anInterruptEndsTheCall(mode: String, status: Int32) async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let ada = try RunningCommand(["call", mode, "--to", endpoint, "--name", "Ada"])
        try ada.type("Hello")
        try await server.wait { $0.errorText.contains("Ada: Hello") }
        ada.send(SIGINT)
        #expect(await ada.finish() == status, "\(ada.errorText)")
        #expect(ada.errorText.isEmpty)
        try await server.wait { $0.errorText.contains("Ada left") }
        await server.killAndWait()
    }

    /// The next room counts anew, and what was said in the last one does not come back any more.
    @Test func aRoomThatWasRestartedIsLeft() async throws {
        let (first, endpoint) = try await RunningCommand.serve(on: TestPort.nextEndpoint())
        let ada = try RunningCommand(["call", "chat", "--to", endpoint, "--name", "Ada"])
        try ada.type("one")
        try ada.type("two")
        try await ada.wait { $0.lines == ["Ada: one", "Ada: two"] }
        // In order: the news may overtake the reply to what was said last, which would be in doubt.
        first.send(SIGTERM)
        #expect(await first.finish() == 0)
        let (second, _) = try await RunningCommand.serve(on: endpoint)
        try await ada.wait { $0.errorText.contains("a new session has begun\n") }
        try ada.endInput()
        #expect(await ada.finish() == 0, "\(ada.errorText)")
        // And who says something there leaves when that has come back.
        let bob = try await call("chat", "--to", endpoint, "--name", "Bob", input: "three")
        #expect(bob.status == 0 && text(bob) == "Bob: three\n")
        await second.killAndWait()
    }

    @Test func whatIsSaidInTheNextRoomComesBack() async throws {
        let (first, endpoint) = try await RunningCommand.serve(on: TestPort.nextEndpoint())
        let ada = try RunningCommand(["call", "chat", "--to", endpoint, "--name", "Ada"])
        for number in 1...3 { try ada.type("\(number)") }
        try await ada.wait { $0.lines.count == 3 }
        // In order: the news may overtake the reply to what was said last, which would be in doubt.
        first.send(SIGTERM)
        #expect(await first.finish() == 0)
        let (second, _) = try await RunningCommand.serve(on: endpoint)
        try await ada.wait { $0.errorText.contains("a new session has begun\n") }
        try ada.type("4")
        try ada.endInput()
        #expect(await ada.finish() == 0, "\(ada.errorText)")
        #expect(ada.lines == (1...4).map { "Ada: \($0)" })
        await second.killAndWait()
    }

    @Test func anInterruptLeavesTheRoom() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let ada = try RunningCommand(["call", "chat", "--to", endpoint, "--name", "Ada"])
        try await server.wait { $0.errorText.contains("Ada joined") }
        ada.send(SIGTERM)
        #expect(await ada.finish() == 0)
        try await server.wait { $0.errorText.contains("Ada left") }
        await server.killAndWait()
    }

    @Test(arguments: [
        ["call"], ["call", "echo"], ["call", "watch"], ["call", "say-all"], ["call", "talk"], ["call", "report"],
        ["call", "chat"], ["serve"],
    ])
    func helpTeaches(command: [String]) async throws {
        let outcome = try await Program.product("lifeline", command + ["--help"]).outcome()
        #expect(outcome.status == 0)
        #expect(text(outcome).contains("  lifeline \(command[0]) "), "an example")
        guard command.count == 1 else { return }
        for scheme in command == ["serve"] ? ["tcp", "tls", "ws", "wss", "unix"] : ["tls", "ws", "wss", "unix"] {
            #expect(text(outcome).contains(" \(scheme)://"), "\(scheme)")
        }
    }
}

/// What `lifeline serve --record` has written.
struct Record {
    private(set) var counts: [Int: Int] = [:]
    private(set) var sessions: Set<Substring> = []

    init(path: String) throws {
        let lines = try String(contentsOf: URL(filePath: path), encoding: .utf8).split(separator: "\n")
        for line in lines {
            let words = line.split(separator: " ")
            guard words.count == 2, words[0].count == 32, let number = Int(words[1]) else {
                throw RunningCommand.Ended(errorText: "a line of the record: \(line)")
            }
            sessions.insert(words[0])
            counts[number, default: 0] += 1
        }
    }
}

/// Counts the lines of a record while it grows.
struct GrowingRecord {
    private let path: String
    private var readByteCount: UInt64 = 0
    private var lineCount = 0

    init(path: String) { self.path = path }

    /// How many there are so far. Reads what came since the last look.
    mutating func count() throws -> Int {
        let file = try FileHandle(forReadingFrom: URL(filePath: path))
        defer { try? file.close() }
        try file.seek(toOffset: readByteCount)
        let news = try file.readToEnd() ?? Data()
        readByteCount += UInt64(news.count)
        for byte in news where byte == UInt8(ascii: "\n") { lineCount += 1 }
        return lineCount
    }
}
