import Foundation
import Testing

/// The `lifeline` command with a peer at the other end.
@Suite(.timeLimit(.minutes(1)), .serialized) struct CommandLineInteropTests {
    @Test(arguments: [["small"], ["every-field"], ["small", "--one-byte"], ["every-field", "--one-byte"]])
    func receivesExactlyWhatAPeerSends(arguments: [String]) async throws {
        let reference = try #require(Corpus(rawValue: arguments[0])).reference
        let count = try frameCount(of: arguments[0])
        let received = try await receive(count: count) { port in
            _ = try await Program(Peer.python.program, ["send", port] + arguments).run(input: Data())
        }
        #expect(received == reference)
    }

    @Test(arguments: Corpus.allCases)
    func sendsExactlyWhatAFileHolds(corpus: Corpus) async throws {
        let reference = try corpus.reference
        let count = try frameCount(of: corpus.rawValue)
        let received = try await receive(count: count) { port in
            let arguments = ["send", "--to", "tcp://127.0.0.1:\(port)", "--format", "delimited"]
            _ = try await Program(Checkout.product("lifeline"), arguments).run(input: reference)
        }
        #expect(received == reference)
    }

    private func frameCount(of corpus: String) throws -> Int {
        switch try #require(Corpus(rawValue: corpus)) {
        case .empty, .large: 3
        case .small: 100
        case .everyField: 14
        }
    }

    /// Runs `lifeline receive` until it has `count` messages, `send` with its port meanwhile, and returns its output.
    private func receive(count: Int, _ send: (_ port: String) async throws -> Void) async throws -> Data {
        let folder = FileManager.default.temporaryDirectory.appending(path: "receive-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let output = folder.appending(path: "got.bin")
        // The announcement on standard error becomes the first line of output, and the stream goes into a file.
        let command = """
            exec 3>&1; exec "$0" receive --on tcp://127.0.0.1:0 --count "$1" --format delimited 2>&3 3>&- >"$2"
            """
        let arguments = ["-c", command, try Checkout.product("lifeline").path, "\(count)", output.path]
        try await Program(URL(filePath: "/bin/sh"), arguments).run { line in
            try await send(String(try #require(line.split(separator: ":").last)))
        }
        return try Data(contentsOf: output)
    }
}
