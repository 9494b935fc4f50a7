import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import NIOConcurrencyHelpers
import Testing

/// The outcomes of sends, with and without a connection.
@Suite(.timeLimit(.minutes(1))) struct ClientSendingTests {
    private func numbers(in bytes: [UInt8]) throws -> [Int] {
        try messages(in: bytes).compactMap(\.number)
    }

    @Test func goesStraightToTheConnection() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            for number in 0..<3 {
                #expect(try await client.send(TestMessage(number: number), policy: .fail) == .accepted)
            }
            #expect(try numbers(in: peer.read()) == [0, 1, 2])
            #expect(client.queuedMessageCount == 0)
        }
    }

    @Test func waitsForAConnectionInOrder() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            try await withThrowingTaskGroup(of: SendOutcome.self) { group in
                for number in 0..<5 {
                    group.addTask { try await client.send(TestMessage(number: number)) }
                    try await until { client.queuedMessageCount == number + 1 }
                }
                let peer = try await harness.transport.nextAttempt().accept()
                for try await outcome in group { #expect(outcome == .accepted) }
                _ = try await events.reach(.ready)
                #expect(try numbers(in: peer.read()) == [0, 1, 2, 3, 4])
                try await client.send(TestMessage(number: 5))
                #expect(try numbers(in: peer.read()) == [5])
            }
        }
    }

    @Test func failsAtOnceWhenAskedTo() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            let error = await connectionError { try await client.send(TestMessage(number: 1), policy: .fail) }
            #expect(error?.code == .notConnected)
        }
    }

    @Test func isDroppedOrFailsWhenItsTimeIsOver() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            async let dropped = client.send(TestMessage(number: 1), policy: .drop(after: .seconds(2)))
            async let failed = connectionError {
                try await client.send(TestMessage(number: 2), policy: .wait(timeout: .seconds(3)))
            }
            try await until { client.queuedMessageCount == 2 }
            harness.clock.advance(by: .seconds(2))
            #expect(try await dropped == .dropped)
            #expect(client.queuedMessageCount == 1)
            harness.clock.advance(by: .seconds(1))
            #expect(await failed?.code == .sendTimedOut)
            // Neither message is sent later.
            let peer = try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            #expect(peer.read() == [])
        }
    }

    /// Waiting messages stay in the queue when the client gives up.
    @Test func waitsOnAfterGivingUp() async throws {
        let harness = ClientHarness { $0.backoff.maximumAttempts = 1 }
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            async let first = client.send(TestMessage(number: 1))
            async let second = connectionError {
                try await client.send(TestMessage(number: 2), policy: .wait(timeout: .seconds(1)))
            }
            try await until { client.queuedMessageCount == 2 }
            try await harness.transport.nextAttempt().refuse()
            _ = try await events.reach(.gaveUp)
            harness.clock.advance(by: .seconds(1))
            #expect(await second?.code == .sendTimedOut)
            client.reconnect()
            try await harness.transport.nextAttempt().accept()
            #expect(try await first == .accepted)
        }
    }

    @Test func refusesMoreThanTheQueueHolds() async throws {
        let harness = ClientHarness { $0.sendQueue.maximumMessageCount = 2 }
        try await harness.run { client in
            async let first = client.send(TestMessage(number: 1))
            async let second = client.send(TestMessage(number: 2))
            try await until { client.queuedMessageCount == 2 }
            let error = await connectionError { try await client.send(TestMessage(number: 3)) }
            #expect(error?.code == .sendQueueFull)
            try await harness.transport.nextAttempt().accept()
            #expect(try await [first, second] == [.accepted, .accepted])
        }
    }

    @Test func refusesWhatIsTooLarge() async throws {
        let harness = ClientHarness { $0.connection.maximumFrameLength = 10 }
        try await harness.run { client in
            let large = TestMessage(Array(repeating: 1, count: 20))
            #expect(await connectionError { try await client.send(large) }?.code == .messageRefused)
            #expect(client.queuedMessageCount == 0)
        }
    }

    @Test func canBeCancelledWhileItWaits() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            let sending = Task { try await client.send(TestMessage(number: 1)) }
            try await until { client.queuedMessageCount == 1 }
            sending.cancel()
            await #expect(throws: CancellationError.self) { try await sending.value }
            #expect(client.queuedMessageCount == 0)
            let peer = try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            #expect(peer.read() == [])
        }
    }

    /// Fills the connection's own queue, so that the next message waits for room.
    private func fill(_ client: TestClient) async throws {
        try await client.send(TestMessage(Array(repeating: 0, count: 300 << 10)))
    }

    @Test func canBeCancelledWhileTheConnectionHasNoRoom() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let filling = Task { try await fill(client) }
            let second = Task { try await client.send(TestMessage(number: 2)) }
            try await until { client.queuedMessageCount == 2 }
            let peer = try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            // One of the two messages fills the connection; the other may already be handed over.
            _ = try await filling.value
            second.cancel()
            let isAccepted = (try? await second.value) == .accepted
            let received = try messages(in: peer.read() + peer.read())
            #expect(received.count == (isAccepted ? 2 : 1))
            try await client.send(TestMessage(number: 3))
            #expect(try numbers(in: peer.read()).last == 3)
        }
    }

    /// A message that is sent once connected does not overtake those that have waited for the connection.
    @Test func goesBehindWhatWaits() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            var sends = [Task { try await fill(client) }]
            try await until { client.queuedMessageCount == 1 }
            for number in 1...2 {
                sends.append(Task { _ = try await client.send(TestMessage(number: number)) })
                try await until { client.queuedMessageCount == number + 1 }
            }
            let peer = try await harness.transport.nextAttempt().accept()
            // The connection is full: the first message waits for room in it, the second one waits behind the first.
            try await until { client.queuedMessageCount == 2 }
            sends.append(Task { _ = try await client.send(TestMessage(number: 3)) })
            for _ in 0..<100 { await Task.yield() }
            var bytes: [UInt8] = []
            while try messages(in: bytes).count < 4 {
                bytes += peer.read()
                await Task.yield()
            }
            for send in sends { try await send.value }
            #expect(try numbers(in: bytes) == [1, 2, 3])
        }
    }

    /// A message that waited for room in a lost connection goes to the next one.
    @Test(arguments: [false, true]) func outlivesTheConnectionItWaitedFor(isQueued: Bool) async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            var first: Task<SendOutcome, any Error>?
            if isQueued {
                // These wait in the client's queue, which hands over one message at a time.
                let filling = Task { try await fill(client) }
                try await until { client.queuedMessageCount == 1 }
                first = Task { try await client.send(TestMessage(number: 1)) }
                try await until { client.queuedMessageCount == 2 }
                _ = filling
            }
            let peer = try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            if isQueued {
                try await until { client.queuedMessageCount == 1 }
            } else {
                try await fill(client)
                first = Task { try await client.send(TestMessage(number: 1)) }
            }
            let patient = try #require(first)
            let failing = Task { try await client.send(TestMessage(number: 2), policy: .fail) }
            // Both wait for room. The one that must not wait without a connection fails when the connection is lost.
            for _ in 0..<100 { await Task.yield() }
            peer.close(ConnectionError(code: .closedByPeer, message: "Reset by the test."))
            #expect(await connectionError { try await failing.value }?.code == .notConnected)
            harness.clock.advance(to: try #require(try await events.reach(.backingOff).transition.nextAttempt))
            let next = try await harness.transport.nextAttempt().accept()
            #expect(try await patient.value == .accepted)
            #expect(try numbers(in: next.read()) == [1])
        }
    }

    @Test func failsWhenTheClientClosesFirst() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            let sending = Task { try await client.send(TestMessage(number: 1)) }
            try await until { client.queuedMessageCount == 1 }
            await client.close()
            #expect(await connectionError { try await sending.value }?.code == .closedLocally)
        }
    }

    /// Many tasks send while connections come and go. Every send ends once. Each accepted message is on exactly one
    /// connection, with each task's messages in order. No other message is.
    @Test(arguments: 1...8) func endsEachSendOnce(seed: UInt64) async throws {
        let harness = ClientHarness {
            $0.backoff.maximumAttempts = nil
            $0.sendQueue.maximumMessageCount = 16
            $0.connection.outboundWaterMarks = WaterMarks(low: 64, high: 256)
        }
        let (taskCount, sendCount) = (24, 40)
        let received = NIOLockedValueBox<[Int]>([])
        let isDone = NIOLockedValueBox(false)
        let accepted = try await harness.run { client in
            try await withThrowingTaskGroup(of: [Int].self) { group in
                group.addTask {
                    var random = SeededGenerator(seed: seed)
                    while !isDone.withLockedValue({ $0 }) {
                        let attempt = try await harness.transport.nextAttempt()
                        guard Int.random(in: 0..<4, using: &random) > 0 else {
                            attempt.refuse()
                            try await skipBackoff(harness)
                            continue
                        }
                        let peer = attempt.accept()
                        var bytes: [UInt8] = []
                        for _ in 0..<Int.random(in: 0..<60, using: &random) {
                            bytes += peer.read()
                            await Task.yield()
                        }
                        while isDone.withLockedValue({ $0 }), client.state != .closed {
                            bytes += peer.read()
                            await Task.yield()
                        }
                        peer.close(ConnectionError(code: .closedByPeer, message: "Reset by the test."))
                        let numbers = try numbers(in: bytes)
                        received.withLockedValue { $0 += numbers }
                        if !isDone.withLockedValue({ $0 }) { try await skipBackoff(harness) }
                    }
                    return []
                }
                for task in 0..<taskCount {
                    group.addTask {
                        var random = SeededGenerator(seed: seed &* 1000 &+ UInt64(task))
                        var accepted: [Int] = []
                        for index in 0..<sendCount {
                            let number = task * sendCount + index
                            if try await send(number, to: client, &random) { accepted.append(number) }
                        }
                        return accepted
                    }
                }
                var accepted: [Int] = []
                for _ in 0..<taskCount { accepted += try await group.next() ?? [] }
                isDone.withLockedValue { $0 = true }
                await client.close()
                group.cancelAll()
                return accepted
            }
        }
        let arrived = received.withLockedValue { $0 }
        #expect(Set(arrived).count == arrived.count, "doubled")
        #expect(Set(arrived).isSubset(of: accepted), "arrived, though not accepted")
        for task in 0..<taskCount {
            let own = arrived.filter { $0 / sendCount == task }
            #expect(own == own.sorted(), "out of order")
        }
        #expect(harness.transport.maximumConnectionCount <= 1)
        #expect(harness.client.queuedMessageCount == 0)
    }

    private func skipBackoff(_ harness: ClientHarness) async throws {
        try await until { [.backingOff, .closed].contains(harness.client.state) }
        harness.clock.advance(by: .seconds(60))
    }

    /// Returns whether the message was accepted. Any other outcome is allowed, too.
    private func send(_ number: Int, to client: TestClient, _ random: inout SeededGenerator) async throws -> Bool {
        let policies: [SendPolicy] = [.wait(), .fail, .drop(after: .seconds(30)), .wait(timeout: .seconds(90))]
        let policy = policies.randomElement(using: &random) ?? .fail
        let isCancelled = Int.random(in: 0..<8, using: &random) == 0
        let sending = Task { try await client.send(TestMessage(number: number), policy: policy) }
        if isCancelled {
            await Task.yield()
            sending.cancel()
        }
        do {
            return try await sending.value == .accepted
        } catch is CancellationError {
            return false
        } catch let error as ConnectionError {
            #expect([.notConnected, .sendTimedOut, .sendQueueFull].contains(error.code), "\(error)")
            return false
        }
    }
}
