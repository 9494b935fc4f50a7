/// Every decision of a client in one value: when to connect, what becomes of sends, how a connection is closed, and
/// what observers are told of it.
///
/// It knows no sockets, clocks, timers, locks or tasks. A driver reports events with the time at which they happened,
/// runs the actions that they return, in order, and calls `timerFired` when `nextDeadline` has come.
///
/// - There is one connection at a time: the next attempt begins when the driver has reported the end of the one before.
/// - What is reported of another connection than the present one comes late, and is ignored.
/// - A time before the latest one reported counts as the latest one.
package struct ClientMachine: Sendable {
    /// The number of an attempt to connect, and of the connection that it leads to: 1, 2, 3 and so on.
    package typealias ConnectionID = ConnectionManager.ConnectionID

    /// What a client's decisions depend on.
    package struct Configuration: Sendable {
        /// How to try to connect again.
        package var backoff = BackoffConfiguration()
        /// How much may wait for a connection.
        package var sendQueue = SendQueueConfiguration()
        /// How long a connection may write on after the peer's end. At least 1 ms.
        package var closeTimeout = Duration.seconds(5)
        /// The shortest sleep of the machine after which the peer is probed; nil where it cannot be.
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
        /// Why the attempt was given up; nil while it goes on.
        var givenUp: TransitionReason?
    }

    /// A connection that stands, or is being closed.
    struct Open {
        let id: ConnectionID
        /// Until when it may write on after the peer's end; nil when the peer has not ended, and once it is cut.
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
        /// The client is closed, and nothing of it is left. Can go to: nothing.
        case over
    }

    private let closeTimeout: Duration
    private let sleepWatchInterval: Duration?
    let maximumPause: Duration
    var manager: ConnectionManager
    var queue: SendQueue
    var link = Link.none
    /// The attempt that begins when the connection before it is gone.
    var nextAttempt: ConnectionID?
    /// Steps that observers are not told of yet: the first one ended a connection of which it is not known what was
    /// lost.
    private var heldSteps: [ConnectionTransition] = []
    /// Looks whether the machine has slept, while there is a connection whose peer can be asked.
    package internal(set) var sleepWatch: SleepWatch?
    /// Whether the user has called `run()`.
    package private(set) var hasStarted = false
    /// Whether the user has called `close()`.
    var hasUserClosed = false

    /// Makes a machine that waits for `start`.
    ///
    /// - Parameters:
    ///   - seed: what the jitter of delays follows from.
    ///   - hasNetwork: whether the peer can be reached as far as is known. It stays true for a peer that needs no
    ///     network.
    package init(_ configuration: Configuration, seed: UInt64, hasNetwork: Bool) {
        closeTimeout = configuration.closeTimeout.clamped(atLeast: .milliseconds(1))
        sleepWatchInterval = configuration.sleepWatchInterval
        maximumPause = configuration.maximumPause.clamped(atLeast: .zero)
        manager = ConnectionManager(backoff: configuration.backoff, seed: seed, hasNetwork: hasNetwork)
        queue = SendQueue(configuration.sendQueue)
    }

    /// What to do.
    package enum Action: Equatable, Sendable {
        /// A step was made. Observers are told of it by `publish`, which may come later.
        case transition(ConnectionTransition)
        /// Tell observers of this step.
        case publish(PublishedStep)
        /// Begin to connect; report `connected` or `connectFailed`.
        case connect(ConnectionID)
        /// Take what this connection brings, and use it.
        case use(ConnectionID)
        /// Give this attempt or connection up at once, dropping what is not written; report its end.
        case abort(ConnectionID, TransitionReason)
        /// Write what this connection has accepted, close it in order, and report `connectionClosed`.
        case close(ConnectionID)
        /// Ask the peer of this connection for a sign of life, where it can be asked.
        case probe(ConnectionID)
        /// Offer this send to the connection; report `handOverEnded`.
        case handOver(SendQueue.ID, to: ConnectionID)
        /// Take the send that is in hand back from the connection, if that has not accepted it; report `handOverEnded`.
        case withdraw(SendQueue.ID)
        /// This send, which waited, has ended. A connection has accepted it where there is one.
        case endSend(SendQueue.Ended, by: ConnectionID?)
        /// The client is closed, and nothing of it is left.
        case finish
    }

    // MARK: Observing

    /// Where the connection stands.
    package var state: ConnectionState { manager.state }

    /// The attempt or connection that is wanted now: the driver may have the one before it still.
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

    /// How many sends wait for a connection.
    package var queuedCount: Int { queue.count }

    /// When `timerFired` is to be called; nil: not until there was another event.
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

    /// Until when a connection may write on after the peer's end.
    package var closeDeadline: MonotonicTime? {
        if case .open(let open) = link { open.closeDeadline } else { nil }
    }

    /// Why an input that ends in order does so now. Ask before `inputEnded`.
    package var reasonOfInputEnd: ConnectionError {
        switch manager.state {
        case .draining, .closed: .clientClosed
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff, .gaveUp: .peerEnded
        }
    }

    // MARK: The user

    /// `run()` begins.
    ///
    /// - Throws: `alreadyRun` for a second time.
    package mutating func start(now: MonotonicTime) throws(ConnectionError) -> [Action] {
        if hasStarted { throw .alreadyRun }
        hasStarted = true
        let now = manager.observe(now)
        return perform(manager.start(now: now), now)
    }

    /// The user wants a new connection.
    package mutating func reconnectRequested(now: MonotonicTime) -> [Action] {
        let now = manager.observe(now)
        return cutClosing(.reconnectRequested) + perform(manager.reconnectRequested(now: now), now)
    }
}

