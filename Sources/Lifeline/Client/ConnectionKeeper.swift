internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import Metrics
internal import NIOConcurrencyHelpers

/// Keeps a connection to an endpoint: drives `ClientMachine` with real sockets, time and network.
///
/// Any thread may report an event. The machine handles it under a lock, and its actions run after the lock is released.
/// Steps are added to the history under the lock, so that they stay in order. The keeper decides nothing.
final class ConnectionKeeper: Sendable {
    typealias ConnectionID = ClientMachine.ConnectionID

    /// A connection that takes messages.
    struct DirectPath {
        let connection: any TransportConnection
        let id: ConnectionID
    }

    struct State {
        var machine: ClientMachine
        /// The machine's present attempt, until the next one.
        var attempt: KeptAttempt?
        /// The connection that it has led to.
        var connection: (any TransportConnection)?
        /// The attempt that `run` is to begin.
        var nextAttempt: KeptAttempt?
        /// Messages received on all connections that have ended.
        var receivedCount = 0
        /// The time at which the timer fires; nil when it is not set.
        var armedDeadline: MonotonicTime?
        var isFinished = false
    }

    let endpoint: Endpoint
    let environment: ClientEnvironment
    let logger: Logger
    let options: ConnectionOptions
    let layers: ClientLayers
    let history = ClientHistory()
    private let metrics: ClientMetrics
    /// Messages that wait for a connection; nil where none do.
    private let sends: WaitingSends?
    /// Called after a step was published.
    private let whenPublished: @Sendable () -> Void
    /// Called when the connection is closed for good.
    private let whenFinished: @Sendable () -> Void
    /// Rings when the loop of `run` has something to do.
    let loopBell = Doorbell()
    /// Rings when the timer has to be set anew.
    let timerBell = Doorbell()
    /// Opens when the connection is closed for good.
    private let finished = Latch<Void>()
    let state: NIOLockedValueBox<State>

    /// - Parameters:
    ///   - types: the message types of the connections.
    ///   - maximumFrameLength: the most bytes that a received frame may have.
    ///   - sendsPings: whether there are heartbeat messages to ask the peer with.
    ///   - maximumPause: the longest pause that the peer may ask for.
    init(
        to endpoint: Endpoint,
        configuration: ClientConfiguration,
        carrying types: CarriedTypes,
        maximumFrameLength: Int,
        sendsPings: Bool,
        maximumPause: Duration = .zero,
        sends: WaitingSends? = nil,
        environment: ClientEnvironment,
        logger: Logger,
        whenPublished: @escaping @Sendable () -> Void = {},
        whenFinished: @escaping @Sendable () -> Void = {}
    ) {
        self.endpoint = endpoint
        self.environment = environment
        self.sends = sends
        self.whenPublished = whenPublished
        self.whenFinished = whenFinished
        var logger = logger
        logger[metadataKey: "endpoint"] = "\(endpoint)"
        self.logger = logger
        let metricsFactory = environment.metricsFactory ?? MetricsSystem.factory
        metrics = ClientMetrics(factory: metricsFactory)
        options = configuration.connection.transportOptions(
            maximumFrameLength: maximumFrameLength,
            hasHeartbeat: sendsPings,
            tracksDelivery: true,
            metrics: TransportMetrics(role: "client", factory: metricsFactory)
        )
        layers = ClientLayers(configuration.connection, endpoint: endpoint, carrying: types)
        var machine = ClientMachine.Configuration()
        machine.backoff = configuration.backoff
        machine.sendQueue = configuration.sendQueue
        machine.closeTimeout = configuration.connection.closeTimeout
        machine.maximumPause = maximumPause
        machine.sleepWatchInterval = sendsPings ? configuration.connection.heartbeat.interval : nil
        state = NIOLockedValueBox(
            State(
                machine: ClientMachine(
                    machine,
                    seed: environment.seed,
                    hasNetwork: environment.network.isAvailableAtFirst
                )
            )
        )
    }

    var clock: any ClientClock { environment.clock }
    var executor: any TaskExecutor { environment.transport.executor ?? globalConcurrentExecutor }

    // MARK: Observing

    /// The state of the connection.
    var connectionState: ConnectionState { state.withLockedValue { $0.machine.state } }

    /// The number of messages that wait for a connection.
    var queuedCount: Int { state.withLockedValue { $0.machine.queuedCount } }

    /// The connection that takes messages without a detour, if there is one.
    var directPath: DirectPath? {
        state.withLockedValue { state in
            guard let id = state.machine.directPath, let connection = state.connection else { return nil }
            return DirectPath(connection: connection, id: id)
        }
    }

    // MARK: The user

    /// Begins `run()`.
    ///
    /// - Throws: `alreadyRun` for a second time.
    func start() throws(ConnectionError) {
        let result = update { (state, now) -> (Result<Void, ConnectionError>, [ClientMachine.Action]) in
            do throws(ConnectionError) {
                return (.success(()), try state.machine.start(now: now))
            } catch {
                return (.failure(error), [])
            }
        }
        try result.get()
    }

    func reconnect() { change { $0.reconnectRequested(now: $1) } }

