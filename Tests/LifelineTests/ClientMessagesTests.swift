import Lifeline
import LifelineCore
import Testing

/// What arrives, over all connections.
@Suite(.timeLimit(.minutes(1))) struct ClientMessagesTests {
    private func payload(_ number: Int) throws -> [UInt8] { try TestMessage(number: number).serializedBytes() }

    @Test func arrivesInOrderOverAllConnections() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            for connection in 0..<3 {
                let peer = try await harness.transport.nextAttempt().accept()
                _ = try await events.reach(.ready)
                let payloads = try (0..<4).map { try payload(connection * 4 + $0) }
                #expect(peer.send(Array(payloads[..<2])) && peer.send(Array(payloads[2...])))
                client.reconnect()
            }
            try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
        }
        var numbers: [Int?] = []
        for try await message in harness.client.messages { numbers.append(message.number) }
        #expect(numbers == Array(0..<12))
    }

    @Test func comesInBatches() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            _ = try peer.send([payload(1), payload(2)])
            _ = try peer.send([payload(3)])
            var batches = client.messages.batches.makeAsyncIterator()
            #expect(try await batches.next()?.map(\.number) == [1, 2])
            #expect(try await batches.next()?.map(\.number) == [3])
        }
    }

    @Test func holdsThePeerUpWhileNobodyTakes() async throws {
        let harness = ClientHarness {
            $0.connection.inboundWaterMarks = WaterMarks(low: 100, high: 200)
        }
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            let resumed = peer.resumeCount
            #expect(try peer.send([payload(1), payload(2)]))
            #expect(try !peer.send([payload(3)]))
            // No new connection, which could bring more, while too much waits.
            client.reconnect()
            _ = try await events.reach(.connecting)
            var messages = client.messages.makeAsyncIterator()
            async let attempt = harness.transport.nextAttempt()
            for _ in 0..<100 { await Task.yield() }
            #expect(harness.transport.attemptCount == 1)
            for number in 1...3 { #expect(try await messages.next()?.number == number) }
            let next = try await attempt.accept()
            _ = try await events.reach(.ready)
            #expect(peer.resumeCount == resumed)
            // Paused and resumed within one connection.
            #expect(try !next.send([payload(4), payload(5), payload(6)]))
            let before = next.resumeCount
            for number in 4...6 { #expect(try await messages.next()?.number == number) }
            #expect(next.resumeCount == before + 1)
        }
    }

    /// What comes before the driver has heard of the connection is not lost, nor does it stop the reading for ever.
    @Test func resumesWhatWasPausedTooEarly() async throws {
        let harness = ClientHarness { $0.connection.inboundWaterMarks = WaterMarks(low: 1, high: 2) }
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            #expect(try !peer.send([payload(1)]))
            try await until { peer.resumeCount > 0 }
            var messages = client.messages.makeAsyncIterator()
            #expect(try await messages.next()?.number == 1)
        }
    }

    @Test func cancellingTheConsumerLosesNothing() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            let consumer = Task {
                var messages = client.messages.makeAsyncIterator()
                return try await messages.next()
            }
            consumer.cancel()
            await #expect(throws: CancellationError.self) { try await consumer.value }
            _ = try peer.send([payload(1)])
            var messages = client.messages.makeAsyncIterator()
            #expect(try await messages.next()?.number == 1)
        }
    }

    @Test func whatCameBeforeTheCloseIsDelivered() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            _ = try peer.send([payload(1)])
            await client.close()
            var messages = client.messages.makeAsyncIterator()
            #expect(try await messages.next()?.number == 1)
            #expect(try await messages.next() == nil)
        }
    }
}
