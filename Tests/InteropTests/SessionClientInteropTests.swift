import Foundation
import Lifeline
import LifelineProtos
import Testing

/// Our session client with a server that was written only from docs/session-protocol.md.
@Suite(.timeLimit(.minutes(3)), .serialized) struct SessionClientInteropTests {
    private var quick: SessionClientConfiguration {
        var configuration = SessionClientConfiguration()
        configuration.client.backoff.initialDelay = .milliseconds(1)
        configuration.client.backoff.cap = .milliseconds(10)
        configuration.client.backoff.maximumAttempts = nil
        // Closing waits for the peer, even on a busy machine.
        configuration.closeTimeout = .seconds(60)
        return configuration
    }

    // MARK: Calls and pushes

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
            let news = client.pushes(of: "News")
            var parts: [String] = []
            for try await part in client.counting(1_000) { parts.append(part.id) }
            #expect(parts == chatIDs(1_000))

            for number in 0..<100 { try await client.note(number) }
            _ = try await client.ask("Start", id: 100)
            #expect(try await take(100, of: news) == chatIDs(100))

            _ = try await client.ask("Unplaced", id: 5)
            #expect(try await take(1, of: news) == ["5"])
            // Pushes have no order relative to requests. Accepted ones are processed when the client has closed.
            _ = try await client.ask("AwaitNotes", id: 100)
            #expect(try await client.report().notes == chatIDs(100))
        }
    }

    @Test func aSessionIsFoundByItsName() async throws {
        var configuration = quick
        configuration.name = "ada"
        try await SessionPeer.withServer(configuration: configuration) { client in
            let news = client.pushes(of: "News")
            let found = try await client.ask("Tell", id: 3, text: "ada")
            #expect(found.id == "1")
            #expect(try await take(1, of: news) == ["3"])
            #expect(try await client.ask("Tell", id: 4, text: "grace").id == "0")
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

    /// Before the welcome, over an open connection, and over one that is made after the request.
    @Test func aRequestSaysWhatIsLeftOfItsTime() async throws {
        try await SessionPeer.withServer(["--delay", "2"], configuration: quick) { client in
            let early = Int(try await client.ask("TimeLeft", timeout: .seconds(60)).id) ?? 0
            #expect(20_000 < early && early < 59_900)
            let present = Int(try await client.ask("TimeLeft", timeout: .seconds(60)).id) ?? 0
            #expect(20_000 < present && present <= 60_000)
            #expect(try await client.ask("TimeLeft", timeout: nil).id == "0")

            try await loseConnection(of: client)
            async let late = client.ask("TimeLeft", timeout: .seconds(60))
            let expired = try await sessionError { try await client.ask("Hang", timeout: .milliseconds(50)) }
            #expect(expired.code == .timedOut)
            let left = Int(try await late.id) ?? 0
            #expect(20_000 < left && left < 59_900)
            // The request that timed out has left its place.
            #expect(try await client.counts()["blanks_received"] == 1)
        }
    }

    @Test(arguments: ["AskCollect", "AskConverse", "AskTimeLeft", "AskCount"])
    func aServersRequestIsAnsweredWithUnimplemented(method: String) async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            #expect(try await client.ask("Ask").id == "12")
            async let asked = sessionError { try await client.ask(method, id: 10) }
            if method == "AskCount" { _ = try await client.ask("Release") }
            #expect(try await asked.status?.code == .unimplemented)
        }
    }

    @Test func pingsAreAnsweredAndUnknownKindsProcessed() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let news = client.pushes(of: "News")
            _ = try await client.ask("Ping")
            async let asking = client.ask("Unknown")
            #expect(try await take(1, of: news) == ["1"])
            // Asking for the next message marks this one as processed.
            let next = Task { try await take(1, of: news) }
            _ = try await asking
            next.cancel()
            _ = await next.result
        }
    }

    @Test func framesOfNoRequestAreProcessedAndDropped() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            // Answered when all of it is processed.
            _ = try await client.ask("Late")
            // Parts, an end, parts of answers and answers, of which two were sent at most once. Cancels do not count.
            #expect(client.statistics.lateMessageCount == 10)
            #expect(try await client.ask("Echo", id: 1).id == "1")
        }
    }

    // MARK: Streams

    @Test func streamsOfTheClient() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            for count in [0, 1, 1_000] {
                let reply = try await client.collect(count)
                #expect(reply.id == "\(count)" && reply.text == checksum(of: chatIDs(count)))
            }
            // The server replies before the messages have ended.
            let picked = try await client.clientStream(
                "interop.Peer/Pick",
                of: ChatMessage.self,
                returning: ChatMessage.self
            ) { writer in
                for number in 0... { try await writer.send(.chat(number, ChatMessage.padding(for: number))) }
            }
            #expect(picked.id == "0")
        }
    }

    @Test func streamsBothWays() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            #expect(try await client.converse(0) == [])
            #expect(try await client.converse(1_000) == chatIDs(1_000))

            // One message at a time, each larger than the credit.
            let (numbers, next) = AsyncStream.makeStream(of: Int.self)
            let text = String(repeating: "x", count: 300 << 10)
            try await client.converse { writer in
                for await number in numbers { try await writer.send(.chat(number, text)) }
            } receive: { parts in
                var parts = parts.makeAsyncIterator()
                for number in 0..<3 {
                    next.yield(number)
                    let part = try await parts.next()
                    #expect(part == ChatMessage.chat(number, text))
                }
                next.finish()
                let end = try await parts.next()
                #expect(end == nil)
            }
        }
    }

    @Test func messagesThatAreSentAtMostOnce() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            // At-most-once messages are sent over this connection or not at all.
            _ = try await client.ask("Echo")
            for number in 1...2 {
                try await client.push("interop.Peer/Note", ChatMessage.chat(number), delivery: .atMostOnce)
            }
            _ = try await client.ask("AwaitNotes", id: 2)

            let (numbers, next) = AsyncStream.makeStream(of: Int.self)
            try await client.converse(by: "UnplacedParts") { writer in
                for await number in numbers {
                    try await writer.send(
                        .chat(number),
                        delivery: number.isMultiple(of: 2) ? .atMostOnce : .reliable
                    )
                }
            } receive: { parts in
                var parts = parts.makeAsyncIterator()
                for number in 0..<10 {
                    next.yield(number)
                    let part = try await parts.next()
                    #expect(part?.id == "\(number)")
                }
                next.finish()
                let end = try await parts.next()
                #expect(end == nil)
            }
            #expect(try await client.counts()["unplaced_received"] == 7)
            #expect(try await client.report().notes == ["1", "2"])
        }
    }

    @Test func aStreamThatIsLeftIsCancelledAtTheServer() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            for try await _ in client.counting(1_000_000) { break }
            _ = try await client.ask("AwaitEnd")
            #expect(try await client.report().ended == ["stream"])
        }
    }

    private struct Failure: Error {}

    @Test func aCallBothWaysThatIsLeftIsCancelledAtTheServer() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            // One message is enough.
            try await client.converse { writer in
                try await writer.send(.chat(1))
                await Signal().wait()
            } receive: { parts in
                for try await _ in parts { break }
            }
            _ = try await client.ask("AwaitEnd")

            let expired = try await sessionError {
                try await client.converse(timeout: .milliseconds(500)) { writer in
                    try await writer.send(.chat(2))
                    await Signal().wait()
                } receive: { parts in
                    for try await _ in parts {}
                }
            }
            #expect(expired.code == .timedOut)
            _ = try await client.ask("AwaitEnd")

            // The server already has the call when its sender fails.
            let answered = Signal()
            await #expect(throws: Failure.self) {
                try await client.converse { writer in
                    try await writer.send(.chat(3))
                    await answered.wait()
                    throw Failure()
                } receive: { parts in
                    for try await _ in parts { answered.send() }
                }
            }
            _ = try await client.ask("AwaitEnd")
            #expect(try await client.report().ended == ["converse", "converse", "converse"])
        }
    }

    /// The server defines a method differently.
    @Test func aMethodThatHasAnotherFormFails() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let single = try await sessionError { try await client.ask("Collect") }
            #expect(single.status?.code == .unimplemented)
            let many = try await sessionError { try await client.collect(3, by: "Echo") }
            #expect(many.status?.code == .unimplemented)
            // Parts arrive in place of one reply.
            _ = try await sessionError { try await client.ask("WrongForm") }
            #expect(try await client.ask("Echo", id: 1).id == "1")
        }
    }

    // MARK: Credit and acknowledgements

    /// Pushes, and messages of a call in both directions, each more than their credit.
    @Test func untakenMessagesHoldUpNothingElse() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let count = 2_000
            let news = client.pushes(of: "News")
            async let start = client.ask("Start", id: count, timeout: nil)
            async let hoard = client.collect(count, by: "Hoard")
            _ = try await client.ask("AwaitHanging")
            var parts = client.counting(count).makeAsyncIterator()
            let first = try await parts.next()
            var taken = [first?.id ?? ""]
            for number in 0..<100 {
                try await client.note(number)
                #expect(try await client.ask("Echo", id: number).id == "\(number)")
            }
            // The rest waits for credit at its sender.
            #expect(client.statistics.receivedPushCount < count)

            _ = try await client.ask("Release")
            #expect(try await hoard.text == checksum(of: chatIDs(count)))
            while let part = try await parts.next() { taken.append(part.id) }
            #expect(taken == chatIDs(count))
            #expect(try await take(count, of: news) == chatIDs(count))
            _ = try await start
            #expect(try await client.report().notes == chatIDs(100))
        }
    }

    @Test func aPushThatIsNotTakenHoldsBackItsOwnAcknowledgementOnly() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let (slow, news) = (client.pushes(of: "Slow"), client.pushes(of: "News"))
            async let taken = take(100, of: news)
            // Answered when all but the slow one are acknowledged.
            _ = try await client.ask("Behind", id: 100)
            #expect(try await taken == chatIDs(100))
            #expect(try await client.counts()["ranges_received"] ?? 0 > 0)
            #expect(try await take(1, of: slow) == ["0"])
        }
    }

    @Test func messagesThatTheServerDoesNotResendLeaveBlanks() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let news = client.pushes(of: "News")
            // Ten expiring messages and one other are lost with a connection.
            async let blanks = client.ask("Blanks", id: 10)
            let last = try await take(1, of: news)
            #expect(last == ["10"])
            #expect(try await blanks.id == "10")
        }
    }

    @Test func expiredMessagesLeaveBlanks() async throws {
        try await SessionPeer.withServer(["--delay", "2"], configuration: quick) { client in
            _ = try await client.ask("Echo")
            try await loseConnection(of: client)
            for _ in 0..<10 {
                let note = ChatMessage.chat(-1, "late")
                try await client.push("interop.Peer/Note", note, delivery: .expiring(after: .milliseconds(50)))
            }
            for number in 0..<100 {
                let value = ChatMessage.chat(number)
                try await client.push("interop.Peer/Value", value, delivery: .replaceable(key: "value"))
            }
            try await client.note(1)
            _ = try await client.ask("AwaitNotes", id: 1)
            #expect(try await client.report().notes == ["1"])
            // The last one has the place of the first one.
            #expect(try await client.ask("Values").text == "99")
            #expect(try await client.counts()["blanks_received"] == 10)
            #expect(client.statistics.expiredMessageCount == 10 && client.statistics.replacedMessageCount == 99)
        }
    }

    @Test func theLastOfManyValuesComes() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            let pushes = client.pushes(of: "Value")
            async let start = client.ask("StartValues", id: 2_000)
            var values: [Int] = []
            for try await push in pushes {
                values.append(Int(push.id) ?? -1)
                if values.last == 1_999 { break }
            }
            #expect(zip(values, values.dropFirst()).allSatisfy(<))
            _ = try await start
        }
    }

    // MARK: Limits of the server

    @Test func aServerTakesTwoRequestsAtOnce() async throws {
        try await SessionPeer.withServer(["--maximum-requests", "2"], configuration: quick) { client in
            let hanging = Task { try await client.ask("Hang") }
            _ = try await client.ask("AwaitHanging")
            try await client.converse { writer in
                try await writer.send(.chat(1))
                await Signal().wait()
            } receive: { parts in
                for try await _ in parts {
                    let error = try await sessionError { try await client.ask("Echo") }
                    #expect(error.code == .tooManyInFlight)
                    break
                }
            }
            hanging.cancel()
            _ = await hanging.result
        }
    }

    @Test func aMessageThatIsTooLargeForTheServerIsRefused() async throws {
        try await SessionPeer.withServer(["--maximum-frame", "8192", "--delay", "1"], configuration: quick) { client in
            let large = String(repeating: "x", count: 10_000)
            // Before the welcome, the server's limits are unknown.
            try await client.note(-1, text: large)
            let early = try await sessionError { try await client.ask("Echo", text: large) }
            #expect(early.code == .messageRefused)
            func refused() -> [String] {
                client.sessionHistory.flatMap { event -> [String] in
                    if case .refused(let messages) = event.kind { messages.map(\.method) } else { [] }
                }
            }
            // The call may fail first.
            while refused().isEmpty { await Task.yield() }
            #expect(refused() == ["interop.Peer/Note"])

            let push = try await sessionError { try await client.note(-1, text: large) }
            #expect(push.code == .messageRefused)
            let call = try await sessionError { try await client.ask("Echo", text: large) }
            #expect(call.code == .messageRefused)
            try await client.note(1)
            #expect(try await client.ask("Echo", id: 1).id == "1")
            _ = try await client.ask("AwaitNotes", id: 1)
            #expect(try await client.report().notes == ["1"])
        }
    }

    // MARK: Connections that come and go

    struct Cutting: Sendable, CustomTestStringConvertible {
        var cuts: Int
        var seed: Int
        /// The credit from the peer, and to the peer.
        var window: (frames: Int, bytes: Int) = (65_536, 8 << 20)
        var count = 3_000
        /// When it resumes, the peer drops messages that no handler has begun to process, so they are sent again.
        var isForgetful = false

        var testDescription: String {
            "\(cuts) cuts, seed \(seed), \(window) at a time\(isForgetful ? ", forgetful" : "")"
        }

        var options: [String] {
            ["--cuts", "\(cuts)", "--seed", "\(seed)", "--frames", "\(window.frames)", "--bytes", "\(window.bytes)"]
                + (isForgetful ? ["--forgetful"] : [])
        }

        var limits: SessionLimits {
            var limits = SessionLimits()
            limits.maximumUnprocessedMessageCount = window.frames
            limits.maximumUnprocessedByteCount = window.bytes
            return limits
        }

        static let all = [
            Cutting(cuts: 0, seed: 1, window: (5, 5_000), count: 500), Cutting(cuts: 25, seed: 2),
            Cutting(cuts: 40, seed: 3), Cutting(cuts: 25, seed: 4, window: (5, 5_000), count: 1_000),
            Cutting(cuts: 40, seed: 5, isForgetful: true),
        ]
    }

    @Test(arguments: Cutting.all) func nothingIsLostDoubledOrReorderedByCuts(cutting: Cutting) async throws {
        let expected = chatIDs(cutting.count)
        var configuration = quick
        configuration.limits = cutting.limits
        try await SessionPeer.withServer(cutting.options, configuration: configuration) { client in
            let pushes = client.pushes(of: "News")
            async let news = take(cutting.count, of: pushes)
            async let start = client.ask("Start", id: cutting.count, timeout: nil)
            async let notes: Void = {
                for number in 0..<cutting.count {
                    try await client.note(number, text: ChatMessage.padding(for: number))
                }
            }()
            async let parts = {
                var parts: [String] = []
                for try await part in client.counting(cutting.count) { parts.append(part.id) }
                return parts
            }()
            async let collected = client.collect(cutting.count)
            async let conversation = client.converse(cutting.count)
            async let echoes = {
                var echoes: [String] = []
                for number in 0..<(cutting.count / 10) {
                    echoes.append(try await client.ask("Echo", id: number, timeout: nil).id)
                }
                return echoes
            }()
            #expect(try await parts == expected)
            #expect(try await collected.text == checksum(of: expected))
            #expect(try await conversation == expected)
            #expect(try await echoes == chatIDs(cutting.count / 10))
            #expect(try await news == expected)
            _ = try await start
            try await notes
            _ = try await client.ask("AwaitNotes", id: cutting.count, timeout: nil)

            let report = try await client.report()
            #expect(report.notes == expected)
            #expect(report.requests == chatIDs(cutting.count / 10))
            #expect(report.cutCount == cutting.cuts)
            #expect(report.droppedCount == 0 || cutting.isForgetful)
            // An additional push would arrive before this one.
            _ = try await client.ask("Unplaced", id: -1)
            #expect(try await take(1, of: pushes) == ["-1"])
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
                case .refused, .expired, .ended: Issue.record("\(event.kind)")
                }
            }
            #expect(openings == [false, false])
        }
    }

    /// With the numbers and the credit of the new session.
    @Test func unsentMessagesGoToTheNextSession() async throws {
        try await SessionPeer.withServer(["--delay", "2"], configuration: quick) { client in
            _ = try await client.ask("AwaitNotes", id: 0)
            try await loseConnection(of: client, by: "Forget")
            async let collected = client.collect(10)
            for number in 0..<40 { try await client.note(number, text: ChatMessage.padding(for: number)) }
            #expect(try await client.ask("Echo", id: 1).id == "1")
            #expect(try await collected.text == checksum(of: chatIDs(10)))
            _ = try await client.ask("AwaitNotes", id: 40)
            #expect(try await client.report().notes == chatIDs(40))

            let lost = client.sessionHistory.flatMap { event -> [String] in
                if case .lost(let inDoubt) = event.kind { inDoubt.map(\.method) } else { [] }
            }
            #expect(lost == ["interop.Peer/Forget"])
        }
    }

    @Test func aReplacedSessionEnds() async throws {
        let error = try await sessionError {
            try await SessionPeer.withServer(configuration: quick) { client in
                // It was sent, and its outcome is unknown.
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
            let news = client.pushes(of: "News")
            let (numbers, next) = AsyncStream.makeStream(of: Int.self)
            try await client.converse { writer in
                for await number in numbers { try await writer.send(.chat(number)) }
            } receive: { parts in
                var parts = parts.makeAsyncIterator()
                next.yield(0)
                let first = try await parts.next()
                #expect(first?.id == "0")

                let last = Task { try await client.ask("Drain", id: 2) }
                // It follows the goodbye.
                #expect(try await take(1, of: news) == ["2"])
                let late = Task { try await client.ask("Connections") }
                // An open call continues.
                next.yield(1)
                let second = try await parts.next()
                #expect(second?.id == "1")
                next.finish()
                let end = try await parts.next()
                #expect(end == nil)
                // This answers the last request.
                hanging.cancel()
                _ = try await last.value
                #expect(try await late.value.id == "2")
            }
        }
    }

    @Test func messagesThatAServerCannotKeepAreSentAgain() async throws {
        try await SessionPeer.withServer(configuration: quick) { client in
            for turn in 0..<5 {
                _ = try await client.ask("Overload")
                for number in 0..<50 { try await client.note(50 * turn + number) }
                #expect(try await client.ask("Echo", id: turn).id == "\(turn)")
            }
            _ = try await client.ask("AwaitNotes", id: 250)
            #expect(try await client.report().notes == chatIDs(250))
            #expect(try await client.ask("Connections").id == "6")
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

    // MARK: Broken rules

    @Test(arguments: SessionRule.ofServers + SessionRule.welcomes + SessionRule.returns)
    func aServerThatBreaksARuleIsToldWhich(rule: SessionRule) async throws {
        var configuration = quick
        configuration.limits = rule.limits
        let lines = try await said(byServerBreaking: rule.name, configuration)
        rule.check(lines, session: "the client begins another session")
    }

    @Test(arguments: SessionRule.tolerated) func allowedFramesAreTolerated(rule: String) async throws {
        let lines = try await said(byServerBreaking: rule, quick)
        #expect(lines == ["the connection lives", "the client goes on with the session"])
    }

    private func said(
        byServerBreaking rule: String,
        _ configuration: SessionClientConfiguration
    ) async throws -> [String] {
        try await SessionPeer.withHostileServer(rule) { port in
            let endpoint = Endpoint.tcp(host: "127.0.0.1", port: port)
            let client = SessionClient(to: endpoint, configuration: configuration)
            // Nobody takes these malformed messages. They are requested before the client runs, because the server
            // sends them at once.
            let blocked = client.pushes("interop.Peer/Block", of: RawMessage.self)
            defer { blocked.stop() }
            async let running: Void = client.run()
            let counting = rule == "credit-exceeded-by-response-part" ? Task { await hoardParts(client) } : nil
            // The server closes the session after it has seen the client's reaction.
            for await _ in client.sessionEvents {}
            counting?.cancel()
            await counting?.value
            await client.close()
            try await running
        }
    }

    /// Asks for messages, and takes only the first one.
    private func hoardParts(_ client: SessionClient) async {
        var parts = client.stream("interop.Peer/Count", ChatMessage.chat(1), of: RawMessage.self).makeAsyncIterator()
        _ = try? await parts.next()
        await Signal().wait()
        withExtendedLifetime(parts) {}
    }

    // MARK: Helpers

    private func take(_ count: Int, of pushes: SessionPushes<ChatMessage>) async throws -> [String] {
        var taken: [String] = []
        guard count > 0 else { return [] }
        for try await push in pushes {
            taken.append(push.id)
            if taken.count == count { break }
        }
        return taken
    }

    /// Makes the server lose the connection, by a push, and returns when the client knows.
    private func loseConnection(of client: SessionClient, by method: String = "Cut") async throws {
        var steps = client.events.makeAsyncIterator()
        try await client.push(SessionPeer.service + method, ChatMessage.chat(0))
        while let event = await steps.next(), event.transition.to != .backingOff {}
    }
}
