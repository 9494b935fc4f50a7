/// All decisions of a client in one value: when to connect, how sends end, how a connection is closed, and what
/// observers are told.
///
/// It uses no sockets, clocks, timers, locks or tasks. A driver reports events with the time at which they happened,
/// runs the returned actions in order, and calls `timerFired` when `nextDeadline` has passed.
///
/// - There is one connection at a time: the next attempt begins when the driver has reported the end of the one before.
/// - Reports about other connections than the present one are late, and are ignored.
/// - A time before the latest one reported counts as the latest one.
package struct ClientMachine: Sendable {
    /// The number of an attempt to connect, and of the connection that it leads to: 1, 2, 3 and so on.
    package typealias ConnectionID = ConnectionManager.ConnectionID

    /// The settings of a client's decisions.
    package struct Configuration: Sendable {
        /// The delays and the number of attempts to connect.
        package var backoff = BackoffConfiguration()
        /// The limits for messages that wait for a connection.
        package var sendQueue = SendQueueConfiguration()
        /// How long a connection may go on writing after the peer's end. At least 1 ms.
        package var closeTimeout = Duration.seconds(5)
        /// The shortest sleep of the machine after which the peer is probed; nil if it cannot be probed.
        package var sleepWatchInterval: Duration?
        /// The longest pause that the peer may ask for.
        package var maximumPause = Duration.seconds(300)

        package init() {}
    }

    /// An attempt that the driver makes.
    struct Attempt {
        let id: ConnectionID
        /// Whether the peer ended its side before the driver reported the connection.
        var hasPeerEnded = false
        /// The reason for giving up the attempt; nil while it goes on.
        var givenUp: TransitionReason?
    }

    /// A connection that is open, or being closed.
    struct Open {
        let id: ConnectionID
        /// The time until which it may go on writing after the peer's end; nil when the peer has not ended, and once it
        /// is cut.
        var closeDeadline: MonotonicTime?
    }

    /// The one attempt or connection that the driver has.
    enum Link {
        /// Can go to: connecting, over.
        case none
        /// Can go to: open, none, over.
        case connecting(Attempt)
        /// Can go to: none, connecting, over.
        case open(Open)
        /// The client is closed, and none of its tasks is left. Can go to: no other state.
        case over
    }

    private let closeTimeout: Duration
    private let sleepWatchInterval: Duration?
    let maximumPause: Duration
    var manager: ConnectionManager
    var queue: SendQueue
    var link = Link.none
    /// The attempt that begins when the connection before it has ended.
    var nextAttempt: ConnectionID?
    /// Steps that are not published yet, because it is unknown how many messages were lost with the connection that the
    /// first one ended.
    private var heldSteps: [ConnectionTransition] = []
    /// Checks whether the machine has slept, while there is a connection whose peer can be probed.
    package internal(set) var sleepWatch: SleepWatch?
    /// Whether the user has called `run()`.
    package private(set) var hasStarted = false
    /// Whether the user has called `close()`.
    var hasUserClosed = false

    /// Makes a machine that waits for `start`.
    ///
    /// - Parameters:
    ///   - seed: the seed for the jitter of delays.
    ///   - hasNetwork: whether the peer can be reached, as far as is known. It stays true for a peer that needs no
    ///     network.
    package init(_ configuration: Configuration, seed: UInt64, hasNetwork: Bool) {
        closeTimeout = configuration.closeTimeout.clamped(atLeast: .milliseconds(1))
        sleepWatchInterval = configuration.sleepWatchInterval
        maximumPause = configuration.maximumPause.clamped(atLeast: .zero)
        manager = ConnectionManager(backoff: configuration.backoff, seed: seed, hasNetwork: hasNetwork)
        queue = SendQueue(configuration.sendQueue)
    }

    /// A step for the driver.
    package enum Action: Equatable, Sendable {
        /// A step was made. `publish`, which may come later, tells observers.
        case transition(ConnectionTransition)
        /// Tell observers about this step.
        case publish(PublishedStep)
        /// Begin to connect; report `connected` or `connectFailed`.
        case connect(ConnectionID)
        /// Receive from this connection, and use it.
        case use(ConnectionID)
        /// Give up this attempt or connection at once, drop unwritten bytes, and report its end.
        case abort(ConnectionID, TransitionReason)
        /// Write what this connection has accepted, close it in order, and report `connectionClosed`.
        case close(ConnectionID)
        /// Ask the peer of this connection for a sign of life, if possible.
        case probe(ConnectionID)
        /// Offer this send to the connection; report `handOverEnded`.
        case handOver(SendQueue.ID, to: ConnectionID)
        /// Take the send in hand back, if the connection has not accepted it; report `handOverEnded`.
        case withdraw(SendQueue.ID)
        /// This waiting send has ended. If there is a connection, it has accepted the send.
        case endSend(SendQueue.Ended, by: ConnectionID?)
        /// The client is closed, and none of its tasks is left.
        case finish
    }

    // MARK: Observing

    /// The state of the connection.
    package var state: ConnectionState { manager.state }

    /// The attempt or connection that the machine wants now. The driver may still have the one before it.
    package var attemptID: ConnectionID? { manager.connectionID }

    /// The attempt or connection that the driver has.
    package var linkID: ConnectionID? {
        switch link {
        case .connecting(let attempt): attempt.id
        case .open(let open): open.id
        case .none, .over: nil
        }
    }

    /// The connection that takes messages without a detour, if there is one.
    package var directPath: ConnectionID? { queue.sendsNow ? manager.connectionID : nil }

    /// The number of sends that wait for a connection.
    package var queuedCount: Int { queue.count }

    /// The time at which to call `timerFired`; nil to wait for another event.
    package var nextDeadline: MonotonicTime? {
        let never = MonotonicTime(nanoseconds: .max)
        let next = min(
            manager.nextDeadline ?? never,
            queue.nextDeadline ?? never,
            closeDeadline ?? never,
            sleepWatch?.deadline ?? never
        )
        return next == never ? nil : next
    }

    /// The time until which a connection may go on writing after the peer's end.
    package var closeDeadline: MonotonicTime? {
        if case .open(let open) = link { open.closeDeadline } else { nil }
    }

    /// The reason for an end of input in order. Read it before `inputEnded`.
    package var reasonOfInputEnd: ConnectionError {
        switch manager.state {
        case .draining, .closed: .clientClosed
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff, .gaveUp: .peerEnded
        }
    }

    // MARK: The user

    /// Begins `run()`.
    ///
    /// - Throws: `alreadyRun` for a second call.
    package mutating func start(now: MonotonicTime) throws(ConnectionError) -> [Action] {
        if hasStarted { throw .alreadyRun }
        hasStarted = true
        let now = manager.observe(now)
        return perform(manager.start(now: now), now)
    }

    /// Makes a new connection at the user's request.
    package mutating func reconnectRequested(now: MonotonicTime) -> [Action] {
        let now = manager.observe(now)
        return cutClosing(.reconnectRequested) + perform(manager.reconnectRequested(now: now), now)
    }
}

