import LifelineCore
import LifelineTestSupport
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

    /// When a driver reports late, the silence may already have lasted long enough.
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

    /// The clock shows the same time for the ping and its answer.
    @Test(arguments: [nil, at(10)])
    func bytesAtTheTimeOfTheQuestionAreAnAnswer(earlier: MonotonicTime?) {
        var heartbeat = heartbeat()
        if let earlier { heartbeat.received(at: earlier) }
        _ = heartbeat.probe(now: at(10))
        #expect(heartbeat.deadline == at(20))
        heartbeat.received(at: at(10))
        #expect(heartbeat.deadline == at(40))
    }

    @Test func aLateAnswerIsASignOfLifeAsWell() {
        var heartbeat = heartbeat()
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(30))
        heartbeat.received(at: at(30.25))
        #expect(heartbeat.deadline == at(60.25))
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(60.25))
        _ = heartbeat.timerFired(lastInboundAt: nil, now: at(70.25))
        heartbeat.received(at: at(71))
        #expect(heartbeat.deadline == at(101))
        #expect(heartbeat.lastLife == at(71))
    }

    @Test func nothingComesInLaterThanNow() {
        var heartbeat = heartbeat()
        #expect(heartbeat.timerFired(lastInboundAt: at(500), now: at(30)) == .none)
        #expect(heartbeat.lastLife == at(30))
        #expect(heartbeat.deadline == at(60))
    }

    // MARK: Sleep and doubt

    @Test func aSleepIsNoMiss() {
        var heartbeat = heartbeat()
        for time in [30, 40, 50] as [Double] { _ = heartbeat.timerFired(lastInboundAt: nil, now: at(time)) }
        // The third ping would be missed at 60, and the peer given up, but the machine slept then.
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

    /// Frequent requests for a probe do not keep a dead connection alive.
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

    // MARK: As a handler drives it

    /// A handler that only records the time of incoming bytes, and sets the timer again only after `timerFired` and
    /// `probe`. The peer answers in less than the timeout until it dies.
    @Test(arguments: 0..<300 as Range<UInt64>)
    func aDeadPeerIsFoundInTimeAndALiveOneIsNot(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let interval = Int.random(in: 1...60, using: &random)
        let timeout = Int.random(in: 2...60, using: &random)
        let misses = Int.random(in: 1...4, using: &random)
        var configuration = HeartbeatConfiguration()
        configuration.interval = .milliseconds(interval)
        configuration.timeout = .milliseconds(timeout)
        configuration.allowedMisses = misses
        let start = at(0)
        let death = start + .milliseconds(Int.random(in: 0..<1000, using: &random))

        var heartbeat = Heartbeat(configuration, connectedAt: start)
        var timer = heartbeat.deadline
        var lastInbound: MonotonicTime?
        var answers: Set<MonotonicTime> = []
        var pingCount: UInt64 = 0
        var now = start
        func ping(_ number: UInt64) {
            pingCount += 1
            if number != pingCount { Issue.record("seed \(seed): a gap in the pings' numbers") }
            answers.insert(now + .milliseconds(Int.random(in: 1..<timeout, using: &random)))
        }
        while now < start + .seconds(2) {
            now = now + .milliseconds(1)
            if now < death, answers.contains(now) || Int.random(in: 0..<50, using: &random) == 0 { lastInbound = now }
            if now >= timer {
                switch heartbeat.timerFired(lastInboundAt: lastInbound, now: now) {
                case .sendPing(let number): ping(number)
                case .none: break
                case .timedOut:
                    let life = lastInbound ?? start
                    #expect(heartbeat.lastLife == life)
                    #expect(now >= death, "seed \(seed): a live peer found dead")
                    #expect(now - life >= .milliseconds(timeout * misses))
                    #expect(now - life <= .milliseconds(max(interval, timeout) + timeout * misses))
                    return
                }
                timer = heartbeat.deadline
            }
            if Int.random(in: 0..<100, using: &random) == 0 {
                ping(heartbeat.probe(now: now))
                timer = heartbeat.deadline
            }
            if timer <= now { Issue.record("seed \(seed): a deadline in the past") }
        }
        Issue.record("seed \(seed): the dead peer was not found")
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

    @Test(arguments: [Int64.min, 0, .max], [Int64.min, 0, .max])
    func absurdTimesDoNotTrap(start: Int64, now: Int64) {
        let (start, now) = (MonotonicTime(nanoseconds: start), MonotonicTime(nanoseconds: now))
        var heartbeat = Heartbeat(HeartbeatConfiguration(), connectedAt: start)
        for _ in 1...5 {
            _ = heartbeat.timerFired(lastInboundAt: nil, now: now)
            _ = heartbeat.probe(now: now)
            heartbeat.received(at: start)
            heartbeat.received(at: now)
            #expect(heartbeat.lastLife == max(start, now))
        }
    }
}
