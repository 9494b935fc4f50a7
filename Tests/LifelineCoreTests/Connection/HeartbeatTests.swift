import LifelineCore
import Testing

/// 30 s, 10 s and 3 misses throughout, connected at 0, unless a test says otherwise.
@Suite struct HeartbeatTests {
    private func heartbeat() -> Heartbeat {
        Heartbeat(HeartbeatConfiguration(), connectedAt: at(0))
    }

    @Test func aSilentPeerIsDeadAfterSixtySeconds() {
        var heartbeat = heartbeat()
        #expect(heartbeat.deadline == at(30))
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(29.999)) == .none)
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(30)) == .sendPing(number: 1))
        #expect(heartbeat.deadline == at(40))
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(39.999)) == .none)
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(40)) == .sendPing(number: 2))
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(50)) == .sendPing(number: 3))
        #expect(heartbeat.deadline == at(60))
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(60)) == .timedOut)
    }

    @Test func bytesPutThePingOff() {
        var heartbeat = heartbeat()
        #expect(heartbeat.timerFired(lastInboundAt: at(20), now: at(30)) == .none)
        #expect(heartbeat.deadline == at(50))
        #expect(heartbeat.timerFired(lastInboundAt: at(20), now: at(50)) == .sendPing(number: 1))
    }

    /// A driver that reports late may find that the silence has lasted already.
    @Test func bytesReportedLateMayBeTooOld() {
        var heartbeat = heartbeat()
        #expect(heartbeat.timerFired(lastInboundAt: at(5), now: at(35)) == .sendPing(number: 1))
    }

    @Test(arguments: [40.0, 45, 55, 59.9])
    func anyByteAnswersAnyPing(answer: Double) {
        var heartbeat = heartbeat()
        for time in [30, 40, 50] as [Double] where time <= answer {
            _ = heartbeat.timerFired(lastInboundAt: nil, now: at(time))
        }
        heartbeat.received(at: at(answer))
        #expect(heartbeat.deadline == at(answer + 30))
        #expect(heartbeat.lastLife == at(answer))
    }

    @Test func missesStartOverAfterALifeSign() {
        var heartbeat = heartbeat()
        for time in [30, 40, 50] as [Double] { _ = heartbeat.timerFired(lastInboundAt: nil, now: at(time)) }
        #expect(heartbeat.timerFired(lastInboundAt: at(55), now: at(60)) == .none)
        #expect(heartbeat.deadline == at(85))
        for (time, number) in [(85.0, 4), (95, 5), (105, 6)] as [(Double, UInt64)] {
            #expect(heartbeat.timerFired(lastInboundAt: at(55), now: at(time)) == .sendPing(number: number))
        }
        #expect(heartbeat.timerFired(lastInboundAt: at(55), now: at(115)) == .timedOut)
    }

    @Test func bytesFromBeforeTheQuestionAreNoAnswer() {
        var heartbeat = heartbeat()
        #expect(heartbeat.probe(now: at(10)) == 1)
        heartbeat.received(at: at(9.999))
        #expect(heartbeat.lastLife == at(9.999))
        #expect(heartbeat.timerFired(lastInboundAt: at(9.999), now: at(20)) == .sendPing(number: 2))
        heartbeat.received(at: at(20))
        #expect(heartbeat.deadline == at(50))
    }

    /// On a clock that does not tell question and answer apart.
    @Test(arguments: [nil, at(10)])
    func bytesAtTheTimeOfTheQuestionAreAnAnswer(earlier: MonotonicTime?) {
        var heartbeat = heartbeat()
        if let earlier { heartbeat.received(at: earlier) }
        _ = heartbeat.probe(now: at(10))
        #expect(heartbeat.deadline == at(20))
        heartbeat.received(at: at(10))
        #expect(heartbeat.deadline == at(40))
    }

    @Test func pongsMeasureTheRoundTripOfTheNewestPingOnly() {
        var heartbeat = heartbeat()
        #expect(heartbeat.roundTripTime == nil)
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(30))
        heartbeat.receivedPong(number: 1, now: at(30.25))
        #expect(heartbeat.roundTripTime == .milliseconds(250))
        #expect(heartbeat.deadline == at(60.25))

        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(60.25))
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(70.25))
        heartbeat.receivedPong(number: 2, now: at(71))
        #expect(heartbeat.deadline == at(101), "a late answer is a sign of life as well")
        #expect(heartbeat.roundTripTime == .milliseconds(250))
        heartbeat.receivedPong(number: 3, now: at(71.25))
        #expect(heartbeat.roundTripTime == .seconds(1))
        heartbeat.receivedPong(number: 3, now: at(80))
        heartbeat.receivedPong(number: 99, now: at(80))
        #expect(heartbeat.roundTripTime == .seconds(1))
        #expect(heartbeat.lastLife == at(80))
    }

    // MARK: Sleep and doubt

    @Test func aSleepIsNoMiss() {
        var heartbeat = heartbeat()
        for time in [30, 40, 50] as [Double] { _ = heartbeat.timerFired(lastInboundAt: nil, now: at(time)) }
        // The third ping would be missed at 60 and the peer dead; the machine slept through that.
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(90.001)) == .sendPing(number: 4))
        #expect(heartbeat.deadline == at(100.001))
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(100.001)) == .sendPing(number: 5), "the first miss")
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(110.001)) == .sendPing(number: 6))
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(120.001)) == .timedOut)
    }

    @Test func aTimerUpToTheIntervalLateIsAMiss() {
        var heartbeat = heartbeat()
        for time in [30, 40, 50] as [Double] { _ = heartbeat.timerFired(lastInboundAt: nil, now: at(time)) }
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: at(90)) == .timedOut)
    }

    @Test func aSleepWhileListeningProbesWithAllMissesLeft() {
        var heartbeat = heartbeat()
        #expect(heartbeat.timerFired(lastInboundAt: at(1), now: at(8 * 3600)) == .sendPing(number: 1))
        #expect(heartbeat.deadline == at(8 * 3600 + 10))
        #expect(heartbeat.timerFired(lastInboundAt: at(8 * 3600 + 1), now: at(8 * 3600 + 10)) == .none)
    }

    /// Doubts in quick succession do not keep a dead connection alive.
    @Test func probingAgainGivesNoMoreTime() {
        var heartbeat = heartbeat()
        var number = heartbeat.probe(now: at(5))
        var time = 5.0
        while time < 100 {
            time += 1
            if heartbeat.deadline <= at(time) {
                if heartbeat.timerFired(lastInboundAt: nil, now: at(time)) == .timedOut { break }
                number += 1
            }
            let next = heartbeat.probe(now: at(time))
            #expect(next == number + 1)
            number = next
        }
        #expect(time == 35)
    }

    // MARK: Absurd configurations

    @Test(
        arguments: [Duration.seconds(Int64.min), .seconds(-1), .zero, .seconds(Int64.max)],
        [Int.min, 0, 1, Int.max]
    )
    func absurdConfigurationsCountAsTheNearest(duration: Duration, misses: Int) {
        var configuration = HeartbeatConfiguration()
        configuration.interval = duration
        configuration.timeout = duration
        configuration.allowedMisses = misses
        let nearest = duration > .zero ? Duration.seconds(365 * 24 * 3600) : .milliseconds(1)
        var heartbeat = Heartbeat(configuration, connectedAt: at(0))
        #expect(heartbeat.deadline == at(0) + nearest)
        #expect(heartbeat.timerFired(lastInboundAt: nil, now: heartbeat.deadline) == .sendPing(number: 1))
        #expect(heartbeat.deadline == at(0) + nearest + nearest)
        let action = heartbeat.timerFired(lastInboundAt: nil, now: heartbeat.deadline)
        #expect(action == (misses <= 1 ? .timedOut : .sendPing(number: 2)))
    }
}
