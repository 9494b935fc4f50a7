import LifelineCore
import LifelineTestSupport
import Testing

/// Connected at 0. The heartbeat, where there is one, has 30 s, 10 s and 3 misses.
@Suite struct LivenessTests {
    private func liveness(
        heartbeat: Bool = false,
        idle: Duration? = nil,
        write: Duration? = nil,
        unanswered: Int? = nil
    ) -> Liveness {
        let options = LivenessOptions(
            heartbeat: heartbeat ? HeartbeatConfiguration() : nil,
            idleTimeout: idle,
            writeTimeout: write,
            unansweredByteLimit: unanswered
        )
        return Liveness(options, connectedAt: at(0))
    }

    @Test func nothingConfiguredWatchesNothing() {
        var liveness = liveness()
        #expect(liveness.deadline == nil)
        liveness.writeWaits(byteCount: 1, now: at(1))
        #expect(liveness.deadline == nil)
        #expect(liveness.wrote(byteCount: .max, now: at(2)) == .none)
        #expect(liveness.probe(now: at(3)) == .none)
        #expect(liveness.timerFired(waitingByteCount: 1, now: at(1_000_000)) == .none)
        #expect(liveness.lastInboundAt == nil)
        liveness.received(now: at(4))
        #expect(liveness.lastInboundAt == at(4))
    }

    // MARK: Heartbeat

    @Test func aSilentPeerIsAskedAndThenGivenUp() {
        var liveness = liveness(heartbeat: true)
        for (time, number) in [(30.0, 1), (40, 2), (50, 3)] as [(Double, UInt64)] {
            #expect(liveness.deadline == at(time))
            #expect(liveness.timerFired(waitingByteCount: 0, now: at(time)) == .sendPing(number: number))
        }
        #expect(liveness.deadline == at(60))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(60)) == .giveUp(.heartbeatTimeout))
    }

