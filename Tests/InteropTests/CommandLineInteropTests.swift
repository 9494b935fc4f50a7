import Foundation
import LifelineTestSupport
import Testing

/// The `lifeline` command with other programs, over connections and through files.
@Suite(.timeLimit(.minutes(3)), .serialized) struct CommandLineInteropTests {
    /// The text form in which Python and the command exchange messages.
    enum TextForm: String, CaseIterable, Sendable {
        case json, text

        /// JSON cannot represent the times in `everyField`.
        var corpora: [Corpus] { self == .json ? [.empty, .small, .printable, .large] : Corpus.allCases }

        static let allWithCorpora = allCases.flatMap { form in form.corpora.map { (form, $0) } }
    }

    private func lifeline(_ arguments: [String], input: Data = Data()) async throws -> Data {
        try await Program.product("lifeline", arguments).run(input: input)
    }

    /// Python's implementation must find the messages of the corpus.
    private func checkByPython(_ corpus: Corpus, _ form: TextForm? = nil, in data: Data) async throws {
        try await Peer.python.run(["check", corpus.rawValue] + (form.map { [$0.rawValue] } ?? []), input: data)
    }

    // MARK: Files

    @Test(arguments: TextForm.allWithCorpora)
    func pythonReadsWhatIsDecoded(form: TextForm, corpus: Corpus) async throws {
        let text = try await lifeline(["decode", "--format", form.rawValue] + chatSchema, input: try corpus.reference)
        try await checkByPython(corpus, form, in: text)
    }

    @Test(arguments: TextForm.allWithCorpora)
    func textPrintedByPythonIsEncoded(form: TextForm, corpus: Corpus) async throws {
        let text = try await Peer.python.run(["make", corpus.rawValue, form.rawValue])
        let stream = try await lifeline(["encode", "--format", form.rawValue] + chatSchema, input: text)
        try await checkByPython(corpus, in: stream)
    }

    // MARK: Connections

    @Test(arguments: [Corpus.small, .everyField], [[], ["--one-byte"]])
    func receivesExactlyWhatAPeerSends(corpus: Corpus, options: [String]) async throws {
        let received = try await receive(count: corpus.count, format: "delimited") { endpoint in
            let port = try #require(endpoint.split(separator: ":").last)
            try await Peer.python.run(["send", String(port), corpus.rawValue] + options)
        }
        #expect(try received == corpus.reference)
    }

    @Test(arguments: Corpus.allCases)
    func sendsExactlyWhatAStreamHolds(corpus: Corpus) async throws {
        let reference = try corpus.reference
        let received = try await receive(count: corpus.count, format: "delimited") { endpoint in
            _ = try await lifeline(["send", "--to", endpoint, "--format", "delimited"], input: reference)
        }
        #expect(received == reference)
    }

    @Test(arguments: [Corpus.printable, .large])
    func printsWhatAServerSends(corpus: Corpus) async throws {
        let server = BackgroundProgram(command: [Peer.python.program.path, "send-server", corpus.rawValue])
        let received = try await server.run { port in
            let endpoint = ["--to", "tcp://127.0.0.1:\(port)", "--count", "\(corpus.count)"]
            return try await lifeline(["receive"] + endpoint + chatSchema)
        }
        try await checkByPython(corpus, .json, in: received)
    }

    @Test(arguments: [Corpus.printable, .large])
    func printsWhatAnEchoSendsBack(corpus: Corpus) async throws {
        let text = try await Peer.python.run(["make", corpus.rawValue, "json"])
        let server = BackgroundProgram(command: [Peer.python.program.path, "echo-server"])
        let replies = try await server.run { port in
            let endpoint = ["--to", "tcp://127.0.0.1:\(port)", "--both", "--replies", "\(corpus.count)"]
            return try await lifeline(["send"] + endpoint + chatSchema, input: text)
        }
        try await checkByPython(corpus, .json, in: replies)
    }

    // MARK: Calls

    /// The methods of the Python peer with sessions, which has no `.proto` file of its own.
    private static let service = """
        syntax = "proto3";
        package interop;
        import "sample/chat/v1/chat.proto";
        service Peer {
          rpc Echo(sample.chat.v1.ChatMessage) returns (sample.chat.v1.ChatMessage);
          rpc Fail(sample.chat.v1.ChatMessage) returns (sample.chat.v1.ChatMessage);
          rpc Count(sample.chat.v1.ChatMessage) returns (stream sample.chat.v1.ChatMessage);
          rpc Collect(stream sample.chat.v1.ChatMessage) returns (sample.chat.v1.ChatMessage);
          rpc Converse(stream sample.chat.v1.ChatMessage) returns (stream sample.chat.v1.ChatMessage);
          rpc Hang(sample.chat.v1.ChatMessage) returns (sample.chat.v1.ChatMessage);
        }
        """

    /// Runs `lifeline call` with each method and its requests, in JSON lines, and returns the results.
    private func call(_ method: String, _ requests: [String], _ options: [String] = []) async throws -> Program.Outcome
    {
        let folder = FileManager.default.temporaryDirectory.appending(path: "call-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let schema = folder.appending(path: "peer.proto")
        try Data(Self.service.utf8).write(to: schema)
        return try await SessionPeer.withServer { port in
            let arguments =
                ["call", "tcp://127.0.0.1:\(port)", "Peer/\(method)", "--proto", schema.path]
                + ["-I", Checkout.folder.appending(path: "Protos").path, "--data", "@-"] + options
            let requests = Data(requests.joined(separator: "\n").utf8)
            return try await Program.product("lifeline", arguments).outcome(input: requests)
        }
    }

    private func id(_ number: Int) -> String { #"{"id":"\#(number)"}"# }

    @Test func callsEachKindOfMethodOfAPythonServer() async throws {
        let ids = (0..<100).map(id)
        let sum = #"{"id":"100","text":"\#(checksum(of: chatIDs(100)))"}"#
        let cases = [
            ("Echo", [id(7)], [id(7)]), ("Count", [id(100)], ids), ("Collect", ids, [sum]), ("Converse", ids, ids),
        ]
        for (method, requests, replies) in cases {
            let outcome = try await call(method, requests)
            #expect(outcome.status == 0, "\(method): \(outcome.errorText)")
            let lines = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").map(String.init)
            // Requests of Count also have a text.
            #expect(lines.count == replies.count, "\(method)")
            #expect(zip(lines, replies).allSatisfy { $0.hasPrefix($1.dropLast()) }, "\(method)")
        }
    }

    @Test func tellsTheStatusOfAPythonServer() async throws {
        let outcome = try await call("Fail", [#"{"text": "no \u001b[31m"}"#])
        #expect(outcome.status == 70)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errorText.contains("Grüezi: no "))
        #expect(!outcome.errorText.contains("\u{1B}"), "a server's text does not control the terminal")
    }

    @Test func givesUpAfterTheTimeout() async throws {
        let outcome = try await call("Hang", [id(1)], ["--timeout", "0.2"])
        #expect(outcome.status == 75, "\(outcome.errorText)")
    }
}
