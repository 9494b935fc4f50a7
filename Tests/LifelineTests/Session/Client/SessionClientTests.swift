import LifelineClientTestSupport
import LifelineCore
import LifelineProtos
import LifelineTestSupport
import LifelineTransport
import ServiceLifecycleTestKit
import Testing

@testable import Lifeline

/// A session's client against a server that does what a test says, on a clock that a test moves.
@Suite(.timeLimit(.minutes(1))) struct SessionClientTests {
    @Test func helloSaysWhoTheClientIs() async throws {
        let harness = SessionClientHarness {
            $0.name = "anna"
            $0.metadata = ["token": "x"]
            $0.limits.maximumUnprocessedMessageCount = 10
            $0.limits.maximumUnprocessedByteCount = 5_000
            $0.limits.maximumHandlerCount = 3
        }
        try await harness.run { client in
            let hello = try await harness.accept().welcome()
            #expect(hello.name == "anna")
            #expect(hello.metadata.asMetadata == ["token": "x"])
            #expect(hello.sessionID.isEmpty)
            #expect((hello.minimumVersion, hello.maximumVersion) == (1, 1))
            #expect((hello.window.frames, hello.window.bytes) == (10, 5_000))
            #expect(hello.maximumRequests == 3)
        }
    }

    @Test func aDeadline() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            let call = Task {
                try await client.call(
                    "t.T/A",
                    TestMessage(number: 1),
                    returning: TestMessage.self,
                    timeout: .seconds(5)
                )
            }
            let request = try await server.next()
            #expect(request.request.timeoutMilliseconds == 5_000)
            let deadline = harness.clock.now + .seconds(5)
            try await until { harness.clock.nextWakeUp == deadline }
            harness.clock.advance(to: deadline)
            #expect(await sessionError { try await call.value }?.code == .timedOut)
            // The handler is cancelled, and what it says too late is dropped.
            #expect(try await server.next().cancel.serial == request.request.serial)
            try server.reply(to: request, urgentSequence: 1)
            try await until { client.statistics.lateMessageCount == 1 }
        }
    }

    @Test func withoutAConnectionItWaitsUntilItsDeadline() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let early = Task {
                try await client.call(
                    "t.T/A",
                    TestMessage(number: 1),
                    returning: TestMessage.self,
                    timeout: .seconds(1)
                )
            }
            let deadline = harness.clock.now + .seconds(1)
            try await until { harness.clock.nextWakeUp == deadline }
            harness.clock.advance(to: deadline)
            #expect(await sessionError { try await early.value }?.code == .timedOut)
            let patient = Task { try await client.call("t.T/B", TestMessage(number: 2), returning: TestMessage.self) }
            let server = try await harness.accept()
            try await server.welcome()
            // What timed out is not sent.
            let request = try await server.next()
            #expect(request.request.method == "t.T/B")
            try server.reply(to: request, urgentSequence: 1)
            #expect(try await patient.value.number == 2)
        }
    }

    private func errorOfCallInCancelledTask(_ client: SessionClient) async -> SessionError? {
        let started = Event()
        let call = Task {
            try? await started.wait()
            return try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self)
        }
        call.cancel()
        started.signal()
        return await sessionError { try await call.value }
    }

    @Test func cancelledBeforeItBegan() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            #expect(await errorOfCallInCancelledTask(client)?.code == .cancelled)
            try await client.push("t.T/P", TestMessage(number: 1))
            #expect(try await server.next().push.method == "t.T/P")
        }
    }

    @Test func whatWasNotProcessedIsSentAgain() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            for number in 1...3 { try await client.push("t.T/P", TestMessage(number: number)) }
            for number: UInt64 in 1...3 { #expect(try await server.next().sequence == number) }
            server.peer.close(.lost)
            try await harness.waitForBackoff()
            server = try await harness.accept()
            #expect((client.statistics.openingCount, client.statistics.sessionCount) == (1, 1))
            let hello = try await server.welcome(resumed: true, processed: 1, received: 2)
            #expect(hello.sessionID == [UInt8](repeating: 1, count: 16))
            #expect(hello.token == [UInt8](repeating: 9, count: 16))
            #expect(try await server.next().sequence == 3)
            #expect((client.statistics.openingCount, client.statistics.sessionCount) == (2, 1))
        }
    }

    @Test func aSessionThatIsLost() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var events = client.sessionEvents.makeAsyncIterator()
            var server = try await harness.accept()
            try await server.welcome()
            try await client.push("t.T/P", TestMessage(number: 1))
            try await client.push("t.T/P", TestMessage(number: 2), delivery: .expiring(after: .seconds(900)))
            let call = Task { try await client.call("t.T/A", TestMessage(number: 3), returning: TestMessage.self) }
            for _ in 1...3 { _ = try await server.next() }
            try server.send(.with { $0.acknowledgement = 1 })
            try await until { client.statistics.keptMessageCount == 2 }
            server.peer.close(.lost)
            try await until { client.state == .backingOff && !harness.hasOutlet }
            // Sent in the next session.
            try await client.push("t.T/P", TestMessage(number: 4))
            try await harness.waitForBackoff()
            // Its deadline passes in that time. It is told before the session is known to be lost, and is in no doubt then.
            #expect(await sessionError { try await call.value }?.code == .timedOut)
            server = try await harness.accept()
            try await server.welcome(id: 2)
            let push = try await server.next()
            #expect((client.statistics.openingCount, client.statistics.sessionCount) == (2, 2))
            #expect(push.sequence == 1)
            #expect(push.push.payload == (try TestMessage(number: 4).serializedBytes()))

            guard case .opened(_, resumed: false)? = await events.next()?.kind else { return #expect(Bool(false)) }
            guard case .lost(let inDoubt)? = await events.next()?.kind else { return #expect(Bool(false)) }
            #expect(inDoubt.map(\.method) == ["t.T/P"])
            #expect(inDoubt.map(\.delivery) == [.expiring(after: .seconds(900))])
            #expect(inDoubt.map(\.payload) == [try TestMessage(number: 2).serializedBytes()])
            #expect(inDoubt.map(\.outcome) == [.inDoubt])
            guard case .opened(_, resumed: false)? = await events.next()?.kind else { return #expect(Bool(false)) }
        }
    }

    @Test func aCallThatIsLostWithItsSession() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var events = client.sessionEvents.makeAsyncIterator()
            var server = try await harness.accept()
            try await server.welcome()
            let call = Task {
                try await client.call("t.T/A", TestMessage(number: 3), returning: TestMessage.self, timeout: nil)
            }
            let request = try await server.next()
            #expect(request.request.method == "t.T/A")
            let messages = Notes<TestMessage>()
            let stream = Task {
                for try await message in client.stream("t.T/S", TestMessage(number: 4), of: TestMessage.self) {
                    messages.add(message)
                }
            }
            let streamed = try await server.next()
            try server.send(
                .with { ($0.sequence, $0.push.serial) = (1, streamed.request.serial) }
            )
            try await until { messages.count == 1 }
            server.peer.close(.lost)
            try await harness.waitForBackoff()
            server = try await harness.accept()
            try await server.welcome(id: 2)
            #expect(await sessionError { try await call.value }?.code == .sessionLost)
            #expect(await sessionError { try await stream.value }?.code == .sessionLost)
            _ = await events.next()
            guard case .lost(let inDoubt)? = await events.next()?.kind else { return #expect(Bool(false)) }
            #expect(inDoubt.map(\.method) == ["t.T/A", "t.T/S"])
        }
    }

    @Test func aPushIsProcessedWhenTheNextIsAskedFor() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            var pushes = client.pushes("t.T/N", of: TestMessage.self).makeAsyncIterator()
            for sequence: UInt64 in 1...2 {
                try server.send(.with { ($0.sequence, $0.push.method) = (sequence, "t.T/N") })
            }
            _ = try await pushes.next()
            let due = harness.clock.now + .milliseconds(20)
            #expect(harness.clock.nextWakeUp != due)
            _ = try await pushes.next()
            // The acknowledgement is due after a while.
            try await until { harness.clock.nextWakeUp == due }
            harness.clock.advance(to: due)
            try await until { (try? sessionFrames(in: server.peer.read()).last?.acknowledgement) == 1 }
        }
    }

    @Test func aLoopThatIsLeftHasProcessedItsLastPush() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            try server.send(.with { ($0.sequence, $0.push.method) = (1, "t.T/N") })
            for try await _ in pushes { break }
            let due = harness.clock.now + .milliseconds(20)
            try await until { harness.clock.nextWakeUp == due }
        }
    }

    @Test func deliveries() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            // Without a connection.
            try await client.push("t.T/Now", TestMessage(number: 1), delivery: .atMostOnce)
            #expect(client.statistics.droppedPushCount == 1)
            try await client.push("t.T/Soon", TestMessage(number: 2), delivery: .expiring(after: .seconds(1)))
            try await client.push("t.T/Key", TestMessage(number: 3), delivery: .replaceable(key: "k"))
            try await client.push("t.T/Key", TestMessage(number: 4), delivery: .replaceable(key: "k"))
            #expect(client.statistics.replacedMessageCount == 1)
            harness.clock.advance(by: .seconds(1))
            try await until { client.statistics.expiredMessageCount == 1 }
            let server = try await harness.accept()
            try await server.welcome()
            #expect(try await server.next().push.payload == (try TestMessage(number: 4).serializedBytes()))
            try await client.push("t.T/Now", TestMessage(number: 5), delivery: .atMostOnce)
            let now = try await server.next()
            #expect(now.push.method == "t.T/Now")
            #expect(now.sequence == 0)
        }
    }

    @Test func aPushThatWaitsForRoom() async throws {
        let harness = SessionClientHarness { $0.limits.maximumKeptMessageCount = 4 }
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            // A quarter of the room is for replies.
            for number in 1...3 { try await client.push("t.T/P", TestMessage(number: number)) }
            let cancelled = Task { try await client.push("t.T/P", TestMessage(number: 4)) }
            try await until { client.statistics.keptMessageCount == 4 }
            cancelled.cancel()
            #expect(await sessionError { try await cancelled.value }?.code == .cancelled)
            let waiting = Task { try await client.push("t.T/P", TestMessage(number: 5)) }
            try await until { client.statistics.keptMessageCount == 4 }
            for _ in 1...3 { _ = try await server.next() }
            try server.send(.with { $0.acknowledgement = 1 })
            try await waiting.value
            #expect(try await server.next().push.payload == (try TestMessage(number: 5).serializedBytes()))
        }
    }

    /// Whether or not who waited has heard of it: what was accepted is sent.
    @Test func aPushThatIsCancelledWhenItWasAccepted() async throws {
        let harness = SessionClientHarness { $0.limits.maximumKeptMessageCount = 4 }
        try await harness.run { client in
            let server = try await harness.accept()
            // What is accepted waits for its turn.
            try await server.welcome(windowFrames: 1)
            for number: UInt64 in 1...100 {
                while client.statistics.keptMessageCount < 3 { try await client.push("t.T/P", TestMessage(number: 0)) }
                let waiting = Task { try await client.push("t.T/P", TestMessage(number: 1)) }
                try await until { client.statistics.keptMessageCount == 4 }
                try server.send(.with { $0.acknowledgement = number })
                waiting.cancel()
                try await waiting.value
                #expect(client.statistics.keptMessageCount == 3)
            }
        }
    }

    /// A task that is cancelled learns that it is, whatever else there is to say.
    @Test func cancelledWhenTheSessionHadEnded() async throws {
        let harness = SessionClientHarness()
        let running = Task { try await harness.client.run() }
        running.cancel()
        _ = await running.result
        let client = harness.client
        #expect(await errorOfCallInCancelledTask(client)?.code == .cancelled)
        #expect(
            await sessionError {
                try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self)
            }?.code == .closedLocally
        )
    }

    @Test func whatWaitsForRoomFailsWithTheSession() async throws {
        let harness = SessionClientHarness { $0.limits.maximumKeptMessageCount = 4 }
        let running = Task { try await harness.client.run() }
        let client = harness.client
        for number in 1...3 { try await client.push("t.T/P", TestMessage(number: number)) }
        let waiting = Task { try await client.push("t.T/P", TestMessage(number: 4)) }
        try await until { client.statistics.keptMessageCount == 4 }
        running.cancel()
        #expect(await sessionError { try await waiting.value }?.code == .closedLocally)
        _ = await running.result
        var end: [SessionMessageInDoubt] = []
        for await event in client.sessionEvents { if case .ended(nil, let inDoubt) = event.kind { end = inDoubt } }
        // Those that were accepted.
        #expect(end.map(\.outcome) == [.unsent, .unsent, .unsent])
    }

    @Test func closingWaitsForWhatWasAccepted() async throws {
        let harness = SessionClientHarness { $0.closeTimeout = .seconds(7) }
        let running = Task { try await harness.client.run() }
        let server = try await harness.accept()
        server.peer.holdClosing()
        try await server.welcome()
        try await harness.client.push("t.T/P", TestMessage(number: 1))
        #expect(try await server.next().push.method == "t.T/P")
        let closing = Task { await harness.client.close() }
        let late = harness.clock.now + .seconds(7)
        try await until { harness.clock.nextWakeUp == late }
        #expect(
            await sessionError { try await harness.client.push("t.T/P", TestMessage(number: 2)) }?.code
                == .closedLocally
        )
        try server.send(.with { $0.acknowledgement = 1 })
        #expect(try await server.next().goodbye.code == .closed)
        server.peer.close(nil)
        await closing.value
        try await running.value
    }

    @Test func closingDoesNotWaitForEver() async throws {
        let harness = SessionClientHarness { $0.closeTimeout = .seconds(7) }
        let running = Task { try await harness.client.run() }
        let server = try await harness.accept()
        server.peer.holdClosing()
        try await server.welcome()
        try await harness.client.push("t.T/P", TestMessage(number: 1))
        _ = try await server.next()
        let closing = Task { await harness.client.close() }
        let late = harness.clock.now + .seconds(7)
        try await until { harness.clock.nextWakeUp == late }
        harness.clock.advance(to: late)
        #expect(try await server.next().goodbye.code == .closed)
        server.peer.close(nil)
        await closing.value
        try await running.value
        guard case .ended(nil, let inDoubt)? = await harness.client.lastSessionEvent else {
            return #expect(Bool(false))
        }
        #expect(inDoubt.map(\.outcome) == [.inDoubt])
    }

    @Test func aServerThatGoesAway() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            let begun = Task { try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self) }
            let request = try await server.next()
            try server.send(
                .with { ($0.goodbye.code, $0.goodbye.pauseMilliseconds) = (.draining, 3_000) }
            )
            // Nothing more is begun there.
            try await client.push("t.T/P", TestMessage(number: 2))
            #expect(server.peer.abortReason == nil)
            try server.reply(to: request, urgentSequence: 1)
            #expect(try await begun.value.number == 1)
            // Nothing is under way any more: when the server knows that, the client leaves, and is back after the pause.
            let pauseEnd = harness.clock.now + .milliseconds(3_000)
            harness.clock.advance(by: .milliseconds(20))
            try await server.peer.waitForClose()
            try await until { client.history.last?.transition.to == .backingOff }
            #expect(client.history.last?.transition.nextAttempt == pauseEnd)
            try await until { harness.clock.nextWakeUp == pauseEnd }
            harness.clock.advance(by: .milliseconds(2_000))
            #expect(client.state == .backingOff)
            #expect(harness.transport.attemptCount == 1)
            harness.clock.advance(to: pauseEnd)
            server = try await harness.accept()
            try await server.welcome(id: 2)
            #expect(try await server.next().push.method == "t.T/P")
        }
    }

    /// No server keeps a client away for longer than it lets itself be kept.
    @Test(arguments: ["reconnect", "network", "time"]) func aLongPauseIsCutShort(by what: String) async throws {
        let harness = SessionClientHarness { $0.maximumPause = .seconds(3) }
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            let pauseEnd = harness.clock.now + .seconds(3)
            try server.send(.with { ($0.goodbye.code, $0.goodbye.pauseMilliseconds) = (.draining, .max) })
            harness.clock.advance(by: .milliseconds(20))
            try await server.peer.waitForClose()
            try await until { client.history.last?.transition.to == .backingOff }
            #expect(client.history.last?.transition.nextAttempt == pauseEnd)
            switch what {
            case "reconnect": client.reconnect()
            case "network":
                harness.network.change(to: .unavailable)
                harness.network.change(to: .available)
            default:
                try await until { harness.clock.nextWakeUp == pauseEnd }
                harness.clock.advance(to: pauseEnd)
            }
            _ = try await harness.accept()
        }
    }

    /// A request that timed out while there was no connection is sent again for its place's sake; nobody waits for it.
    @Test func aCallThatHasEndedDoesNotHoldTheClientBack() async throws {
        let harness = SessionClientHarness { $0.client.backoff.initialDelay = .seconds(1) }
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            let call = Task {
                try await client.call(
                    "t.T/A",
                    TestMessage(number: 1),
                    returning: TestMessage.self,
                    timeout: .milliseconds(100)
                )
            }
            #expect(try await server.next().request.method == "t.T/A")
            server.peer.close(.lost)
            try await until { client.state == .backingOff }
            try await until { harness.clock.nextWakeUp != nil }
            harness.clock.advance(by: .milliseconds(100))
            #expect(await sessionError { try await call.value }?.code == .timedOut)
            harness.clock.advance(by: .seconds(1))
            server = try await harness.accept()
            try await server.welcome(resumed: true)
            let again = [try await server.next(), try await server.next()]
            #expect(Set(again.map(\.request.method)) == ["t.T/A", ""])
            #expect(again.contains { $0.cancel.serial == 1 })
            try server.send(
                .with { ($0.acknowledgement, $0.urgentAcknowledgement) = (1, 1) },
                .with { ($0.goodbye.code, $0.goodbye.pauseMilliseconds) = (.draining, 3_000) }
            )
            try await server.peer.waitForClose()
        }
    }

    @Test func aCallThatIsSentTwiceDoesNotHoldTheClientBack() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            let call = Task {
                try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self, timeout: nil)
            }
            #expect(try await server.next().request.method == "t.T/A")
            server.peer.close(.lost)
            try await harness.waitForBackoff()
            server = try await harness.accept()
            try await server.welcome(resumed: true)
            try server.reply(to: await server.next(), urgentSequence: 1)
            #expect(try await call.value.number == 1)
            try server.send(.with { $0.goodbye.code = .draining })
            harness.clock.advance(by: .milliseconds(20))
            try await server.peer.waitForClose()
        }
    }

    @Test func aCallThatIsGivenUpUnsentDoesNotHoldTheClientBack() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let call = Task { try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self) }
            try await until { harness.requestCount == 1 }
            call.cancel()
            #expect(await sessionError { try await call.value }?.code == .cancelled)
            let server = try await harness.accept()
            try await server.welcome()
            try server.send(.with { $0.goodbye.code = .draining })
            try await server.peer.waitForClose()
        }
    }

    @Test func aPongBeforeTheWelcome() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            try await client.push("t.T/P", TestMessage(number: 1))
            _ = try await server.next()
            server.peer.close(.lost)
            try await harness.waitForBackoff()
            server = try await harness.accept()
            // The session knows of the connection.
            #expect(try await server.next().hello.sessionID == [UInt8](repeating: 1, count: 16))
            #expect(try sessionFrames(in: server.peer.ping(7) ?? []).map(\.ping.number) == [7])
            try server.send(.with { $0.pong.number = 7 })
            try server.sendWelcome(resumed: true)
            // The session goes on.
            #expect(try await server.next().sequence == 1)
        }
    }

    @Test func gracefulShutdownClosesTheSession() async throws {
        let harness = SessionClientHarness { $0.closeTimeout = .seconds(7) }
        let client = harness.client
        try await testGracefulShutdown { trigger in
            async let running: Void = client.run()
            let server = try await harness.accept()
            server.peer.holdClosing()
            try await server.welcome()
            let call = Task { try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self) }
            let request = try await server.next()
            trigger.triggerGracefulShutdown()
            // It takes nothing more, and waits for what was begun.
            let late = harness.clock.now + .seconds(7)
            try await until { harness.clock.nextWakeUp == late }
            #expect(
                await sessionError { try await client.push("t.T/P", TestMessage(number: 2)) }?.code == .closedLocally
            )
            #expect(client.state == .ready)
            try server.reply(to: request, urgentSequence: 1)
            #expect(try await call.value.number == 1)
            #expect(try await server.next().goodbye.code == .closed)
            server.peer.close(nil)
            try await running
        }
    }

    @Test func gracefulShutdownDoesNotWaitForEver() async throws {
        let harness = SessionClientHarness { $0.closeTimeout = .seconds(7) }
        let client = harness.client
        try await testGracefulShutdown { trigger in
            async let running: Void = client.run()
            let server = try await harness.accept()
            try await server.welcome()
            try await client.push("t.T/P", TestMessage(number: 1))
            _ = try await server.next()
            trigger.triggerGracefulShutdown()
            let late = harness.clock.now + .seconds(7)
            try await until { harness.clock.nextWakeUp == late }
            harness.clock.advance(to: late)
            try await running
        }
        guard case .ended(nil, let inDoubt)? = await client.lastSessionEvent else { return #expect(Bool(false)) }
        #expect(inDoubt.map(\.outcome) == [.inDoubt])
    }

    @Test func aGoodbyeLinesUpWhereThereIsNoRoom() async throws {
        let harness = SessionClientHarness {
            $0.client.connection.outboundWaterMarks = WaterMarks(low: 500, high: 1_000)
        }
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            try await until { client.state == .ready }
            // The second waits in line, the third behind it.
            for _ in 1...3 { try await client.push("t.T/P", TestMessage([UInt8](repeating: 1, count: 2_000))) }
            try server.send(.with { ($0.sequence, $0.push.method) = (2, "t.T/N") })
            for place: UInt64 in 1...2 { #expect(try await server.next().sequence == place) }
            #expect(try await server.next().goodbye.code == .violation)
            #expect(server.peer.abortReason == nil)
            let cut = harness.clock.now + SessionOptions().goodbyeTimeout
            try await until { harness.clock.nextWakeUp == cut }
            // Who ends its side in time is not cut.
            server.peer.close(nil)
            try await until { !harness.hasOutlet }
            try await harness.waitForBackoff()
            #expect(server.peer.abortReason == nil)
        }
    }

    /// It would come over every connection, if the session went on.
    @Test func aFrameThatIsRefusedAgainAndAgain() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let call = Task {
                await sessionError {
                    try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self)
                }
            }
            for session: UInt8 in 1...3 {
                let server = try await harness.accept()
                let hello = try await server.welcome(id: session)
                #expect(hello.sessionID.isEmpty)
                if session == 1 { #expect(try await server.next().request.method == "t.T/A") }
                try await until { client.state == .ready }
                try server.send(.with { ($0.sequence, $0.urgentSequence, $0.push.method) = (1, 1, "t.T/N") })
                #expect(try await server.next().goodbye.code == .violation)
                server.peer.close(nil)
                // Not at once, and with a session of its own.
                try await harness.waitForBackoff()
            }
            #expect(await call.value?.code == .sessionLost)
        }
    }

    /// A server that loses its sessions again and again does not fill the memory.
    @Test func whatIsLeftOfLostSessionsIsBounded() async throws {
        let harness = SessionClientHarness { $0.limits.maximumUnprocessedMessageCount = 4 }
        try await harness.run { client in
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            for session: UInt8 in 1...2 {
                let server = try await harness.accept()
                try await server.welcome(id: session)
                for sequence: UInt64 in 1...3 {
                    try server.send(.with { ($0.sequence, $0.push.method) = (sequence, "t.T/N") })
                }
                try server.send(.with { $0.goodbye.code = .violation })
                server.peer.close(nil)
                try await harness.waitForBackoff()
            }
            try await until { client.clientEnd.leftovers.isHeldUp }
            #expect(harness.transport.attemptCount == 2)
            var iterator = pushes.makeAsyncIterator()
            for _ in 1...2 { _ = try await iterator.next() }
            let server = try await harness.accept()
            try await server.welcome(id: 3)
        }
    }

    @Test func nothingComesAfterTheEnd() async throws {
        let harness = SessionClientHarness { $0.closeTimeout = .seconds(7) }
        let running = Task { try await harness.client.run() }
        let client = harness.client
        let server = try await harness.accept()
        server.peer.holdClosing()
        try await server.welcome()
        try await client.push("t.T/P", TestMessage(number: 1))
        _ = try await server.next()
        let closing = Task { await client.close() }
        let late = harness.clock.now + .seconds(7)
        try await until { harness.clock.nextWakeUp == late }
        // What was to be waited for is lost, so that nothing is left to wait for.
        try server.send(.with { $0.goodbye.code = .violation })
        server.peer.close(nil)
        await closing.value
        _ = await running.result
        let events = client.sessionHistory
        guard case .ended(_, let inDoubt)? = events.last?.kind else { return #expect(Bool(false)) }
        #expect(inDoubt.map(\.outcome) == [.inDoubt])
        #expect(events.count == 2)
    }

    @Test(arguments: [SessionGoodbye.Code.refused, .replaced, .version])
    func aServerThatEndsTheSession(_ code: SessionGoodbye.Code) async throws {
        let harness = SessionClientHarness()
        let running = Task { try await harness.client.run() }
        let pushes = harness.client.pushes("t.T/N", of: TestMessage.self)
        let server = try await harness.accept()
        _ = try await server.next()
        try server.send(
            .with {
                ($0.goodbye.code, $0.goodbye.message) = (.init(rawValue: Int(code.rawValue)) ?? .unspecified, "why")
            }
        )
        let error = await sessionError { try await running.value }
        #expect(error?.message.contains("why") == true)
        let expected: [SessionGoodbye.Code: SessionError.Code] = [
            .refused: .refused, .replaced: .replaced, .version: .versionMismatch,
        ]
        #expect(error?.code == expected[code])
        var iterator = pushes.makeAsyncIterator()
        #expect(await sessionError { try await iterator.next() }?.code == expected[code])
        #expect(harness.transport.attemptCount == 1)
    }

    @Test func aServerThatBreaksTheRules() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            try await until { client.state == .ready }
            // A gap.
            try server.send(.with { ($0.sequence, $0.push.method) = (2, "t.T/N") })
            // It is told, and given time.
            #expect(try await server.next().goodbye.code == .violation)
            let cut = harness.clock.now + SessionOptions().goodbyeTimeout
            try await until { harness.clock.nextWakeUp == cut }
            #expect(server.peer.abortReason == nil)
            harness.clock.advance(to: cut)
            try await server.peer.waitForAbort()
            #expect(server.peer.abortReason?.code == .protocolViolation)
            try await harness.waitForBackoff()
            server = try await harness.accept()
            let hello = try await server.welcome(id: 2)
            // The two do not agree on the session any more.
            #expect(hello.sessionID.isEmpty)
            // Two places.
            try server.send(.with { ($0.sequence, $0.urgentSequence) = (1, 1) })
            #expect(try await server.next().goodbye.code == .violation)
            try await until { harness.log.entries.filter { $0.text.contains("broke the rules") }.count >= 2 }
        }
    }

    @Test func aConnectionWithoutRoom() async throws {
        let harness = SessionClientHarness {
            $0.client.connection.outboundWaterMarks = WaterMarks(low: 1_000, high: 2_000)
        }
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            try await until { client.state == .ready }
            // None of them waits: the session keeps them.
            for number in 0..<200 {
                try await client.push("t.T/P", TestMessage([UInt8](repeating: UInt8(number), count: 900)))
            }
            #expect(client.statistics.keptMessageCount == 200)
            for number in 0..<200 {
                let push = try await server.next()
                #expect(push.sequence == UInt64(number + 1))
                #expect(push.push.payload.last == UInt8(number))
            }
        }
    }

    @Test func aConnectionThatIsLostWithoutRoom() async throws {
        let harness = SessionClientHarness {
            $0.client.connection.outboundWaterMarks = WaterMarks(low: 1_000, high: 2_000)
        }
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            try await until { client.state == .ready }
            for _ in 0..<100 { try await client.push("t.T/P", TestMessage([UInt8](repeating: 1, count: 900))) }
            server.peer.close(.lost)
            try await harness.waitForBackoff()
            server = try await harness.accept()
            try await server.welcome(resumed: true)
            for number: UInt64 in 1...100 { #expect(try await server.next().sequence == number) }
        }
    }

    @Test func asManyCallsAsTheServerTakes() async throws {
        let harness = SessionClientHarness { $0.limits.maximumRequestCount = 2 }
        try await harness.run { client in
            let calls = (1...2).map { number in
                Task { try await client.call("t.T/A", TestMessage(number: number), returning: TestMessage.self) }
            }
            let server = try await harness.accept()
            try await server.welcome()
            let requests = [try await server.next(), try await server.next()]
            let error = await sessionError {
                try await client.call("t.T/A", TestMessage(number: 3), returning: TestMessage.self)
            }
            #expect(error?.code == .tooManyInFlight)
            for (index, request) in requests.enumerated() {
                try server.reply(to: request, urgentSequence: UInt64(index + 1))
            }
            for call in calls { _ = try await call.value }
        }
    }

    @Test func aReplyThatIsNone() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            let call = Task { try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self) }
            let request = try await server.next()
            try server.send(
                .with {
                    $0.urgentSequence = 1
                    ($0.response.serial, $0.response.payload) = (request.request.serial, [0xFF])
                }
            )
            #expect(await sessionError { try await call.value }?.code == .malformedMessage)
            // Nor are pushes: they are dropped, and the loop goes on.
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            try server.send(
                .with { ($0.sequence, $0.push.method, $0.push.payload) = (1, "t.T/N", [0xFF]) },
                .with { ($0.sequence, $0.push.method) = (2, "t.T/N") }
            )
            var iterator = pushes.makeAsyncIterator()
            let push = try await iterator.next()
            #expect(push == TestMessage())
        }
    }

    @Test func itAsksForSignsOfLife() async throws {
        let harness = SessionClientHarness()
        try await harness.run { _ in
            let server = try await harness.accept()
            try await server.welcome()
            #expect(try sessionFrames(in: server.peer.ping(7) ?? []).map(\.ping.number) == [7])
            #expect(server.peer.send([try SessionClient.Frame.with { $0.pong.number = 7 }.serializedBytes()]))
        }
    }
}

extension ConnectionError {
    static var lost: ConnectionError { ConnectionError(code: .closedByPeer, message: "Lost by the test.") }
}

extension SessionClient {
    /// The last event of a session that has ended.
    var lastSessionEvent: SessionEvent.Kind? {
        get async {
            var last: SessionEvent.Kind?
            for await event in sessionEvents { last = event.kind }
            return last
        }
    }
}
