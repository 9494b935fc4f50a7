import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import TestProtos
import Testing

@testable import Lifeline

/// Loops over messages, and the messages that count as processed.
@Suite(.timeLimit(.minutes(1))) struct SessionReadingTests {
    private typealias Frame = Lifeline_Session_V1_Frame

    private static let method = "t.T/P"

    /// A client that is connected, and a server that has named its method: the first push is at place 2.
    private func withPushes(
        configure: (inout SessionClientConfiguration) -> Void = { _ in },
        _ body: (SessionClientHarness, SessionPushes<TestMessage>, ScriptedSessionServer) async throws -> Void
    ) async throws {
        let harness = SessionClientHarness(configure: configure)
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            try await until { client.statistics.openingCount == 1 }
            try server.name(Self.method)
            try await body(harness, client.pushes(Self.method, of: TestMessage.self), server)
        }
    }

    /// Sends pushes that arrive together.
    private func push(_ numbers: ClosedRange<Int>, by server: ScriptedSessionServer) throws {
        let frames = try numbers.map { try Self.frame(TestMessage(number: $0).serializedBytes()) }
        _ = server.peer.send(try frames.map { try $0.serializedBytes() })
    }

    private static func frame(_ payload: [UInt8]) throws -> Frame {
        .with { ($0.push.method, $0.push.payload) = (1, payload) }
    }

    /// The place up to which the client has processed everything.
    private func processed(_ harness: SessionClientHarness) -> UInt64 {
        harness.client.engine.state.withLock { $0.machine.inbound.processed }
    }

    private func unprocessedCount(_ harness: SessionClientHarness) -> Int {
        harness.client.engine.state.withLock { $0.machine.inbound.unprocessedSize.frameCount }
    }

    /// Takes as many messages as there are numbers.
    private func take(_ count: Int, of pushes: SessionPushes<TestMessage>) async throws -> [Int?] {
        var numbers: [Int?] = []
        for try await message in pushes {
            numbers.append(message.number)
            if numbers.count == count { break }
        }
        return numbers
    }

    // MARK: Iterators that are kept

    /// An iterator that took one message and is kept does not withhold the others of its batch from the next loop.
    @Test func aKeptIteratorWithholdsNothing() async throws {
        try await withPushes { harness, pushes, server in
            try push(1...5, by: server)
            var kept = pushes.makeAsyncIterator()
            #expect(try await kept.next()?.number == 1)
            #expect(try await take(3, of: pushes) == [2, 3, 4])
            #expect(try await kept.next()?.number == 5)
            try push(6...7, by: server)
            #expect(try await take(1, of: pushes) == [6])
            #expect(try await kept.next()?.number == 7)
            _ = consume kept
            try await until { unprocessedCount(harness) == 0 }
        }
    }

    /// The other messages of the current batch are dropped, too.
    @Test func aLoopEndsWhenItStopsThePushes() async throws {
        try await withPushes { harness, pushes, server in
            try push(1...5, by: server)
            var numbers: [Int?] = []
            for try await message in pushes {
                numbers.append(message.number)
                if message.number == 2 { pushes.stop() }
            }
            #expect(numbers == [1, 2])
            try await until { unprocessedCount(harness) == 0 }
        }
    }

    // MARK: Processed messages

    /// Messages before the current one are acknowledged, although the loop asks for no more. This also holds if nothing
    /// happens except that the connection asks for frames to send.
    @Test(arguments: [false, true]) func aLoopThatWaitsHoldsBackOneMessage(isHeld: Bool) async throws {
        try await withPushes { harness, pushes, server in
            let (third, goOn) = (Event(), Event())
            let reading = Task {
                for try await message in pushes where message.number == 3 {
                    third.signal()
                    try await goOn.wait()
                }
            }
            if isHeld { server.peer.holdOffers() }
            try push(1...5, by: server)
            try await third.wait()
            // If offers are held, the session has asked the connection for one.
            if isHeld { #expect(server.peer.takeOffers() == 1) }
            #expect(processed(harness) == 3 && unprocessedCount(harness) == 3)
            try await harness.moveToAcknowledgement(of: 3, by: server)
            #expect(try server.acknowledgements.last?.ordinary == 3)
            goOn.signal()
            // The loop waits for more, so it has processed all.
            try await until { processed(harness) == 6 }
            reading.cancel()
            _ = await reading.result
            #expect(unprocessedCount(harness) == 0)
        }
    }

    /// The connection that should have asked is gone. The next one sends the acknowledgement when the loop continues.
    @Test func aLoopGoesOnOverTheNextConnection() async throws {
        try await withPushes { harness, pushes, server in
            let (third, goOn) = (Event(), Event())
            let reading = Task {
                for try await message in pushes where message.number == 3 {
                    third.signal()
                    try await goOn.wait()
                }
            }
            server.peer.holdOffers()
            try push(1...5, by: server)
            try await third.wait()
            let next = try await harness.reconnect(server)
            try await next.welcome(resumed: true)
            try await until { harness.client.statistics.openingCount == 2 }
            goOn.signal()
            _ = server.peer.takeOffers()
            try next.push(Self.method, TestMessage(number: 6))
            try await until { processed(harness) == 7 }
            reading.cancel()
            _ = await reading.result
            #expect(unprocessedCount(harness) == 0)
        }
    }

    // MARK: Loops that are left

    @Test func theNextLoopGetsTheRestOfABatch() async throws {
        try await withPushes { harness, pushes, server in
            try push(1...5, by: server)
            #expect(try await take(2, of: pushes) == [1, 2])
            #expect(processed(harness) == 3 && unprocessedCount(harness) == 3)
            try push(6...7, by: server)
            #expect(try await take(1, of: pushes) == [3])
            try push(8...8, by: server)
            #expect(try await take(5, of: pushes) == [4, 5, 6, 7, 8])
            #expect(processed(harness) == 9 && unprocessedCount(harness) == 0)
        }
    }

    @Test func twoLoopsShareThemOut() async throws {
        try await withPushes { harness, pushes, server in
            var (first, second): (SessionPushes<TestMessage>.AsyncIterator?, SessionPushes<TestMessage>.AsyncIterator?)
            first = pushes.makeAsyncIterator()
            second = pushes.makeAsyncIterator()
            try push(1...3, by: server)
            #expect(try await first?.next()?.number == 1)
            try push(4...6, by: server)
            #expect(try await second?.next()?.number == 4)
            #expect(try await second?.next()?.number == 5)
            #expect(try await first?.next()?.number == 2)
            try push(7...7, by: server)
            // The newer iterator is released first.
            second = nil
            first = nil
            #expect(unprocessedCount(harness) == 3)
            #expect(try await take(3, of: pushes) == [3, 6, 7])
            #expect(processed(harness) == 8 && unprocessedCount(harness) == 0)
        }
    }

    @Test func manyLoopsLoseNothing() async throws {
        try await withPushes { harness, pushes, server in
            let numbers = Notes<Int>()
            let loops = (1...4).map { count in
                Task {
                    while !Task.isCancelled {
                        var left = count
                        for try await message in pushes {
                            numbers.add(message.number ?? 0)
                            left -= 1
                            if left == 0 { break }
                            await Task.yield()
                        }
                    }
                }
            }
            for start in stride(from: 1, through: 481, by: 20) {
                try push(start...start + 19, by: server)
                await Task.yield()
            }
            try await until { numbers.count == 500 }
            for loop in loops { loop.cancel() }
            for loop in loops { _ = await loop.result }
            #expect(numbers.all.sorted() == Array(1...500))
            #expect(processed(harness) == 501 && unprocessedCount(harness) == 0)
        }
    }

    @Test func aLoopThatIsCancelledLeavesTheRest() async throws {
        try await withPushes { harness, pushes, server in
            let (begun, goOn) = (Event(), Event())
            let reading = Task { () -> SessionError? in
                var iterator = pushes.makeAsyncIterator()
                _ = try await iterator.next()
                begun.signal()
                // The iterator throws the error only when it is asked for the next message.
                await Task.detached { try? await goOn.wait() }.value
                return await sessionError { try await iterator.next() }
            }
            try push(1...3, by: server)
            try await begun.wait()
            reading.cancel()
            goOn.signal()
            #expect(try await reading.value?.code == .cancelled)
            #expect(processed(harness) == 2)
            #expect(try await take(2, of: pushes) == [2, 3])
        }
    }

    // MARK: Sessions that are lost

    @Test func messagesOfALostSessionAreHandedOut() async throws {
        try await withPushes { harness, pushes, server in
            try push(1...4, by: server)
            var iterator: SessionPushes<TestMessage>.AsyncIterator? = pushes.makeAsyncIterator()
            #expect(try await iterator?.next()?.number == 1)
            let next = try await harness.reconnect(server)
            try await next.welcome(id: 2)
            try await until { harness.client.statistics.sessionCount == 2 }
            try next.push(Self.method, TestMessage(number: 5))
            #expect(try await iterator?.next()?.number == 2)
            // Messages that are given back count as leftovers of lost sessions.
            iterator = nil
            #expect(leftoverCount(harness) == 2)
            #expect(try await take(3, of: pushes) == [3, 4, 5])
            #expect(leftoverCount(harness) == 0)
            #expect(processed(harness) == 2 && unprocessedCount(harness) == 0)
        }
    }

    private func leftoverCount(_ harness: SessionClientHarness) -> Int {
        harness.client.engine.state.withLock { $0.leftovers.size.frameCount }
    }

    // MARK: Batches

    @Test func malformedPushesAreLeftOutOfBatches() async throws {
        try await withPushes { harness, pushes, server in
            let numbers = [1, 2, nil, 4, 5, nil]
            let frames = try numbers.map { number in
                try Self.frame(number.map { try TestMessage(number: $0).serializedBytes() } ?? [0xFF])
            }
            _ = server.peer.send(try frames.map { try $0.serializedBytes() })
            var iterator: SessionPushes<TestMessage>.Batches.AsyncIterator? = pushes.batches.makeAsyncIterator()
            #expect(try await iterator?.next()?.map(\.number) == [1, 2, 4, 5])
            #expect(processed(harness) == 1, "a batch counts as processed when the next one is asked for")
            iterator = nil
            #expect(processed(harness) == 7 && unprocessedCount(harness) == 0)
        }
    }

    /// A malformed message of a call is thrown, after the messages before it.
    @Test func aMalformedMessageOfACallIsThrown() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            let (batches, isOver) = (Notes<[Int?]>(), Event())
            let calling = Task {
                let stream = client.stream("t.T/S", TestMessage(number: 0), of: TestMessage.self)
                var iterator = stream.batches.makeAsyncIterator()
                for _ in 0..<3 {
                    do throws(SessionError) {
                        batches.add(try await iterator.next()?.map(\.number) ?? [])
                    } catch {
                        batches.add([error.code == .malformedMessage ? -1 : nil])
                    }
                }
                isOver.signal()
            }
            let request = try await server.next()
            let numbers: [Int?] = [1, 2, nil, 4]
            let frames = try numbers.map { number in
                let payload: [UInt8] = try number.map { try TestMessage(number: $0).serializedBytes() } ?? [0xFF]
                return Frame.with {
                    ($0.responsePart.serial, $0.responsePart.payload) = (request.request.serial, payload)
                }
            }
            _ = server.peer.send(try frames.map { try $0.serializedBytes() })
            try await isOver.wait()
            #expect(batches.all == [[1, 2], [-1], [4]])
            await calling.value
        }
    }
}
