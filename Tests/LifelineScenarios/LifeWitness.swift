internal import LifelineCore
internal import LifelineTesting

/// Checks the connections of one side: it gives up a dead peer within the bound, and never a live peer that answers.
///
/// It knows the bytes read and written and the machine's uptime, and shares no code with `Liveness`. The timers of a
/// connection stand still while the machine sleeps, so the bounds count uptime.
struct LifeWitness {
    private struct Watched {
        let stream: Int
        /// The time at which bytes last came from the peer, or this side last started to read.
        var life: Moment
        /// The time of that or of the peer's last acknowledgement: a ping may have been on its way until then.
        var progress: Moment
        var acknowledged: UInt64 = 0
        var readCount: Int
        var readsSince: MonotonicTime?
        /// Bytes written before the time of `life`, by that time, and until now.
        var writtenBefore: UInt64 = 0
        var writtenAt: UInt64 = 0
        var written: UInt64 = 0
        /// The time since which more bytes are unanswered than allowed.
        var overLimit: Moment?
        /// The time since which bytes wait and the kernel takes none.
        var stall: Moment?
        var taken: Int
        /// Whether the peer may have had no chance to answer in time.
        var isIll = false
    }

    /// A time, and the machine's uptime at that time.
    private struct Moment {
        var time: MonotonicTime
        var uptime: Duration
    }

    private let options: LivenessOptions
    private let host: SimulatedHost
    private let looksForSleep: Bool
    /// The maximum delay with which the witness sees an event.
    private let slack: Duration
    /// The time within which an answer certainly counts.
    let patience: Duration
    /// An array, which is faster than a dictionary for a few entries.
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

    /// Checks a connection after every step. `isIll`: whether the peer may fail to answer in time, through its own
    /// fault or not.
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

    /// Marks a connection as ill because its other end is.
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
            // An acknowledgement is noticed at the end of a heartbeat timeout, which may have begun earlier. Another
            // timeout follows the one in progress.
            let isOnItsWay = watched.progress.time >= overLimit.time - heartbeat.timeout
            let bound = heartbeat.timeout * (isOnItsWay ? 3 : 1)
            let since = isOnItsWay ? watched.progress : overLimit
            check(now, since, bound, afterSleep: bound + heartbeat.timeout, "does not answer", witness)
        }
        // A side that looks for sleep pings at once after a long one.
        let hasSlept = watched.life.time < host.lastSleepTime && host.lastSleepDuration >= heartbeat.interval
        let wake = host.lastWakeTime
        // The timeout during which the last acknowledgement came does not count as a miss.
        let question = watched.progress.time > wake ? watched.progress.time + heartbeat.timeout : wake
        if looksForSleep, hasSlept, now.time - question > misses + slack {
            witness.fail("\(host.name): the peer has been silent since the machine slept, and nobody minds")
        }
    }

    /// - Parameter afterSleep: the bound on the time since the machine woke, if it has slept meanwhile, because timers
    ///   that became late may start again.
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

    /// Checks the end of a connection on this side.
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
        // The witness may have seen events a little late.
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