// Helpers of several events.
extension ClientMachine {
    /// Turns the manager's decisions into the driver's actions.
    mutating func perform(_ decisions: [ConnectionManager.Action], _ now: MonotonicTime) -> [Action] {
        actions(for: decisions, now) + beginAttemptOrFinish()
    }

    /// Does the same without the steps that follow the end of a connection: see `beginAttemptOrFinish`.
    ///
    /// - Parameter counts: the counts of messages of the connection that has just ended, if one has.
    mutating func actions(
        for decisions: [ConnectionManager.Action],
        _ now: MonotonicTime,
        counts: MessageCounts? = nil
    ) -> [Action] {
        var actions: [Action] = []
        for decision in decisions {
            switch decision {
            case .transition(let step):
                actions.append(.transition(step))
                actions += publish(step, counts)
                actions += moveQueue(to: step.to, now)
            case .connect(let id):
                nextAttempt = id
            case .abort(let id, let reason):
                actions += giveUp(id, reason)
            case .drain(let id):
                actions.append(.close(id))
            case .probe(let id):
                actions.append(.probe(id))
            }
        }
        return actions
    }

    /// Begins the next attempt, or ends the client, once the earlier connection has ended.
    mutating func beginAttemptOrFinish() -> [Action] {
        guard case .none = link else { return [] }
        if let id = nextAttempt {
            nextAttempt = nil
            link = .connecting(Attempt(id: id))
            return [.connect(id)]
        }
        guard manager.state == .closed else { return [] }
        link = .over
        return [.finish]
    }

    /// Publishes a step, unless the counts of this or an earlier step are not known yet.
    private mutating func publish(_ step: ConnectionTransition, _ counts: MessageCounts?) -> [Action] {
        var hasConnection = false
        if case .open = link { hasConnection = true }
        if !heldSteps.isEmpty || (hasConnection && step.endsConnection) {
            heldSteps.append(step)
            return []
        }
        return [.publish(PublishedStep(step, counts))]
    }

    /// Publishes the held steps, because the counts are now known. Returns nil if no step was held back.
    mutating func publishHeldSteps(_ counts: MessageCounts) -> [Action]? {
        if heldSteps.isEmpty { return nil }
        defer { heldSteps = [] }
        return heldSteps.enumerated().map { .publish(PublishedStep($1, $0 == 0 ? counts : nil)) }
    }

    private mutating func moveQueue(to state: ConnectionState, _ now: MonotonicTime) -> [Action] {
        sleepWatch = nil
        switch state {
        case .ready:
            queue.becameReady()
            sleepWatch = sleepWatchInterval.map { SleepWatch(interval: $0, now: now) }
            return []
        case .draining, .closed:
            return actions(forEnded: queue.closed(.clientClosed))
        case .idle, .waitingForNetwork, .connecting, .backingOff, .gaveUp:
            return actions(forEnded: queue.becameUnready())
        }
    }

    func actions(forEnded ended: [SendQueue.Ended], by connection: ConnectionID? = nil) -> [Action] {
        ended.map { .endSend($0, by: connection) }
    }

    /// A limit of its own, because the connection's timeout counts from the last progress, which a peer that has ended
    /// can make for ever.
    func closeDeadline(from now: MonotonicTime) -> MonotonicTime { now + closeTimeout }
}

extension ConnectionTransition {
    /// Whether there was a connection before the step, and none after it.
    package var endsConnection: Bool { from == .draining || (from == .ready && to != .draining) }
}

/// A step of a client's connection as observers see it.
package struct PublishedStep: Equatable, Sendable {
    package let transition: ConnectionTransition
    /// The counts of messages of the connection that ended with the step, if one did.
    package let counts: MessageCounts?

    package init(_ transition: ConnectionTransition, _ counts: MessageCounts? = nil) {
        self.transition = transition
        self.counts = counts
    }
}

/// The counts of messages of a connection that ended.
package struct MessageCounts: Equatable, Sendable {
    /// The number of messages that it had accepted.
    package let accepted: Int
    /// The number of accepted messages that did not reach the peer's system; nil if unknown.
    package let undelivered: Int?

    package init(accepted: Int, undelivered: Int?) {
        self.accepted = accepted
        self.undelivered = undelivered
    }

    init(_ report: ClosureReport) {
        self.init(accepted: report.acceptedFrameCount, undelivered: report.unacknowledgedFrameCount)
    }
}
