import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import TestProtos
import Testing

@testable import Lifeline

// The flow of stream messages, and messages that cannot be taken.
extension SessionClientStreamTests {
    // MARK: Credit

    @Test func aSenderWaitsForCredit() async throws {
        try await withSession(terms: { $0.credit = 64 << 10 }) { harness, client, server in
            let sent = Notes<Int>()
            let call = upload(client) { writer in
                for number in 1...4 {
                    try await writer.send(Self.large(number))
                    sent.add(number)
                }
            }
            let request = try await server.next()
            func grant(_ bytes: UInt64) throws {
                try server.send(
                    .with { ($0.credit.request, $0.credit.bytes) = (request.request.serial, bytes) }
                )
            }
            // The second message uses more credit than is left.
            for number in 1...2 { #expect(try await server.next().payload.last == UInt8(number)) }
            try await until { harness.waitingCount == 1 }
            #expect(sent.all == [1, 2])
            // Other messages do not wait for this stream.
            try await client.push("t.T/P", TestMessage(number: 0))
            #expect(try await server.next().methodName == "t.T/P")
            try grant(100_000)
            #expect(try await server.next().payload.last == 3)
            // A grant that is not higher has no effect.
            try grant(90_000)
            try await until { harness.waitingCount == 1 }
            #expect(try server.unread.isEmpty)
            try grant(200_000)
            #expect(try await server.next().payload.last == 4)
            #expect(try await server.next().requestEnd.serial == request.request.serial)
            try server.reply(to: request)
            _ = try await call.value
        }
    }

    @Test func aSenderThatWaitsForCreditIsReleasedByTheReply() async throws {
        try await withSession(terms: { $0.credit = 64 << 10 }) { harness, client, server in
            let call = upload(client) { writer in
                for number in 1...3 { try await writer.send(Self.large(number)) }
            }
            let request = try await server.next()
            try await until { harness.waitingCount == 1 }
            try server.reply(to: request, TestMessage(number: 1).serializedBytes())
            #expect(try await call.value.number == 1)
            #expect(harness.waitingCount == 0)
            for number in 1...2 { #expect(try await server.next().payload.last == UInt8(number)) }
            try await expectNothingMore(of: client, at: server)
        }
    }

    @Test func aSenderGoesAtThePaceOfWhoIterates() async throws {
        try await withSession { _, client, server in
            let processed = Notes<Int>()
            let call = upload(client) { writer in
                for number in 1...2 {
                    try await writer.send(TestMessage(number: number), until: .processed)
                    processed.add(number)
                }
            }
            let request = try await server.next()
            for number in 1...2 {
                let part = try await server.next()
                #expect(part.number == number)
                #expect(processed.count == number - 1)
                #expect(try server.unread.isEmpty)
                try server.acknowledge(part)
            }
            #expect(try await server.next().requestEnd.serial == request.request.serial)
            #expect(processed.all == [1, 2])
            try server.reply(to: request)
            _ = try await call.value
        }
    }

    @Test func deliveriesOfMessagesOfAStream() async throws {
        try await withSession { harness, client, server in
            let goesOn = Event()
            let call = upload(client) { writer in
                try await writer.send(TestMessage(number: 1), delivery: .atMostOnce)
                try await goesOn.wait()
                try await writer.send(TestMessage(number: 2), delivery: .replaceable(key: "k"))
                try await writer.send(TestMessage(number: 3), delivery: .replaceable(key: "k"))
            }
            let request = try await server.next()
            let part = try await server.next()
            guard case .unplacedRequestPart(let unplaced)? = part.kind else { return #expect(Bool(false)) }
            #expect((unplaced.serial, part.number) == (request.request.serial, 1))
            // The unsent message is replaced.
            server.peer.holdOffers()
            goesOn.signal()
            try await until { client.statistics.replacedMessageCount == 1 }
            // The count includes the end that follows.
            try await until { harness.client.statistics.keptMessageCount == 4 }
            #expect(server.peer.takeOffers() == 1)
            #expect(try await server.next().number == 3)
            #expect(try await server.next().requestEnd.serial == request.request.serial)
            try server.reply(to: request)
            _ = try await call.value
        }
    }

    /// Each stream, and each pushed method, has its own credit.
    @Test func messagesThatNobodyTakesHoldUpNothingElse() async throws {
        try await withSession(configure: { $0.limits.maximumUnreadByteCount = 64 << 10 }) { _, client, server in
            let unread = client.pushes("t.T/Unread", of: TestMessage.self)
            var read = client.pushes("t.T/Read", of: TestMessage.self).makeAsyncIterator()
            let stops = Event()
            let stream = Task {
                for try await message in client.stream("t.T/S", TestMessage(number: 1), of: TestMessage.self) {
                    try await stops.wait()
                    return message.payload.last
                }
                return nil
            }
            let request = try await server.next()
            // These messages use up their credits.
            for number in 1...2 {
                try server.sendPart(of: request, Self.large(number))
                try server.push("t.T/Unread", Self.large(number))
            }
            for number in 1...5 {
                try server.push("t.T/Read", Self.large(number))
                #expect(try await read.next()?.payload.last == UInt8(number))
            }
            let call = Task { try await client.call("t.T/A", TestMessage(number: 7), returning: TestMessage.self) }
            try server.reply(to: await server.next())
            #expect(try await call.value.number == 7)
            let method = try server.name("t.T/Read")
            #expect(try server.credits.map(\.method) == [method, method, method, method])
            stops.signal()
            #expect(try await stream.value == 1)
            #expect(try await server.next().cancel.serial == request.request.serial)
            for try await message in unread {
                #expect(message.payload.last == 1)
                break
            }
        }
    }

    @Test func takenMessagesAreGrantedAgain() async throws {
        let harness = SessionClientHarness { $0.limits.maximumUnreadByteCount = 64 << 10 }
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            let taken = Task { for try await _ in pushes {} }
            let stream = Task {
                for try await _ in client.stream("t.T/S", TestMessage(number: 1), of: TestMessage.self) {}
            }
            let request = try await server.next()
            let part = try ScriptedSessionServer.Frame.with {
                $0.responsePart.serial = request.request.serial
                $0.responsePart.payload = try Self.large(1).serializedBytes()
            }
            try server.send(part)
            try server.push("t.T/N", Self.large(2))
            let credits = [try await server.nextCredit(), try await server.nextCredit()]
            let ofStream = try #require(credits.first { $0.response != 0 })
            let ofMethod = try #require(credits.first { $0.method != 0 })
            #expect(ofStream.response == request.request.serial)
            #expect(ofStream.bytes == UInt64((64 << 10) + (try part.serializedBytes().count) + 64))
            #expect(try server.name("t.T/N") == ofMethod.method)
            // The credit frames may have been lost.
            server = try await harness.reconnect(server)
            let hello = try await server.welcome(resumed: true, processed: request.place, received: request.place)
            #expect(hello.progress.received == 3)
            let again = [try await server.nextCredit(), try await server.nextCredit()]
            #expect(Set(again) == [ofStream, ofMethod])
            try server.endParts(of: request)
            try await stream.value
            taken.cancel()
        }
    }

    // MARK: Batches

    @Test func pushesInBatches() async throws {
        try await withSession { harness, client, server in
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            var batches = pushes.batches.makeAsyncIterator()
            try server.name("t.T/N")
            try await harness.moveToAcknowledgement(of: 1, by: server)
            for number in 1...3 { try server.push("t.T/N", TestMessage(number: number)) }
            #expect(try await batches.next()?.map(\.number) == [1, 2, 3])
            // None of the messages is processed yet.
            #expect(harness.clock.nextWakeUp != harness.clock.now + .milliseconds(20))
            try server.push("t.T/N", TestMessage(number: 4))
            #expect(try await batches.next()?.map(\.number) == [4])
            try await harness.moveToAcknowledgement(of: 4, by: server)
            pushes.stop()
            #expect(try await batches.next() == nil)
        }
    }

    @Test func pushesThatAreNoneAreLeftOutOfBatches() async throws {
        try await withSession { harness, client, server in
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            let batches = Notes<[Int?]>()
            let loop = Task { for try await batch in pushes.batches { batches.add(batch.map(\.number)) } }
            try server.push("t.T/N", [0xFF])
            // The method's name is processed before the push.
            try await until { client.engine.state.withLock { $0.machine.inbound.processed } == 2 }
            try await harness.moveToAcknowledgement(of: 2, by: server)
            let number = try server.name("t.T/N")
            try server.send(
                .with { ($0.push.method, $0.push.payload) = (number, [0xFF]) },
                .with { $0.push.method = number }
            )
            try await until { batches.count == 1 }
            pushes.stop()
            try await loop.value
            // A batch is never empty.
            #expect(batches.all == [[nil]])
            #expect(harness.log.entries.filter { $0.text.contains("A push was dropped") }.count == 2)
        }
    }

    @Test func pushesInBatchesComeAloneWithInterceptors() async throws {
        struct Passing: SessionClientInterceptor {
            func intercept(
                _ call: SessionCall,
                next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
            ) async throws(SessionError) -> SessionReply {
                try await next(call)
            }
        }
        try await withSession(interceptors: [Passing()]) { _, client, server in
            var batches = client.pushes("t.T/N", of: TestMessage.self).batches.makeAsyncIterator()
            for number in 1...2 { try server.push("t.T/N", TestMessage(number: number)) }
            for number in 1...2 { #expect(try await batches.next()?.map(\.number) == [number]) }
        }
    }

    @Test(arguments: [false, true]) func messagesOfAStreamInBatches(_ isBothWays: Bool) async throws {
        try await withSession { harness, client, server in
            let batches = Notes<[Int?]>()
            let call = Task {
                if isBothWays {
                    try await client.bothWays("t.T/S", sending: TestMessage.self, receiving: TestMessage.self) { _ in
                    } receive: { messages in
                        for try await batch in messages.batches { batches.add(batch.map(\.number)) }
                    }
                } else {
                    let stream = client.stream("t.T/S", TestMessage(number: 1), of: TestMessage.self)
                    for try await batch in stream.batches { batches.add(batch.map(\.number)) }
                }
            }
            let request = try await server.next()
            func part(_ number: Int) throws -> ScriptedSessionServer.Frame {
                try .with {
                    $0.responsePart.serial = request.request.serial
                    $0.responsePart.payload = try TestMessage(number: number).serializedBytes()
                }
            }
            // A batch has the messages that arrive together.
            try server.send(part(1), part(2), part(3))
            try await until { batches.count == 1 }
            try await harness.moveToAcknowledgement(of: 3, by: server)
            try server.send(part(4), .with { $0.response.serial = request.request.serial })
            try await call.value
            #expect(batches.all == [[1, 2, 3], [4]])
        }
    }

    // MARK: Malformed messages

    @Test(arguments: [false, true]) func aMessageThatIsNone(_ isInBatches: Bool) async throws {
        try await withSession { _, client, server in
            let numbers = Notes<Int?>()
            let stream = Task {
                let stream = client.stream("t.T/S", TestMessage(number: 1), of: TestMessage.self)
                if isInBatches {
                    for try await batch in stream.batches { for message in batch { numbers.add(message.number) } }
                } else {
                    for try await message in stream { numbers.add(message.number) }
                }
            }
            var request = try await server.next()
            // The messages before it still arrive.
            func part(_ payload: [UInt8]) -> ScriptedSessionServer.Frame {
                .with { ($0.responsePart.serial, $0.responsePart.payload) = (request.request.serial, payload) }
            }
            try server.send(part(try TestMessage(number: 1).serializedBytes()), part([0xFF]))
            #expect(await sessionError { try await stream.value }?.code == .malformedMessage)
            #expect(numbers.all == [1])
            #expect(try await server.next().cancel.serial == request.request.serial)

            let call = Task {
                try await client.bothWays("t.T/Chat", sending: TestMessage.self, receiving: TestMessage.self) { _ in
                    try await Self.waitForCancellation()
                } receive: { messages in
                    if isInBatches {
                        for try await batch in messages.batches { for message in batch { numbers.add(message.number) } }
                    } else {
                        for try await message in messages { numbers.add(message.number) }
                    }
                }
            }
            request = try await server.next()
            try server.send(part(try TestMessage(number: 2).serializedBytes()), part([0xFF]))
            #expect(await sessionError { try await call.value }?.code == .malformedMessage)
            #expect(numbers.all == [1, 2])
            #expect(try await server.next().cancel.serial == request.request.serial)
        }
    }

    @Test func aMessageThatIsTooLongEndsTheCall() async throws {
        try await withSession(configure: { $0.client.connection.maximumFrameLength = 10_000 }) { _, client, server in
            let call = upload(client) { writer in try await writer.send(Self.large(1)) }
            let request = try await server.next()
            #expect(await sessionError { try await call.value }?.code == .messageRefused)
            #expect(try await server.next().cancel.serial == request.request.serial)
        }
    }

    // MARK: Interceptors

    private struct Intercepting: SessionClientInterceptor {
        typealias Next = @Sendable (SessionCall) async throws(SessionError) -> SessionReply
        let work: @Sendable (SessionCall, Next) async throws(SessionError) -> SessionReply

        func intercept(_ call: SessionCall, next: @escaping Next) async throws(SessionError) -> SessionReply {
            try await work(call, next)
        }
    }

    /// A second stream would send the messages twice.
    @Test func aStreamIsMadeOnce() async throws {
        let again = Intercepting { call, next throws(SessionError) in
            if call.kind == .push { return try await next(call) }
            #expect(call.payload.isEmpty)
            _ = try await next(call)
            return try await next(call)
        }
        try await withSession(interceptors: [again]) { _, client, server in
            let upload = upload(client) { writer in try await writer.send(TestMessage(number: 1)) }
            var request = try await server.next()
            for _ in 1...2 { _ = try await server.next() }
            try server.reply(to: request)
            #expect(await sessionError { try await upload.value }?.code == .messageRefused)
            let chat = chat(client) { _ in }
            request = try await server.next()
            #expect(try await server.next().requestEnd.serial == request.request.serial)
            try server.sendPart(of: request, TestMessage(number: 1))
            try server.endParts(of: request)
            #expect(await sessionError { try await chat.value }?.code == .messageRefused)
            try await expectNothingMore(of: client, at: server)
        }
    }

    /// The closure that sends its messages does not wait for ever.
    @Test func aStreamThatAnInterceptorAnswersByItself() async throws {
        let errors = Notes<SessionError.Code?>()
        let answering = Intercepting { call, next throws(SessionError) in
            if call.kind == .push { return try await next(call) }
            do { return SessionReply(payload: try TestMessage(number: 5).serializedBytes()) } catch {
                throw SessionError(code: .messageRefused, message: "It cannot be encoded.")
            }
        }
        try await withSession(interceptors: [answering]) { _, client, server in
            let call = upload(client) { writer in
                errors.add(await sessionError { try await writer.send(TestMessage(number: 1)) }?.code)
                errors.add(
                    await sessionError { try await writer.send(TestMessage(number: 2), until: .processed) }?.code
                )
            }
            #expect(try await call.value.number == 5)
            #expect(errors.all == [nil, .notWaitedFor])
            try await expectNothingMore(of: client, at: server)
        }
    }

    @Test func interceptorsChangeTheMetadataOfAStream() async throws {
        let changing = Intercepting { call, next throws(SessionError) in
            var call = call
            call.metadata["way"] = "\(call.kind)"
            return try await next(call)
        }
        try await withSession(interceptors: [changing]) { _, client, server in
            let upload = upload(client) { _ in }
            var request = try await server.next()
            #expect(request.request.metadata == ["way": "clientStream"])
            _ = try await server.next()
            try server.reply(to: request)
            _ = try await upload.value
            let chat = chat(client) { _ in }
            request = try await server.next()
            #expect(request.request.metadata == ["way": "bothWays"])
            _ = try await server.next()
            try server.endParts(of: request)
            #expect(try await chat.value.isEmpty)
        }
    }
}
