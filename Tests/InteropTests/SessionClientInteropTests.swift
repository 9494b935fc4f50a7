import Foundation
import Lifeline
import LifelineProtos
import Testing

/// Our client of sessions with a server that was written from docs/session-protocol.md alone.
@Suite(.timeLimit(.minutes(3)), .serialized) struct SessionClientInteropTests {
    private var quick: SessionClientConfiguration {
        var configuration = SessionClientConfiguration()
        configuration.client.backoff.initialDelay = .milliseconds(1)
        configuration.client.backoff.cap = .milliseconds(10)
        configuration.client.backoff.maximumAttempts = nil
        // Closing waits for the peer, however busy the machine is.
        configuration.closeTimeout = .seconds(60)
        return configuration
    }

    @Test func callsAndTheirErrors() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let echo = try await client.ask("Echo", id: 7, text: "Grüezi")
            #expect(echo.id == "7" && echo.text == "Grüezi")

            let failure = try await sessionError { try await client.ask("Fail", text: "no") }
            #expect(failure.code == .status)
            let status = try #require(failure.status)
            #expect(status.code == .failedPrecondition && status.message == "Grüezi: no")
            #expect(status.details.map(\.typeURL) == Array(repeating: Self.detailType, count: 2))
            let texts = try status.details.map { try ChatMessage(serializedBytes: $0.value).text }
            #expect(texts == ["first", "second"])

            let nothing = try await sessionError { try await client.ask("Nothing") }
            #expect(nothing.status?.code == .unimplemented)
        }
    }

    private static let detailType = "type.googleapis.com/sample.chat.v1.ChatMessage"

    @Test func streamsAndPushes() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let news = client.pushes("interop.Peer/News", of: ChatMessage.self)
            var parts: [String] = []
            let stream = client.stream("interop.Peer/Count", ChatMessage.chat(1_000), of: ChatMessage.self)
            for try await part in stream { parts.append(part.id) }
            #expect(parts == (0..<1_000).map(String.init))

            for number in 0..<100 { try await client.note(number) }
            _ = try await client.ask("Start", id: 100)
            #expect(try await take(100, of: news) == (0..<100).map(String.init))

            _ = try await client.ask("Unplaced", id: 5)
            #expect(try await take(1, of: news) == ["5"])
            // Pushes have no order with requests: what was accepted is processed when the client has closed.
            _ = try await client.ask("AwaitNotes", id: 100)
            #expect(try await client.report().notes == (0..<100).map(String.init))
        }
    }

    @Test func aCancelledCallAndAnExpiredOneEndAtTheServer() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let hanging = Task { try await client.ask("Hang", id: 1) }
            _ = try await client.ask("AwaitHanging")
            hanging.cancel()
            let cancelled = try await sessionError { try await hanging.value }
            #expect(cancelled.code == .cancelled)
            _ = try await client.ask("AwaitEnd")

            let expired = try await sessionError {
                try await client.ask("Hang", id: 2, timeout: .milliseconds(50))
            }
            #expect(expired.code == .timedOut)
            _ = try await client.ask("AwaitEnd")
            #expect(try await client.report().ended == ["1", "2"])
        }
    }

    @Test func aStreamThatIsLeftIsCancelledAtTheServer() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            for try await _ in client.stream("interop.Peer/Count", ChatMessage.chat(1_000_000), of: ChatMessage.self) {
                break
            }
            _ = try await client.ask("AwaitEnd")
            #expect(try await client.report().ended == ["stream"])
        }
    }

    @Test func aServersRequestIsAnsweredWithUnimplemented() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let status = try await client.ask("Ask").id
            #expect(status == "12")
        }
    }

    @Test func pingsAreAnsweredAndUnknownKindsProcessed() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let news = client.pushes("interop.Peer/News", of: ChatMessage.self)
            _ = try await client.ask("Ping")
            async let asking = client.ask("Unknown")
            #expect(try await take(1, of: news) == ["1"])
            // Asking for the next one says that this one is processed.
            let next = Task { try await take(1, of: news) }
            _ = try await asking
            next.cancel()
            _ = await next.result
        }
    }

    struct Cutting: Sendable, CustomTestStringConvertible {
        var cuts: Int
        var seed: Int
        /// What the peer grants, and what we grant it.
        var window: (frames: Int, bytes: Int) = (65_536, 8 << 20)
        var count = 3_000
        /// The peer says less than it has received, and sends again what we have processed.
        var isForgetful = false

        var testDescription: String {
            "\(cuts) cuts, seed \(seed), \(window) at a time\(isForgetful ? ", forgetful" : "")"
        }

        var options: [String] {
            ["--cuts", "\(cuts)", "--seed", "\(seed)", "--frames", "\(window.frames)", "--bytes", "\(window.bytes)"]
                + (isForgetful ? ["--forgetful"] : [])
        }

        static let all = [
            Cutting(cuts: 0, seed: 1, window: (5, 5_000), count: 500), Cutting(cuts: 25, seed: 2),
            Cutting(cuts: 40, seed: 3), Cutting(cuts: 25, seed: 4, window: (5, 5_000), count: 1_000),
            Cutting(cuts: 40, seed: 5, isForgetful: true),
        ]
    }

    @Test(arguments: Cutting.all) func nothingIsLostDoubledOrReorderedByCuts(cutting: Cutting) async throws {
        let expected = (0..<cutting.count).map(String.init)
        var configuration = quick
        configuration.limits.maximumUnprocessedMessageCount = cutting.window.frames
        configuration.limits.maximumUnprocessedByteCount = cutting.window.bytes
        try await SessionPeer.withServer(cutting.options, configuration: configuration) { client in
            let pushes = client.pushes("interop.Peer/News", of: ChatMessage.self)
            async let news = take(cutting.count, of: pushes)
            async let start = client.ask("Start", id: cutting.count, timeout: nil)
            async let notes: Void = {
                for number in 0..<cutting.count {
                    try await client.note(number, text: ChatMessage.padding(for: number))
                }
            }()
            async let parts = {
                var parts: [String] = []
                let stream = client.stream(
                    "interop.Peer/Count",
                    ChatMessage.chat(cutting.count),
                    of: ChatMessage.self
                )
                for try await part in stream { parts.append(part.id) }
                return parts
            }()
            async let echoes = {
                var echoes: [String] = []
                for number in 0..<(cutting.count / 10) {
                    echoes.append(try await client.ask("Echo", id: number, timeout: nil).id)
                }
                return echoes
            }()
            #expect(try await parts == expected)
            #expect(try await echoes == (0..<(cutting.count / 10)).map(String.init))
            #expect(try await news == expected)
            _ = try await start
            try await notes
            _ = try await client.ask("AwaitNotes", id: cutting.count, timeout: nil)

            let report = try await client.report()
            #expect(report.notes == expected)
            #expect(report.requests == (0..<(cutting.count / 10)).map(String.init))
            #expect(report.cutCount == cutting.cuts)
            // What is sent again is what had not come, unless that is not said, or not heeded.
            #expect(report.doubledCount == 0 || cutting.isForgetful)
            #expect(client.statistics.duplicateMessageCount == 0 || cutting.isForgetful)
            // One more push than was asked for would come before this one.
            _ = try await client.ask("Unplaced", id: -1)
            #expect(try await take(1, of: pushes) == ["-1"])
        }
    }

    @Test func whatComesTwiceIsDropped() async throws {
        try await SessionPeer.withServer(["--forgetful"], configuration: quick) { client in
            let pushes = client.pushes("interop.Peer/News", of: ChatMessage.self)
            _ = try await client.ask("Start", id: 1)
            #expect(try await take(1, of: pushes) == ["0"])
            try await client.push("interop.Peer/Cut", ChatMessage.chat(0))
            // Behind what was processed before: the push and the reply.
            while try await client.ask("Connections").id == "1" {}
            #expect(client.statistics.duplicateMessageCount == 2)
            _ = try await client.ask("Unplaced", id: 7)
            #expect(try await take(1, of: pushes) == ["7"])
        }
    }

    @Test func aLostSessionIsToldWithWhatIsInDoubt() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let hanging = Task { try await client.ask("Hang") }
            _ = try await client.ask("AwaitHanging")
            try await client.push("interop.Peer/Forget", ChatMessage.chat(3))
            let failure = try await sessionError { try await hanging.value }
            #expect(failure.code == .sessionLost)
            #expect(try await client.ask("Echo", id: 4).id == "4")

            var openings: [Bool] = []
            for event in client.sessionHistory {
                switch event.kind {
                case .opened(_, let resumed): openings.append(resumed)
                case .lost(let inDoubt):
                    // A call is in doubt as long as it has no reply.
                    #expect(inDoubt.map(\.method) == ["interop.Peer/Hang", "interop.Peer/Forget"])
                    #expect(inDoubt.allSatisfy { $0.outcome == .inDoubt })
                case .refused, .ended: Issue.record("\(event.kind)")
                }
            }
            #expect(openings == [false, false])
        }
    }

    @Test func aReplacedSessionEnds() async throws {
        let error = try await sessionError {
            try await SessionPeer.withServer(configuration: quick) { client in
                // It was sent, and nobody knows what has become of it.
                let failure = try await sessionError { try await client.ask("Usurp") }
                #expect(failure.code == .sessionLost)
                let next = try await sessionError { try await client.ask("Echo") }
                #expect(next.code == .replaced)
            }
        }
        #expect(error.code == .replaced)
    }

    @Test func aDrainingServerIsLeftAndComeBackTo() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let hanging = Task { try await client.ask("Hang") }
            _ = try await client.ask("AwaitHanging")
            let news = client.pushes("interop.Peer/News", of: ChatMessage.self)
            let last = Task { try await client.ask("Drain", id: 2) }
            // It comes behind the goodbye.
            #expect(try await take(1, of: news) == ["2"])
            let late = Task { try await client.ask("Connections") }
            // With that the last request is answered.
            hanging.cancel()
            _ = try await last.value
            #expect(try await late.value.id == "2")
        }
    }

    @Test func aRefusalAndAForeignVersionEndTheClient() async throws {
        var configuration = quick
        configuration.metadata = ["credentials": "wrong"]
        let refusal = try await sessionError {
            try await SessionPeer.withServer(configuration: configuration) { try await $0.ask("Echo") }
        }
        #expect(refusal.code == .refused && refusal.message.contains("wrong credentials"))

        let mismatch = try await sessionError {
            try await SessionPeer.withServer(["--version", "2"], configuration: quick) { try await $0.ask("Echo") }
        }
        #expect(mismatch.code == .versionMismatch)
    }

    @Test func aClientComesBackToAFullServer() async throws {
        try await SessionPeer.withServer(["--maximum-sessions", "1"]) { port in
            let endpoint = Endpoint.tcp(host: "127.0.0.1", port: port)
            let second = SessionClient(to: endpoint, configuration: quick)
            var steps = second.events.makeAsyncIterator()
            let running: Task<Void, any Error> = try await withSessionClient(to: endpoint, configuration: quick) {
                _ = try await $0.ask("Echo", id: 1)
                let running = Task { try await second.run() }
                while let event = await steps.next(), event.transition.to != .backingOff {}
                return running
            }
            #expect(try await second.ask("Echo", id: 2).id == "2")
            await second.close()
            try await running.value
        }
    }

    private func take(_ count: Int, of pushes: SessionPushes<ChatMessage>) async throws -> [String] {
        var taken: [String] = []
        guard count > 0 else { return [] }
        for try await push in pushes {
            taken.append(push.id)
            if taken.count == count { break }
        }
        return taken
    }
}
