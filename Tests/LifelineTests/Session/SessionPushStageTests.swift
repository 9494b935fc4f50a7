import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import TestProtos
import Testing

@testable import Lifeline

/// Pushes whose outcome a caller waits for.
@Suite(.timeLimit(.minutes(1))) struct SessionPushStageTests {
    /// Pushes a message until it is processed. Returns the error.
    private func push(
        _ client: SessionClient,
        _ number: Int,
        _ delivery: SessionDelivery = .reliable
    ) -> Task<SessionError?, Never> {
        Task {
            await sessionError {
                try await client.push("t.T/P", TestMessage(number: number), delivery: delivery, until: .processed)
            }
        }
    }

    // MARK: A client's

    @Test func processedAndInDoubt() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            let first = push(client, 1)
            try server.acknowledge(await server.next())
            #expect(await first.value == nil)
            let second = push(client, 2)
            #expect(try await server.next().number == 2)
            server = try await harness.reconnect(server)
            try await server.welcome(id: 2)
            #expect(await second.value?.code == .messageInDoubt)
        }
    }

    @Test func pushesThatDoNotReachTheServer() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let expiring = push(client, 1, .expiring(after: .milliseconds(5)))
            // The count includes the method's name.
            try await until { client.statistics.keptMessageCount == 2 }
            harness.clock.advance(by: .milliseconds(5))
            #expect(await expiring.value?.code == .messageExpired)
            let older = push(client, 2, .replaceable(key: "a"))
            // A blank holds the place of the first one.
            try await until { client.statistics.keptMessageCount == 3 }
            let newer = push(client, 3, .replaceable(key: "a"))
            #expect(await older.value?.code == .messageReplaced)
            #expect(await push(client, 4, .atMostOnce).value?.code == .messageDropped)
            // A caller that does not wait for the outcome gets no error.
            try await client.push("t.T/P", TestMessage(number: 5), delivery: .atMostOnce)
            let server = try await harness.accept()
            try await server.welcome()
            let sent = try await server.next()
            #expect(sent.number == 3)
            try server.acknowledge(sent)
            #expect(await newer.value == nil)
            #expect(await push(client, 6, .atMostOnce).value == nil, "the connection has taken it")
        }
    }

    @Test func cancellingTheWaitDoesNotWithdrawThePush() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            let waiting = push(client, 1)
            _ = try await server.next()
            waiting.cancel()
            #expect(await waiting.value?.code == .cancelled)
            server = try await harness.reconnect(server)
            try await server.welcome(resumed: true)
            let sent = try await server.next()
            #expect(sent.number == 1)
            try server.acknowledge(sent)
            try await until { client.statistics.keptMessageCount == 0 }
        }
    }

    @Test func pushesAtTheEndOfASession() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let server = try await harness.accept()
            // Enough for the push, the call, and the names of both methods.
            try await server.welcome { $0.windowFrames = 4 }
            let sent = push(client, 1)
            _ = try await server.next()
            let call = Task {
                await sessionError {
                    try await client.call("t.T/A", TestMessage(number: 2), returning: TestMessage.self)
                }
            }
            _ = try await server.next()
            let unsent = push(client, 3)
            try await until { client.statistics.keptMessageCount == 5 }
            try server.send(.with { $0.goodbye.code = .closed })
            #expect(await sent.value?.code == .messageInDoubt)
            let error = await unsent.value
            #expect(error?.code == .messageUnsent)
            #expect((error?.cause as? SessionError)?.code == .closedByPeer)
            // The outcome of the call is unknown, and the session does not continue.
            #expect(await call.value?.code == .sessionLost)
            #expect((await call.value?.cause as? SessionError)?.code == .closedByPeer)
            #expect(await push(client, 4).value?.code == .closedByPeer)
        }
    }

    /// Interceptors see the stage that the caller waits for, and the result.
    @Test func interceptorsSeeTheStage() async throws {
        struct Watching: SessionClientInterceptor {
            let notes: Notes<String>

            func intercept(
                _ call: SessionCall,
                next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
            ) async throws(SessionError) -> SessionReply {
                do {
                    return try await next(call)
                } catch {
                    notes.add("\(call.stage) \(error.code)")
                    throw error
                }
            }
        }
        let notes = Notes<String>()
        let harness = SessionClientHarness(interceptors: [Watching(notes: notes)])
        try await harness.run { client in
            #expect(await push(client, 1, .atMostOnce).value?.code == .messageDropped)
        }
        #expect(notes.all == ["processed messageDropped"])
    }
}

// Pushes of a server.
extension SessionServerTests {
    @Test func aServerLearnsWhatBecomesOfAPush() async throws {
        try await withServer(echo) { server, clock in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello { $0.terms.windowFrames = 2 }
            let session = try #require(server.sessions.first)
            func push(_ number: Int) -> Task<SessionError?, Never> {
                Task {
                    await sessionError {
                        try await session.push("t.T/News", TestMessage(number: number), until: .processed)
                    }
                }
            }
            let processed = push(1)
            _ = try await client.next()
            try await client.acknowledgeAll()
            #expect(await processed.value == nil)
            let sent = [push(2), push(3)]
            for _ in sent { _ = try await client.next() }
            let unsent = push(4)
            try await until { session.statistics.keptMessageCount == 3 }
            try client.socket.reset()
            let end = clock.now + .seconds(120)
            try await until { clock.nextWakeUp == end }
            clock.advance(to: end)
            for push in sent { #expect(await push.value?.code == .messageInDoubt) }
            let error = await unsent.value
            #expect(error?.code == .messageUnsent && (error?.cause as? SessionError)?.code == .expired)
            // The code is the reason for which the session has ended.
            #expect(await push(5).value?.code == .expired)
        }
    }

    @Test func aStreamGoesAtThePaceOfWhoIterates() async throws {
        let (isOver, late) = (Event(), Notes<SessionError.Code>())
        let watch = SessionMethod.stream("t.T/Watch") {
            (_: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
            try await stream.send(TestMessage(number: 1), until: .processed)
            do throws(SessionError) {
                try await stream.send(TestMessage(number: 2), until: .processed)
            } catch {
                late.add(error.code)
                // A detached task is not cancelled.
                await Task.detached {
                    do throws(SessionError) {
                        try await stream.send(TestMessage(number: 3), until: .processed)
                    } catch {
                        late.add(error.code)
                    }
                    try? await stream.send(TestMessage(number: 4))
                }.value
                isOver.signal()
            }
        }
        try await withServer(watch, echo) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await client.ask("t.T/Watch")
            #expect(try await client.next().responsePart.payload == TestMessage(number: 1).serializedBytes())
            // The second request is not sent before the first one is processed.
            try await client.ask("t.T/Echo", serial: 2)
            #expect(try await client.next().urgentResponse.serial == 2)
            try await client.acknowledgeAll()
            #expect(try await client.next().responsePart.payload == TestMessage(number: 2).serializedBytes())
            try await client.send(.with { $0.cancel.serial = 1 })
            try await isOver.wait()
        }
        #expect(late.all == [.cancelled, .notWaitedFor])
    }
}
