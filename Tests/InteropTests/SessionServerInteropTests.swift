import Foundation
import Lifeline
import LifelineProtos
import LifelineTestSupport
import Testing

/// Our server of sessions with clients that were written from docs/session-protocol.md alone.
@Suite(.timeLimit(.minutes(3)), .serialized) struct SessionServerInteropTests {
    private func withServer(
        on port: UInt16 = 0,
        _ service: SessionPeerService = SessionPeerService(),
        limits: SessionLimits = SessionLimits(),
        _ body: (SessionServer, UInt16) async throws -> Void
    ) async throws {
        var configuration = SessionServerConfiguration()
        configuration.limits = limits
        configuration.drainSpread = .milliseconds(10)
        configuration.server.shutdownGracePeriod = .zero
        configuration.authenticate = { candidate in
            switch candidate.metadata["credentials"] {
            case "wrong": throw SessionStatus(.unauthenticated, "wrong credentials")
            case "wait": await Signal().wait()
            default: break
            }
            return nil
        }
        try await withSessionServer(
            listeningOn: .tcp(host: "127.0.0.1", port: port),
            configuration: configuration,
            services: [service]
        ) { server in
            try await body(server, UInt16(try #require(try await server.boundEndpoints[0].port)))
        }
    }

    @Test(arguments: ["calls", "cancels", "replaced", "refused", "version", "unknown", "twice"])
    func servesAPeersClient(scenario: String) async throws {
        let service = SessionPeerService()
        try await withServer(service) { server, port in
            try await SessionPeer.runClient(scenario, port: port)
            let expected: [String] =
                switch scenario {
                case "calls": (0..<100).map(String.init)
                case "unknown": ["1"]
                case "twice": ["1", "2"]
                default: []
                }
            #expect(service.notes.all == expected)
            if scenario == "twice" { #expect(service.requests.all == ["1", "2"]) }
        }
    }

    @Test(arguments: SessionClientInteropTests.Cutting.all)
    func nothingIsLostDoubledOrReorderedByCuts(cutting: SessionClientInteropTests.Cutting) async throws {
        var limits = SessionLimits()
        limits.maximumUnprocessedMessageCount = cutting.window.frames
        limits.maximumUnprocessedByteCount = cutting.window.bytes
        let service = SessionPeerService()
        try await withServer(service, limits: limits) { server, port in
            // The client checks what came to it.
            try await SessionPeer.runClient("exchange", port: port, cutting.options + ["--count", "\(cutting.count)"])
            #expect(service.notes.all == (0..<cutting.count).map(String.init))
            // The client asks four at a time.
            #expect(
                service.requests.all.compactMap(Int.init).sorted() == Array(0..<(cutting.count / 4))
            )
        }
    }

    @Test func aClientLearnsThatItsSessionIsForgotten() async throws {
        let service = SessionPeerService()
        try await withServer(on: TestPort.next(), service) { server, port in
            let client = Task { try await SessionPeer.runClient("lost", port: port) }
            await service.forgetWanted.wait()
            await server.shutdown(gracePeriod: .zero)
            let next = SessionPeerService()
            try await TestPort.waitUntilFree(port)
            try await withServer(on: port, next) { _, _ in
                try await client.value
                #expect(next.requests.all == ["1"])
            }
        }
    }

    @Test func aClientLeavesAServerThatDrains() async throws {
        let service = SessionPeerService()
        try await withServer(on: TestPort.next(), service) { server, port in
            let client = Task { try await SessionPeer.runClient("draining", port: port) }
            await service.drainWanted.wait()
            await server.shutdown(gracePeriod: .seconds(60))
            #expect(service.requests.all == [])
            let next = SessionPeerService()
            try await TestPort.waitUntilFree(port)
            try await withServer(on: port, next) { _, _ in
                try await client.value
                #expect(next.requests.all == ["2"])
                #expect(next.notes.all == ["3"])
            }
        }
    }

    /// A rule that a client breaks, what the server's goodbye says of it, and what becomes of the session.
    struct Rule: Sendable, CustomTestStringConvertible {
        let name: String
        let words: String
        /// Nil where there is none yet.
        var session: String? = "the session is gone"
        /// What is no frame ends the connection at once, as a rule before the goodbye is written.
        var mayLackGoodbye = false

        var testDescription: String { name }

        static func opening(_ name: String, _ words: String, mayLackGoodbye: Bool = false) -> Rule {
            Rule(name: name, words: words, session: nil, mayLackGoodbye: mayLackGoodbye)
        }

        static let all = [
            opening("first-frame-no-hello", "before the session was opened"),
            opening("no-window", "window takes no frame"),
            opening("window-of-0-frames", "window takes no frame"),
            opening("window-of-0-bytes", "window takes no frame"),
            opening("window-too-small", "window takes no frame"),
            opening("hello-too-long", "cannot be taken", mayLackGoodbye: true),
            opening("hello-no-message", "cannot be taken", mayLackGoodbye: true),
            opening("hello-truncated-inside", "cannot be taken", mayLackGoodbye: true),
            opening("hello-length-of-6-bytes", "cannot be taken", mayLackGoodbye: true),
            Rule(name: "second-hello", words: "opened twice"),
            Rule(name: "welcome-from-client", words: "only the other side may send"),
            Rule(name: "frame-too-long", words: "cannot be taken", mayLackGoodbye: true),
            Rule(name: "frame-no-message", words: "cannot be taken", mayLackGoodbye: true),
            Rule(name: "text-no-utf-8", words: "cannot be taken", mayLackGoodbye: true),
            Rule(name: "length-of-6-bytes", words: "cannot be taken", mayLackGoodbye: true),
            Rule(name: "places-in-both-lanes", words: "wrong lane"),
            Rule(name: "request-urgent", words: "wrong lane"),
            Rule(name: "push-urgent", words: "wrong lane"),
            Rule(name: "ping-with-place", words: "has a place that must have none"),
            Rule(name: "request-without-place", words: "none that must have one"),
            Rule(name: "response-without-place", words: "none that must have one"),
            Rule(name: "cancel-without-place", words: "none that must have one"),
            Rule(name: "later-place", words: "ordinary frame 2 came where 1 was to come"),
            Rule(name: "later-urgent-place", words: "urgent frame 2 came where 1 was to come"),
            Rule(name: "place-left-out", words: "ordinary frame 4 came where 3 was to come"),
            Rule(name: "acknowledged-unsent", words: "ordinary frame 1 was acknowledged and never sent"),
            Rule(name: "acknowledged-unsent-urgent", words: "urgent frame 1 was acknowledged and never sent"),
            Rule(name: "push-padded", words: "longer than the content"),
            Rule(name: "request-padded", words: "longer than the content"),
            Rule(name: "response-padded", words: "longer than the content"),
            Rule(name: "serial-0", words: "serial 0"),
            Rule(name: "serial-in-use", words: "serial 7"),
            Rule(name: "window-frames", words: "ordinary frames came than the window"),
            Rule(name: "message-larger-than-window", words: "ordinary frames came than the window"),
            Rule(name: "window-bytes", words: "ordinary frames came than the window"),
            // A client that returns with this cannot go on with its session.
            Rule(name: "processed-ahead", words: "ordinary frame 2 was acknowledged and never sent"),
            Rule(name: "received-ahead", words: "ordinary frame 2 was acknowledged and never sent"),
            Rule(name: "urgent-processed-ahead", words: "urgent frame 2 was acknowledged and never sent"),
            Rule(name: "processed-behind", words: "ordinary frames went back to 0"),
            Rule(name: "urgent-processed-behind", words: "urgent frames went back to 0"),
            Rule(name: "resuming-without-window", words: "The window takes no frame", session: "the session lives"),
        ]
    }

    @Test(arguments: Rule.all) func aClientThatBreaksARuleIsToldWhich(rule: Rule) async throws {
        var limits = SessionLimits()
        limits.maximumUnprocessedMessageCount = 4
        limits.maximumUnprocessedByteCount = 4_096
        try await withServer(limits: limits) { _, port in
            let lines = try await SessionPeer.breakRule(rule.name, port: port)
            let goodbye = try #require(lines.first)
            if !(rule.mayLackGoodbye && goodbye == "no goodbye") {
                #expect(goodbye.hasPrefix("6 ") && goodbye.contains(rule.words), "\(goodbye)")
            }
            #expect(Array(lines.dropFirst()) == [rule.session].compactMap(\.self))
        }
    }
}