// What the events have in common.
extension ClientMachine {
    /// Makes of the manager's decisions what the driver is to do.
    mutating func perform(_ decisions: [ConnectionManager.Action], _ now: MonotonicTime) -> [Action] {
        actions(for: decisions, now) + beginAttemptOrFinish()
    }

    /// The same without what follows where no connection is in the way any more: see `beginAttemptOrFinish`.
    ///
    /// - Parameter counts: what became of the messages of the connection that has just ended, if one has.
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

    /// Begins the next attempt, or ends, where no connection is in the way any more.
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

    /// Tells observers of a step, unless it is not known yet what was lost with it, or with one before it.
    private mutating func publish(_ step: ConnectionTransition, _ counts: MessageCounts?) -> [Action] {
        var hasConnection = false
        if case .open = link { hasConnection = true }
        if !heldSteps.isEmpty || (hasConnection && step.endsConnection) {
            heldSteps.append(step)
            return []
        }
        return [.publish(PublishedStep(step, counts))]
    }

    /// It is known what was lost with the step that is held back. Nil: none is.
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

    /// The connection's own timeout counts from the last progress, which a peer that has ended can make for ever.
    func closeDeadline(from now: MonotonicTime) -> MonotonicTime { now + closeTimeout }
}

extension ConnectionTransition {
    /// Whether there was a connection before it, and none after.
    package var endsConnection: Bool { from == .draining || (from == .ready && to != .draining) }
}

/// A step of a client's connection as observers see it.
package struct PublishedStep: Equatable, Sendable {
    package let transition: ConnectionTransition
    /// What became of the messages of the connection that ended with the step, if one did.
    package let counts: MessageCounts?

    package init(_ transition: ConnectionTransition, _ counts: MessageCounts? = nil) {
        self.transition = transition
        self.counts = counts
    }
}

/// What became of the messages of a connection that ended.
package struct MessageCounts: Equatable, Sendable {
    /// Those that it had accepted.
    package let accepted: Int
    /// Those of them that did not reach the peer's system; nil where that is not known.
    package let undelivered: Int?

    package init(accepted: Int, undelivered: Int?) {
        self.accepted = accepted
        self.undelivered = undelivered
    }

    init(_ report: ClosureReport) {
        self.init(accepted: report.acceptedFrameCount, undelivered: report.unacknowledgedFrameCount)
    }
}