    /// Reports that the peer goes away, and asks for this pause before the next attempt.
    func peerLeaving(pause: Duration) {
        change { machine, now in
            machine.peerLeaving(pause: pause, now: now)
            return []
        }
    }

    /// Closes in order, or joins a close that is under way.
    func beginClose() { change { $0.closeRequested(now: $1) } }

    /// Closes in order, or joins a close that is under way. Returns when it is closed; cancelling the task cuts the
    /// connection.
    func close() async { await waitUntilClosed { $0.closeRequested(now: $1) } }

    /// The user's own `close()`: a second one cuts the connection.
    func closeByUser() async { await waitUntilClosed { $0.closedByUser(now: $1) } }

    private func waitUntilClosed(after event: (inout ClientMachine, MonotonicTime) -> [ClientMachine.Action]) async {
        await withTaskCancellationHandler {
            change(event)
            await finished.waitUninterrupted()
        } onCancel: {
            change { $0.cutRequested(now: $1) }
        }
    }

    /// Ends the keeper: the connection is closed, and nothing runs any more.
    func finish() {
        whenFinished()
        finished.open(with: ())
    }
}

/// An attempt to connect, and the connection that it leads to.
final class KeptAttempt: Sendable {
    let id: ClientMachine.ConnectionID
    /// Opens when the attempt is given up.
    let givenUp = Latch<ConnectionError>()

    init(id: ClientMachine.ConnectionID) {
        self.id = id
    }
}

// Events, and what the machine decides.
extension ConnectionKeeper {
    /// Reports an event to the machine, and runs the actions that it returns. Returns them too.
    @discardableResult
    func change(_ event: (inout ClientMachine, MonotonicTime) -> [ClientMachine.Action]) -> [ClientMachine.Action] {
        update { state, now in
            let actions = event(&state.machine, now)
            return (actions, actions)
        }
    }

    /// Offers a send to the machine, and lets `body` handle the decision under the lock.
    func offerSend<Value>(_ body: (inout ClientMachine, MonotonicTime) -> Value) -> Value {
        update { (body(&$0.machine, $1), []) }
    }

    /// Changes the state under the lock and runs actions after it.
    func update<Value>(_ body: (inout State, MonotonicTime) -> (Value, [ClientMachine.Action])) -> Value {
        let now = clock.now
        var effects = Effects()
        let value = state.withLockedValue { state in
            let queuedCount = state.machine.queuedCount
            let (value, actions) = body(&state, now)
            prepare(actions, &state, &effects)
            effects.changesQueuedCount = state.machine.queuedCount != queuedCount
            if let next = state.machine.nextDeadline, state.armedDeadline.map({ next < $0 }) ?? true {
                state.armedDeadline = next
                effects.setsTimer = true
            }
            return value
        }
        run(effects)
        return value
    }

    /// The effects of an event, which run after the lock is released.
    private struct Effects {
        var actions: [ClientMachine.Action] = []
        var attempt: KeptAttempt?
        var connection: (any TransportConnection)?
        var wakeups: [ClientHistory.Wakeup] = []
        var isReconnect = false
        var hasStarted = false
        var changesQueuedCount = false
        var setsTimer = false
    }

    /// Does what has to be in the order of the events.
    private func prepare(_ actions: [ClientMachine.Action], _ state: inout State, _ effects: inout Effects) {
        if actions.isEmpty { return }
        effects.actions = actions
        (effects.attempt, effects.connection) = (state.attempt, state.connection)
        effects.isReconnect = (state.machine.attemptID ?? 0) > 1
        effects.hasStarted = state.machine.hasStarted
        for action in actions {
            switch action {
            case .publish(let step):
                effects.wakeups.append(history.append(step, messagesBefore: state.receivedCount))
            case .connect(let id):
                let attempt = KeptAttempt(id: id)
                (state.attempt, state.nextAttempt) = (attempt, attempt)
            case .handOver(let send, _): sends?.willHandOver(send)
            case .finish: state.isFinished = true
            case .transition, .use, .abort, .close, .probe, .withdraw, .endSend: break
            }
        }
    }

    private func run(_ effects: Effects) {
        for action in effects.actions {
            switch action {
            case .transition(let step): metrics.record(step, isReconnect: step.to == .connecting && effects.isReconnect)
            case .publish: break
            case .connect: loopBell.ring()
            case .use: break
            case .abort(_, let reason):
                effects.attempt?.givenUp.open(with: reason.asError)
                effects.connection?.abort(reason.asError)
            case .close: effects.connection?.close()
            case .probe: effects.connection?.probe()
            case .handOver: break
            case .withdraw(let send): sends?.withdraw(send)
            case .endSend(let ended, let connection):
                sends?.end(ended, by: connection) { code in state.withLockedValue { $0.machine.error(for: code) } }
            case .finish:
                // The loop calls `finish()` when the last attempt's tasks have ended. Without a loop, it is called
                // here.
                if effects.hasStarted { loopBell.ring() } else { finish() }
            }
        }
        for wakeup in effects.wakeups { wakeup.run() }
        if !effects.wakeups.isEmpty { whenPublished() }
        if effects.setsTimer { timerBell.ring() }
        if effects.changesQueuedCount { metrics.record { self.queuedCount } }
    }
}
