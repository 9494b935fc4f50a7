/// Watches whether the peer of one connection is still alive and responsive. Asks it for a sign of life, or gives it
/// up.
///
/// While this side does not read, the peer cannot show that it is alive, so no timeout runs, and resuming counts as a
/// sign of life. A timeout whose timer fires late by more than a quarter of it starts again: the machine slept, or this
/// side was delayed, and bytes of the peer could not be read. (`Heartbeat` has its own rule for that.)
package struct Liveness: Sendable {
    private enum Input {
        /// The peer's bytes are read. Can go to: paused, ended.
        case reading
        /// This side does not read. Can go to: reading, ended.
        case paused
        /// No sign of life is expected: the peer has ended its side, or the connection is being closed. Can go to: no
        /// other state.
        case ended
    }

    /// Bytes that wait for the peer.
    private struct Stall {
        /// The number of waiting bytes at the last check.
        var byteCount: Int
        /// The time since which their number has not decreased.
        var since: MonotonicTime
        var nextLook: MonotonicTime
    }

    private let idleTimeout: Duration?
    private let unansweredByteLimit: Int?
    /// The time for the peer to respond when it is asked because of unanswered bytes.
    private let answerTimeout: Duration
    /// Nil once the connection is being closed.
    private var writeTimeout: Duration?
    /// Nil when the peer cannot be asked.
    private var heartbeat: Heartbeat?
    private var countedMisses = 0
    /// Whether the heartbeat awaits an answer.
    private var isAsking = false
    /// The number of bytes written since the connection was made. Only the heartbeat uses it.
    private var writtenByteCount: UInt64 = 0
    private var input = Input.reading
    /// The time of the peer's last sign of life; at first, that of the connection.
    private var lastLife: MonotonicTime
    /// The time from which the idle timeout counts. It is later than the last sign of life if the timeout was started
    /// again.
    private var idleSince: MonotonicTime
    private var unansweredByteCount = 0
    /// The time by which a peer that was asked because of unanswered bytes has to respond.
    private var answerDeadline: MonotonicTime?
    private var stall: Stall?
    /// The time of the last received bytes; nil when there were none.
    package private(set) var lastInboundAt: MonotonicTime?

    package init(_ options: LivenessOptions, connectedAt: MonotonicTime) {
        idleTimeout = options.idleTimeout?.clamped(atLeast: .milliseconds(1))
        writeTimeout = options.writeTimeout?.clamped(atLeast: .milliseconds(1))
        unansweredByteLimit = options.unansweredByteLimit
        answerTimeout = options.heartbeat?.timeout.clamped(atLeast: .milliseconds(1)) ?? .zero
        heartbeat = options.heartbeat.map { Heartbeat($0, connectedAt: connectedAt) }
        lastLife = connectedAt
        idleSince = connectedAt
    }

    /// The time at which to call `timerFired`; nil when nothing is watched. Received bytes, unless they answer a ping,
    /// move it only when the timer fires, so that a read need not set the timer.
    package var deadline: MonotonicTime? {
        let forStall = stall?.nextLook
        guard input == .reading else { return forStall }
        let forIdling = idleTimeout.map { idleSince + $0 }
        return [forStall, forIdling, answerDeadline, heartbeat?.deadline].compactMap { $0 }.min()
    }

    /// A step for the connection.
    package enum Action: Equatable {
        /// Send a ping with this number.
        case sendPing(number: UInt64)
        /// Give up the connection with `error(for:)`.
        case giveUp(ConnectionError.Code)
        /// Nothing.
        case none
    }

    // MARK: Input

    /// Notes received bytes. Returns whether they answer a ping: then the deadline may be earlier.
    @discardableResult
    package mutating func received(now: MonotonicTime) -> Bool {
        lastInboundAt = now
        return showedLife(now: now)
    }

    /// Notes that this side stopped reading.
    package mutating func readingPaused() {
        if input == .reading { input = .paused }
    }

    /// Notes that this side resumed reading.
    package mutating func readingResumed(now: MonotonicTime) {
        guard input == .paused else { return }
        input = .reading
        _ = showedLife(now: now)
    }

    /// Notes that the peer ended its side.
    package mutating func inputEnded() {
        input = .ended
    }

    /// Notes that a graceful close began, which has its own time limit.
    package mutating func closeRequested() {
        input = .ended
        writeTimeout = nil
        stall = nil
    }

    private mutating func showedLife(now: MonotonicTime) -> Bool {
        lastLife = max(lastLife, now)
        idleSince = lastLife
        unansweredByteCount = 0
        answerDeadline = nil
        guard isAsking else { return false }
        isAsking = false
        heartbeat?.received(at: lastLife)
        return true
    }

    // MARK: Output

    /// Notes that the peer can no longer be asked: this side has finished sending, or has no message for it.
    package mutating func pingsBecameImpossible() {
        heartbeat = nil
    }

    /// Notes that the requested ping is about to be written. `acknowledged` returns the number of bytes that the peer's
    /// TCP has acknowledged since the connection was made; nil if unknown. It may count the SYN as one byte.
    package mutating func pingQueued(acknowledged: () -> UInt64?) {
        heartbeat?.pingQueued(acknowledged: acknowledged)
    }

    /// Notes that a ping was written that is not one of the connection's frames. For `total`, see `wrote`.
    package mutating func pingWritten(total: () -> UInt64?) {
        heartbeat?.wrote(total: total)
    }

    /// Notes the number of bytes handed to the kernel, which may not have taken them yet. The time is needed only with
    /// a limit of unanswered bytes.
    ///
    /// `total` returns the number of bytes since the connection was made, as the peer's TCP counts them, if it differs
    /// from the bytes reported here; nil if unknown.
    package mutating func wrote(
        byteCount: Int,
        now: @autoclosure () -> MonotonicTime,
        total: (() -> UInt64?)? = nil
    ) -> Action {
        if heartbeat != nil {
            writtenByteCount &+= UInt64(byteCount)
            let counted = writtenByteCount
            heartbeat?.wrote { total.map { $0() } ?? counted }
        }
        guard let unansweredByteLimit, input == .reading, answerDeadline == nil else { return .none }
        unansweredByteCount += byteCount
        guard unansweredByteCount > unansweredByteLimit else { return .none }
        let now = now()
        guard let number = startProbing(now: now) else { return .giveUp(.tooManyUnansweredBytes) }
        answerDeadline = now + answerTimeout
        return .sendPing(number: number)
    }

    /// Notes that the kernel did not take a write at once: `byteCount` bytes wait.
    package mutating func writeWaits(byteCount: Int, now: MonotonicTime) {
        guard let writeTimeout else { return }
        stall = Stall(byteCount: byteCount, since: now, nextLook: now + writeTimeout / 4)
    }

    /// Notes that the kernel has taken the write.
    package mutating func writeCompleted() {
        stall = nil
    }

    // MARK: Time

    /// Returns the number of pings that the peer has missed since the last call.
    package mutating func takeMissCount() -> Int {
        let total = heartbeat?.missCount ?? countedMisses
        defer { countedMisses = total }
        return total - countedMisses
    }

    /// Checks the peer, because there is a reason to doubt that it is still there.
    package mutating func probe(now: MonotonicTime) -> Action {
        guard input == .reading, let number = startProbing(now: now) else { return .none }
        return .sendPing(number: number)
    }

    /// Returns the number of a ping to send; nil when the peer cannot be asked.
    private mutating func startProbing(now: MonotonicTime) -> UInt64? {
        guard heartbeat != nil else { return nil }
        isAsking = true
        heartbeat?.received(at: lastLife)
        return heartbeat?.probe(now: now)
    }

    /// Handles the timer, which may fire too early or late.
    ///
    /// - Parameters:
    ///   - waitingByteCount: the number of bytes of the write that wait now.
    ///   - acknowledged: as for `pingQueued`. It is called only when an answer has not come in time.
    package mutating func timerFired(
        waitingByteCount: Int,
        now: MonotonicTime,
        acknowledged: () -> UInt64? = { nil }
    ) -> Action {
        if isStalled(waitingByteCount: waitingByteCount, now: now) { return .giveUp(.writeTimeout) }
        guard input == .reading else { return .none }
        if let deadline = answerDeadline, now >= deadline {
            guard
                isLate(now, for: deadline, of: answerTimeout)
                    // A peer that has not received the ping cannot answer it.
                    || heartbeat?.isPingProgressing(
                        since: deadline - answerTimeout,
                        acknowledged: acknowledged
                    ) == true
            else { return .giveUp(.tooManyUnansweredBytes) }
            answerDeadline = now + answerTimeout
        }
        if let idleTimeout, now >= idleSince + idleTimeout {
            guard isLate(now, for: idleSince + idleTimeout, of: idleTimeout) else { return .giveUp(.idleTimeout) }
            idleSince = now
        }
        switch heartbeat?.timerFired(lastInboundAt: lastLife, now: now, acknowledged: acknowledged) {
        case .sendPing(let number):
            isAsking = true
            return .sendPing(number: number)
        case .timedOut: return .giveUp(.heartbeatTimeout)
        case .some(.none), nil: return .none
        }
    }

    private mutating func isStalled(waitingByteCount: Int, now: MonotonicTime) -> Bool {
        guard let writeTimeout, var stall, now >= stall.nextLook else { return false }
        if waitingByteCount < stall.byteCount || isLate(now, for: stall.nextLook, of: writeTimeout) {
            stall.since = now
        }
        stall.byteCount = waitingByteCount
        let deadline = stall.since + writeTimeout
        stall.nextLook = min(now + writeTimeout / 4, deadline)
        self.stall = stall
        return now >= deadline
    }

    private func isLate(_ now: MonotonicTime, for deadline: MonotonicTime, of timeout: Duration) -> Bool {
        now - deadline > timeout / 4
    }
}

extension Liveness {
    /// Returns the error for one of the codes with which this machine gives up connections.
    package func error(for code: ConnectionError.Code) -> ConnectionError {
        let message =
            switch code {
            case .heartbeatTimeout:
                "The peer was asked for a sign of life and gave none in time; the peer, or the way to it, is gone."
            case .idleTimeout:
                "The peer sent nothing for \(idleTimeout ?? .zero), which is the idle timeout."
            case .writeTimeout:
                "The peer took none of the waiting bytes for \(writeTimeout ?? .zero), which is the write "
                    + "timeout. It does not read, or is gone."
            case .tooManyUnansweredBytes:
                "More than \(unansweredByteLimit ?? 0) bytes were written since the peer last sent one, which is the "
                    + "limit of unanswered bytes."
            default:
                "The connection was given up."
            }
        return ConnectionError(code: code, message: message)
    }
}
