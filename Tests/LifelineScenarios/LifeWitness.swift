internal import LifelineCore
internal import LifelineTesting

/// Checks one side's connections: a peer that is dead is given up within the bound, and one that lives and answers is
/// not.
///
/// It goes by what came in, what was written and how long the machine has been awake, and shares no code with
/// `Liveness`. The timers of a connection stand still while the machine sleeps, so that bounds are in the time that it
/// was awake.
struct LifeWitness {
    private struct Watched {
        let stream: Int
        /// When the peer last gave a sign of life, or this side read on.
        var life: Moment
        /// When it last did, or its kernel acknowledged something: a ping may have been on its way until then.
        var progress: Moment
        var acknowledged: UInt64 = 0
        var readCount: Int
        var readsSince: MonotonicTime?
        /// Bytes written before that, by then, and by now.
        var writtenBefore: UInt64 = 0
        var writtenAt: UInt64 = 0
        var written: UInt64 = 0
        /// Since when more bytes are unanswered than may be.
        var overLimit: Moment?
        /// Since when bytes wait of which the kernel has taken none.
        var stall: Moment?
        var taken: Int
        /// Whether the peer may have had no chance to answer in time.
        var isIll = false
    }

    /// A time, and how long the machine had been awake by then.
    private struct Moment {
        var time: MonotonicTime
        var uptime: Duration
    }

    private let options: LivenessOptions
    private let host: SimulatedHost
    private let looksForSleep: Bool
    /// How much later than it happens something may be seen here.
    private let slack: Duration
    /// Within what time an answer is sure to count.
    let patience: Duration
    /// Few at a time, so that an array is the fastest dictionary.
    private var watched: [Watched] = []

    init(of options: LivenessOptions, on host: SimulatedHost, looksForSleep: Bool, slack: Duration = .zero) {
        self.options = options
        self.host = host
        self.looksForSleep = looksForSleep
        self.slack = slack
        let year = Duration.seconds(365 * 86_400)
        guard let heartbeat = options.heartbeat else {
            patience = year
            return
        }
        patience = min(heartbeat.timeout, options.idleTimeout.map { $0 - heartbeat.interval } ?? year)
    }

    private var now: Moment { Moment(time: host.simulation.now, uptime: host.uptime) }

    // MARK: Looking

    /// After every step. `isIll`: the peer may not get to answer in time, or not all of it is its own fault.
    mutating func look(at status: ChannelStatus, isIll: Bool, _ witness: Witness) {
        let now = self.now
        let index = place(of: status, now)
        look(at: status, isIll: isIll, now, &watched[index])
        if host.hasBeenAwake { checkBounds(watched[index], isReading: status.readsSince != nil, now, witness) }
    }

    private mutating func place(of status: ChannelStatus, _ now: Moment) -> Int {
        if let index = place(of: status.stream) { return index }
        watched.append(
            Watched(
                stream: status.stream,
                life: now,
                progress: now,
                readCount: status.readCount,
                readsSince: status.readsSince,
                taken: 0
            )
        )
        return watched.count - 1
    }

    private func place(of stream: Int) -> Int? { watched.firstIndex { $0.stream == stream } }

    private func look(at status: ChannelStatus, isIll: Bool, _ now: Moment, _ watched: inout Watched) {
        let isLife = status.readCount > watched.readCount || status.readsSince != watched.readsSince
        if isLife || status.readsSince == nil {
            (watched.life, watched.progress) = (now, now)
            (watched.writtenBefore, watched.writtenAt) = (watched.written, status.writtenByteCount)
            watched.overLimit = nil
        }
        if status.acknowledgedByteCount > watched.acknowledged { watched.progress = now }
        watched.acknowledged = status.acknowledgedByteCount
        (watched.readCount, watched.readsSince) = (status.readCount, status.readsSince)
        watched.written = status.writtenByteCount
        if let limit = options.unansweredByteLimit, watched.overLimit == nil,
            status.writtenByteCount - watched.writtenAt > UInt64(limit)
        {
            watched.overLimit = now
        }
        if status.waitingByteCount == 0 {
            watched.stall = nil
        } else if watched.stall == nil || status.takenByteCount > watched.taken {
            watched.stall = now
        }
        watched.taken = status.takenByteCount
        if isIll || status.isCutOff || status.unacknowledgedByteCount > 8_000 { watched.isIll = true }
    }

