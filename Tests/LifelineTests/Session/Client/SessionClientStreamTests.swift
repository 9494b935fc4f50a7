import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import TestProtos
import Testing

@testable import Lifeline

/// Calls with streams of messages, against a scripted server.
@Suite(.timeLimit(.minutes(1))) struct SessionClientStreamTests {
    private struct Failure: Error {}

    /// A client that is connected.
    func withSession(
        interceptors: [any SessionClientInterceptor] = [],
        configure: (inout SessionClientConfiguration) -> Void = { _ in },
        terms: (inout Lifeline_Session_V1_Terms) -> Void = { _ in },
        _ body: (SessionClientHarness, SessionClient, ScriptedSessionServer) async throws -> Void
    ) async throws {
        let harness = SessionClientHarness(interceptors: interceptors, configure: configure)
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome(terms: terms)
            try await until { client.statistics.openingCount == 1 }
            try await body(harness, client, server)
        }
    }

    /// Sends messages as `send` does, and returns the reply.
    func upload(
        _ client: SessionClient,
        timeout: Duration? = nil,
        _ send: @escaping @Sendable (SessionStreamWriter<TestMessage>) async throws -> Void
    ) -> Task<TestMessage, any Error> {
        Task { try await client.clientStream("t.T/Up", returning: TestMessage.self, timeout: timeout, send) }
    }

    /// Sends messages as `send` does, and returns the received numbers.
    func chat(
        _ client: SessionClient,
        timeout: Duration? = nil,
        _ send: @escaping @Sendable (SessionStreamWriter<TestMessage>) async throws -> Void
    ) -> Task<[Int?], any Error> {
        Task {
            try await client.bothWays("t.T/Chat", receiving: TestMessage.self, timeout: timeout, send) { messages in
                var numbers: [Int?] = []
                for try await message in messages { numbers.append(message.number) }
                return numbers
            }
        }
    }

    /// Waits until the task is cancelled.
    static func waitForCancellation(_ cancelled: Event = Event()) async throws {
        defer { cancelled.signal() }
        try await Event().wait()
    }

    /// Expects that the next frame of the client is a push that is sent now.
    func expectNothingMore(of client: SessionClient, at server: ScriptedSessionServer) async throws {
        try await client.push("t.T/Last", TestMessage(number: 0))
        #expect(try await server.next().methodName == "t.T/Last")
    }

    /// A message of 40 KB: two of them use up the minimum credit.
    static func large(_ number: Int) -> TestMessage {
        TestMessage([UInt8](repeating: UInt8(number), count: 40_000))
    }

    // MARK: One reply

    @Test func messagesComeInOrderAndThenTheirEnd() async throws {
        try await withSession { _, client, server in
            let call = upload(client) { writer in
                for number in 1...3 { try await writer.send(TestMessage(number: number)) }
            }
            let request = try await server.next()
            let serial = request.request.serial
            #expect((request.methodName, request.payload) == ("t.T/Up", []))
            #expect(request.request.partsFollow && request.request.timeoutMilliseconds == 0)
            for number in 1...3 {
                let part = try await server.next()
                #expect((part.requestPart.serial, part.number) == (serial, number))
            }
            #expect(try await server.next().requestEnd.serial == serial)
            try server.reply(to: request, TestMessage(number: 6).serializedBytes())
            #expect(try await call.value.number == 6)
            try await expectNothingMore(of: client, at: server)
        }
    }

    @Test func aReplyBeforeTheEndCancelsTheSender() async throws {
        try await withSession { _, client, server in
            let cancelled = Event()
            let call = upload(client) { writer in
                try await writer.send(TestMessage(number: 1))
                try await Self.waitForCancellation(cancelled)
            }
            let request = try await server.next()
            #expect(try await server.next().number == 1)
            try server.reply(to: request, TestMessage(number: 2).serializedBytes())
            #expect(try await call.value.number == 2)
            try await cancelled.wait()
            // After its response, the server needs no end of the request.
            try await expectNothingMore(of: client, at: server)
        }
    }

    @Test func messagesForACallThatHasEndedAreDropped() async throws {
        try await withSession { _, client, server in
            let errors = Notes<SessionError.Code?>()
            let call = upload(client) { writer in
                try await writer.send(TestMessage(number: 1))
                try? await Self.waitForCancellation()
                // A detached task is not cancelled.
                await Task.detached {
                    errors.add(await sessionError { try await writer.send(TestMessage(number: 2)) }?.code)
                    errors.add(
                        await sessionError { try await writer.send(TestMessage(number: 3), until: .processed) }?.code
                    )
                }.value
            }
            let request = try await server.next()
            _ = try await server.next()
            try server.reply(to: request)
            _ = try await call.value
            #expect(errors.all == [nil, .notWaitedFor])
            try await expectNothingMore(of: client, at: server)
        }
    }

    @Test func anErrorOfTheSenderCancelsTheCall() async throws {
        try await withSession { _, client, server in
            let call = upload(client) { writer in
                try await writer.send(TestMessage(number: 1))
                throw Failure()
            }
            let request = try await server.next()
            _ = try await server.next()
            await #expect(throws: Failure.self) { try await call.value }
            #expect(try await server.next().cancel.serial == request.request.serial)
            // The reply is late.
            try server.reply(to: request)
            try await until { client.statistics.lateMessageCount == 1 }
        }
    }

    @Test func aStatusInPlaceOfTheReply() async throws {
        try await withSession { _, client, server in
            let cancelled = Event()
            let call = upload(client) { _ in try await Self.waitForCancellation(cancelled) }
            let request = try await server.next()
            try server.send(
                .with {
                    ($0.urgentResponse.serial, $0.urgentResponse.status) = (request.request.serial, 5)
                    $0.urgentResponse.message = "gone"
                }
            )
            #expect(await sessionError { try await call.value }?.status == SessionStatus(.notFound, "gone"))
            try await cancelled.wait()
        }
    }

    @Test func aReplyToAStreamThatIsNone() async throws {
        try await withSession { _, client, server in
            let call = upload(client) { _ in }
            let request = try await server.next()
            #expect(try await server.next().requestEnd.serial == request.request.serial)
            try server.reply(to: request, [0xFF])
            #expect(await sessionError { try await call.value }?.code == .malformedMessage)
        }
    }

    /// The asker and the server have different definitions of the method.
    @Test func aCallThatIsAnsweredWithAStream() async throws {
        try await withSession { _, client, server in
            let call = Task {
                try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self)
            }
            let request = try await server.next()
            try server.sendPart(of: request, TestMessage(number: 1))
            try server.endParts(of: request)
            // The call must not return an empty reply.
            #expect(await sessionError { try await call.value } != nil)
            #expect(try server.unread.first?.cancel.serial == request.request.serial)
        }
    }

    // MARK: Both ways

    @Test func messagesGoBothWaysSideBySide() async throws {
        try await withSession { _, client, server in
            let answered = (0..<3).map { _ in Event() }
            let call = Task {
                try await client.bothWays("t.T/Chat", sending: TestMessage.self, receiving: TestMessage.self) {
                    writer in
                    for number in 0..<3 {
                        try await writer.send(TestMessage(number: number))
                        try await answered[number].wait()
                    }
                } receive: { messages in
                    var numbers: [Int?] = []
                    for try await message in messages {
                        answered[numbers.count].signal()
                        numbers.append(message.number)
                    }
                    return numbers
                }
            }
            let request = try await server.next()
            #expect(request.methodName == "t.T/Chat" && request.request.partsFollow)
            for number in 0..<3 {
                #expect(try await server.next().number == number)
                try server.sendPart(of: request, TestMessage(number: 10 + number))
            }
            #expect(try await server.next().requestEnd.serial == request.request.serial)
            try server.endParts(of: request)
            #expect(try await call.value == [10, 11, 12])
            try await expectNothingMore(of: client, at: server)
        }
    }

    @Test func aHandlerThatReturnsCancelsTheSender() async throws {
        try await withSession { _, client, server in
            let cancelled = Event()
            let call = chat(client) { _ in try await Self.waitForCancellation(cancelled) }
            let request = try await server.next()
            try server.sendPart(of: request, TestMessage(number: 1))
            try server.endParts(of: request)
            #expect(try await call.value == [1])
            try await cancelled.wait()
            try await expectNothingMore(of: client, at: server)
        }
    }

    @Test func aReceiverThatReturnsEarlyCancelsTheCall() async throws {
        try await withSession { _, client, server in
            let cancelled = Event()
            let call = Task {
                try await client.bothWays("t.T/Chat", sending: TestMessage.self, receiving: TestMessage.self) { _ in
                    try await Self.waitForCancellation(cancelled)
                } receive: { messages -> Int? in
                    for try await message in messages { return message.number }
                    return nil
                }
            }
            let request = try await server.next()
            for number in 1...2 { try server.sendPart(of: request, TestMessage(number: number)) }
            #expect(try await call.value == 1)
            try await cancelled.wait()
            #expect(try await server.next().cancel.serial == request.request.serial)
        }
    }

    @Test func anErrorOfTheReceiverCancelsTheCall() async throws {
        try await withSession { _, client, server in
            let call = Task {
                try await client.bothWays("t.T/Chat", sending: TestMessage.self, receiving: TestMessage.self) { _ in
                    try await Self.waitForCancellation()
                } receive: { messages in
                    for try await _ in messages { throw Failure() }
                }
            }
            let request = try await server.next()
            try server.sendPart(of: request, TestMessage(number: 1))
            await #expect(throws: Failure.self) { try await call.value }
            #expect(try await server.next().cancel.serial == request.request.serial)
        }
    }

    @Test func anErrorOfTheSenderEndsTheMessages() async throws {
        try await withSession { _, client, server in
            let fails = Event()
            let call = chat(client) { writer in
                try await writer.send(TestMessage(number: 1))
                try await fails.wait()
                throw Failure()
            }
            let request = try await server.next()
            _ = try await server.next()
            fails.signal()
            await #expect(throws: Failure.self) { try await call.value }
            #expect(try await server.next().cancel.serial == request.request.serial)
        }
    }

    @Test func aStatusComesBehindTheMessages() async throws {
        try await withSession { _, client, server in
            let numbers = Notes<Int?>()
            let call = Task {
                try await client.bothWays("t.T/Chat", sending: TestMessage.self, receiving: TestMessage.self) { _ in
                } receive: { messages in
                    for try await message in messages { numbers.add(message.number) }
                }
            }
            let request = try await server.next()
            for number in 1...2 { try server.sendPart(of: request, TestMessage(number: number)) }
            try server.send(.with { ($0.response.serial, $0.response.status) = (request.request.serial, 10) })
            #expect(await sessionError { try await call.value }?.status == SessionStatus(.aborted))
            #expect(numbers.all == [1, 2])
        }
    }

    // MARK: Ends of all kinds

    @Test(arguments: [SessionCall.Kind.stream, .clientStream, .bothWays])
    func cancellingTheTaskCancelsTheCall(_ kind: SessionCall.Kind) async throws {
        try await withSession { _, client, server in
            let stops = Event()
            @Sendable func send(_ writer: SessionStreamWriter<TestMessage>) async throws {
                // The closure ends after the call.
                await Task.detached { try? await stops.wait() }.value
            }
            let call = Task {
                switch kind {
                case .stream:
                    for try await _ in client.stream("t.T/S", TestMessage(number: 1), of: TestMessage.self) {}
                case .clientStream:
                    _ = try await client.clientStream("t.T/Up", returning: TestMessage.self, send)
                default:
                    try await client.bothWays("t.T/Chat", receiving: TestMessage.self, send) { messages in
                        for try await _ in messages {}
                    }
                }
            }
            let request = try await server.next()
            call.cancel()
            #expect(try await server.next().cancel.serial == request.request.serial)
            stops.signal()
            #expect(await sessionError { try await call.value }?.code == .cancelled)
            try await expectNothingMore(of: client, at: server)
        }
    }

    @Test(arguments: [false, true]) func aStreamThatTakesTooLong(_ isBothWays: Bool) async throws {
        try await withSession { harness, client, server in
            @Sendable func send(_ writer: SessionStreamWriter<TestMessage>) async throws {
                try await writer.send(TestMessage(number: 1))
                try await Self.waitForCancellation()
            }
            let call = Task {
                await sessionError {
                    if isBothWays {
                        _ = try await chat(client, timeout: .seconds(5), send).value
                    } else {
                        _ = try await upload(client, timeout: .seconds(5), send).value
                    }
                }
            }
            let request = try await server.next()
            #expect(request.request.timeoutMilliseconds == 5_000)
            _ = try await server.next()
            let deadline = harness.clock.now + .seconds(5)
            try await until { harness.clock.nextWakeUp == deadline }
            harness.clock.advance(to: deadline)
            #expect(await call.value?.code == .timedOut)
            #expect(try await server.next().cancel.serial == request.request.serial)
        }
    }

    /// Its messages are not sent either.
    @Test func aStreamThatTimesOutWithoutAConnectionIsNotSent() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let accepted = Event()
            let call = upload(client, timeout: .seconds(1)) { writer in
                try await writer.send(TestMessage(number: 1))
                accepted.signal()
                try await Self.waitForCancellation()
            }
            try await accepted.wait()
            let deadline = harness.clock.now + .seconds(1)
            try await until { harness.clock.nextWakeUp == deadline }
            harness.clock.advance(to: deadline)
            #expect(await sessionError { try await call.value }?.code == .timedOut)
            let server = try await harness.accept()
            try await server.welcome()
            try await expectNothingMore(of: client, at: server)
        }
    }

    @Test(arguments: [false, true]) func aStreamThatIsLostWithItsSession(_ isBothWays: Bool) async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var events = client.sessionEvents.makeAsyncIterator()
            var server = try await harness.accept()
            try await server.welcome()
            let cancelled = Event()
            @Sendable func send(_ writer: SessionStreamWriter<TestMessage>) async throws {
                try await writer.send(TestMessage(number: 1))
                try await Self.waitForCancellation(cancelled)
            }
            let call = Task {
                await sessionError {
                    if isBothWays {
                        _ = try await chat(client, send).value
                    } else {
                        _ = try await upload(client, send).value
                    }
                }
            }
            for _ in 1...2 { _ = try await server.next() }
            server = try await harness.reconnect(server)
            try await server.welcome(id: 2)
            #expect(await call.value?.code == .sessionLost)
            try await cancelled.wait()
            _ = await events.next()
            guard case .lost(let inDoubt)? = await events.next()?.kind else { return #expect(Bool(false)) }
            // The call is in doubt, not each of its messages.
            #expect(inDoubt.map(\.method) == [isBothWays ? "t.T/Chat" : "t.T/Up"])
            try await expectNothingMore(of: client, at: server)
        }
    }

    // MARK: Connections

    @Test func aStreamGoesOnOverTheNextConnection() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            let goesOn = Event()
            let call = chat(client) { writer in
                for number in 1...2 { try await writer.send(TestMessage(number: number)) }
                try await goesOn.wait()
                try await writer.send(TestMessage(number: 3))
            }
            let request = try await server.next()
            try server.sendPart(of: request, TestMessage(number: 10))
            let first = try await server.next()
            #expect(first.number == 1)
            server = try await harness.reconnect(server)
            let hello = try await server.welcome(resumed: true, processed: request.place, received: first.place)
            #expect(hello.progress.received == 1)
            #expect(try await server.next().number == 2)
            goesOn.signal()
            #expect(try await server.next().number == 3)
            #expect(try await server.next().requestEnd.serial == request.request.serial)
            try server.sendPart(of: request, TestMessage(number: 11))
            try server.endParts(of: request)
            #expect(try await call.value == [10, 11])
        }
    }

    /// Before the connection, the stream has the minimum credit.
    @Test func aStreamThatBeginsBeforeItsConnection() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let call = upload(client) { writer in
                for number in 1...3 { try await writer.send(Self.large(number)) }
            }
            try await until { harness.waitingCount == 1 }
            let server = try await harness.accept()
            try await server.welcome()
            let request = try await server.next()
            for number in 1...3 { #expect(try await server.next().payload.last == UInt8(number)) }
            #expect(try await server.next().requestEnd.serial == request.request.serial)
            try server.reply(to: request)
            _ = try await call.value
        }
    }

    @Test func closingWaitsForAStreamThatHasBegun() async throws {
        try await withSession(configure: { $0.closeTimeout = .seconds(7) }) { harness, client, server in
            server.peer.holdClosing()
            let goesOn = Event()
            let call = upload(client) { writer in
                try await goesOn.wait()
                try await writer.send(TestMessage(number: 1))
            }
            let request = try await server.next()
            let closing = Task { await client.close() }
            let late = harness.clock.now + .seconds(7)
            try await until { harness.clock.nextWakeUp == late }
            #expect(await sessionError { try await upload(client) { _ in }.value }?.code == .closedLocally)
            goesOn.signal()
            #expect(try await server.next().number == 1)
            let end = try await server.next()
            #expect(end.requestEnd.serial == request.request.serial)
            try server.reply(to: request, TestMessage(number: 2).serializedBytes())
            #expect(try await call.value.number == 2)
            try server.acknowledge(end)
            #expect(try await server.next().goodbye.code == .closed)
            server.peer.close(nil)
            await closing.value
        }
    }

    @Test func aStreamThatHasBegunGoesOnThoughTheServerLeaves() async throws {
        try await withSession { _, client, server in
            let goesOn = Event()
            let call = upload(client) { writer in
                try await goesOn.wait()
                try await writer.send(TestMessage(number: 1))
            }
            let request = try await server.next()
            try server.send(.with { $0.goodbye.code = .draining })
            goesOn.signal()
            #expect(try await server.next().number == 1)
            #expect(try await server.next().requestEnd.serial == request.request.serial)
            try server.reply(to: request)
            _ = try await call.value
        }
    }
}
