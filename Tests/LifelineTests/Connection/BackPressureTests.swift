import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import Synchronization
import Testing

/// Back-pressure when one end does not read, and cancellation of waiting tasks.
@Suite(.timeLimit(.minutes(2))) struct BackPressureTests {
    /// 256 MiB in all: many times what the queues and the kernel hold for a peer that does not read.
    private static let message = TestMessage(repeatElement(0x5A, count: 64 << 10))
    private static let count = 4096
    /// Loopback sockets buffer at most 4 MiB at the sender and 6 MiB at the receiver (tcp_wmem, tcp_rmem).
    private static let mostThatCanBeHeld = 16 << 20

    @Test func sendWaitsForAPeerThatDoesNotRead() async throws {
        let listener = try await RawSocket.listen()
        try await withTestServer(handler: echo) { other in
            try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
                let peer = try await listener.accept()
                let accepted = Atomic(0)
                async let sending: Void = {
                    for _ in 0..<Self.count {
                        try await connection.send(Self.message)
                        accepted.add(1, ordering: .relaxed)
                    }
                    try await connection.finishSending()
                }()
                try await settle(accepted, on: other)
                #expect(accepted.load(ordering: .relaxed) * (64 << 10) < Self.mostThatCanBeHeld)

                // When the peer reads, everything arrives.
                let length = try Self.message.delimitedBytes.count
                let received = try await peer.read()
                #expect(received.count == Self.count * length)
                try await sending
            }
        }
    }

    @Test func aConsumerThatDoesNotIterateHoldsThePeerUp() async throws {
        let consumer = LateConsumer(message: Self.message, count: Self.count, mostThatCanBeHeld: Self.mostThatCanBeHeld)
        try await withTestServer {
            try await consumer.consume($0)
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { try await consumer.checkSender($0) }
        }
        #expect(consumer.receivedCount == Self.count)
    }

    // MARK: Cancellation

    @Test func aCancelledSendWasNotAccepted() async throws {
        let listener = try await RawSocket.listen()
        var configuration = ConnectionConfiguration()
        configuration.outboundWaterMarks = WaterMarks(low: 0, high: 1)
        try await withTestConnection(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: configuration
        ) { connection in
            let peer = try await listener.accept()
            // Four of them are more than the kernel accepts, so a message after them waits.
            let filler = TestMessage(repeatElement(1, count: 4_000_000))
            try await withThrowingTaskGroup { group in
                // These are offered first.
                let senders = (0..<4).map { _ in Task.immediate { try await connection.send(filler) } }
                let waiting = Task { try await connection.send(TestMessage(number: 999)) }
                waiting.cancel()
                await #expect(throws: CancellationError.self) { try await waiting.value }
                group.addTask {
                    for sender in senders { try await sender.value }
                    try await connection.finishSending()
                }
                let received = try await peer.read()
                #expect(try received.count == 4 * filler.delimitedBytes.count)
                try await group.waitForAll()
            }
        }
    }

    /// Exactly the messages that `send` accepted arrive, whether a task is cancelled before, during or after its wait.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func exactlyTheAcceptedMessagesArrive(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let cancelled = (0..<600).map { _ in Bool.random(using: &random) }
        var configuration = ConnectionConfiguration()
        configuration.outboundWaterMarks = WaterMarks(low: 0, high: 1)
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: configuration) { connection in
                let sends = (0..<cancelled.count).map { number in
                    Task { try await connection.send(TestMessage(number: number)) }
                }
                for (send, isCancelled) in zip(sends, cancelled) where isCancelled { send.cancel() }
                var accepted: Set<Int> = []
                for (number, send) in sends.enumerated() {
                    do {
                        try await send.value
                        accepted.insert(number)
                    } catch {
                        #expect(error is CancellationError)
                        #expect(cancelled[number])
                    }
                }
                try await connection.finishSending()
                var received: Set<Int> = []
                for try await message in connection.messages { try received.insert(#require(message.number)) }
                #expect(received == accepted)
            }
        }
    }

    /// Messages that are gathered into one write, and messages that are not.
    @Test(arguments: [100, 64 << 10])
    func aCancelledSendContentsOfTellsHowManyWereAccepted(size: Int) async throws {
        let message = TestMessage(repeatElement(7, count: size))
        let listener = try await RawSocket.listen()
        try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
            let peer = try await listener.accept()
            let sending = Task {
                do throws(PartialSendError) {
                    try await connection.send(contentsOf: repeatElement(message, count: .max))
                    return nil as PartialSendError?
                } catch {
                    return error
                }
            }
            _ = try await peer.read(1)
            sending.cancel()
            let error = try #require(await sending.value)
            #expect(error.cause is CancellationError)
            async let rest = peer.read()
            try await connection.finishSending()
            let length = try message.delimitedBytes.count
            #expect(try await rest.count + 1 == error.acceptedCount * length)
        }
    }

    @Test func sendContentsOfTellsHowManyWereAcceptedBeforeTheConnectionFailed() async throws {
        let message = TestMessage(repeatElement(7, count: 100))
        let listener = try await RawSocket.listen()
        await #expect(throws: ConnectionError.self) {
            try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
                let peer = try await listener.accept()
                async let sending: PartialSendError? = {
                    do throws(PartialSendError) {
                        try await connection.send(contentsOf: repeatElement(message, count: .max))
                        return nil
                    } catch {
                        return error
                    }
                }()
                _ = try await peer.read(1)
                try peer.reset()
                let error = try #require(await sending)
                #expect(error.cause is ConnectionError)
                #expect(error.acceptedCount > 0)
            }
        }
    }

    @Test func sendContentsOfStopsAtTheMessageThatIsRefused() async throws {
        var configuration = ConnectionConfiguration()
        configuration.maximumFrameLength = 10
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: configuration) { connection in
                let messages = [
                    TestMessage([1]), TestMessage([2]), TestMessage(repeatElement(3, count: 9)), TestMessage([4]),
                ]
                do throws(PartialSendError) {
                    try await connection.send(contentsOf: messages)
                    Issue.record("11 bytes are over the limit of 10")
                } catch {
                    #expect(error.acceptedCount == 2)
                    let cause = error.cause as? ConnectionError
                    #expect(cause?.code == .messageRefused)
                    #expect((cause?.cause as? FramingError)?.code == .payloadTooLarge)
                }
                // The connection continues, with the largest message that fits.
                try await connection.send(TestMessage(repeatElement(5, count: 8)))
                try await connection.finishSending()
                var received: [TestMessage] = []
                for try await message in connection.messages { received.append(message) }
                #expect(received == [TestMessage([1]), TestMessage([2]), TestMessage(repeatElement(5, count: 8))])
            }
        }
    }

    @Test func aCancelledIterationLosesNothing() async throws {
        let listener = try await RawSocket.listen()
        try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
            let peer = try await listener.accept()
            let waiting = Task {
                var messages = connection.messages.makeAsyncIterator()
                return try await messages.next()
            }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { _ = try await waiting.value }
            try await peer.write(TestMessage(number: 1).delimitedBytes)
            var messages = connection.messages.makeAsyncIterator()
            let message = try await messages.next()
            #expect(message?.number == 1)
        }
    }

    @Test func aSecondIterationAtTheSameTimeIsRefused() async throws {
        let listener = try await RawSocket.listen()
        try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
            let peer = try await listener.accept()
            let tasks = (0..<2).map { _ in
                Task {
                    await connectionError {
                        var messages = connection.messages.makeAsyncIterator()
                        return try await messages.next()
                    }
                }
            }
            // One of the tasks is refused; only then does the other get its message.
            let (refusals, refused) = AsyncStream.makeStream(of: ConnectionError.self)
            for task in tasks { Task { if let error = await task.value { refused.yield(error) } } }
            for await error in refusals {
                #expect(error.code == .concurrentIteration)
                break
            }
            try await peer.write(TestMessage(number: 1).delimitedBytes)
            var failures = 0
            for task in tasks where await task.value != nil { failures += 1 }
            #expect(failures == 1)
        }
    }
}
