import LifelineCore
import Testing

@Suite struct ConnectionManagerTests {
    // MARK: The budget

    @Test func fourAttemptsThenItGivesUp() {
        var manager = ConnectionManager()
        #expect(line(manager.start(now: at(0))) == "→ connecting started (1), connect 1")
        #expect(line(manager.connectFailed(1, .refused, now: at(0))) == "→ backingOff connectFailed (1) in 1.0 seconds")
        #expect(line(manager.timerFired(now: at(1))) == "→ connecting retryDue (2), connect 2")
        #expect(line(manager.connectFailed(2, .refused, now: at(1))) == "→ backingOff connectFailed (2) in 2.0 seconds")
        #expect(line(manager.timerFired(now: at(3))) == "→ connecting retryDue (3), connect 3")
        #expect(line(manager.connectFailed(3, .refused, now: at(3))) == "→ backingOff connectFailed (3) in 4.0 seconds")
        #expect(line(manager.timerFired(now: at(7))) == "→ connecting retryDue (4), connect 4")
        let actions = manager.connectFailed(4, .refused, now: at(7))
        #expect(line(actions) == "→ gaveUp attemptsUsedUp (4)")
        guard case .transition(let step) = actions.first else { return }
        #expect(step.reason.error?.code == .connectFailed, "what the last attempt failed with")
        #expect(step.number == 8)
        #expect(line(manager.reconnectRequested(now: at(100))) == "→ connecting reconnectRequested (1), connect 5")
    }

