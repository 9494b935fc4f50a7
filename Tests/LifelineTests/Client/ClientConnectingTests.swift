import Lifeline
import LifelineClientTestSupport
import LifelineCore
import Testing

/// The client's reactions to events, on a scripted transport and in simulated time.
@Suite(.timeLimit(.minutes(1))) struct ClientConnectingTests {
    @Test func connectsAndSaysSo() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            try await harness.transport.nextAttempt().accept()
            let first = await events.next()
            #expect(first?.transition.from == .idle && first?.transition.to == .connecting)
            #expect(first?.transition.reason.code == .started)
            let second = await events.next()
            #expect(second?.transition.to == .ready && second?.transition.reason.code == .connected)
            #expect(client.state == .ready)
        }
        #expect(await events.next()?.transition.to == .draining)
        let last = await events.next()
        #expect(last?.transition.to == .closed && last?.transition.reason.code == .drained)
        #expect(await events.next() == nil)
    }

    @Test func backsOffGivesUpAndTriesAgainWhenAsked() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            for seconds in [1, 2, 4] {
                try await harness.transport.nextAttempt().refuse()
                let event = try await events.reach(.backingOff)
                #expect(event.transition.reason.code == .connectFailed)
                let next = try #require(event.transition.nextAttempt)
                #expect(next - event.transition.time == .seconds(seconds))
                harness.clock.advance(to: next)
                #expect(try await events.reach(.connecting).transition.reason.code == .retryDue)
            }
            try await harness.transport.nextAttempt().refuse()
            let event = try await events.reach(.gaveUp)
            #expect(event.transition.reason.code == .attemptsUsedUp)
            #expect(event.transition.reason.error?.code == .connectFailed)

            client.reconnect()
            #expect(try await events.reach(.connecting).transition.reason.code == .reconnectRequested)
            try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
        }
    }

    @Test func waitsForTheNetworkWithoutSpendingAttempts() async throws {
        let harness = ClientHarness(hasNetwork: false)
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { _ in
            #expect(try await events.reach(.waitingForNetwork).transition.reason.code == .started)
            harness.network.change(to: .available)
            let event = try await events.reach(.connecting)
            #expect(event.transition.reason.code == .networkUp && event.transition.attempt == 1)
            // The network is lost during an attempt, which is given up.
            let attempt = try await harness.transport.nextAttempt()
            harness.network.change(to: .unavailable)
            #expect(try await events.reach(.waitingForNetwork).transition.reason.code == .networkLost)
            harness.network.change(to: .available)
            #expect(try await events.reach(.connecting).transition.attempt == 1)
            try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            // A late result of the attempt changes nothing.
            attempt.refuse()
            attempt.accept()
            #expect(harness.client.state == .ready)
        }
        #expect(harness.transport.connectionCount == 0)
    }

    @Test func dropsTheConnectionWithTheNetworkAndReportsWhatWasLost() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 3)
            #expect(try await events.reach(.ready).acceptedMessageCount == nil)
            for number in 0..<4 { try await client.send(TestMessage(number: number)) }
            harness.network.change(to: .unavailable)
            let event = try await events.reach(.waitingForNetwork)
            #expect(event.transition.reason.code == .networkLost)
            #expect(event.acceptedMessageCount == 4 && event.undeliveredMessageCount == 3)
            #expect(peer.abortReason?.code == .networkLost)
            harness.network.change(to: .available)
            try await harness.transport.nextAttempt().accept()
            #expect(try await events.reach(.ready).undeliveredMessageCount == nil)
        }
    }

    @Test func probesWhenTheNetworkChanges() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            harness.network.change(to: .available)
            try await until { peer.probeCount == 1 }
            #expect(client.state == .ready)
        }
    }

    @Test(arguments: [nil, ConnectionError.Code.closedByPeer, .protocolViolation, .ioError, .heartbeatTimeout])
    func tellsWhyTheConnectionEnded(code: ConnectionError.Code?) async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        let expected: TransitionReason.Code =
            switch code {
            case nil, .closedByPeer?: .closedByPeer
            case .protocolViolation?: .protocolViolation
            case .heartbeatTimeout?: .heartbeatTimeout
            default: .connectionFailed
            }
        try await harness.run { _ in
            let peer = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 2)
            _ = try await events.reach(.ready)
            peer.close(code.map { ConnectionError(code: $0, message: "The test ended it.") })
            // The connection was not stable yet, so it counts as a failed attempt.
            let event = try await events.reach(.backingOff)
            #expect(event.transition.reason.code == expected)
            #expect(event.transition.reason.error?.code == code)
            #expect(event.undeliveredMessageCount == 2)
        }
    }

    @Test func connectsAtOnceAfterAStableConnection() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { _ in
            for _ in 0..<10 {
                let peer = try await harness.transport.nextAttempt().accept()
                _ = try await events.reach(.ready)
                harness.clock.advance(by: .seconds(10))
                peer.close(nil)
                #expect(try await events.reach(.connecting).transition.reason.code == .closedByPeer)
            }
        }
    }

    @Test func doesNotHammerAPeerThatAcceptsAndDrops() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { _ in
            for _ in 0..<3 {
                try await harness.transport.nextAttempt().accept().close(nil)
                harness.clock.advance(to: try #require(try await events.reach(.backingOff).transition.nextAttempt))
            }
            try await harness.transport.nextAttempt().accept().close(nil)
            #expect(try await events.reach(.gaveUp).transition.reason.code == .attemptsUsedUp)
        }
    }

    @Test func noticesAnEndThatComesBeforeTheConnection() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { _ in
            try await harness.transport.nextAttempt().acceptAndFinish()
            _ = try await events.reach(.ready)
            #expect(try await events.reach(.backingOff).transition.reason.code == .closedByPeer)
        }
    }

    @Test func doesNotRetryWhatWasRejectedUntilSomethingChanges() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            try await harness.transport.nextAttempt().refuse(.tlsRejected)
            #expect(try await events.reach(.gaveUp).transition.reason.code == .tlsRejected)
            try await until { harness.clock.nextWakeUp == nil }
            // A new network or `reconnect()` is a reason to try again: the cause may be gone.
            harness.network.change(to: .available)
            #expect(try await events.reach(.connecting).transition.reason.code == .networkUp)
            try await harness.transport.nextAttempt().refuse(.tlsRejected)
            #expect(try await events.reach(.gaveUp).transition.reason.code == .tlsRejected)
            client.reconnect()
            #expect(try await events.reach(.connecting).transition.reason.code == .reconnectRequested)
        }
    }

    @Test func reconnectReplacesTheConnection() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let first = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 1)
            _ = try await events.reach(.ready)
            client.reconnect()
            let event = try await events.reach(.connecting)
            #expect(event.transition.reason.code == .reconnectRequested)
            #expect(event.undeliveredMessageCount == 1)
            #expect(first.abortReason != nil)
            try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
        }
        #expect(harness.transport.maximumConnectionCount == 1)
    }

    /// Accepted messages are still written after the peer has ended its side. The next connection waits for that.
    @Test func writesOnAfterThePeersEnd() async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 0)
            peer.holdClosing()
            _ = try await events.reach(.ready)
            try await client.send(TestMessage(number: 1))
            harness.clock.advance(by: .seconds(10))
            peer.finish()
            try await peer.waitForClose()
            #expect(client.state == .connecting)
            await #expect(throws: ConnectionError.self) { try await client.send(TestMessage(number: 2), policy: .fail) }
            #expect(try messages(in: peer.read()) == [TestMessage(number: 1)])
            peer.close(nil)
            let event = try await events.reach(.connecting)
            #expect(event.transition.reason.code == .closedByPeer && event.undeliveredMessageCount == 0)
            try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
        }
        #expect(harness.transport.maximumConnectionCount == 1)
    }

    /// A peer that reads very slowly delays the next connection only for the close timeout.
    @Test func cutsAPeerThatTakesTooLongAfterItsEnd() async throws {
        let harness = ClientHarness { $0.connection.closeTimeout = .seconds(3) }
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { _ in
            let peer = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 7)
            peer.holdClosing()
            _ = try await events.reach(.ready)
            harness.clock.advance(by: .seconds(10))
            let end = harness.clock.now
            peer.finish()
            try await peer.waitForClose()
            try await until { harness.clock.nextWakeUp == end + .seconds(3) }
            harness.clock.advance(by: .seconds(3))
            try await peer.waitForAbort()
            let event = try await events.reach(.connecting)
            #expect(event.transition.reason.code == .closedByPeer && event.undeliveredMessageCount == 7)
            #expect(event.transition.time == end)
            try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
        }
    }

    /// The same, but the user cuts it short.
    @Test(arguments: [0, 1, 2, 3]) func cutsAConnectionThatClosesAfterThePeersEnd(by way: Int) async throws {
        let harness = ClientHarness()
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            peer.holdClosing()
            _ = try await events.reach(.ready)
            peer.finish()
            try await peer.waitForClose()
            switch way {
            case 0: client.reconnect()
            case 1: harness.network.change(to: .unavailable)
            case 2:
                async let first: Void = client.close()
                try await until { client.state == .closed }
                #expect(peer.abortReason == nil)
                await client.close()
                await first
            default:
                async let closing: Void = {
                    try await until { client.state == .closed }
                    withUnsafeCurrentTask { $0?.cancel() }
                    await client.close()
                }()
                await client.close()
                try await closing
            }
            try await peer.waitForAbort()
        }
    }
}
