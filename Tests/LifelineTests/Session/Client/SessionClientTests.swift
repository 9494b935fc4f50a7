import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import LifelineWellKnownTypes
import ServiceLifecycleTestKit
import TestProtos
import Testing

@testable import Lifeline

/// A session client against a scripted server, on a manual clock.
@Suite(.timeLimit(.minutes(1))) struct SessionClientTests {
    @Test func helloSaysWhoTheClientIs() async throws {
        let harness = SessionClientHarness {
            $0.name = "anna"
            $0.metadata = ["token": "x"]
            $0.limits.maximumUnprocessedMessageCount = 10
            $0.limits.maximumUnprocessedByteCount = 5_000
            $0.limits.maximumUnreadByteCount = 70_000
            $0.limits.maximumHandlerCount = 3
        }
        try await harness.run { client in
            let hello = try await harness.accept().welcome()
            #expect(hello.name == "anna")
            #expect(hello.metadata == ["token": "x"])
            #expect(hello.sessionID.isEmpty)
            #expect((hello.minimumVersion, hello.maximumVersion) == (1, 1))
            #expect(hello.attempt == 1)
            #expect((hello.terms.windowFrames, hello.terms.windowBytes) == (10, 5_000))
            #expect(hello.terms.credit == 70_000)
            #expect(hello.terms.maximumRequests == 3)
            #expect(hello.terms.maximumFrame == 4 << 20)
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
            // The client cancels the handler, and drops its late reply.
            #expect(try await server.next().cancel.serial == request.request.serial)
            try server.reply(to: request)
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
            // The call that timed out is not sent.
            let request = try await server.next()
            #expect(request.methodName == "t.T/B")
            try server.reply(to: request)
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
            #expect(try await server.next().methodName == "t.T/P")
        }
    }

    @Test func unprocessedMessagesAreSentAgain() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            for number in 1...3 { try await client.push("t.T/P", TestMessage(number: number)) }
            // The name of the method has the first place.
            for number in 1...3 {
                let push = try await server.next()
                #expect((push.number, push.place) == (number, UInt64(number + 1)))
            }
            server = try await harness.reconnect(server)
            #expect((client.statistics.openingCount, client.statistics.sessionCount) == (1, 1))
            let hello = try await server.welcome(resumed: true, processed: 2, received: 3)
            #expect(hello.sessionID == [UInt8](repeating: 1, count: 16))
            #expect(hello.token == [UInt8](repeating: 9, count: 16))
            #expect(hello.attempt == 2)
            #expect(try await server.next().number == 3)
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
            try server.acknowledge(await server.next())
            for _ in 1...2 { _ = try await server.next() }
            // The second push, the name of the call's method, and the call.
            try await until { client.statistics.keptMessageCount == 3 }
            server.peer.close(.lost)
            try await until { client.state == .backingOff && !harness.hasOutlet }
            // This push is sent in the next session.
            try await client.push("t.T/P", TestMessage(number: 4))
            try await harness.waitForBackoff()
            // The deadline of the call passes in that time. The call fails before the client knows that the session is
            // lost, so it is not in doubt.
            #expect(await sessionError { try await call.value }?.code == .timedOut)
            server = try await harness.accept()
            try await server.welcome(id: 2)
            let push = try await server.next()
            #expect((client.statistics.openingCount, client.statistics.sessionCount) == (2, 2))
            #expect((push.number, push.methodName, push.place) == (4, "t.T/P", 2))

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
            #expect(request.methodName == "t.T/A")
            let messages = Notes<TestMessage>()
            let stream = Task {
                for try await message in client.stream("t.T/S", TestMessage(number: 4), of: TestMessage.self) {
                    messages.add(message)
                }
            }
            let streamed = try await server.next()
            try server.sendPart(of: streamed)
            try await until { messages.count == 1 }
            server = try await harness.reconnect(server)
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
            // A name counts as processed when it arrives.
            try server.name("t.T/N")
            try await harness.moveToAcknowledgement(of: 1, by: server)
            for _ in 1...2 { try server.push("t.T/N") }
            _ = try await pushes.next()
            #expect(harness.clock.nextWakeUp != harness.clock.now + .milliseconds(20))
            _ = try await pushes.next()
            // The acknowledgement is due after a while.
            try await harness.moveToAcknowledgement(of: 2, by: server)
            #expect(try server.acknowledgements.count == 2)
        }
    }

    @Test func aLoopThatIsLeftHasProcessedItsLastPush() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            try server.name("t.T/N")
            try await harness.moveToAcknowledgement(of: 1, by: server)
            try server.push("t.T/N")
            for try await _ in pushes { break }
            try await harness.moveToAcknowledgement(of: 2, by: server)
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
            #expect(try await server.next().number == 4)
            try await client.push("t.T/Now", TestMessage(number: 5), delivery: .atMostOnce)
            let now = try await server.next()
            guard case .unplacedPush? = now.kind else { return #expect(Bool(false)) }
            #expect((now.methodName, now.number) == ("t.T/Now", 5))
        }
    }

    @Test func aPushThatWaitsForRoom() async throws {
        let harness = SessionClientHarness { $0.limits.maximumKeptMessageCount = 4 }
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            // The method's name takes room, too.
            for number in 1...3 { try await client.push("t.T/P", TestMessage(number: number)) }
            let cancelled = Task { try await client.push("t.T/P", TestMessage(number: 4)) }
            try await until { client.statistics.keptMessageCount == 5 }
            cancelled.cancel()
            #expect(await sessionError { try await cancelled.value }?.code == .cancelled)
            let waiting = Task { try await client.push("t.T/P", TestMessage(number: 5)) }
            try await until { client.statistics.keptMessageCount == 5 }
            for number in 1...3 { #expect(try await server.next().number == number) }
            try server.acknowledge(place: 1)
            try await waiting.value
            #expect(try await server.next().number == 5)
        }
    }

    /// An accepted push is sent, whether or not its cancelled sender knows that it was accepted.
    @Test func aPushThatIsCancelledWhenItWasAccepted() async throws {
        let harness = SessionClientHarness { $0.limits.maximumKeptMessageCount = 4 }
        try await harness.run { client in
            let server = try await harness.accept()
            // Accepted messages wait for the window.
            try await server.welcome { $0.windowFrames = 1 }
            for place: UInt64 in 1...100 {
                while client.statistics.keptMessageCount < 4 { try await client.push("t.T/P", TestMessage(number: 0)) }
                let waiting = Task { try await client.push("t.T/P", TestMessage(number: 1)) }
                try await until { client.statistics.keptMessageCount == 5 }
                try server.acknowledge(place: place)
                waiting.cancel()
                try await waiting.value
                #expect(client.statistics.keptMessageCount == 4)
            }
        }
    }

    /// A cancelled task gets a cancellation error, even if there are other errors.
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

    @Test func messagesThatWaitForRoomFailWithTheSession() async throws {
        let harness = SessionClientHarness { $0.limits.maximumKeptMessageCount = 4 }
        let running = Task { try await harness.client.run() }
        let client = harness.client
        // The method's name takes room, too.
        for number in 1...3 { try await client.push("t.T/P", TestMessage(number: number)) }
        let waiting = Task { try await client.push("t.T/P", TestMessage(number: 4)) }
        try await until { client.statistics.keptMessageCount == 5 }
        running.cancel()
        #expect(await sessionError { try await waiting.value }?.code == .closedLocally)
        _ = await running.result
        var end: [SessionMessageInDoubt] = []
        for await event in client.sessionEvents { if case .ended(nil, let inDoubt) = event.kind { end = inDoubt } }
        // These are the accepted messages.
        #expect(end.map(\.outcome) == [.unsent, .unsent, .unsent])
    }

    @Test func closingWaitsForWhatWasAccepted() async throws {
        let harness = SessionClientHarness { $0.closeTimeout = .seconds(7) }
        let running = Task { try await harness.client.run() }
        let server = try await harness.accept()
        server.peer.holdClosing()
        try await server.welcome()
        try await harness.client.push("t.T/P", TestMessage(number: 1))
        let push = try await server.next()
        #expect(push.methodName == "t.T/P")
        let closing = Task { await harness.client.close() }
        let late = harness.clock.now + .seconds(7)
        try await until { harness.clock.nextWakeUp == late }
        #expect(
            await sessionError { try await harness.client.push("t.T/P", TestMessage(number: 2)) }?.code
                == .closedLocally
        )
        try server.acknowledge(push)
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
            // Nothing new is begun over this connection: a push waits for the next one.
            let push = Task { try await client.push("t.T/P", TestMessage(number: 2)) }
            try await until { harness.waitingCount == 1 }
            #expect(server.peer.abortReason == nil)
            try server.reply(to: request)
            #expect(try await begun.value.number == 1)
            #expect(try server.unread.isEmpty)
            // The name of its method was sent, and counts as processed when it arrives.
            try server.acknowledge(place: request.place + 1)
            // Nothing is under way any more. When the server knows this, the client leaves, and comes back after the
            // pause.
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
            try await push.value
            #expect(try await server.next().methodName == "t.T/P")
        }
    }

    /// A server cannot keep a client away for longer than the client's `maximumPause`.
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

    /// A request that timed out without a connection is sent again only to fill its place; nobody waits for it.
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
            #expect(try await server.next().methodName == "t.T/A")
            server.peer.close(.lost)
            try await until { client.state == .backingOff }
            try await until { harness.clock.nextWakeUp != nil }
            harness.clock.advance(by: .milliseconds(100))
            #expect(await sessionError { try await call.value }?.code == .timedOut)
            harness.clock.advance(by: .seconds(1))
            server = try await harness.accept()
            try await server.welcome(resumed: true)
            let again = [try await server.next(), try await server.next()]
            // The cancellation follows its request.
            #expect(again.map(\.methodName) == ["t.T/A", ""])
            #expect(again[0].request.timeoutMilliseconds == 1)
            #expect(again[1].cancel.serial == again[0].request.serial)
            try server.send(
                .with {
                    ($0.acknowledgement.ordinary, $0.acknowledgement.urgent) = (again[0].place, again[1].place)
                },
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
            #expect(try await server.next().methodName == "t.T/A")
            server = try await harness.reconnect(server)
            try await server.welcome(resumed: true)
            try server.reply(to: await server.next())
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
            server = try await harness.reconnect(server)
            // Now the session knows of the connection.
            #expect(try await server.next().hello.sessionID == [UInt8](repeating: 1, count: 16))
            #expect(try sessionFrames(in: server.peer.ping(7) ?? []).map(\.ping.number) == [7])
            try server.send(.with { $0.pong.number = 7 })
            try server.sendWelcome(resumed: true)
            // The session continues.
            #expect(try await server.next().number == 1)
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
            // The client accepts nothing more, and waits for its open calls.
            let late = harness.clock.now + .seconds(7)
            try await until { harness.clock.nextWakeUp == late }
            #expect(
                await sessionError { try await client.push("t.T/P", TestMessage(number: 2)) }?.code == .closedLocally
            )
            #expect(client.state == .ready)
            try server.reply(to: request)
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
            // The second push waits to be sent, and the third waits behind it.
            for _ in 1...3 { try await client.push("t.T/P", TestMessage([UInt8](repeating: 1, count: 2_000))) }
            // A method number that was not assigned.
            try server.send(.with { $0.push.method = 1 })
            for place: UInt64 in 2...3 { #expect(try await server.next().place == place) }
            #expect(try await server.next().goodbye.code == .violation)
            #expect(server.peer.abortReason == nil)
            let cut = harness.clock.now + SessionOptions().goodbyeTimeout
            try await until { harness.clock.nextWakeUp == cut }
            // A peer that ends its side in time is not cut.
            server.peer.close(nil)
            try await until { !harness.hasOutlet }
            try await harness.waitForBackoff()
            #expect(server.peer.abortReason == nil)
        }
    }

    /// If the session continued, the frame would arrive over every connection.
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
                if session == 1 { #expect(try await server.next().methodName == "t.T/A") }
                try await until { client.state == .ready }
                try server.send(.with { $0.push.method = 1 })
                #expect(try await server.next().goodbye.code == .violation)
                server.peer.close(nil)
                // The next connection is made later, with a new session.
                try await harness.waitForBackoff()
            }
            #expect(await call.value?.code == .sessionLost)
        }
    }

    /// A server that loses its sessions again and again does not fill the memory.
    @Test func leftoversOfLostSessionsAreBounded() async throws {
        let harness = SessionClientHarness { $0.limits.maximumUnprocessedMessageCount = 4 }
        try await harness.run { client in
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            for session: UInt8 in 1...2 {
                let server = try await harness.accept()
                try await server.welcome(id: session)
                for _ in 1...3 { try server.push("t.T/N") }
                try server.send(.with { $0.goodbye.code = .violation })
                server.peer.close(nil)
                try await harness.waitForBackoff()
            }
            try await until { client.engine.isHeldUp }
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
        // The calls that the close waited for are lost, so it returns.
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
            // A method number that was not assigned.
            try server.send(.with { $0.push.method = 1 })
            // The server gets a goodbye, and time to close.
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
            // The two sides disagree about the session, so a new one begins.
            #expect(hello.sessionID.isEmpty)
            // An acknowledgement of a place that was not used.
            try server.acknowledge(place: 1)
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
            // No push waits: the session keeps them.
            for number in 0..<200 {
                try await client.push("t.T/P", TestMessage([UInt8](repeating: UInt8(number), count: 900)))
            }
            // One more: the method's name.
            #expect(client.statistics.keptMessageCount == 201)
            for number in 0..<200 {
                let push = try await server.next()
                #expect(push.place == UInt64(number + 2))
                #expect(push.payload.last == UInt8(number))
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
            for number in 0..<100 {
                try await client.push("t.T/P", TestMessage([UInt8](repeating: UInt8(number), count: 900)))
            }
            server = try await harness.reconnect(server)
            try await server.welcome(resumed: true)
            for number in 0..<100 { #expect(try await server.next().payload.last == UInt8(number)) }
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
            for request in requests { try server.reply(to: request) }
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
            try server.reply(to: request, [0xFF])
            #expect(await sessionError { try await call.value }?.code == .malformedMessage)
            // Malformed pushes are not thrown either: they are dropped, and the loop continues.
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            try server.push("t.T/N", [0xFF])
            try server.push("t.T/N")
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
            #expect(server.peer.send([try ScriptedSessionServer.Frame.with { $0.pong.number = 7 }.serializedBytes()]))
        }
    }
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
