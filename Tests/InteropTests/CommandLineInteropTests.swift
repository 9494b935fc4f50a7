import Foundation
import LifelineTestSupport
import Testing

/// The `lifeline` command with a peer at the other end.
@Suite(.timeLimit(.minutes(3)), .serialized) struct CommandLineInteropTests {
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
            let send = try Program.product("lifeline", ["send", "--to", endpoint, "--format", "delimited"])
            _ = try await send.run(input: reference)
        }
        #expect(received == reference)
    }
}