    /// After a sleep, the idle timeout begins again. This does not answer the ping that was sent at once.
    @Test func anIdleTimeoutThatBeginsAnewIsNoSignOfLife() {
        var liveness = liveness(heartbeat: true, idle: .seconds(100))
        #expect(liveness.probe(now: at(1_000)) == .sendPing(number: 1))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(1_000)) == .none)
        #expect(liveness.deadline == at(1_010))
        for (time, number) in [(1_010.0, 2), (1_020, 3)] as [(Double, UInt64)] {
            #expect(liveness.timerFired(waitingByteCount: 0, now: at(time)) == .sendPing(number: number))
        }
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(1_030)) == .giveUp(.heartbeatTimeout))
    }

    @Test func bytesAreLookedAtWhenTheTimerFires() {
        var liveness = liveness(heartbeat: true)
        liveness.received(now: at(20))
        #expect(liveness.deadline == at(30), "nothing is done per read")
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(30)) == .none)
        #expect(liveness.deadline == at(50))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(50)) == .sendPing(number: 1))
        liveness.received(now: at(59))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(60)) == .none)
        #expect(liveness.deadline == at(89))
    }

    /// The timer then waits for the timeout of the answer, which may be longer than the interval.
    @Test func anAnswerIsTakenIntoAccountAtOnce() {
        var configuration = HeartbeatConfiguration()
        configuration.interval = .seconds(10)
        configuration.timeout = .seconds(60)
        var liveness = Liveness(LivenessOptions(heartbeat: configuration), connectedAt: at(0))
        #expect(liveness.received(now: at(0)) == false)
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(10)) == .sendPing(number: 1))
        #expect(liveness.deadline == at(70))
        #expect(liveness.received(now: at(11)) == true)
        #expect(liveness.deadline == at(21))
        #expect(liveness.received(now: at(12)) == false)
        #expect(liveness.probe(now: at(13)) == .sendPing(number: 2))
        #expect(liveness.received(now: at(14)) == true)
        #expect(liveness.deadline == at(24))
    }

    @Test func aProbeAsksAtOnce() {
        var liveness = liveness(heartbeat: true)
        #expect(liveness.probe(now: at(5)) == .sendPing(number: 1))
        #expect(liveness.deadline == at(15))
        #expect(liveness.probe(now: at(6)) == .sendPing(number: 2))
        #expect(liveness.deadline == at(15), "no more time")
        liveness.received(now: at(7))
        #expect(liveness.probe(now: at(8)) == .sendPing(number: 3))
        #expect(liveness.deadline == at(18), "a new question, though no timer has told the heartbeat of the answer yet")
    }

    /// Events that end pings, and the checks that continue after them.
    @Test func aPeerThatCannotBePingedIsNotGivenUp() {
        for end in [
            { $0.inputEnded() }, { $0.closeRequested() }, { $0.pingsBecameImpossible() }, { $0.readingPaused() },
        ] as [(inout Liveness) -> Void] {
            var listening = liveness(heartbeat: true)
            end(&listening)
            var probing = liveness(heartbeat: true)
            _ = probing.timerFired(waitingByteCount: 0, now: at(30))
            end(&probing)
            for var liveness in [listening, probing] {
                #expect(liveness.deadline == nil)
                #expect(liveness.probe(now: at(35)) == .none)
                #expect(liveness.timerFired(waitingByteCount: 0, now: at(1000)) == .none)
            }
        }
        var idling = liveness(heartbeat: true, idle: .seconds(100))
        idling.pingsBecameImpossible()
        #expect(idling.timerFired(waitingByteCount: 0, now: at(100)) == .giveUp(.idleTimeout))
    }

    @Test func aPauseOfReadingIsNotHeldAgainstThePeer() {
        var liveness = liveness(heartbeat: true, idle: .seconds(70))
        liveness.received(now: at(25))
        liveness.readingPaused()
        liveness.readingPaused()
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(90)) == .none)
        liveness.readingResumed(now: at(100))
        #expect(liveness.lastInboundAt == at(25), "what is reported remains true")
        _ = liveness.timerFired(waitingByteCount: 0, now: at(100))
        #expect(liveness.deadline == at(130))
        liveness.readingResumed(now: at(110))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(130)) == .sendPing(number: 1), "it was not paused")
        liveness.readingPaused()
        liveness.inputEnded()
        liveness.readingResumed(now: at(131))
        #expect(liveness.deadline == nil, "the end is final")
    }

    // MARK: Idle timeout

    @Test func anIdlePeerIsGivenUp() {
        var liveness = liveness(idle: .seconds(20))
        #expect(liveness.deadline == at(20))
        liveness.received(now: at(15))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(20)) == .none)
        #expect(liveness.deadline == at(35))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(34.999)) == .none)
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(35)) == .giveUp(.idleTimeout))
    }

    @Test func anIdleTimerThatComesFarTooLateStartsAnew() {
        var slightly = liveness(idle: .seconds(20))
        #expect(slightly.timerFired(waitingByteCount: 0, now: at(25)) == .giveUp(.idleTimeout))
        var far = liveness(idle: .seconds(20))
        #expect(far.timerFired(waitingByteCount: 0, now: at(25.1)) == .none)
        #expect(far.deadline == at(45.1))
        #expect(far.timerFired(waitingByteCount: 0, now: at(45.1)) == .giveUp(.idleTimeout))
    }

    @Test func aPeerThatEndedItsSideMayBeIdle() {
        for end in [{ $0.inputEnded() }, { $0.closeRequested() }] as [(inout Liveness) -> Void] {
            var liveness = liveness(idle: .seconds(20))
            end(&liveness)
            #expect(liveness.deadline == nil)
            #expect(liveness.timerFired(waitingByteCount: 0, now: at(20)) == .none)
        }
    }

    // MARK: Write timeout

    @Test func aPeerThatTakesNothingIsGivenUp() {
        var liveness = liveness(write: .seconds(20))
        #expect(liveness.deadline == nil)
        liveness.writeWaits(byteCount: 100, now: at(10))
        for time in [15.0, 20, 25] {
            #expect(liveness.deadline == at(time))
            #expect(liveness.timerFired(waitingByteCount: 100, now: at(time)) == .none)
        }
        #expect(liveness.deadline == at(30))
        #expect(liveness.timerFired(waitingByteCount: 100, now: at(29)) == .none, "early")
        #expect(liveness.timerFired(waitingByteCount: 100, now: at(30)) == .giveUp(.writeTimeout))
    }

    @Test func aSlowPeerIsNot() {
        var liveness = liveness(write: .seconds(20))
        liveness.writeWaits(byteCount: 100, now: at(0))
        var waiting = 100
        for time in stride(from: 5.0, through: 1000, by: 5) {
            if Int(time) % 20 == 0 { waiting -= 1 }
            #expect(liveness.deadline == at(time))
            #expect(liveness.timerFired(waitingByteCount: waiting, now: at(time)) == .none)
        }
        for time in [1005.0, 1010, 1015] {
            #expect(liveness.timerFired(waitingByteCount: waiting, now: at(time)) == .none)
        }
        #expect(liveness.timerFired(waitingByteCount: waiting, now: at(1020)) == .giveUp(.writeTimeout))
    }

    @Test func aWriteThatIsTakenEndsTheWatch() {
        var liveness = liveness(write: .seconds(20))
        liveness.writeWaits(byteCount: 100, now: at(0))
        liveness.writeCompleted()
        #expect(liveness.deadline == nil)
        #expect(liveness.timerFired(waitingByteCount: 100, now: at(20)) == .none)
        liveness.writeWaits(byteCount: 100, now: at(100))
        #expect(liveness.deadline == at(105), "each write is watched for itself")
    }

    /// A peer that does not send may still have to read, until a close with its own limit begins.
    @Test func writesAreWatchedAfterTheInputButNotInAClose() {
        var ended = liveness(write: .seconds(20))
        ended.inputEnded()
        ended.writeWaits(byteCount: 1, now: at(0))
        #expect(ended.deadline == at(5))
        var paused = liveness(write: .seconds(20))
        paused.writeWaits(byteCount: 1, now: at(0))
        paused.readingPaused()
        #expect(paused.deadline == at(5))
        var closing = liveness(write: .seconds(20))
        closing.writeWaits(byteCount: 1, now: at(0))
        closing.closeRequested()
        #expect(closing.deadline == nil)
        closing.writeWaits(byteCount: 1, now: at(1))
        #expect(closing.deadline == nil)
    }

    @Test func aLookThatComesFarTooLateStartsAnew() {
        var liveness = liveness(write: .seconds(20))
        liveness.writeWaits(byteCount: 100, now: at(0))
        #expect(liveness.timerFired(waitingByteCount: 100, now: at(3600)) == .none)
        for time in [3605.0, 3610, 3615] {
            #expect(liveness.timerFired(waitingByteCount: 100, now: at(time)) == .none)
        }
        #expect(liveness.timerFired(waitingByteCount: 100, now: at(3620)) == .giveUp(.writeTimeout))
    }

    // MARK: Unanswered bytes

    @Test func tooManyUnansweredBytesCutWhoCannotBeAsked() {
        var liveness = liveness(unanswered: 100)
        #expect(liveness.wrote(byteCount: 100, now: at(1)) == .none)
        liveness.received(now: at(2))
        #expect(liveness.wrote(byteCount: 60, now: at(3)) == .none)
        #expect(liveness.wrote(byteCount: 41, now: at(4)) == .giveUp(.tooManyUnansweredBytes))
    }

    @Test func tooManyUnansweredBytesAreAskedAboutFirst() {
        var liveness = liveness(heartbeat: true, unanswered: 100)
        #expect(liveness.wrote(byteCount: 101, now: at(1)) == .sendPing(number: 1))
        #expect(liveness.wrote(byteCount: 1000, now: at(2)) == .none, "asked once")
        #expect(liveness.deadline == at(11))
        var answered = liveness
        answered.received(now: at(10))
        #expect(answered.timerFired(waitingByteCount: 0, now: at(11)) == .none)
        #expect(answered.wrote(byteCount: 100, now: at(12)) == .none, "counted anew")
        #expect(answered.wrote(byteCount: 1, now: at(12)) == .sendPing(number: 2))
        var late = liveness
        #expect(late.timerFired(waitingByteCount: 0, now: at(14)) == .sendPing(number: 2), "the heartbeat's own miss")
        #expect(late.deadline == at(24))
        #expect(late.timerFired(waitingByteCount: 0, now: at(24)) == .giveUp(.tooManyUnansweredBytes))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(10.999)) == .none)
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(11)) == .giveUp(.tooManyUnansweredBytes))
    }

    /// On a slow link, the ping waits behind the bytes that it checks.
    @Test func aPeerWithoutThePingNeedNotAnswer() {
        var liveness = liveness(heartbeat: true, unanswered: 100)
        #expect(liveness.wrote(byteCount: 1000, now: at(1)) == .sendPing(number: 1))
        liveness.pingQueued { 100 }
        #expect(liveness.wrote(byteCount: 10, now: at(1)) == .none)
        for (time, acknowledged) in [(11.0, 400), (21, 700), (31, 1010)] as [(Double, UInt64)] {
            #expect(liveness.timerFired(waitingByteCount: 0, now: at(time)) { acknowledged } == .none)
            #expect(liveness.deadline == at(time + 10))
        }
        var stuck = liveness
        #expect(stuck.timerFired(waitingByteCount: 0, now: at(41)) { 1010 } == .giveUp(.tooManyUnansweredBytes))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(41)) { 2000 } == .giveUp(.tooManyUnansweredBytes))
    }

    /// The heartbeat sent its ping a moment earlier, and its timeout ends a moment before the answer is due.
    @Test func theQuestionMayComeFurtherInTheHeartbeatsTimeoutToo() {
        var liveness = liveness(heartbeat: true, unanswered: 100)
        #expect(liveness.probe(now: at(0.99)) == .sendPing(number: 1))
        liveness.pingQueued { 100 }
        #expect(liveness.wrote(byteCount: 1000, now: at(1)) == .sendPing(number: 2))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(10.99)) { 400 } == .none)
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(11)) { 400 } == .none)
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(20.99)) { 400 } == .sendPing(number: 3))
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(21)) { 400 } == .giveUp(.tooManyUnansweredBytes))
    }

    @Test func bytesDoNotCountWhileNobodyCouldAnswer() {
        var liveness = liveness(heartbeat: true, unanswered: 100)
        _ = liveness.wrote(byteCount: 100, now: at(1))
        liveness.readingPaused()
        #expect(liveness.wrote(byteCount: 1000, now: at(2)) == .none)
        liveness.readingResumed(now: at(3))
        #expect(liveness.wrote(byteCount: 100, now: at(4)) == .none)
        #expect(liveness.wrote(byteCount: 1, now: at(5)) == .sendPing(number: 1))
        liveness.inputEnded()
        #expect(liveness.timerFired(waitingByteCount: 0, now: at(15)) == .none)
        #expect(liveness.wrote(byteCount: 1000, now: at(16)) == .none)
    }

    // MARK: All of it

    @Test func theEarliestDeadlineCounts() {
        var liveness = liveness(heartbeat: true, idle: .seconds(25), write: .seconds(60), unanswered: 10)
        #expect(liveness.deadline == at(25))
        liveness.writeWaits(byteCount: 1, now: at(1))
        #expect(liveness.deadline == at(16))
        _ = liveness.wrote(byteCount: 11, now: at(2))
        #expect(liveness.deadline == at(12))
    }

    @Test func senselessTimesCountAsTheNearestSensibleOnes() {
        var least = liveness(idle: .seconds(-5), write: .zero)
        #expect(least.deadline == at(0.001))
        least.writeWaits(byteCount: 1, now: at(0))
        #expect(least.deadline == at(0.00025))
        var most = liveness(idle: .seconds(Int64.max), write: .seconds(Int64.max))
        most.writeWaits(byteCount: 1, now: at(0))
        #expect(most.deadline == at(365 * 24 * 3600 / 4))
        #expect(most.timerFired(waitingByteCount: 1, now: at(1)) == .none)
    }

    @Test(
        arguments: [.heartbeatTimeout, .idleTimeout, .writeTimeout, .tooManyUnansweredBytes] as [ConnectionError.Code]
    )
    func errorsSayWhatHappened(code: ConnectionError.Code) {
        let error = liveness(idle: .seconds(7), write: .seconds(8), unanswered: 9).error(for: code)
        #expect(error.code == code)
        let number = [.idleTimeout: "7.0 s", .writeTimeout: "8.0 s", .tooManyUnansweredBytes: " 9 bytes"][code]
        #expect(error.message.contains(number ?? "sign of life"))
    }

    /// In any order of events: after the timer has fired, no deadline is in the past; a peer that sends is never given
    /// up; a watched peer that sends nothing is given up in the configured time.
    @Test(arguments: 0..<200) func invariantsHoldInRandomSequences(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var liveness = liveness(heartbeat: Bool.random(using: &random), idle: .seconds(50), write: .seconds(8))
        var now = 0.0
        var lastLife = 0.0
        var isReading = true
        for _ in 0..<300 {
            switch Int.random(in: 0..<8, using: &random) {
            case 0 where isReading:
                liveness.received(now: at(now))
                lastLife = now
            case 1:
                isReading = false
                liveness.readingPaused()
            case 2, 3:
                if !isReading { lastLife = now }
                isReading = true
                liveness.readingResumed(now: at(now))
            case 4: liveness.writeWaits(byteCount: 10, now: at(now))
            case 5: liveness.writeCompleted()
            case 6: _ = liveness.probe(now: at(now))
            default: break
            }
            let step = Double.random(in: 0...10, using: &random)
            // The timer fires in time.
            while let deadline = liveness.deadline, deadline <= at(now + step) {
                now = max(now, Double(deadline.nanoseconds) / 1e9)
                switch liveness.timerFired(waitingByteCount: 10, now: deadline) {
                case .giveUp(.idleTimeout):
                    #expect(isReading && now - lastLife >= 49.999)
                    return
                case .giveUp(.heartbeatTimeout):
                    #expect(isReading && now - lastLife >= 29.999)
                    return
                case .giveUp(let code):
                    #expect(code == .writeTimeout)
                    return
                case .sendPing, .none: break
                }
                if let next = liveness.deadline { #expect(next > deadline, "the timer would spin") }
            }
            now += step
            #expect(!isReading || now - lastLife < 60.001)
        }
    }
}
