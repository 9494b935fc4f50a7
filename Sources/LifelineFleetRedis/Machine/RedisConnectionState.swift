internal import LifelineCore

/// The state of one connection after the other: when to connect, and whether the connection is usable.
struct RedisConnectionState: Sendable {
    enum State: Sendable {
        /// Nothing needs a connection yet. Can go to: connecting, closed.
        case idle
        /// Can go to: greeting, waiting, connecting (the next attempt), closed.
        case connecting
        /// The greeting is written. Can go to: ready, waiting, connecting, closed.
        case greeting(ArraySlice<RedisGreeting.Step>, deadline: MonotonicTime)
        /// Can go to: waiting, connecting, closed.
        case ready(since: MonotonicTime)
        /// The next attempt begins at a time. Can go to: connecting, closed.
        case waiting(until: MonotonicTime)
        /// The end.
        case closed
    }

    private(set) var state = State.idle
    /// The number of the latest attempt to connect. Events of earlier attempts are ignored.
    private(set) var attempt: UInt64 = 0
    /// The reason why there is no connection; nil while there is one.
    private(set) var lastFailure: RedisError?
    /// Whether reading is paused, so that silence says nothing about the server.
    private(set) var isPaused = false

    private let connectTimeout: Duration
    private let stabilityPeriod: Duration
    private let heartbeatConfiguration: HeartbeatConfiguration
    private var backoff: Backoff
    private var heartbeat: Heartbeat?

    init(_ configuration: RedisConfiguration, seed: UInt64) {
        var backoff = configuration.backoff
        backoff.maximumAttempts = nil
        self.backoff = Backoff(backoff, seed: seed)
        stabilityPeriod = backoff.stabilityPeriod
        connectTimeout = configuration.connectTimeout.clamped(atLeast: .milliseconds(1))
        heartbeatConfiguration = configuration.heartbeat
    }

    var isReady: Bool { if case .ready = state { true } else { false } }

    var isClosed: Bool { if case .closed = state { true } else { false } }

    /// The latest time at which to call `timerFired`; nil to wait for another event.
    var nextDeadline: MonotonicTime? {
        switch state {
        case .idle, .connecting, .closed: nil
        case .greeting(_, let deadline): deadline
        case .ready: isPaused ? nil : heartbeat?.deadline
        case .waiting(let time): time
        }
    }

    /// Notes that a connection is needed. Returns whether to connect now.
    mutating func connectionNeeded() -> Bool {
        guard case .idle = state else { return false }
        connect()
        return true
    }

    private mutating func connect() {
        attempt += 1
        backoff.attemptStarted()
        state = .connecting
    }

    /// Notes that the connection is open. Returns whether to write the greeting now.
    mutating func opened(_ greeting: RedisGreeting, now: MonotonicTime) -> Bool {
        guard case .connecting = state else { return false }
        state = .greeting(greeting.steps[...], deadline: now + connectTimeout)
        return true
    }

    enum GreetingAction {
        /// Another reply is awaited.
        case wait
        /// Commands may be written.
        case becomeReady
        case fail(RedisError)
    }

    /// Handles a reply before the connection is ready.
    mutating func receivedGreeting(_ reply: RedisValue, now: MonotonicTime) -> GreetingAction {
        guard case .greeting(var steps, let deadline) = state, let step = steps.popFirst() else {
            return .fail(.protocolViolation(nil))
        }
        if let failure = step.failure(reply) { return .fail(failure) }
        guard steps.isEmpty else {
            state = .greeting(steps, deadline: deadline)
            return .wait
        }
        heartbeat = Heartbeat(heartbeatConfiguration, connectedAt: now)
        lastFailure = nil
        state = .ready(since: now)
        return .becomeReady
    }

    /// Notes received bytes.
    mutating func received(now: MonotonicTime) { heartbeat?.received(at: now) }

    /// Notes that reading stops or resumes.
    mutating func pauseChanged(_ isPaused: Bool, now: MonotonicTime) {
        self.isPaused = isPaused
        if !isPaused { heartbeat?.received(at: now) }
    }

    enum LossAction: Equatable {
        /// There was no connection and no attempt.
        case none
        /// Connect at once.
        case connect
        /// The next attempt begins after this time.
        case wait(Duration)
    }

    /// Notes that the attempt has failed, or the connection is lost or was given up.
    mutating func lost(_ error: RedisError, now: MonotonicTime) -> LossAction {
        switch state {
        case .idle, .waiting, .closed: return .none
        case .connecting, .greeting: break
        case .ready(let since):
            // The connection has lasted until its last sign of life.
            if (heartbeat?.lastLife ?? now) - since >= stabilityPeriod { backoff.refill() }
        }
        lastFailure = error
        heartbeat = nil
        switch backoff.attemptEnded() {
        case .wait(let delay):
            state = .waiting(until: now + delay)
            return .wait(delay)
        // It never gives up: the number of attempts is not limited.
        case .connect, .giveUp:
            connect()
            return .connect
        }
    }

    enum TimerAction {
        case none
        case connect
        /// Ask for a sign of life.
        case ping
        /// The connection is unusable.
        case fail(RedisError)
    }

    /// Handles the timer, which may fire too early.
    mutating func timerFired(now: MonotonicTime) -> TimerAction {
        switch state {
        case .idle, .connecting, .closed: return .none
        case .greeting(_, let deadline): return now < deadline ? .none : .fail(.unresponsive)
        case .waiting(let time):
            guard now >= time else { return .none }
            connect()
            return .connect
        case .ready:
            guard !isPaused else { return .none }
            switch heartbeat?.timerFired(lastInboundAt: nil, now: now) {
            case nil, .some(.none): return .none
            case .sendPing: return .ping
            case .timedOut: return .fail(.unresponsive)
            }
        }
    }

    mutating func close() {
        state = .closed
        heartbeat = nil
    }
}
