import Foundation
import Lifeline
import LifelineCore
import LifelineProtos
import LifelineTestSupport
import SampleServices
import Testing

/// How `lifeline call` fails: its exit codes and messages.
@Suite(.timeLimit(.minutes(2)), .serialized) struct CallFailureTests {
    /// A method of each kind.
    private static let methods = ["Echo", "Watch", "SayAll", "Talk", "Report"]
    /// For servers without reflection, and for no server at all.
    private static let schema = ["--proto", "\(protos)/sample/room/v1/room.proto", "-I", protos]
    private static let protos = URL(filePath: #filePath).appending(path: "../../../Protos").standardized.path

    private func call(_ endpoint: String, _ method: String, _ options: String...) async throws -> Program.Outcome {
        let arguments = ["call", endpoint, "Room/\(method)"] + Self.schema + options
        return try await Program.product("lifeline", arguments).outcome(input: Data("{}\n".utf8))
    }

    @Test(arguments: [
        ["call"],
        ["call", "tcp://127.0.0.1:1"],
        ["call", "nowhere", "Room/Echo"],
        ["call", "tcp://127.0.0.1:1", "Room/Echo", "--count", "0"],
        ["call", "tcp://127.0.0.1:1", "Room/Echo", "--concurrency", "0"],
        ["call", "tcp://127.0.0.1:1", "Room/Echo", "--concurrency", "1025"],
        ["call", "tcp://127.0.0.1:1", "Room/Echo", "--timeout", "-1"],
        ["call", "tcp://127.0.0.1:1", "Room/Echo", "--ca", "ca.pem"],
        ["call", "tcp://127.0.0.1:1", "Room/Echo", "--proxy", "ftp://proxy"],
        ["call", "tcp://127.0.0.1:1", "Room/Echo", "--give-up-after", "nan"],
        ["call", "tcp://127.0.0.1:1", "Room/Echo", "--metadata", "tenant"],
        ["call", "tcp://127.0.0.1:1", "Room/Echo", "--json"],
        ["receive", "--to", "tcp://127.0.0.1:1", "--idle", "5"],
        ["list"],
        ["list", "tcp://127.0.0.1:1", "--proto", "room.proto"],
        ["describe", "Room"],
        ["serve", "--on", "tls://127.0.0.1:0"],
        ["serve", "--drain=-1"],
        ["serve", "--keep", "inf"],
    ])
    func wrongUsageIs64(arguments: [String]) async throws {
        let outcome = try await Program.product("lifeline", arguments).outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains("--help"), "\(outcome.errorText)")
    }

    @Test(arguments: methods)
    func anAbsentServerIs69(method: String) async throws {
        let endpoint = "tcp://127.0.0.1:\(try TestPort.next())"
        let outcome = try await call(endpoint, method, "--give-up-after", "0")
        #expect(outcome.status == 69, "\(outcome.errorText)")
        let address = endpoint.dropFirst("tcp://".count)
        let reason = "No address of \(endpoint) accepted a connection (\(address): Connection refused)."
        #expect(
            outcome.errorText.hasPrefix("lifeline: No connection to \(endpoint). \(reason)"),
            "\(outcome.errorText)"
        )
        #expect(outcome.errorText.split(separator: "\n").count == 1)
    }

    /// The other end is not a session server, and is not tried again.
    @Test func anotherServerIs76() async throws {
        let listener = try await RawSocket.listen()
        async let outcome = call("tcp://127.0.0.1:\(listener.port)", "Echo", "--quiet")
        let peer = try await listener.accept()
        try await peer.write(Array(String(repeating: "HTTP/1.1 400 Bad Request\r\n\r\n", count: 10).utf8))
        let ended = try await outcome
        #expect(ended.status == 76, "\(ended.errorText)")
        #expect(ended.errorText.contains("Is that a server of sessions?"), "\(ended.errorText)")
        #expect(ended.errorText.split(separator: "\n").count == 1)
        try peer.reset()
    }

    /// The server has 10 s to send the welcome.
    @Test func aServerThatSaysNothingIs69() async throws {
        let listener = try await RawSocket.listen()
        let endpoint = "tcp://127.0.0.1:\(listener.port)"
        let outcome = try await call(endpoint, "Echo", "--give-up-after", "0", "--quiet")
        #expect(outcome.status == 69)
        #expect(outcome.errorText.hasPrefix("lifeline: No connection to \(endpoint). "), "\(outcome.errorText)")
    }

    @Test(arguments: methods)
    func aDeadlineIs75(method: String) async throws {
        // The server accepts, and sends nothing.
        let listener = try await RawSocket.listen()
        let outcome = try await call("tcp://127.0.0.1:\(listener.port)", method, "--timeout", "0.1")
        #expect(outcome.status == 75, "\(outcome.errorText)")
    }

    @Test func anInterruptIs130() async throws {
        let listener = try await RawSocket.listen()
        let arguments = ["call", "tcp://127.0.0.1:\(listener.port)", "Room/Echo", "--count", "200"] + Self.schema
        let caller = try RunningCommand(arguments)
        let peer = try await listener.accept()
        _ = try await peer.readSome(1)
        caller.send(SIGINT)
        #expect(await caller.finish() == 130)
        try peer.reset()
        #expect(caller.output.isEmpty)
    }

    @Test func aRefusalIs77() async throws {
        var configuration = SessionServerConfiguration()
        configuration.authenticate = { _ in throw SessionStatus(.unauthenticated, "Show your ticket.") }
        try await withRoom(TestRoom(), configuration: configuration) { endpoint in
            for method in Self.methods {
                let outcome = try await call(endpoint, method)
                #expect(outcome.status == 77, "\(method): \(outcome.errorText)")
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
            for method in Self.methods where method != "Report" {
                let outcome = try await call(endpoint, method)
                #expect(outcome.status == exitCode, "\(method): \(outcome.errorText)")
                #expect(outcome.errorText.contains("By the test."), "\(outcome.errorText)")
            }
        }
    }

    /// The server has begun to handle it when it dies, and the next one does not know the session.
    @Test(arguments: methods)
    func callsInDoubtExitWith74(method: String) async throws {
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
            let command = try RunningCommand(["call", to, "Room/\(method)"] + Self.schema)
            caller.value = command
            for await _ in begun.stream { break }
            throw CancellationError()
        }
        try await TestPort.waitUntilFree(port)
        try await withRoom(TestRoom(), on: to) { _ in
            let command = try #require(caller.value)
            #expect(await command.finish() == 74, "\(command.errorText)")
            #expect(command.errorText.contains("in doubt: 1 of sample.room.v1.Room/\(method)"), "\(command.errorText)")
            if method == "Echo" { #expect(command.errorText.contains("lifeline: in doubt: {}\n")) }
        }
    }

    /// A server that no longer answers does not hold up an interrupted command.
    @Test(arguments: ["Watch", "Talk"])
    func anInterruptEndsACallOfAStoppedServer(method: String) async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let caller = try RunningCommand(["call", endpoint, "Room/\(method)", "--name", "Ada"])
        try await server.wait { $0.errorText.contains("Ada joined") }
        if method == "Watch" { try await caller.wait { !$0.lines.isEmpty } }
        server.send(SIGSTOP)
        caller.send(SIGINT)
        #expect(await caller.finish() == 128 + SIGINT)
        await server.killAndWait()
    }

    /// The calls before a malformed request are made, and their replies are printed.
    @Test(arguments: ["1", "16"])
    func theRequestsBeforeABadOneAreAnswered(concurrency: String) async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let requests = (1...200).map { "{\"number\": \($0)}" }.joined() + "{\"other\": 1}"
        let options = ["--data", requests, "--concurrency", concurrency]
        let outcome = try await Program.product("lifeline", ["call", endpoint, "Room/Echo"] + options).outcome()
        #expect(outcome.status == 65)
        #expect(String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").count == 200)
        await server.killAndWait()
    }

    /// An option that would be ignored is refused.
    @Test(arguments: [
        ("Report", ["--count", "2"], "unary, server stream, both ways or server push"),
        ("SayAll", ["--count", "2"], "unary, server stream, both ways or server push"),
        ("Watch", ["--count", "2", "--json"], "unary"), ("Talk", ["--concurrency", "1"], "unary"),
        ("SayAll", ["--retry"], "unary"),
        ("News", ["--timeout", "1"], "unary, server stream, client stream, both ways or push"),
        ("News", ["--data", "{}"], "unary, server stream, client stream, both ways or push"),
        ("Report", ["--all-fields"], "unary, server stream, client stream, both ways or server push"),
    ])
    func anOptionOfAnotherKindOfMethodIs64(method: String, options: [String], kinds: String) async throws {
        try await withRoom(TestRoom()) { endpoint in
            let arguments = ["call", endpoint, "Room/\(method)"] + Self.schema + options
            let outcome = try await Program.product("lifeline", arguments).outcome()
            #expect(outcome.status == 64)
            let words =
                "lifeline: \(options.last { $0.hasPrefix("--") } ?? "") goes with methods of the kind \(kinds); "
            #expect(outcome.errorText.hasPrefix(words), "\(outcome.errorText)")
        }
    }

    @Test func anEmptyRequestIs64() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        for options in [["--data", ""], ["--data", " ", "--count", "1"]] {
            let outcome = try await Program.product("lifeline", ["call", endpoint, "Room/Echo"] + options).outcome()
            #expect(outcome.status == 64)
            #expect(outcome.errorText.contains("--data is empty"), "\(outcome.errorText)")
        }
        await server.killAndWait()
    }

    // MARK: Schemas

    @Test func aServerThatDoesNotDescribeItselfNeedsASchema() async throws {
        try await withRoom(TestRoom()) { endpoint in
            let arguments = ["call", endpoint, "Room/Echo"]
            let outcome = try await Program.product("lifeline", arguments).outcome()
            #expect(outcome.status == 69)
            #expect(outcome.errorText.contains("Give the .proto file of its service with --proto."))
            #expect(try await call(endpoint, "Echo", "--data", "{\"number\": 7}").status == 0)
        }
    }

    @Test func aMethodThatIsMissingIsToldWithThoseThatAreThere() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let outcome = try await Program.product("lifeline", ["call", endpoint, "Room/Echoes"]).outcome()
        #expect(outcome.status == 64)
        #expect(
            outcome.errorText.hasPrefix("lifeline: There is no method Room/Echoes. There is sample.room.v1.Room/Echo, ")
        )
        await server.killAndWait()
    }

    @Test func aRequestThatIsNoneIs65() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        // Watch would answer the first request without end.
        for method in Self.methods where method != "Watch" {
            let arguments = ["call", endpoint, "Room/\(method)", "--data", "{}\n{\"other\": 1}"]
            let outcome = try await Program.product("lifeline", arguments).outcome()
            #expect(outcome.status == 65, "\(method): \(outcome.errorText)")
            #expect(
                outcome.errorText.contains("Cannot encode message 2 of --data, at line 2. "),
                "\(outcome.errorText)"
            )
        }
        await server.killAndWait()
    }

    @Test func aRecordThatCannotBeOpenedIs74() async throws {
        let outcome = try await Program.product("lifeline", ["serve", "--on", "tcp://127.0.0.1:0", "--record", "/"])
            .outcome()
        #expect(outcome.status == 74)
        #expect(outcome.errorText.hasPrefix("lifeline: Cannot open /: "))
    }

    /// A partly written line does not count, and an echo that cannot be recorded is not answered.
    @Test func aRecordThatIsCutShortHasWholeLines() async throws {
        try await withTemporaryPath("record") { path in
            let (server, endpoint) = try await RunningCommand.serve(
                "--record",
                path,
                after: "ulimit -f 8"
            )
            let numbers = (1...400).map { "{\"number\": \($0)}" }.joined()
            for _ in 1...2 {
                let outcome = try await call(endpoint, "Echo", "--data", numbers)
                #expect(outcome.status == 69, "\(outcome.errorText)")
            }
            #expect(server.errorText.contains("File too large"), "\(server.errorText)")
            let text = try String(contentsOf: URL(filePath: path), encoding: .utf8)
            let record = try Record(path: path)
            #expect(text.hasSuffix("\n") && record.counts.count > 1)
            #expect(record.counts.keys.sorted() == Array(1...record.counts.count))
            await server.killAndWait()
        }
    }

    /// The requests before a wrong one are sent, and answered.
    @Test(arguments: [("Talk", #""text":"one""#), ("SayAll", #""count":1"#)])
    func aWrongRequestEndsAStreamInOrder(method: String, reply: String) async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let outcome = try await call(endpoint, method, "--data", #"{"text": "one"} {"txt": "two"}"#)
        #expect(outcome.status == 65)
        #expect(outcome.errorText.contains("message 2 of --data"), "\(outcome.errorText)")
        #expect(String(decoding: outcome.output, as: UTF8.self).contains(reply), "\(outcome.output)")
        await server.killAndWait()
    }

    @Test func aFullOutputIs74() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let lifeline = try Program.product("lifeline", []).path
        for method in Self.methods where method != "Report" {
            let command = "echo '{\"text\": \"x\"}' | \"$0\" call \(endpoint) Room/\(method) >/dev/full"
            let outcome = try await Program(URL(filePath: "/bin/sh"), ["-c", command, lifeline]).outcome()
            #expect(outcome.status == 74, "\(method): \(outcome.errorText)")
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

/// A room that runs a test's code before it answers.
private struct TestRoom: Sample_Room_V1_RoomHandler {
    var handle: @Sendable () async throws -> Void = {}

    func echo(_ request: Sample_Room_V1_EchoRequest, context: SessionContext) async throws -> Sample_Room_V1_EchoReply {
        try await handle()
        return .with { $0.number = request.number }
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
