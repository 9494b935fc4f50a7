import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import Logging
import Testing

/// Received messages, across all connections.
@Suite(.timeLimit(.minutes(1))) struct ClientMessagesTests {
    private func payload(_ number: Int) throws -> [UInt8] { try TestMessage(number: number).serializedBytes() }

    @Test func arrivesInOrderOverAllConnections() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            for connection in 0..<3 {
                let peer = try await harness.transport.nextAttempt().accept()
                try await until { peer.resumeCount == 1 }
                let payloads = try (0..<4).map { try payload(connection * 4 + $0) }
                #expect(peer.send(Array(payloads[..<2])) && peer.send(Array(payloads[2...])))
                client.reconnect()
                _ = try await events.reach(.connecting)
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
        let log = TestLog()
        let harness = ClientHarness(log: log) {
            $0.connection.inboundWaterMarks = WaterMarks(low: 100, high: 200)
        }
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            try await until { peer.resumeCount == 1 }
            #expect(try peer.send([payload(1), payload(2)]))
            #expect(try !peer.send([payload(3)]))
            // While too many messages wait, the client makes no connection that could bring more.
            client.reconnect()
            _ = try await events.reach(.connecting)
            var messages = client.messages.makeAsyncIterator()
            async let attempt = harness.transport.nextAttempt()
            // The old connection has ended by then.
            try await until { log.entries.contains { $0.text.contains("Not connecting until messages") } }
            #expect(harness.transport.attemptCount == 1)
            for number in 1...3 { #expect(try await messages.next()?.number == number) }
            let next = try await attempt.accept()
            _ = try await events.reach(.ready)
            #expect(peer.resumeCount == 1)
            // The client pauses and resumes within one connection.
            try await until { next.resumeCount == 1 }
            #expect(try !next.send([payload(4), payload(5), payload(6)]))
            for number in 4...6 { #expect(try await messages.next()?.number == number) }
            #expect(next.resumeCount == 2)
        }
    }

    /// The client has given up the attempt before it learns that the connection is up.
    @Test func dropsMessagesOfAnUnreportedConnection() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let unnoticed = try await harness.transport.nextAttempt().acceptUnnoticed()
            // Reading stops until the client knows of the connection.
            #expect(try !unnoticed.send([payload(1)]))
            harness.network.change(to: .unavailable)
            _ = try await events.reach(.waitingForNetwork)
            harness.network.change(to: .available)
            let attempt = try await harness.transport.nextAttempt()
            // A late message of an earlier attempt.
            #expect(try !unnoticed.send([payload(2)]))
            let peer = attempt.accept()
            #expect(unnoticed.resumeCount == 0)
            _ = try peer.send([payload(3)])
            var messages = client.messages.makeAsyncIterator()
            #expect(try await messages.next()?.number == 3)
        }
    }

    @Test func warnsWhenItConnectsOnlyAfterMessagesAreTaken() async throws {
        let log = TestLog()
        let harness = ClientHarness(log: log) {
            $0.connection.inboundWaterMarks = WaterMarks(low: 1, high: 2)
        }
        var warnings: [String] { log.entries.filter { $0.level == .warning }.map(\.text) }
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            try await until { peer.resumeCount == 1 }
            #expect(warnings.isEmpty)
            #expect(try !peer.send([payload(1)]))
            client.reconnect()
            try await until { !warnings.isEmpty }
            #expect(warnings.count == 1 && warnings[0].contains("Client.messages"))
            var messages = client.messages.makeAsyncIterator()
            _ = try await messages.next()
            try await harness.transport.nextAttempt().accept()
        }
    }

    /// A message that arrives before the driver knows of the connection is not lost, and does not stop reading for
    /// ever.
    @Test func resumesAReadPausedTooEarly() async throws {
        let harness = ClientHarness { $0.connection.inboundWaterMarks = WaterMarks(low: 1, high: 2) }
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            #expect(try !peer.send([payload(1)]))
            var messages = client.messages.makeAsyncIterator()
            #expect(try await messages.next()?.number == 1)
            try await until { peer.resumeCount > 0 }
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

    @Test func messagesBeforeTheCloseAreDelivered() async throws {
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
