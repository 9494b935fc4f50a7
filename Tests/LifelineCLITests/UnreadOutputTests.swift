import Foundation
import LifelineTestSupport
import Testing

@testable import LifelineCLI

/// Commands whose standard error or output is not read: a pipe that is full, and stays full.
@Suite(.timeLimit(.minutes(2)), .serialized) struct UnreadOutputTests {
    /// Two clients make it print more than a pipe and its queue hold.
    @Test func anUnreadErrorOutputHoldsNobodyUp() async throws {
        try await withTemporaryPath("pipe") { pipe in
            try await withTemporaryPath { socket in
                let server = try RunningCommand(
                    ["serve", "--on", "unix://\(socket)", "--spread", "0"],
                    // Open at both ends, so that opening it does not block.
                    after: "mkfifo \(pipe); exec 2<>\(pipe)"
                )
                let line = "{\"text\": \"\(String(repeating: "x", count: 4000))\"}\n"
                let lines = String(repeating: line, count: 150)
                try await withThrowingTaskGroup { group in
                    for name in ["Ada", "Bob"] {
                        group.addTask {
                            let arguments = ["call", "unix://\(socket)", "Room/SayAll", "--name", name, "--quiet"]
                            let command = try Program.product("lifeline", arguments)
                            let outcome = try await command.outcome(input: Data(lines.utf8))
                            #expect(outcome.status == 0, "\(outcome.errorText)")
                        }
                    }
                    try await group.waitForAll()
                }
                server.send(SIGTERM)
                #expect(await server.finish() == 0)
            }
        }
    }

    @Test func anUnreadOutputDoesNotKeepACommandFromEnding() async throws {
        try await withTemporaryPath("pipe") { pipe in
            #expect(mkfifo(pipe, 0o600) == 0)
            let receiver = try RunningCommand(
                ["receive", "--on", "tcp://127.0.0.1:0", "--format", "text"] + chatSchema,
                after: "exec 1<>\(pipe)"
            )
            try await receiver.wait { $0.errorText.contains("listening on ") && $0.errorText.contains("\n") }
            let endpoint = String(receiver.errorText.split(whereSeparator: \.isWhitespace).last ?? "")
            // More than the pipe takes.
            let text = String(repeating: "x", count: 100_000)
            let sender = try RunningCommand(["send", "--to", endpoint, "--quiet"] + chatMessage(text))
            #expect(await readByte(from: pipe) == UInt8(ascii: "t"), "it has begun to print the text")
            receiver.send(SIGTERM)
            #expect(await receiver.finish() == 0)
            #expect(receiver.errorText == "listening on \(endpoint)\n")
            await sender.killAndWait()
        }
    }

    /// As a shell's descriptor may be after another program has changed it.
    @Test func aNonBlockingOutputIsWaitedFor() async throws {
        let pipe = Pipe.make()
        let output = pipe.fileHandleForWriting.fileDescriptor
        #expect(fcntl(output, F_SETFL, O_NONBLOCK) == 0)
        let bytes = [UInt8](repeating: 1, count: 1_000_000)
        async let written: Void = blocking(on: .global()) {
            defer { try? pipe.fileHandleForWriting.close() }
            try writeBlocking(bytes, to: output)
        }
        let received = try await blocking(on: .global()) { try pipe.fileHandleForReading.readToEnd() }
        try await written
        #expect(received == Data(bytes))
    }

    /// Waits on a thread that may block.
    private func readByte(from path: String) async -> UInt8? {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                let file = FileHandle(forReadingAtPath: path)
                continuation.resume(returning: (try? file?.read(upToCount: 1))?.first)
            }
        }
    }

    @Test func aRecordIsNoSymbolicLink() async throws {
        try await withTemporaryPath("target") { target in
            let link = target + ".link"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
            defer { try? FileManager.default.removeItem(atPath: link) }
            let serve = try Program.product("lifeline", ["serve", "--on", "tcp://127.0.0.1:0", "--record", link])
            let outcome = try await serve.outcome()
            #expect(outcome.status == 74)
            #expect(outcome.errorText.contains("it is a symbolic link"), "\(outcome.errorText)")
            #expect(!fileExists(at: target))
        }
    }

    @Test func aSilentConnectionIsClosed() async throws {
        let receiver = try RunningCommand(["receive", "--on", "tcp://127.0.0.1:0", "--idle", "0.05"])
        try await receiver.wait { $0.errorText.contains("listening on ") && $0.errorText.contains("\n") }
        let port = try #require(Int(receiver.errorText.split(whereSeparator: { ":\n".contains($0) }).last ?? ""))
        let silent = try await RawSocket.connect(toPort: port)
        try await receiver.wait { $0.errorText.contains("lifeline: closed the connection of tcp://127.0.0.1:") }
        // The end of the stream, or a reset.
        _ = try? await silent.read()
        await receiver.killAndWait()
        let help = try await Program.product("lifeline", ["receive", "--help"]).outcome()
        #expect(String(decoding: help.output, as: UTF8.self).contains("Default: 600."))
    }
}
