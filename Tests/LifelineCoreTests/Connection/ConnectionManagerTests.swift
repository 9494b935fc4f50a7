import LifelineCore
import Testing

@Suite struct ConnectionManagerTests {
    // MARK: The budget

    @Test func fourAttemptsThenItGivesUp() {
        var manager = ConnectionManager()
        #expect(line(manager.start(now: at(0))) == "→ connecting started (1), connect 1")
        #expect(line(manager.connectFailed(1, .refused, now: at(0))) == "→ backingOff connectFailed (1) in 1.0 seconds")
        #expect(line(manager.timerFired(lastInboundAt: nil, now: at(1))) == "→ connecting retryDue (2), connect 2")
        #expect(line(manager.connectFailed(2, .refused, now: at(1))) == "→ backingOff connectFailed (2) in 2.0 seconds")
        #expect(line(manager.timerFired(lastInboundAt: nil, now: at(3))) == "→ connecting retryDue (3), connect 3")
        #expect(line(manager.connectFailed(3, .refused, now: at(3))) == "→ backingOff connectFailed (3) in 4.0 seconds")
        #expect(line(manager.timerFired(lastInboundAt: nil, now: at(7))) == "→ connecting retryDue (4), connect 4")
        let actions = manager.connectFailed(4, .refused, now: at(7))
        #expect(line(actions) == "→ gaveUp attemptsUsedUp (4)")
        guard case .transition(let step) = actions.first else { return }
        #expect(step.reason.error?.code == .connectFailed, "what the last attempt failed with")
        #expect(step.number == 8)
        #expect(line(manager.reconnectRequested(now: at(100))) == "→ connecting reconnectRequested (1), connect 5")
    }

