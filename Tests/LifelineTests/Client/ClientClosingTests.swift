import LifelineClientTestSupport
import LifelineCore
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@testable import Lifeline

/// Closing, cancelling and running, in every state.
@Suite(.timeLimit(.minutes(1))) struct ClientClosingTests {
    /// A client in a given state, with the objects that keep it there.
    private func withClient(
        in state: ConnectionState,
        _ body: (ClientHarness, Task<Void, any Error>) async throws -> Void
    ) async throws {
        let harness = ClientHarness(hasNetwork: state != .waitingForNetwork) {
            $0.backoff.maximumAttempts = state == .gaveUp ? 1 : 4
        }
        let client = harness.client
        if state == .idle { return try await body(harness, Task {}) }
        let running = Task { try await client.run() }
        var events = client.events.makeAsyncIterator()
        switch state {
        case .idle, .waitingForNetwork, .connecting:
            break
        case .backingOff, .gaveUp:
            try await harness.transport.nextAttempt().refuse()
        case .ready, .draining, .closed:
            let peer = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 0)
            _ = try await events.reach(.ready)
            if state == .draining { peer.holdClosing() }
            if state == .draining { Task { await client.close() } }
            if state == .closed { await client.close() }
        }
        try await until { client.state == state }
        try await body(harness, running)
    }

    @Test(arguments: ConnectionState.allCases)
    func closesInEveryState(state: ConnectionState) async throws {
        try await withClient(in: state) { harness, running in
            // In the state draining this is the second call, which cuts the connection.
            await harness.client.close()
            try await running.value
            try await expectClosed(harness.client)
        }
    }

    @Test(arguments: ConnectionState.allCases.filter { $0 != .idle })
    func endsWhenCancelledInEveryState(state: ConnectionState) async throws {
        try await withClient(in: state) { harness, running in
            running.cancel()
            if state == .closed {
                _ = await running.result
            } else {
                await #expect(throws: CancellationError.self) { try await running.value }
                #expect(harness.client.history.last?.transition.reason.code == .cancelled)
            }
            try await expectClosed(harness.client)
        }
    }

    private func expectClosed(_ client: TestClient) async throws {
        #expect(client.state == .closed)
        #expect(client.history.last?.transition.to == .closed)
        var messages = client.messages.makeAsyncIterator()
        #expect(try await messages.next() == nil)
        for policy in [SendPolicy.wait(), .fail, .drop(after: .seconds(1))] {
            let error = await connectionError { try await client.send(TestMessage(number: 1), policy: policy) }
            #expect(error?.code == .closedLocally)
        }
        var events = client.events.makeAsyncIterator()
        #expect(await events.next()?.transition.to == .closed)
        #expect(await events.next() == nil)
        client.reconnect()
        #expect(client.state == .closed)
        await client.close()
    }

    @Test func runsOnce() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            try await until { client.state == .connecting }
            let error = await connectionError { try await client.run() }
            #expect(error?.code == .alreadyRun)
            #expect(client.state == .connecting)
        }
        #expect(await connectionError { try await harness.client.run() }?.code == .alreadyRun)
    }

    @Test func returnsAtOnceWhenClosedBefore() async throws {
        let harness = ClientHarness()
        await harness.client.close()
        try await harness.client.run()
    }

    @Test func closingWritesWhatWasAccepted() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 0)
            peer.holdClosing()
            _ = try await events.reach(.ready)
            for number in 0..<3 { try await client.send(TestMessage(number: number)) }
            async let closing: Void = client.close()
            try await peer.waitForClose()
            #expect(client.state == .draining)
            let error = await connectionError { try await client.send(TestMessage(number: 4)) }
            #expect(error?.code == .closedLocally)
            #expect(try messages(in: peer.read()) == (0..<3).map(TestMessage.init(number:)))
            peer.close(nil)
            await closing
            #expect(client.history.last?.undeliveredMessageCount == 0)
        }
    }

    @Test func tellsWhatClosingLost() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 5)
            peer.holdClosing()
            _ = try await events.reach(.ready)
            async let closing: Void = client.close()
            try await peer.waitForClose()
            peer.close(ConnectionError(code: .closedByPeer, message: "Reset by the test."))
            await closing
            let last = try #require(client.history.last)
            #expect(last.transition.reason.code == .closedByPeer && last.undeliveredMessageCount == 5)
        }
    }

    @Test func tellsWhenThePeerDidNotEnd() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 0)
            peer.holdClosing()
            _ = try await events.reach(.ready)
            async let closing: Void = client.close()
            try await peer.waitForClose()
            peer.missEnd()
            await closing
            let last = try #require(client.history.last)
            #expect(last.transition.reason.code == .connectionFailed && last.undeliveredMessageCount == 0)
            #expect(last.transition.reason.error?.code == .closedLocally)
        }
    }

    @Test func losingTheNetworkEndsAClose() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            peer.holdClosing()
            _ = try await events.reach(.ready)
            async let closing: Void = client.close()
            try await peer.waitForClose()
            harness.network.change(to: .unavailable)
            await closing
            #expect(client.history.last?.transition.reason.code == .networkLost)
        }
    }

    @Test func closesOnGracefulShutdown() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await testGracefulShutdown { trigger in
            async let running: Void = harness.client.run()
            try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            trigger.triggerGracefulShutdown()
            #expect(try await events.reach(.draining).transition.reason.code == .closedByUser)
            try await running
        }
    }

    /// Only the user's second call cuts the connection.
    @Test(arguments: [1, 2]) func theFirstCloseJoinsAGracefulShutdown(closes: Int) async throws {
        let harness = ClientHarness()
        let client = harness.client
        try await testGracefulShutdown { trigger in
            async let running: Void = client.run()
            let peer = try await harness.transport.nextAttempt().accept()
            peer.holdClosing()
            try await until { client.state == .ready }
            trigger.triggerGracefulShutdown()
            try await peer.waitForClose()
            // The first step of `close()`, before it waits.
            client.keeper.change { $0.closedByUser(now: $1) }
            #expect(peer.abortReason == nil)
            if closes == 2 {
                client.keeper.change { $0.closedByUser(now: $1) }
                #expect(peer.abortReason != nil)
            } else {
                peer.close(nil)
            }
            try await running
            #expect(client.history.last?.transition.reason.code == (closes == 2 ? .closedByUser : .drained))
        }
    }

    @Test func cancellingAFirstCloseCuts() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            peer.holdClosing()
            try await until { client.state == .ready }
            let closing = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                await client.close()
            }
            await closing.value
            #expect(peer.abortReason != nil)
            #expect(client.history.last?.transition.reason.code == .closedByUser)
        }
    }
}
