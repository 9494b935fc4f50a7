import Foundation
import Lifeline
import LifelineCore
import LifelineProtos
import LifelineTestSupport
import SampleServices
import Testing

/// How `lifeline call` ends when it cannot do what it should: its exit codes, and what it says.
@Suite(.timeLimit(.minutes(2)), .serialized) struct CallFailureTests {
    @Test(arguments: [
        ["call", "--count", "0"],
        ["call", "--concurrency", "0"],
        ["call", "--concurrency", "1025"],
        ["call", "--timeout", "-1"],
        ["call", "--to", "nowhere"],
        ["call", "--ca", "ca.pem"],
        ["call", "--proxy", "ftp://proxy"],
        ["call", "--give-up-after", "nan"],
        ["call", "watch", "--count", "0"],
        ["call", "watch", "--interval", "1e99"],
        ["call", "say-all", "--timeout", "-1"],
        ["call", "talk", "--count", "1"],
        ["call", "report"],
        ["call", "chat", "--count", "0"],
        ["call", "unknown"],
        ["serve", "--on", "tls://127.0.0.1:0"],
        ["serve", "--drain=-1"],
        ["serve", "--keep", "inf"],
    ])
    func wrongUsageIs64(arguments: [String]) async throws {
        let outcome = try await Program.product("lifeline", arguments).outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains("--help"), "\(outcome.errorText)")
    }

    @Test(arguments: [["echo"], ["watch"], ["say-all"], ["talk"], ["report", "--text", "x"], ["chat"]])
    func anAbsentServerIs69(mode: [String]) async throws {
        let port = try TestPort.next()
        let arguments = ["call"] + mode + ["--to", "tcp://127.0.0.1:\(port)", "--give-up-after", "0"]
        let outcome = try await Program.product("lifeline", arguments).outcome(input: Data("x\n".utf8))
        #expect(outcome.status == 69, "\(outcome.errorText)")
        let lines = outcome.errorText.split(separator: "\n")
        #expect(lines.last?.hasPrefix("lifeline: No connection to the room. connectFailed: ") == true)
        if mode == ["echo"] {
            // The failure may come first.
            let summaries = ["1 asked and not replied", "1 not asked"].map { ["lifeline: 1 call: 0 replied, \($0)"] }
            #expect(summaries.contains(lines.dropLast().map(String.init)), "\(lines)")
        } else {
            #expect(lines.count == 1)
        }
    }

    /// What answers is no server of sessions, and is not asked again.
    @Test func anotherServerIs76() async throws {
        let listener = try await RawSocket.listen()
        async let outcome = call("--to", "tcp://127.0.0.1:\(listener.port)", "--quiet")
        let peer = try await listener.accept()
        try await peer.write(Array(String(repeating: "HTTP/1.1 400 Bad Request\r\n\r\n", count: 10).utf8))
        let ended = try await outcome
        #expect(ended.status == 76, "\(ended.errorText)")
        #expect(ended.errorText.contains("protocolViolation"))
        #expect(ended.errorText.split(separator: "\n").count == 1)
        try peer.reset()
    }

    /// It has 10 s to welcome the session.
    @Test func aServerThatSaysNothingIs69() async throws {
        let listener = try await RawSocket.listen()
        let outcome = try await call("--to", "tcp://127.0.0.1:\(listener.port)", "--give-up-after", "0", "--quiet")
        #expect(outcome.status == 69)
        #expect(outcome.errorText.hasPrefix("lifeline: No connection to the room. "), "\(outcome.errorText)")
    }

    @Test func aDeadlineIs75() async throws {
        // It accepts, and says nothing.
        let listener = try await RawSocket.listen()
        let to = ["--to", "tcp://127.0.0.1:\(listener.port)", "--timeout", "0.1"]
        for mode in [["echo"], ["watch"], ["say-all"], ["talk"], ["report", "--text", "x"]] {
            let outcome = try await Program.product("lifeline", ["call"] + mode + to).outcome()
            #expect(outcome.status == 75, "\(mode): \(outcome.errorText)")
        }
    }

    @Test func anInterruptIs130() async throws {
        let listener = try await RawSocket.listen()
        let caller = try RunningCommand(["call", "--to", "tcp://127.0.0.1:\(listener.port)", "--count", "200"])
        let peer = try await listener.accept()
        _ = try await peer.readSome(1)
        caller.send(SIGINT)
        #expect(await caller.finish() == 130)
        try peer.reset()
        // Of 64 at once, some may not be there yet.
        let summary = try #require(
            caller.errorText.wholeMatch(
                of: /lifeline: 200 calls: 0 replied(?:, (\d+) asked and not replied)?, (\d+) not asked\n/
            ),
            "\(caller.errorText)"
        )
        let (asked, notAsked) = (summary.output.1.flatMap { Int($0) } ?? 0, Int(summary.output.2) ?? 0)
        #expect(asked + notAsked == 200 && asked <= 64)
    }

    @Test func aRefusalIs77() async throws {
        var configuration = SessionServerConfiguration()
        configuration.authenticate = { _ in throw SessionStatus(.unauthenticated, "Show your ticket.") }
        try await withRoom(TestRoom(), configuration: configuration) { endpoint in
            for mode in [["echo"], ["watch"], ["say-all"], ["talk"], ["report", "--text", "x"], ["chat"]] {
                let arguments = ["call"] + mode + ["--to", endpoint]
                let outcome = try await Program.product("lifeline", arguments).outcome(input: Data("x\n".utf8))
                #expect(outcome.status == 77, "\(mode): \(outcome.errorText)")
                #expect(outcome.errorText.contains("Show your ticket."))
            }
        }
    }

    @Test(
        arguments: [
            (SessionStatus.Code.permissionDenied, 77), (.unavailable, 69), (.deadlineExceeded, 75),
            (.invalidArgument, 65),
            (.internal, 70), (.unimplemented, 70),
        ] as [(SessionStatus.Code, Int32)]
    )
    func aStatusHasACode(code: SessionStatus.Code, exitCode: Int32) async throws {
        try await withRoom(TestRoom { throw SessionStatus(code, "By the test.") }) { endpoint in
            for mode in [["echo"], ["watch"], ["say-all"], ["talk"], ["chat"]] {
                let arguments = ["call"] + mode + ["--to", endpoint]
                let outcome = try await Program.product("lifeline", arguments).outcome(input: Data("x\n".utf8))
                #expect(outcome.status == exitCode, "\(mode): \(outcome.errorText)")
                #expect(outcome.errorText.contains("By the test."), "\(outcome.errorText)")
            }
        }
    }

    @Test func anotherReplyIs76() async throws {
        try await withRoom(TestRoom(isWrong: true)) { endpoint in
            let outcome = try await call("--to", endpoint)
            #expect(outcome.status == 76, "\(outcome.errorText)")
            #expect(outcome.errorText.contains("The reply to echo 1 is another one's."))
        }
    }

    /// The server has begun to handle it when it dies, and the next one does not know the session.
    @Test(arguments: [["watch"], ["say-all"], ["talk"], ["report", "--text", "x"], ["chat"]])
    func whatMustNotBeDoneTwiceIs74(mode: [String]) async throws {
        let begun = AsyncStream.makeStream(of: Void.self)
        let hanging = TestRoom {
            begun.continuation.yield()
            // Until it is cancelled.
            try await Task.sleep(for: .seconds(1000))
        }
        let caller = Mutable<RunningCommand?>(nil)
        let port = try TestPort.next()
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: port)
        let to = "\(endpoint)"
        try? await withSessionServer(listeningOn: endpoint, services: [hanging]) { _ in
            let command = try RunningCommand(["call"] + mode + ["--to", to])
            caller.value = command
            if mode == ["chat"] {
                try command.type("secret")
                try command.endInput()
            }
            for await _ in begun.stream { break }
            throw CancellationError()
        }
        try await TestPort.waitUntilFree(port)
        try await withRoom(TestRoom(), on: to) { _ in
            let command = try #require(caller.value)
            #expect(await command.finish() == 74, "\(command.errorText)")
            #expect(command.errorText.contains("in doubt: 1 of sample.room.v1.Room/"), "\(command.errorText)")
            if mode == ["chat"] {
                #expect(command.errorText.contains("nobody knows whether the room has heard: secret\n"))
            }
            if mode.first == "report" { #expect(command.errorText.contains("Report it again")) }
        }
    }

    @Test func aRecordThatCannotBeOpenedIs74() async throws {
        let outcome = try await Program.product("lifeline", ["serve", "--on", "tcp://127.0.0.1:0", "--record", "/"])
            .outcome()
        #expect(outcome.status == 74)
        #expect(outcome.errorText.hasPrefix("lifeline: Cannot open /: "))
    }

    /// An echo that cannot be recorded has not happened.
    @Test func aFullRecordFailsTheEcho() async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--record", "/dev/full")
        let outcome = try await call("--to", endpoint)
        #expect(outcome.status == 69, "\(outcome.errorText)")
        #expect(server.errorText.contains("Cannot write to /dev/full: No space left"))
        await server.killAndWait()
    }

    /// A line that has room in part is none.
    @Test func aRecordThatIsCutShortHasWholeLines() async throws {
        try await withTemporaryPath("record") { path in
            let (server, endpoint) = try await RunningCommand.serve(
                "--record",
                path,
                after: "trap '' XFSZ; ulimit -f 8"
            )
            for _ in 1...2 {
                let outcome = try await call("--to", endpoint, "--count", "400", "--concurrency", "1")
                #expect(outcome.status == 69, "\(outcome.errorText)")
            }
            #expect(server.errorText.contains("no room for a line"), "\(server.errorText)")
            let text = try String(contentsOf: URL(filePath: path), encoding: .utf8)
            let record = try Record(path: path)
            #expect(text.hasSuffix("\n") && record.counts.count > 1)
            #expect(record.counts.keys.sorted() == Array(1...record.counts.count))
            await server.killAndWait()
        }
    }

    @Test func aFullOutputIs74() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let lifeline = try Program.product("lifeline", []).path
        for mode in ["echo --text x", "watch", "say-all", "talk", "chat"] {
            let command = "echo x | \"$0\" call \(mode) --to \(endpoint) >/dev/full"
            let outcome = try await Program(URL(filePath: "/bin/sh"), ["-c", command, lifeline]).outcome()
            #expect(outcome.status == 74, "\(mode): \(outcome.errorText)")
            #expect(outcome.errorText.contains("Cannot write to standard output"))
        }
        await server.killAndWait()
    }
}

