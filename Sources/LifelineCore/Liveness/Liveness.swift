/// Whether the peer of one connection still lives and takes part: it is asked for a sign of life, or given up.
///
/// While this side does not read, the peer cannot show that it lives, so nothing is held against it, and reading on
/// counts as a sign of life. A timeout whose timer comes late by more than a quarter of it starts anew: the machine
/// slept, or this side was held up, and what the peer has sent could not be read. (`Heartbeat` has its own rule for
/// that.)
package struct Liveness: Sendable {
    private enum Input {
        /// What the peer sends is read. Can go to: paused, ended.
        case reading
        /// This side does not read. Can go to: reading, ended.
        case paused
        /// No sign of life is to be expected: the peer has ended its side, or the connection is being closed.
        /// Can go to: nothing.
        case ended
    }

    /// Bytes that wait for the peer.
    private struct Stall {
        /// How many waited at the last look.
        var byteCount: Int
        /// When fewer waited than before; at first, when they began to wait.
        var since: MonotonicTime
        var nextLook: MonotonicTime
    }

    private let idleTimeout: Duration?
    private let unansweredByteLimit: Int?
    /// How long the answer to a question about unanswered bytes may take.
    private let answerTimeout: Duration
    /// Nil once the connection is being closed.
    private var writeTimeout: Duration?
    /// Nil when there is no asking the peer.
    private var heartbeat: Heartbeat?
    private var countedMisses = 0
    /// Whether the heartbeat awaits an answer.
    private var isAsking = false
    /// How many bytes were written since the connection was made. Counted for the heartbeat only.
    private var writtenByteCount: UInt64 = 0
    private var input = Input.reading
    /// When the peer last gave a sign of life; at first, when the connection was made.
    private var lastLife: MonotonicTime
    /// From when the idle timeout counts: after the last sign of life where that was begun anew, which is no sign of
    /// life.
    private var idleSince: MonotonicTime
    private var unansweredByteCount = 0
    /// Until when a peer that was asked because of unanswered bytes has to answer.
    private var answerDeadline: MonotonicTime?
    private var stall: Stall?
    /// When bytes last came in; nil when none ever did.
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

    /// When `timerFired` is to be called; nil when nothing is watched. Bytes that come in, unless they answer a ping,
    /// move it only when the timer fires, so that nothing is to be done about it per read.
    package var deadline: MonotonicTime? {
        let forStall = stall?.nextLook
        guard input == .reading else { return forStall }
        let forIdling = idleTimeout.map { idleSince + $0 }
        return [forStall, forIdling, answerDeadline, heartbeat?.deadline].compactMap { $0 }.min()
    }

    /// What to do about the peer.
    package enum Action: Equatable {
        /// Send a ping with this number.
        case sendPing(number: UInt64)
        /// Give the connection up with `error(for:)`.
        case giveUp(ConnectionError.Code)
        /// Nothing.
        case none
    }

    // MARK: Input

    /// Bytes have come in. Tells whether they answer a ping: the deadline may be an earlier one then.
    @discardableResult
    package mutating func received(now: MonotonicTime) -> Bool {
        lastInboundAt = now
        return showedLife(now: now)
    }

    /// This side stopped reading.
    package mutating func readingPaused() {
        if input == .reading { input = .paused }
    }

    /// This side reads on.
    package mutating func readingResumed(now: MonotonicTime) {
        guard input == .paused else { return }
        input = .reading
        _ = showedLife(now: now)
    }

    /// The peer ended its side.
    package mutating func inputEnded() {
        input = .ended
    }

    /// A graceful close was begun, which has a bound of its own.
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

    /// There is no asking the peer: this side has finished sending, or has no message for it.
    package mutating func pingsBecameImpossible() {
        heartbeat = nil
    }

    /// The ping that was asked for is about to be written. `acknowledged` tells how many bytes the peer's TCP has
    /// acknowledged since the connection was made; nil where nobody can. That the SYN may count as one does no harm.
    package mutating func pingQueued(acknowledged: () -> UInt64?) {
        heartbeat?.pingQueued(acknowledged: acknowledged)
    }

    /// A ping was written that is none of the connection's frames. `total` is as of `wrote`.
    package mutating func pingWritten(total: () -> UInt64?) {
        heartbeat?.wrote(total: total)
    }

    /// So many bytes were handed to the kernel, whether it has taken them yet or not. The time is needed only where
    /// there is a limit of unanswered bytes.
    ///
    /// `total` tells how many bytes that were since the connection was made, as the peer's TCP counts them, where they
    /// are not those that were reported here; nil where nobody can.
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

    /// The kernel did not take a write at once: `byteCount` bytes wait.
    package mutating func writeWaits(byteCount: Int, now: MonotonicTime) {
        guard let writeTimeout else { return }
        stall = Stall(byteCount: byteCount, since: now, nextLook: now + writeTimeout / 4)
    }

    /// The kernel has taken the write.
    package mutating func writeCompleted() {
        stall = nil
    }

    // MARK: Time

    /// How many pings the peer has let pass since this was asked last.
    package mutating func takeMissCount() -> Int {
        let total = heartbeat?.missCount ?? countedMisses
        defer { countedMisses = total }
        return total - countedMisses
    }

    /// There is a reason to doubt that the peer is still there.
    package mutating func probe(now: MonotonicTime) -> Action {
        guard input == .reading, let number = startProbing(now: now) else { return .none }
        return .sendPing(number: number)
    }

    /// The number of a ping to send; nil when there is no asking the peer.
    private mutating func startProbing(now: MonotonicTime) -> UInt64? {
        guard heartbeat != nil else { return nil }
        isAsking = true
        heartbeat?.received(at: lastLife)
        return heartbeat?.probe(now: now)
    }

    /// Time has come, maybe too early or late.
    ///
    /// - Parameters:
    ///   - waitingByteCount: how many bytes of the write wait now.
    ///   - acknowledged: as of `pingQueued`. It is called only when an answer has not come in time.
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
                    // Who has not got the question cannot answer it.
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
    /// Why a connection was given up, for what this machine gives connections up for.
    package func error(for code: ConnectionError.Code) -> ConnectionError {
        let message =
            switch code {
            case .heartbeatTimeout:
                "The peer was asked for a sign of life and gave none in time; it, or the way to it, is gone."
            case .idleTimeout:
                "The peer sent nothing for \(idleTimeout ?? .zero), which is the idle timeout."
            case .writeTimeout:
                "The peer took none of the bytes that wait for it for \(writeTimeout ?? .zero), which is the write "
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
