import Foundation
import Lifeline
import LifelineProtos
import LifelineTestSupport
import Testing

/// Our session server with clients that were written only from docs/session-protocol.md.
@Suite(.timeLimit(.minutes(3)), .serialized) struct SessionServerInteropTests {
    private func withServer(
        on port: UInt16 = 0,
        _ service: SessionPeerService = SessionPeerService(),
        limits: SessionLimits = SessionLimits(),
        whenOpened: @escaping @Sendable (SessionServerEnd) -> Void = { _ in },
        _ body: (SessionServer, UInt16) async throws -> Void
    ) async throws {
        var configuration = SessionServerConfiguration()
        configuration.limits = limits
        configuration.drainSpread = .milliseconds(10)
        configuration.server.shutdownGracePeriod = .zero
        configuration.whenOpened = { session, isResumed in if !isResumed { whenOpened(session) } }
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

    /// A scenario of the peer's client, and the server's observations.
    struct Scenario: Sendable, CustomTestStringConvertible {
        let name: String
        var notes: [String] = []
        /// The requested echoes; nil: any.
        var requests: [String]?

        var testDescription: String { name }

        static let all = [
            Scenario(name: "calls", notes: chatIDs(100), requests: ["7"]),
            Scenario(name: "streams", requests: ["1"]),
            Scenario(name: "credit", notes: chatIDs(100)),
            Scenario(name: "ranges", notes: chatIDs(100) + chatIDs(100), requests: ["1"]),
            Scenario(name: "blanks", notes: chatIDs(4), requests: chatIDs(4)),
            Scenario(name: "timeouts", requests: ["0"]),
            Scenario(name: "unplaced", notes: ["1", "2"], requests: ["0"]),
            Scenario(name: "serials", requests: chatIDs(6)),
            Scenario(name: "terms"),
            Scenario(name: "too_large", notes: ["1"], requests: ["1"]),
            Scenario(name: "cancels", requests: ["1"]),
            Scenario(name: "replaced", requests: ["1", "2"]),
            Scenario(name: "forgetful"),
            Scenario(name: "refused", requests: []),
            Scenario(name: "version", requests: []),
            Scenario(name: "unknown", notes: ["1"], requests: ["2", "3"]),
            Scenario(name: "late", requests: ["1", "2"]),
        ]
    }

    @Test(arguments: Scenario.all) func servesAPeersClient(scenario: Scenario) async throws {
        let service = SessionPeerService()
        try await withServer(service) { _, port in
            try await SessionPeer.runClient(scenario.name, port: port)
            #expect(service.notes.all == scenario.notes)
            if let requests = scenario.requests { #expect(service.requests.all == requests) }
            // Values that were replaced before they arrived leave only blanks.
            if scenario.name == "blanks" { #expect(service.values.all == chatIDs(4)) }
        }
    }

    @Test func theLastOfManyValuesComes() async throws {
        let service = SessionPeerService()
        try await withServer(service) { _, port in
            try await SessionPeer.runClient("values", port: port)
            let values = service.values.all.compactMap(Int.init)
            #expect(values.last == 9_999)
            #expect(zip(values, values.dropFirst()).allSatisfy(<))
        }
    }

    @Test(arguments: SessionClientInteropTests.Cutting.all)
    func nothingIsLostDoubledOrReorderedByCuts(cutting: SessionClientInteropTests.Cutting) async throws {
        let service = SessionPeerService()
        try await withServer(service, limits: cutting.limits) { _, port in
            // The client checks the messages that it receives.
            try await SessionPeer.runClient("exchange", port: port, cutting.options + ["--count", "\(cutting.count)"])
            #expect(service.notes.all == chatIDs(cutting.count))
            // The client sends four requests at a time.
            #expect(
                service.requests.all.compactMap(Int.init).sorted() == Array(0..<(cutting.count / 4))
            )
        }
    }

    /// The server's pushes wait for credit, and those of another method continue. Then the server ends the session.
    @Test func aPushThatNobodyTakesHoldsUpNoOthers() async throws {
        let (sessions, opened) = AsyncStream.makeStream(of: SessionServerEnd.self)
        try await withServer(whenOpened: { opened.yield($0) }) { _, port in
            let client = Task { try await SessionPeer.runClient("until_closed", port: port) }
            var iterator = sessions.makeAsyncIterator()
            let session = try #require(await iterator.next())
            let blocked = Task {
                let large = ChatMessage.chat(0, String(repeating: "x", count: 100_000))
                // More than the credit: 256 KiB.
                for _ in 0..<10 { try await session.push("interop.Peer/Block", large) }
            }
            for number in 0..<20 {
                try await session.push("interop.Peer/Note", ChatMessage.chat(number), until: .processed)
            }
            await session.end(gracePeriod: .zero)
            try await client.value
            let error = try await sessionError { try await blocked.value }
            #expect(error.code == .closedLocally)
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
                #expect(next.notes.all == ["1"])
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

    // MARK: Broken rules

    @Test func everyRuleIsBroken() async throws {
        #expect(try await SessionPeer.rules() == SessionRule.allNames)
    }

    @Test(arguments: SessionRule.openings) func aClientThatOpensNoSessionIsToldWhy(rule: SessionRule) async throws {
        try await withServer { _, port in
            rule.check(try await SessionPeer.breakRule(rule.name, port: port), session: nil)
        }
    }

    @Test(arguments: SessionRule.ofClients + SessionRule.resumptions)
    func aClientThatBreaksARuleIsToldWhich(rule: SessionRule) async throws {
        try await withServer(limits: rule.limits) { _, port in
            // A client that reconnects with this cannot resume its session.
            rule.check(try await SessionPeer.breakRule(rule.name, port: port), session: "the session is gone")
        }
    }

    @Test(arguments: SessionRule.tolerated) func allowedFramesAreTolerated(rule: String) async throws {
        try await withServer { _, port in
            let lines = try await SessionPeer.breakRule(rule, port: port)
            #expect(lines == ["the connection lives", "the session lives"])
        }
    }
}