    /// A peer that accepts and drops the connection is treated as if it had refused.
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
            _ = manager.timerFired(now: time)
        }
        _ = manager.connected(4, now: time)
        let last = manager.connectionEnded(4, .closedByPeer, now: time)
        #expect(line(last) == "→ gaveUp attemptsUsedUp (4)")
    }

    @Test func tenSecondsOfConnectionRefillTheBudget() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(0))
        _ = manager.connectFailed(1, .refused, now: at(0))
        _ = manager.timerFired(now: at(1))
        _ = manager.connected(2, now: at(1))
        #expect(
            line(manager.connectionEnded(2, .closedByPeer, now: at(11))) == "→ connecting closedByPeer (1), connect 3"
        )
        let failed = manager.connectFailed(3, .refused, now: at(11))
        #expect(line(failed) == "→ backingOff connectFailed (1) in 1.0 seconds")
    }

    /// A peer that accepts and never sends anything is not tried for ever.
    @Test func silenceIsNoStability() {
        var manager = ConnectionManager(attempts: 2)
        _ = manager.start(now: at(0))
        #expect(die(1, &manager, from: at(0)) == "→ backingOff heartbeatTimeout (1) in 1.0 seconds")
        _ = manager.timerFired(now: at(61))
        #expect(die(2, &manager, from: at(61)) == "→ gaveUp attemptsUsedUp (2)")
    }

    @Test func aPeerThatSpokeAndDiedIsTriedAtOnce() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(0))
        let expected = "→ connecting heartbeatTimeout (1), connect 2"
        #expect(die(1, &manager, from: at(0), lastInboundAt: at(10)) == expected)
    }

    /// Connects and lets a heartbeat find the peer dead, as a driver does.
    private func die(
        _ id: UInt64,
        _ manager: inout ConnectionManager,
        from start: MonotonicTime,
        lastInboundAt: MonotonicTime? = nil
    ) -> String {
        _ = manager.connected(id, now: start)
        var heartbeat = Heartbeat(HeartbeatConfiguration(), connectedAt: start)
        // At most: the inbound bytes, three pings, and the end.
        for _ in 1...5 {
            let now = heartbeat.deadline
            guard heartbeat.timerFired(lastInboundAt: lastInboundAt, now: now) == .timedOut else { continue }
            let life = heartbeat.lastLife
            return line(manager.connectionEnded(id, .heartbeatTimeout, lastSignOfLife: life, now: now))
        }
        return "not found dead"
    }

    /// The connection lasted from `connected` until the event at most, whatever times the heartbeat used.
    @Test(arguments: [
        (life: 100.0, end: 109.9, period: 10, isStable: false), (109.9, 200, 10, false), (110, 200, 10, true),
        (500, 109.9, 10, false), (500, 110, 10, true), (99, 160, 10, false), (-500, 160, 10, false),
        // It is at least the initial delay. Otherwise, the client would connect without delay again and again to a peer
        // that accepts and drops.
        (200, 100, 0, false), (200, 100.9, 0, false), (200, 101, 0, true),
    ])
    func stabilityLastsUntilTheLastSignOfLife(life: Double, end: Double, period: Int, isStable: Bool) {
        var backoff = BackoffConfiguration()
        backoff.stabilityPeriod = .seconds(period)
        var manager = ConnectionManager(backoff: backoff, seed: 1, hasNetwork: true)
        _ = manager.start(now: at(99))
        _ = manager.connected(1, now: at(100))
        _ = manager.connectionEnded(1, .heartbeatTimeout, lastSignOfLife: at(life), now: at(end))
        #expect(manager.state == (isStable ? .connecting : .backingOff))
    }

    /// A first retry that is due before `initialDelay` does not make stability need that long.
    @Test(arguments: [(4.9, false), (5, true)]) func stabilityTakesAsLongAsTheFirstDelay(end: Double, isStable: Bool) {
        var backoff = BackoffConfiguration()
        (backoff.initialDelay, backoff.cap, backoff.stabilityPeriod) = (.seconds(60), .seconds(5), .zero)
        var manager = ConnectionManager(backoff: backoff, seed: 1, hasNetwork: true)
        _ = manager.start(now: at(0))
        _ = manager.connected(1, now: at(0))
        _ = manager.connectionEnded(1, TransitionReason(.closedByPeer), now: at(end))
        #expect(manager.state == (isStable ? .connecting : .backingOff))
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
            #expect(line(manager.timerFired(now: at(1000))).isEmpty)
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

    @Test func everyChangeOfTheNetworkProbesThePresentConnection() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(0))
        for id in 1...3 as ClosedRange<UInt64> {
            _ = manager.connected(id, now: at(0))
            for _ in 1...3 { #expect(line(manager.networkUp(now: at(0))) == "probe \(id)") }
            _ = manager.reconnectRequested(now: at(0))
        }
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
        #expect(manager.connectionID == 2)
    }

    @Test func timeDoesNotGoBack() {
        var manager = ConnectionManager()
        _ = manager.start(now: at(100))
        let actions = manager.connectFailed(1, .refused, now: at(5))
        #expect(line(actions) == "→ backingOff connectFailed (1) in 1.0 seconds")
        #expect(manager.nextDeadline == at(101))
        #expect(manager.timerFired(now: at(0)).isEmpty)
        #expect(line(manager.timerFired(now: at(101))) == "→ connecting retryDue (2), connect 2")
    }

    @Test(arguments: [Duration.seconds(Int64.min), .zero, .seconds(Int64.max)], [Int64.min, 0, Int64.max])
    func absurdDurationsAndTimesDoNotTrap(duration: Duration, nanoseconds: Int64) {
        var backoff = BackoffConfiguration()
        backoff.initialDelay = duration
        backoff.cap = duration
        backoff.stabilityPeriod = duration
        backoff.maximumAttempts = nil
        var manager = ConnectionManager(backoff: backoff, seed: 1, hasNetwork: true)
        let now = MonotonicTime(nanoseconds: nanoseconds)
        _ = manager.start(now: now)
        for attempt in 1...50 {
            if let id = manager.connectionID { _ = manager.connected(id, now: now) }
            #expect(manager.state == .ready)
            if let id = manager.connectionID {
                let life = MonotonicTime(nanoseconds: attempt.isMultiple(of: 2) ? .min : .max)
                _ = manager.connectionEnded(id, .heartbeatTimeout, lastSignOfLife: life, now: now)
            }
            if manager.state == .backingOff {
                _ = manager.timerFired(now: manager.nextDeadline ?? now)
            }
            #expect(manager.state == .connecting)
        }
    }
}