    /// What is ill at one end is so at the other.
    mutating func fallIll(_ stream: Int) {
        if let index = place(of: stream) { watched[index].isIll = true }
    }

    func isIll(_ stream: Int) -> Bool { place(of: stream).map { watched[$0].isIll } ?? false }

    private func checkBounds(_ watched: Watched, isReading: Bool, _ now: Moment, _ witness: Witness) {
        if let timeout = options.writeTimeout, let stall = watched.stall {
            check(now, stall, timeout * 1.25, afterSleep: timeout * 2.5, "takes nothing", witness)
        }
        guard isReading else { return }
        if let timeout = options.idleTimeout {
            check(now, watched.life, timeout, afterSleep: timeout * 2, "sends nothing", witness)
        }
        guard let heartbeat = options.heartbeat else { return }
        let misses = heartbeat.timeout * heartbeat.allowedMisses
        let bound = max(heartbeat.interval, heartbeat.timeout) + misses
        check(now, watched.progress, bound, afterSleep: bound + heartbeat.timeout, "is silent", witness)
        if let overLimit = watched.overLimit {
            // An acknowledgement is seen at the end of the heartbeat's timeout, which may have begun before, and is
            // followed by another timeout after that under way.
            let isOnItsWay = watched.progress.time >= overLimit.time - heartbeat.timeout
            let bound = heartbeat.timeout * (isOnItsWay ? 3 : 1)
            let since = isOnItsWay ? watched.progress : overLimit
            check(now, since, bound, afterSleep: bound + heartbeat.timeout, "does not answer", witness)
        }
        // Who looks for sleep asks at once after a long one.
        let hasSlept = watched.life.time < host.lastSleepTime && host.lastSleepDuration >= heartbeat.interval
        let wake = host.lastWakeTime
        // The timeout in which the last acknowledgement came is none of the misses.
        let question = watched.progress.time > wake ? watched.progress.time + heartbeat.timeout : wake
        if looksForSleep, hasSlept, now.time - question > misses + slack {
            witness.fail("\(host.name): the peer has been silent since the machine slept, and nobody minds")
        }
    }

    /// - Parameter afterSleep: how much of the time since the machine was last awake it may take, if it has slept
    ///   meanwhile: what became late then may be begun anew.
    private func check(
        _ now: Moment,
        _ since: Moment,
        _ bound: Duration,
        afterSleep: Duration,
        _ what: @autoclosure () -> String,
        _ witness: Witness
    ) {
        let passed = now.time - since.time
        if passed <= bound + slack { return }
        let awake = now.uptime - since.uptime
        if awake < passed, min(awake, now.time - host.lastWakeTime) <= afterSleep + slack { return }
        witness.fail("\(host.name): the peer \(what()) for \(passed), and nobody minds")
    }

    // MARK: Giving up

    /// A connection has ended on this side, at a time.
    mutating func closed(
        _ stream: Int,
        for failure: ConnectionError.Code?,
        at time: MonotonicTime,
        _ witness: Witness
    ) {
        guard let index = place(of: stream) else { return }
        let watched = self.watched.remove(at: index)
        guard let failure else { return }
        func fail(_ what: String) {
            witness.fail("\(host.name): \(what)")
        }
        // What has happened may have been seen a little later.
        let silence = time - watched.life.time + slack
        switch failure {
        case .heartbeatTimeout:
            guard let heartbeat = options.heartbeat else { return fail("a heartbeat out of nothing") }
            if silence < heartbeat.timeout * heartbeat.allowedMisses {
                fail("the peer counts as dead \(silence) after its last byte")
            }
        case .idleTimeout:
            if silence < options.idleTimeout ?? .zero { fail("the peer counts as idle after \(silence)") }
        case .writeTimeout:
            let stalled = watched.stall.map { time - $0.time + slack } ?? .zero
            if stalled < options.writeTimeout ?? .zero { fail("the peer counts as stalled after \(stalled)") }
        case .tooManyUnansweredBytes:
            let unanswered = watched.written - watched.writtenBefore
            if unanswered <= options.unansweredByteLimit ?? 0 { fail("\(unanswered) bytes count as too many") }
        default:
            return
        }
        witness.see("\(host.name) gives up for \(failure)")
        if !watched.isIll { fail("a peer that lives and answers is given up for \(failure)") }
    }
}
