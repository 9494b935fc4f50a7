import LifelineCore
import LifelineTestSupport
import Testing

/// A heartbeat on a connection whose pings stand behind other bytes, of which TCP delivers some now and then. As a
/// handler drives it, in steps of a millisecond.
@Suite struct HeartbeatDeliveryTests {
    /// What ends the peer's life.
    enum Death: CaseIterable {
        /// Nothing comes back any more.
        case blackHole
        /// The program is stopped: its kernel goes on to acknowledge.
        case stopped
        /// The same; but its kernel has no more room soon.
        case fullWindow
    }

    @Test(arguments: Death.allCases, 0..<150 as Range<UInt64>)
    func aDeadPeerIsFoundInTimeAndALiveOneIsNot(death: Death, seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var configuration = HeartbeatConfiguration()
        configuration.interval = .milliseconds(Int.random(in: 1...60, using: &random))
        configuration.timeout = .milliseconds(Int.random(in: 2...60, using: &random))
        // With one alone, an answer would have to come by the end of the timeout in which its question arrives.
        configuration.allowedMisses = Int.random(in: 2...4, using: &random)
        let start = at(0)
        let end = start + .milliseconds(Int.random(in: 500..<3000, using: &random))
        var stream = Stream(heartbeat: Heartbeat(configuration, connectedAt: start), start: start, random: random)
        while stream.now < end { stream.step(timeout: configuration.timeout) }
        #expect(!stream.isGivenUp, "seed \(seed): a live peer found dead")

        stream.death = death
        while !stream.isGivenUp, stream.now < end + .seconds(60) { stream.step(timeout: configuration.timeout) }
        #expect(stream.isGivenUp, "seed \(seed): a dead peer not found")
        let silence = stream.now - stream.lastSign
        #expect(silence >= configuration.timeout * (configuration.allowedMisses - 1))
        #expect(
            silence <= max(configuration.interval, configuration.timeout)
                + configuration.timeout * configuration.allowedMisses,
            "seed \(seed): found late"
        )
    }
}

/// Both ends of a connection, and the way between them.
private struct Stream {
    var heartbeat: Heartbeat
    var random: SeededGenerator
    var now: MonotonicTime
    var death: HeartbeatDeliveryTests.Death?
    private(set) var isGivenUp = false
    /// The last byte from the peer, or the last acknowledgement before a question had arrived.
    private(set) var lastSign: MonotonicTime

    private var timer: MonotonicTime
    private var lastInbound: MonotonicTime?
    private var answers: Set<MonotonicTime> = []
    private var written: UInt64 = 0
    private var acknowledged: UInt64 = 0
    private var nextAcknowledgement: MonotonicTime?
    private var isPingQueued = false
    /// Whether a question is not answered.
    private var isAsked = false
    /// Where it ends; nil while it is not written.
    private var questionEnd: UInt64?
    /// What the kernel of a peer that reads no more still takes.
    private var room: UInt64

    init(heartbeat: Heartbeat, start: MonotonicTime, random: SeededGenerator) {
        self.heartbeat = heartbeat
        self.random = random
        (now, lastSign, timer) = (start, start, heartbeat.deadline)
        room = UInt64.random(in: 0..<1000, using: &self.random)
    }

    mutating func step(timeout: Duration) {
        let timeout = Int(timeout / .milliseconds(1))
        now = now + .milliseconds(1)
        // As much as makes a ping wait for several timeouts, and time and again nothing at all.
        if !isPingQueued, written - acknowledged < 2000, now.nanoseconds / 1_000_000 % 400 < 200 {
            write(UInt64.random(in: 0..<50, using: &random), timeout)
        }
        // One that the kernel has no room for is written later; what is sent meanwhile waits with it.
        if isPingQueued, acknowledged == written || Int.random(in: 0..<5, using: &random) == 0 { writePing(timeout) }
        if let time = nextAcknowledgement, time <= now { acknowledge(timeout) }
        if death == nil, answers.remove(now) != nil || Int.random(in: 0..<300, using: &random) == 0 { receive() }
        if Int.random(in: 0..<100, using: &random) == 0 {
            if let lastInbound { heartbeat.received(at: lastInbound) }
            _ = heartbeat.probe(now: now)
            ping(timeout)
            timer = heartbeat.deadline
        }
        if now >= timer { fire(timeout) }
    }

    private mutating func fire(_ timeout: Int) {
        let acknowledged = acknowledged
        switch heartbeat.timerFired(lastInboundAt: lastInbound, now: now, acknowledged: { acknowledged }) {
        case .sendPing: ping(timeout)
        case .none: break
        case .timedOut: isGivenUp = true
        }
        timer = heartbeat.deadline
    }

    private mutating func ping(_ timeout: Int) {
        let acknowledged = acknowledged
        heartbeat.pingQueued { acknowledged }
        isAsked = true
        isPingQueued = true
        if acknowledged == written { writePing(timeout) }
    }

    private mutating func writePing(_ timeout: Int) {
        isPingQueued = false
        write(10, timeout)
        if isAsked, questionEnd == nil { questionEnd = written }
    }

    private mutating func write(_ byteCount: UInt64, _ timeout: Int) {
        guard byteCount > 0 else { return }
        written += byteCount
        heartbeat.wrote { written }
        if nextAcknowledgement == nil { scheduleAcknowledgement(timeout) }
    }

    /// TCP stands still for less than a timeout.
    private mutating func scheduleAcknowledgement(_ timeout: Int) {
        nextAcknowledgement = now + .milliseconds(Int.random(in: 1..<timeout, using: &random))
    }

    private mutating func acknowledge(_ timeout: Int) {
        var byteCount = min(UInt64.random(in: 1...600, using: &random), written - acknowledged)
        switch death {
        case .blackHole: byteCount = 0
        case .fullWindow:
            byteCount = min(byteCount, room)
            room -= byteCount
        case .stopped, nil: break
        }
        let before = acknowledged
        acknowledged += byteCount
        nextAcknowledgement = nil
        if acknowledged < written { scheduleAcknowledgement(timeout) }
        let end = questionEnd ?? .max
        guard isAsked, byteCount > 0, before < end else { return }
        lastSign = now
        if acknowledged >= end {
            answers.insert(now + .milliseconds(Int.random(in: 1..<timeout, using: &random)))
        }
    }

    private mutating func receive() {
        lastInbound = now
        lastSign = now
        (isAsked, questionEnd) = (false, nil)
        answers = []
    }
}