private final class Mutable<Value: Sendable>: @unchecked Sendable {
    // One task uses it at a time.
    var value: Value
    init(_ value: Value) { self.value = value }
}

private func withRoom(
    _ room: TestRoom,
    on endpoint: String = "tcp://127.0.0.1:0",
    configuration: SessionServerConfiguration = SessionServerConfiguration(),
    _ body: (_ endpoint: String) async throws -> Void
) async throws {
    try await withSessionServer(
        listeningOn: try Endpoint(endpoint),
        configuration: configuration,
        services: [room]
    ) { server in
        try await body("\(server.boundEndpoints[0])")
    }
}

/// A room which does what a test wants before it answers.
private struct TestRoom: Sample_Room_V1_RoomHandler {
    var isWrong = false
    var handle: @Sendable () async throws -> Void = {}

    func echo(_ request: Sample_Room_V1_EchoRequest, context: SessionContext) async throws -> Sample_Room_V1_EchoReply {
        try await handle()
        return .with { $0.number = request.number + (isWrong ? 1 : 0) }
    }

    func watch(
        _ request: Sample_Room_V1_WatchRequest,
        to stream: SessionStreamWriter<Sample_Room_V1_Tick>,
        context: SessionContext
    ) async throws {
        try await handle()
    }

    func say(_ request: Sample_Room_V1_SayRequest, context: SessionContext) async throws -> Sample_Room_V1_SayReply {
        try await handle()
        return .init()
    }

    func report(_ message: Sample_Room_V1_Status, context: SessionContext) async throws {
        try await handle()
    }

    func sayAll(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        context: SessionContext
    ) async throws -> Sample_Room_V1_SayAllReply {
        try await handle()
        return .init()
    }

    func talk(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        to stream: SessionStreamWriter<Sample_Room_V1_NewsItem>,
        context: SessionContext
    ) async throws {
        try await handle()
    }
}
