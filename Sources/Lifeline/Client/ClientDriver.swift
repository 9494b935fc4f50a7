internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Drives a client's machines: takes events under one lock, and runs what they decide after it, so that any thread may
/// report one.
///
/// What a decision changes here (history, queue, which attempt is next) changes under the lock, in order. What runs after
/// it are calls that may come in any order: cutting, closing and probing connections, and waking tasks.
final class ClientDriver: Sendable {
    /// An attempt to connect, and the connection that it leads to.
    final class Attempt: Sendable {
        let id: ConnectionManager.ConnectionID
        /// Opens when it is given up.
        let givenUp = Latch<ConnectionError>()

        init(id: ConnectionManager.ConnectionID) {
            self.id = id
        }
    }

    /// A connection that stands, or is being closed.
    struct Open {
        let attempt: Attempt
        let connection: any TransportConnection
        /// It refused a message: it is about to be reported as closed.
        var hasFailed = false
        /// The step that ended it, when that was made before it was known what is lost.
        var heldStep: UInt64?
        /// Until when it may write on after the peer's end; nil when the peer has not ended, and once it is cut.
        var closeDeadline: MonotonicTime?
    }

    /// Where a message may go without a detour.
    struct DirectPath {
        let connection: any TransportConnection
        let id: ConnectionManager.ConnectionID
    }

    /// A message in the queue, and who waits for its end: nil to try the connection again.
    struct WaitingSend {
        let frame: [UInt8]
        let continuation: CheckedContinuation<SendEnd?, any Error>
    }

    struct State {
        var manager: ConnectionManager
        var queue: SendQueue
        var hasStarted = false
        /// Whether the user has called `close()`.
        var userHasClosed = false
        /// Whether there was an attempt to connect.
        var hasTried = false
        /// The manager's present attempt.
        var attempt: Attempt?
        /// The attempt that the run loop is to begin.
        var nextAttempt: Attempt?
        var open: Open?
        /// The attempt whose connection the peer has ended before it was known here.
        var endedEarly: ConnectionManager.ConnectionID?
        /// Not nil when the connection stands and nothing waits for it.
        var direct: DirectPath?
        var waiting: [SendQueue.ID: WaitingSend] = [:]
        /// Opens when whoever sent the message in hand gives it up.
        var withdrawal: Latch<Void>?
        /// Messages received on all connections that have ended.
        var receivedCount = 0
        var sleepWatch: SleepWatch?
        /// What the timer sleeps until; nil: it does not.
        var armedDeadline: MonotonicTime?

        var nextDeadline: MonotonicTime? {
            let latest = MonotonicTime(nanoseconds: .max)
            let next = min(
                manager.nextDeadline ?? latest,
                queue.nextDeadline ?? latest,
                open?.closeDeadline ?? latest,
                sleepWatch?.deadline ?? latest
            )
            return next == latest ? nil : next
        }
    }

    let clock: any ClientClock
    let history = ClientHistory()
    let metrics: ClientMetrics
    /// Ends the messages after what has arrived.
    private let finishInbox: @Sendable () -> Void
    /// How long a connection may write on after the peer's end, before the next attempt.
    let closeTimeout: Duration
    /// How often to look whether the machine has slept; nil when there is no heartbeat to ask with.
    let sleepWatchInterval: Duration?
    /// The loop of `run()` has something to do.
    let loopBell = Doorbell()
    /// The timer has to be set anew.
    let timerBell = Doorbell()
    /// A step was made.
    let observerBell: Doorbell
    /// The connection is closed for good.
    let closed = Latch<Void>()
    let state: NIOLockedValueBox<State>

    init(
        configuration: ClientConfiguration,
        sleepWatchInterval: Duration?,
        clock: any ClientClock,
        metrics: ClientMetrics,
        seed: UInt64,
        hasNetwork: Bool,
        observerBell: Doorbell,
        finishInbox: @escaping @Sendable () -> Void
    ) {
        self.observerBell = observerBell
        self.finishInbox = finishInbox
        self.clock = clock
        self.metrics = metrics
        self.sleepWatchInterval = sleepWatchInterval
        closeTimeout = configuration.connection.closeTimeout.clamped(atLeast: .milliseconds(1))
        state = NIOLockedValueBox(
            State(
                manager: ConnectionManager(backoff: configuration.backoff, seed: seed, hasNetwork: hasNetwork),
                queue: SendQueue(configuration.sendQueue)
            )
        )
    }

    /// Where the connection stands.
    var connectionState: ConnectionState { state.withLockedValue { $0.manager.state } }

    /// Why an input that ends in order does so now: asked before the end is reported.
    var reasonOfInputEnd: ConnectionError {
        switch connectionState {
        case .draining, .closed: .clientClosed
        default: .peerEnded
        }
    }

    /// How many messages wait for a connection.
    var queuedCount: Int { state.withLockedValue { $0.queue.count } }

    /// It is closed, and there is no connection any more.
    func finish() {
        finishInbox()
        closed.open(with: ())
    }

    /// Changes the state under the lock and runs what comes of it after.
    func change<Result>(_ body: (inout State, inout Effects, MonotonicTime) -> Result) -> Result {
        var effects = Effects()
        let now = clock.now
        let result = state.withLockedValue { state in
            let queuedCount = state.queue.count
            let result = body(&state, &effects, now)
            effects.changesQueuedCount = state.queue.count != queuedCount
            if let next = state.nextDeadline, state.armedDeadline.map({ next < $0 }) ?? true {
                state.armedDeadline = next
                effects.setsTimer = true
            }
            return result
        }
        effects.run(for: self)
        return result
    }
}

extension ClientDriver {
    /// What is to be done once the lock is free.
    struct Effects {
        var givenUp: [(attempt: Attempt, reason: ConnectionError)] = []
        var aborted: [(connection: any TransportConnection, reason: ConnectionError)] = []
        var closing: [any TransportConnection] = []
        var probed: [any TransportConnection] = []
        var endedSends: [(send: WaitingSend, result: Result<SendEnd?, any Error>)] = []
        var withdrawals: [Latch<Void>] = []
        var wakeups: [ClientHistory.Wakeup] = []
        var transitions: [(step: ConnectionTransition, isReconnect: Bool)] = []
        var changesQueuedCount = false
        var wakesLoop = false
        var setsTimer = false
        /// Closed, and nothing runs that would tell.
        var isClosed = false

        func run(for driver: ClientDriver) {
            for (attempt, reason) in givenUp { attempt.givenUp.open(with: reason) }
            for (connection, reason) in aborted { connection.abort(reason) }
            for connection in closing { connection.close() }
            for connection in probed { connection.probe() }
            for wakeup in wakeups { wakeup.run() }
            if !wakeups.isEmpty { driver.observerBell.ring() }
            for withdrawal in withdrawals { withdrawal.open(with: ()) }
            for (send, result) in endedSends { send.continuation.resume(with: result) }
            if wakesLoop { driver.loopBell.ring() }
            if setsTimer { driver.timerBell.ring() }
            if isClosed { driver.finish() }
            for (step, isReconnect) in transitions { driver.metrics.record(step, isReconnect: isReconnect) }
            if changesQueuedCount { driver.metrics.record { driver.queuedCount } }
        }
    }
}
