import Foundation
import Lifeline
import LifelineTestSupport
import Testing

/// Sessions in JavaScript: Examples/chat-fleet/page/lifeline-session.js, in Node.
@Suite(.timeLimit(.minutes(3))) struct JavaScriptSessionTests {
    private static let folder = Checkout.folder.appending(path: "Examples/chat-fleet/tests")

    private func node(_ arguments: [String]) async throws -> Program.Outcome {
        try await Program(URL(filePath: "/usr/bin/env"), ["node"] + arguments).outcome()
    }

    private func node(_ script: String, _ arguments: String...) async throws -> Program.Outcome {
        try await node([Self.folder.appending(path: script).path] + arguments)
    }

    /// The tests of the session and of the room, which need no server.
    @Test func theTestsOfThePagePass() async throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter {
            $0.hasSuffix(".test.js")
        }
        #expect(files.count >= 4)
        let outcome = try await node(["--test"] + files.map { Self.folder.appending(path: $0).path })
        #expect(outcome.status == 0, "\(String(decoding: outcome.output, as: UTF8.self))")
    }

    // MARK: Cuts

    /// The client itself checks the messages that it receives.
    @Test(arguments: [1, 2, 3]) func nothingIsLostDoubledOrReorderedByCuts(seed: Int) async throws {
        let service = SessionPeerService()
        try await withSessionServer(listeningOn: Endpoint("ws://127.0.0.1:0/peer"), services: [service]) { server in
            let url = "\(try await server.boundEndpoints[0])"
            let outcome = try await node("exchange.js", url, "--count", "2000", "--cuts", "100", "--seed", "\(seed)")
            let output = String(decoding: outcome.output, as: UTF8.self)
            #expect(outcome.status == 0, "\(output)\(outcome.errorText)")
            let cuts = output.firstMatch(of: /(\d+) of them resumed, (\d+) cut amid these/)?.output
            #expect(cuts.map { Int($0.1) ?? 0 >= 50 && Int($0.2) ?? 0 >= 50 } == true, "\(output)")
            #expect(service.notes.all == chatIDs(2_000))
            // Several requests are sent at once, and handled concurrently.
            #expect(service.requests.all.compactMap(Int.init).sorted() == Array(0..<2_000))
        }
    }

    @Test func aPeerInPythonIsUnderstood() async throws {
        try await SessionPeer.withServer(["--cuts", "60", "--seed", "5"]) { (port: UInt16) in
            let outcome = try await node("exchange.js", "tcp://127.0.0.1:\(port)", "--count", "1000")
            let output = String(decoding: outcome.output, as: UTF8.self)
            #expect(outcome.status == 0, "\(output)\(outcome.errorText)")
            #expect(output.contains(" over 61 connections"), "\(output)")
        }
    }

    // MARK: Broken rules

    /// Rules that no server can break towards a client that refuses each request at once, and requests no streams.
    private static let impossible: Set = [
        "serial-in-use", "part-after-end", "end-after-end", "part-without-parts-follow", "end-without-parts-follow",
        "credit-exceeded-by-response-part",
    ]

    private static let rules = (SessionRule.ofServers + SessionRule.welcomes + SessionRule.returns).filter {
        !impossible.contains($0.name)
    }

    @Test(arguments: rules) func aServerThatBreaksARuleIsLeft(rule: SessionRule) async throws {
        let lines = try await said(byServerBreaking: rule.name)
        let goodbye = try #require(lines.first)
        // A hello in place of a welcome needs no answer.
        let isSilent = rule.words == nil || rule.name == "hello-for-welcome"
        let isRight = isSilent ? goodbye == "no goodbye" : goodbye.hasPrefix("\(rule.code) ")
        #expect(isRight || (rule.mayLackGoodbye && goodbye == "no goodbye"), "\(goodbye)")
        #expect(Array(lines.dropFirst()) == [rule.session ?? "the client begins another session"])
    }

    @Test(arguments: SessionRule.tolerated) func allowedFramesAreTolerated(rule: String) async throws {
        let lines = try await said(byServerBreaking: rule)
        #expect(lines == ["the connection lives", "the client goes on with the session"])
    }

    private func said(byServerBreaking rule: String) async throws -> [String] {
        try await SessionPeer.withHostileServer(rule) { port in
            _ = try await node("guest.js", "tcp://127.0.0.1:\(port)")
        }
    }
}