    /// The flap guard: a peer that accepts and drops is tried as if it had refused.
    @Test func acceptingAndDroppingUsesTheBudgetUp() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(0))
        var time = at(0)
        for id in 1...3 as ClosedRange<UInt64> {
            _ = manager.connected(id, now: time)
            time = time + .milliseconds(9999)
            let expected = "→ backingOff closedByPeer (\(id)) in \(1 << (id - 1)).0 seconds"
            #expect(line(manager.connectionEnded(id, .closedByPeer, now: time)) == expected)
            time = manager.nextDeadline ?? time
            _ = manager.timerFired(lastInboundAt: nil, now: time)
        }
        _ = manager.connected(4, now: time)
        let last = manager.connectionEnded(4, .closedByPeer, now: time)
        #expect(line(last) == "→ gaveUp attemptsUsedUp (4)")
    }

    @Test func tenSecondsOfConnectionRefillTheBudget() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(0))
        _ = manager.connectFailed(1, .refused, now: at(0))
        _ = manager.timerFired(lastInboundAt: nil, now: at(1))
        _ = manager.connected(2, now: at(1))
        #expect(
            line(manager.connectionEnded(2, .closedByPeer, now: at(11))) == "→ connecting closedByPeer (1), connect 3"
        )
        let failed = manager.connectFailed(3, .refused, now: at(11))
        #expect(line(failed) == "→ backingOff connectFailed (1) in 1.0 seconds")
    }

    /// A peer that accepts and never speaks is not tried for ever.
    @Test func silenceIsNoStability() {
        var manager = ConnectionManager(attempts: 2)
        _ = manager.start(now: at(0))
        #expect(
            die(1, &manager, from: at(0))
                == "→ backingOff heartbeatTimeout (1) in 1.0 seconds, abort 1 heartbeatTimeout"
        )
        _ = manager.timerFired(lastInboundAt: nil, now: at(61))
        #expect(die(2, &manager, from: at(61)) == "→ gaveUp attemptsUsedUp (2), abort 2 attemptsUsedUp")
    }

    @Test func aPeerThatSpokeAndDiedIsTriedAtOnce() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(0))
        let expected = "→ connecting heartbeatTimeout (1), abort 1 heartbeatTimeout, connect 2"
        #expect(die(1, &manager, from: at(0), lastLife: at(10)) == expected)
    }

    /// Connects and lets the heartbeat find the peer dead.
    private func die(
        _ id: UInt64,
        _ manager: inout ConnectionManager,
        from start: MonotonicTime,
        lastLife: MonotonicTime? = nil
    ) -> String {
        _ = manager.connected(id, now: start)
        var pings: [String] = []
        while let deadline = manager.nextDeadline {
            let text = line(manager.timerFired(lastInboundAt: lastLife, now: deadline))
            if text.isEmpty { continue }
            guard text.hasPrefix("ping") else {
                #expect(pings == ["ping \(id) #1", "ping \(id) #2", "ping \(id) #3"])
                #expect(deadline == (lastLife ?? start) + .seconds(60))
                return text
            }
            pings.append(text)
        }
        return ""
    }

    // MARK: The network

    @Test func withoutNetworkNoAttemptIsSpent() {
        var manager = ConnectionManager(attempts: 1)
        #expect(line(manager.networkLost(now: at(0))).isEmpty)
        #expect(line(manager.start(now: at(0))) == "→ waitingForNetwork started")
        for id in 1...10 as ClosedRange<UInt64> {
            #expect(line(manager.networkUp(now: at(1))) == "→ connecting networkUp (1), connect \(id)")
            #expect(
                line(manager.networkLost(now: at(1))) == "→ waitingForNetwork networkLost, abort \(id) networkLost"
            )
            #expect(manager.nextDeadline == nil)
            #expect(line(manager.timerFired(lastInboundAt: nil, now: at(1000))).isEmpty)
        }
    }

    @Test func aNetworkLostBeforeTheStartIsKnown() {
        var manager = ConnectionManager()
        _ = manager.networkLost(now: at(0))
        _ = manager.networkUp(now: at(1))
        #expect(line(manager.start(now: at(2))) == "→ connecting started (1), connect 1")
    }

    @Test func reconnectingWithoutNetworkWaitsForIt() {
        var manager = ConnectionManager(attempts: 1)
        _ = manager.start(now: at(0))
        _ = manager.connectFailed(1, .refused, now: at(0))
        #expect(manager.state == .gaveUp)
        _ = manager.networkLost(now: at(1))
        #expect(line(manager.reconnectRequested(now: at(2))) == "→ waitingForNetwork reconnectRequested")
        #expect(line(manager.reconnectRequested(now: at(3))).isEmpty)
        #expect(line(manager.networkUp(now: at(4))) == "→ connecting networkUp (1), connect 2")
    }

    @Test func withoutHeartbeatNothingIsProbed() {
        var manager = ConnectionManager(heartbeat: nil)
        _ = manager.start(now: at(0))
        _ = manager.connected(1, now: at(0))
        #expect(manager.nextDeadline == nil)
        #expect(manager.networkUp(now: at(5)).isEmpty)
        #expect(manager.timerFired(lastInboundAt: nil, now: at(10_000)).isEmpty)
        manager.received(lastInboundAt: at(1), 1, now: at(10_000))
        manager.receivedPong(number: 1, 1, now: at(10_000))
        #expect(manager.state == .ready)
    }

    // MARK: Lateness

    @Test func eventsOfEarlierConnectionsAreIgnored() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(0))
        _ = manager.connected(1, now: at(0))
        _ = manager.reconnectRequested(now: at(1))
        for _ in 1...2 {
            #expect(manager.connected(1, now: at(1)).isEmpty)
            #expect(manager.connectFailed(1, .badCertificate, now: at(1)).isEmpty)
            #expect(manager.connectionEnded(1, .closedByPeer, now: at(1)).isEmpty)
            _ = manager.connected(2, now: at(1))
        }
        #expect(manager.state == .ready)
        let deadline = manager.nextDeadline
        manager.received(lastInboundAt: at(20), 1, now: at(20))
        manager.receivedPong(number: 1, 1, now: at(20))
        #expect(manager.nextDeadline == deadline, "no sign of life of this peer")
        manager.received(lastInboundAt: at(20), 2, now: at(20))
        #expect(manager.nextDeadline == at(50))
        manager.receivedPong(number: 0, 2, now: at(25))
        #expect(manager.nextDeadline == at(55))
    }

    @Test func timeDoesNotGoBack() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(100))
        let actions = manager.connectFailed(1, .refused, now: at(5))
        #expect(line(actions) == "→ backingOff connectFailed (1) in 1.0 seconds")
        #expect(manager.nextDeadline == at(101))
        #expect(manager.timerFired(lastInboundAt: nil, now: at(0)).isEmpty)
        _ = manager.timerFired(lastInboundAt: nil, now: at(101))
        _ = manager.connected(2, now: at(101))
        manager.received(lastInboundAt: at(500), 2, now: at(102))
        #expect(manager.nextDeadline == at(132), "nothing comes in later than now")
        #expect(line(manager.timerFired(lastInboundAt: at(500), now: at(132))).isEmpty)
        #expect(manager.nextDeadline == at(162))
    }

    @Test func theRoundTripIsThatOfThePresentConnection() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(0))
        _ = manager.connected(1, now: at(0))
        #expect(line(manager.networkUp(now: at(1))) == "ping 1 #1")
        manager.receivedPong(number: 1, 1, now: at(1.5))
        #expect(manager.roundTripTime == .milliseconds(500))
        _ = manager.reconnectRequested(now: at(2))
        _ = manager.connected(2, now: at(2))
        #expect(manager.roundTripTime == nil)
    }

    @Test(arguments: [Duration.seconds(Int64.min), .zero, .seconds(Int64.max)], [Int64.min, 0, Int64.max])
    func absurdDurationsAndTimesDoNotTrap(duration: Duration, nanoseconds: Int64) {
        var backoff = BackoffConfiguration()
        backoff.initialDelay = duration
        backoff.cap = duration
        backoff.stabilityPeriod = duration
        backoff.maximumAttempts = nil
        var heartbeat = HeartbeatConfiguration()
        heartbeat.interval = duration
        heartbeat.timeout = duration
        var manager = ConnectionManager(backoff: backoff, heartbeat: heartbeat, seed: 1, hasNetwork: true)
        let now = MonotonicTime(nanoseconds: nanoseconds)
        _ = manager.start(now: now)
        for _ in 1...50 {
            if let id = manager.connectionID { _ = manager.connected(id, now: now) }
            #expect(manager.state == .ready)
            _ = manager.timerFired(lastInboundAt: MonotonicTime(nanoseconds: .min), now: manager.nextDeadline ?? now)
            if let id = manager.connectionID { _ = manager.connectionEnded(id, .closedByPeer, now: now) }
            if manager.state == .backingOff {
                _ = manager.timerFired(lastInboundAt: nil, now: manager.nextDeadline ?? now)
            }
            #expect(manager.state == .connecting)
        }
    }
}
