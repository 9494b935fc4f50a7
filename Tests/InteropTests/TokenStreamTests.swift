import Foundation
import Lifeline
import LifelineTestSupport
import Testing
import TokenStreamProtos

@testable import TokenStreamClient

/// Examples/token-stream, run as in its README, but on a free port and faster.
@Suite(.timeLimit(.minutes(2))) struct TokenStreamTests {
    /// 300 tokens, and at most 20 messages over each connection.
    @Test func aStoryIsWholeHoweverOftenItsConnectionIsCut() async throws {
        try await withStoryteller { endpoint in
            let whole = try await client("--to", endpoint)
            #expect(whole.status == 0, "\(whole.errorText)")
            #expect(whole.errorText == "300 tokens over 1 connection: none lost, none repeated\n")
            let cut = try await client("--to", endpoint, "--cut-every", "20")
            #expect(cut.status == 0, "\(cut.errorText)")
            let line = /300 tokens over (\d+) connections: none lost, none repeated\n/
            let count = try #require(cut.errorText.wholeMatch(of: line)?.output.1, "\(cut.errorText)")
            #expect(Int(count) ?? 0 >= 300 / 20)
            #expect(cut.output == whole.output)
            #expect(cut.output.count > 300)
        }
    }

    @Test func theSeedTellsWhichStory() async throws {
        try await withStoryteller { endpoint in
            let stories = try await [
                client("--to", endpoint, "--tokens", "50", "--quiet"),
                client("--to", endpoint, "--tokens", "50", "--quiet", "--seed", "1"),
                client("--to", endpoint, "--tokens", "50", "--quiet", "--seed", "2"),
            ]
            for story in stories { #expect(story.status == 0 && story.errorText.isEmpty, "\(story.errorText)") }
            #expect(stories[0].output == stories[1].output)
            #expect(stories[0].output != stories[2].output)
        }
    }

    /// The client's output for a server that loses and repeats tokens, which no session can repair.
    @Test func aLostTokenFailsTheClient() async throws {
        try await withSessionServer(listeningOn: Endpoint("tcp://127.0.0.1:0"), services: [Forgetful()]) { server in
            let outcome = try await client("--to", "\(server.boundEndpoints[0])", "--tokens", "5", "--quiet")
            #expect(outcome.status == 1)
            #expect(String(decoding: outcome.output, as: UTF8.self) == "1224\n")
            #expect(outcome.errorText == "4 tokens over 1 connection: 2 lost, 1 repeated\n")
        }
    }

    @Test func anAbsentServerIsAFailure() async throws {
        let outcome = try await client("--to", "tcp://127.0.0.1:\(try TestPort.next())", "--timeout", "0.1")
        #expect(outcome.status == 1)
        #expect(outcome.errorText.contains("timedOut"), "\(outcome.errorText)")
    }

    @Test(
        arguments: [
            ("TokenStreamClient", ["--tokens", "0"]), ("TokenStreamClient", ["--cut-every", "4"]),
            ("TokenStreamClient", ["--timeout", "nan"]), ("TokenStreamServer", ["--rate", "0"]),
        ] as [(String, [String])]
    )
    func wrongUsageIs64(program: String, arguments: [String]) async throws {
        let outcome = try await Program.product(program, arguments).outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains("--help"), "\(outcome.errorText)")
    }

    @Test(arguments: ["TokenStreamClient", "TokenStreamServer"])
    func helpTeaches(program: String) async throws {
        let outcome = try await Program.product(program, ["--help"]).outcome()
        #expect(outcome.status == 0)
        #expect(String(decoding: outcome.output, as: UTF8.self).contains("\n  \(program) --"), "an example")
    }

    @Test func aTallyTellsLostFromRepeated() {
        var tally = TokenTally()
        for number in [1, 2, 5, 5, 4, 6] { tally.receive(number: number) }
        #expect(tally.receivedCount == 6 && tally.lostCount == 2 && tally.repeatedCount == 2)
        tally.finish(expectedCount: 6)
        #expect(tally.lostCount == 2 && !tally.isComplete)
        tally.finish(expectedCount: 9)
        #expect(tally.summary(connectionCount: 2) == "6 tokens over 2 connections: 5 lost, 2 repeated")
        var complete = TokenTally()
        complete.receive(number: 1)
        complete.finish(expectedCount: 1)
        #expect(complete.isComplete)
        #expect(complete.summary(connectionCount: 1) == "1 token over 1 connection: none lost, none repeated")
    }

    private func withStoryteller(_ body: (_ endpoint: String) async throws -> Void) async throws {
        let server = try Program.product("TokenStreamServer", []).path
        let program = BackgroundProgram(command: [server, "--on", "tcp://127.0.0.1:0", "--rate", "1000"])
        try await program.run(announcing: "listening on ", body)
    }

    private func client(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.product("TokenStreamClient", arguments).outcome()
    }

    /// Sends the second token twice, and neither the third nor the last one.
    private struct Forgetful: Example_Story_V1_StorytellerHandler {
        func tell(
            _ request: Example_Story_V1_TellRequest,
            to stream: SessionStreamWriter<Example_Story_V1_Token>,
            context: SessionContext
        ) async throws {
            for number in [1, 2, 2, 4] as [UInt32] {
                try await stream.send(.with { ($0.number, $0.text) = (number, "\(number)") })
            }
        }
    }
}
