import Testing

@testable import Lifeline

/// The events that subscribers of a session client get.
@Suite(.timeLimit(.minutes(1))) struct SessionClientEventsTests {
    private func isOpened(_ event: SessionEvent?, resumed: Bool) -> Bool {
        if case .opened(_, resumed)? = event?.kind { true } else { false }
    }

    @Test func aLateSubscriberBeginsWithTheNewest() async throws {
        let harness = SessionClientHarness()
        var early = harness.client.sessionEvents.makeAsyncIterator()
        try await harness.run { client in
            try await harness.accept().welcome()
            #expect(isOpened(await early.next(), resumed: false))
            client.reconnect()
            try await harness.accept().welcome(resumed: true)
            #expect(isOpened(await early.next(), resumed: true))
            var late = client.sessionEvents.makeAsyncIterator()
            #expect(isOpened(await late.next(), resumed: true))
            var steps = client.events.makeAsyncIterator()
            #expect(await steps.next()?.transition.to == .ready)
            client.reconnect()
            #expect(await steps.next()?.transition.to == .connecting)
            try await harness.accept().welcome(id: 2)
            guard case .lost? = await late.next()?.kind else { return #expect(Bool(false)) }
            #expect(isOpened(await late.next(), resumed: false))
        }
        var late = harness.client.sessionEvents.makeAsyncIterator()
        guard case .ended? = await late.next()?.kind else { return #expect(Bool(false)) }
        #expect(await late.next() == nil)
        #expect(harness.client.sessionHistory.count == 5)
    }

    @Test func aSlowSubscriberIsToldWhatItMissed() async throws {
        let harness = SessionClientHarness()
        var (slow, fast) = (
            harness.client.sessionEvents.makeAsyncIterator(), harness.client.sessionEvents.makeAsyncIterator()
        )
        try await harness.run { client in
            for number in 0..<25 {
                if number > 0 { client.reconnect() }
                try await harness.accept().welcome(resumed: number > 0)
                _ = await fast.next()
            }
            // 25 events, of which the last 20 are kept.
            #expect(await slow.next()?.missedCount == 5)
            #expect(await slow.next()?.missedCount == 0)
            #expect(client.sessionHistory.count == 20)
        }
    }
}
