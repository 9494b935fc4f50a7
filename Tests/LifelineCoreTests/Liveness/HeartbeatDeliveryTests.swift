import LifelineCore
import LifelineTestSupport
import Testing

/// A heartbeat on a connection whose pings wait behind other bytes, which TCP delivers slowly. It is driven as by a
/// handler, in steps of a millisecond.
@Suite struct HeartbeatDeliveryTests {
    /// The way in which the peer dies.
    enum Death: CaseIterable {
        /// Nothing arrives from the peer any more.
        case blackHole
        /// The program is stopped, but its kernel still acknowledges.
        case stopped
        /// The same, but its kernel soon has no more room.
        case fullWindow
    }

    @Test(arguments: Death.allCases, 0..<150 as Range<UInt64>)
    func aDeadPeerIsFoundInTimeAndALiveOneIsNot(death: Death, seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var configuration = HeartbeatConfiguration()
        configuration.interval = .milliseconds(Int.random(in: 1...60, using: &random))
        configuration.timeout = .milliseconds(Int.random(in: 2...60, using: &random))
        // With a single miss, an answer would have to arrive by the end of the timeout in which its ping arrives.
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

/// Both ends of a connection, and the network between them.
private struct Stream {
    var heartbeat: Heartbeat
    var random: SeededGenerator
    var now: MonotonicTime
    var death: HeartbeatDeliveryTests.Death?
    private(set) var isGivenUp = false
    /// The last byte from the peer, or the last acknowledgement before a ping arrived.
    private(set) var lastSign: MonotonicTime

    private var timer: MonotonicTime
    private var lastInbound: MonotonicTime?
    private var answers: Set<MonotonicTime> = []
    private var written: UInt64 = 0
    private var acknowledged: UInt64 = 0
    private var nextAcknowledgement: MonotonicTime?
    private var isPingQueued = false
    /// Whether a ping is unanswered.
    private var isAsked = false
    /// The position of its end; nil while it is not written.
    private var questionEnd: UInt64?
    /// The number of bytes that the kernel of a peer which does not read still accepts.
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
        // Enough bytes to make a ping wait for several timeouts, and sometimes none.
        if !isPingQueued, written - acknowledged < 2000, now.nanoseconds / 1_000_000 % 400 < 200 {
            write(UInt64.random(in: 0..<50, using: &random), timeout)
        }
        // A ping that does not fit into the kernel is written later, and so are later bytes.
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

    /// TCP stalls for less than a timeout.
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
