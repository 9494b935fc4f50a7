import Lifeline
import LifelineClientTestSupport
import LifelineCore
import Testing

/// The events that subscribers get.
@Suite(.timeLimit(.minutes(1))) struct ClientEventsTests {
    @Test func everySubscriberSeesEveryStep() async throws {
        let harness = ClientHarness()
        let subscribers = (0..<5).map { _ in harness.client.events.makeAsyncIterator() }
        try await harness.run { _ in
            try await harness.transport.nextAttempt().accept()
            try await until { harness.client.state == .ready }
        }
        for var subscriber in subscribers {
            var steps: [ConnectionState] = []
            while let event = await subscriber.next() {
                steps.append(event.transition.to)
                #expect(event.transition.number == UInt64(steps.count) && event.missedCount == 0)
            }
            #expect(steps == [.connecting, .ready, .draining, .closed])
        }
    }

    @Test func aLateSubscriberBeginsWithTheNewest() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            var events = client.events.makeAsyncIterator()
            #expect(await events.next()?.transition.to == .ready)
            client.reconnect()
            #expect(await events.next()?.transition.to == .connecting)
        }
        var events = harness.client.events.makeAsyncIterator()
        #expect(await events.next()?.transition.to == .closed)
        #expect(await events.next() == nil)
    }

    @Test func aSlowSubscriberIsToldWhatItMissed() async throws {
        let harness = ClientHarness()
        var slow = harness.client.events.makeAsyncIterator()
        var fast = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            #expect(await slow.next()?.transition.number == 1)
            for _ in 0..<100 {
                try await harness.transport.nextAttempt().accept()
                _ = try await fast.reach(.ready)
                client.reconnect()
            }
            _ = try await fast.reach(.connecting)
            // 201 steps, of which the last 100 are kept.
            let event = try #require(await slow.next())
            #expect(event.transition.number == 102 && event.missedCount == 100)
            #expect(await slow.next()?.missedCount == 0)
            #expect(client.history.count == 100)
            #expect(client.history.map(\.transition.number) == Array(102...201))
        }
    }

    @Test func cancellingASubscriberEndsItsIteration() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            let following = Task {
                var count = 0
                for await _ in client.events { count += 1 }
                return count
            }
            var events = client.events.makeAsyncIterator()
            _ = await events.next()
            following.cancel()
            #expect(await following.value <= 1)
            #expect(client.state == .ready)
        }
    }

    @Test func historyPrintsALineForEachStep() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            try await harness.transport.nextAttempt().refuse()
            _ = try await events.reach(.backingOff)
            let lines = client.history.map(\.description)
            #expect(lines.count == 2)
            #expect(lines[0].contains("idle → connecting: started"))
            #expect(lines[1].contains("connecting → backingOff: connectFailed"))
            #expect(lines[1].contains("next attempt in 1.0 seconds"))
        }
    }
}
