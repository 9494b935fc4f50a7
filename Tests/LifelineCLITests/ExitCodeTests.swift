import Foundation
import LifelineTestSupport
import Testing

/// Exit codes that no other suite of the command tests.
@Suite(.timeLimit(.minutes(2)), .serialized) struct ExitCodeTests {
    private static let noIdentity = "--certificate /dev/null --key /dev/null"

    /// Runs a shell line, in which `lifeline` is the command.
    private func run(_ line: String, _ arguments: [String] = []) async throws -> Program.Outcome {
        let script = line.replacing("lifeline ", with: "\"$0\" ")
        let lifeline = try Program.product("lifeline", []).path
        return try await Program(URL(filePath: "/bin/sh"), ["-c", script, lifeline] + arguments).outcome()
    }

    @Test(
        arguments: [
            (0, "lifeline monitor --count 1"),
            (74, "lifeline monitor --count 1 > /dev/full"),
            (69, "lifeline monitor --count 1000000 --timeout 0.01"),
            (65, "lifeline relay --listen tls://127.0.0.1:0 \(noIdentity) --to tcp://127.0.0.1:1"),
            (65, "lifeline serve --on tls://127.0.0.1:0 \(noIdentity)"),
            (69, "lifeline list tcp://127.0.0.1:1 --give-up-after 0"),
            (69, "lifeline describe Room tcp://127.0.0.1:1 --give-up-after 0"),
        ] as [(Int32, String)]
    ) func aLineOfAShell(status: Int32, line: String) async throws {
        let outcome = try await run(line)
        #expect(outcome.status == status, "\(outcome.errorText)")
        #expect(outcome.errorText.hasPrefix("lifeline: ") == (status != 0), "\(outcome.errorText)")
    }

    @Test func aFullOutputIs74() async throws {
        let encode = try await run(#"echo '{"text": "a"}' | lifeline encode "$@" > /dev/full"#, chatSchema)
        #expect(encode.status == 74, "\(encode.errorText)")
        let decode = try await run(#"printf '\003"\001a' | lifeline decode "$@" > /dev/full"#, chatSchema)
        #expect(decode.status == 74, "\(decode.errorText)")
    }

    @Test func aProtocThatCannotBeStartedIs69() async throws {
        try await withTemporaryPath("protoc") { protoc in
            try Data().write(to: URL(filePath: protoc))
            let folder = URL(filePath: protoc).deletingLastPathComponent().path
            let outcome = try await run("PATH='\(folder)' lifeline decode --proto a.proto --type A < /dev/null")
            #expect(outcome.status == 69)
            #expect(outcome.errorText.contains("Cannot start protoc: Permission denied."), "\(outcome.errorText)")
        }
    }

    @Test func anEndpointInUseIs69() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let outcome = try await run("lifeline serve --on \(endpoint)")
        #expect(outcome.status == 69)
        #expect(outcome.errorText.contains("Something else listens"), "\(outcome.errorText)")
        await server.killAndWait()
    }

    @Test func aFullOutputEndsARelay() async throws {
        let listener = try await RawSocket.listen()
        let relay = try RunningCommand(
            ["relay", "--listen", "tcp://127.0.0.1:0", "--to", "tcp://127.0.0.1:\(listener.port)"],
            after: "exec > /dev/full"
        )
        try await relay.wait { $0.errorText.contains("listening on ") && $0.errorText.contains("\n") }
        let port = try #require(Int(relay.errorText.split(whereSeparator: { ":\n".contains($0) }).last ?? ""))
        let client = try await RawSocket.connect(toPort: port)
        try await client.write([1, 8])
        #expect(await relay.finish() == 74)
        #expect(relay.errorText.split(separator: "\n").count == 3, "it is told once: \(relay.errorText)")
    }

    /// The first signal starts the drain, which waits for a call.
    @Test func signalsEndServersAndCalls() async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--drain", "60")
        let calls = try [1, 2].map { _ in
            try RunningCommand(["call", endpoint, "Room/Watch", "--data", #"{"interval": "0.01s"}"#])
        }
        for call in calls { try await call.wait { !$0.lines.isEmpty } }
        calls[0].send(SIGTERM)
        #expect(await calls[0].finish() == 128 + SIGTERM)
        server.send(SIGINT)
        try await server.wait { $0.errorText.contains("draining; a second interrupt ends it at once") }
        server.send(SIGTERM)
        #expect(await server.finish() == 128 + SIGTERM)
        await calls[1].killAndWait()
    }
}
