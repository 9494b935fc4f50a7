import LifelineCore
import Testing

/// Acknowledgements of the peer's TCP while an answer is awaited: with 30 s, 10 s and 3 misses, connected at 0.
@Suite struct HeartbeatAcknowledgementTests {
    private func heartbeat() -> Heartbeat {
        Heartbeat(HeartbeatConfiguration(), connectedAt: at(0))
    }

    /// The ping is sent at 30, behind 4,980 bytes, of which 100 are acknowledged.
    private func askedBehindOthers() -> Heartbeat {
        var heartbeat = heartbeat()
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(30))
        heartbeat.pingQueued { 100 }
        heartbeat.wrote { 5000 }
        return heartbeat
    }

    /// Each line is a timeout: its time, the acknowledged bytes at that time, and the decision.
    private func expect(
        _ heartbeat: inout Heartbeat,
        _ lines: [(time: Double, acknowledged: UInt64?, action: Heartbeat.TimerAction)]
    ) {
        for (time, acknowledged, action) in lines {
            #expect(heartbeat.deadline == at(time))
            #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(time)) { acknowledged } == action, "\(time)")
        }
    }

    @Test func aPingOnItsWayIsNotMissed() {
        var heartbeat = askedBehindOthers()
        expect(
            &heartbeat,
            [
                (40, 101, .none), (50, 4999, .none),
                // The ping has arrived, maybe just now.
                (60, 5000, .none),
                (70, 6000, .sendPing(number: 2)), (80, 7000, .sendPing(number: 3)), (90, 8000, .timedOut),
            ]
        )
    }

    @Test func standstillIsAMiss() {
        var heartbeat = askedBehindOthers()
        expect(
            &heartbeat,
            [
                (40, 100, .sendPing(number: 2)), (50, 100, .sendPing(number: 3)),
                // Earlier misses do not count any more.
                (60, 4000, .none),
                (70, 4000, .sendPing(number: 4)), (80, 4000, .sendPing(number: 5)), (90, 4000, .timedOut),
            ]
        )
    }

    /// The idle connection of a stopped program: its kernel has acknowledged the ping, and continues to do so.
    @Test func aQuestionThatArrivesAtOnceGivesNoMoreTime() {
        var heartbeat = askedBehindOthers()
        expect(
            &heartbeat,
            [(40, 5000, .sendPing(number: 2)), (50, 6000, .sendPing(number: 3)), (60, 7000, .timedOut)]
        )
    }

    @Test func aQuestionMayArriveAfterAStandstill() {
        var heartbeat = askedBehindOthers()
        expect(
            &heartbeat,
            [
                (40, 100, .sendPing(number: 2)), (50, 100, .sendPing(number: 3)), (60, 9000, .none),
                (70, 9999, .sendPing(number: 4)), (80, 9999, .sendPing(number: 5)), (90, 9999, .timedOut),
            ]
        )
    }

    @Test func aPingThatIsNotWrittenIsOnItsWay() {
        var heartbeat = heartbeat()
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(30))
        heartbeat.pingQueued { 100 }
        expect(&heartbeat, [(40, 101, .none), (50, 1000, .none)])
        heartbeat.wrote { 1010 }
        heartbeat.wrote { 9999 }
        expect(
            &heartbeat,
            [
                (60, 1010, .none), (70, 1020, .sendPing(number: 2)), (80, 1030, .sendPing(number: 3)),
                (90, 1040, .timedOut),
            ]
        )
    }

    @Test func oneAllowedMissIsEnoughForAPingOnItsWay() {
        var configuration = HeartbeatConfiguration()
        configuration.allowedMisses = 1
        var heartbeat = Heartbeat(configuration, connectedAt: at(0))
        _ = heartbeat.probe(now: at(20))
        heartbeat.pingQueued { 0 }
        heartbeat.wrote { 10 }
        expect(&heartbeat, [(30, 9, .none), (40, 10, .none), (50, 11, .timedOut)])
    }

    @Test func eachSeriesHasItsOwnQuestion() {
        var heartbeat = askedBehindOthers()
        heartbeat.received(at: at(35))
        heartbeat.wrote { 5500 }
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(65)) == .sendPing(number: 2))
        heartbeat.pingQueued { 5000 }
        heartbeat.wrote { 6000 }
        expect(&heartbeat, [(75, 5001, .none), (85, 5002, .none)])
        // After a sleep, a new ping is sent. Acknowledgements in the meantime do not count for it.
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(1000)) { 5500 } == .sendPing(number: 3))
        heartbeat.pingQueued { 5500 }
        heartbeat.wrote { 7000 }
        expect(&heartbeat, [(1010, 5500, .sendPing(number: 4)), (1020, 5501, .none)])
    }

    @Test func acknowledgementsAreLookedAtWhenATimeOutHasComeOnly() {
        var heartbeat = heartbeat()
        var count = 0
        func look() -> UInt64? {
            count += 1
            return nil
        }
        heartbeat.pingQueued(acknowledged: look)
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(29), acknowledged: look)
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(30), acknowledged: look)
        #expect(count == 0)
        heartbeat.pingQueued(acknowledged: look)
        #expect(count == 1)
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(40), acknowledged: look)
        #expect(count == 1, "nobody could tell")
        heartbeat.pingQueued { 0 }
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(49), acknowledged: look)
        #expect(count == 1)
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(50), acknowledged: look) == .sendPing(number: 3))
        #expect(count == 2)
        #expect(heartbeat.timerFired(lastInboundAt: at(55), now: at(60), acknowledged: look) == .none)
        #expect(count == 2, "it was answered")
    }
}
