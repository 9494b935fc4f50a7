internal import LifelineCore
internal import LifelineProtos
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Drives the machine of one end of a session, which makes all decisions: translates events from any thread into the
/// machine's, under one lock, and runs its actions.
///
/// What there is to send is offered under the lock, so that frames go out in the machine's order. Where many events are
/// to be expected, the connection may ask for it later instead, once the tasks that it runs have run. A connection's
/// side is ended under it, too, so that the end comes behind what was offered and before a close by the owner. All
/// other effects run after the lock is free, in the machine's order: only one thread runs effects at a time, and a
/// second one leaves its effects to the first. Effects of the frames of one read run together, after the last frame.
///
/// Nothing runs by itself: a timer is set while the machine has a deadline, and a task waits where the connection has
/// no room. Both end with the session.
final class SessionEngine: Sendable {
    typealias Machine = SessionMachine<SessionPayload, PendingCall>
    typealias Receipt = Machine.Receipt

    /// The present connection. The machine has its number.
    struct Outlet {
        let connection: any TransportConnection
        /// Whether what was offered last waits for room.
        var isBlocked = false
        /// Whether it asks for what there is to send before long.
        var offersLater = false
    }

    struct State {
        var machine: Machine
        var outlet: Outlet?
        /// Other connections that are not closed yet.
        var otherConnections: [UInt64: any TransportConnection] = [:]
        /// Those of this side's that are told of at their end.
        var pushes: [Machine.Number: PendingPush] = [:]
        /// What goes with the next opening.
        var details: SessionOpeningDetails
        var statistics = SessionStatistics()
        /// When the timer rings.
        var armedDeadline: MonotonicTime?
        var timer: Task<Void, Never>?

        var effects: [Effect] = []
        /// Whether a thread runs effects, and goes on with those that are added.
        var runsEffects = false
        /// Where frames are put together.
        var buffer: [UInt8] = []
    }

    /// An effect of an event, which runs after the lock is released.
    enum Effect {
        case resolve(PendingCall, Result<Lifeline_Session_V1_Response, SessionError>)
        case admit(Latch<SessionError?>, SessionError?)
        case deliver(Lifeline_Session_V1_Push, Receipt, PendingCall?)
        case begin(IncomingRequest, deadline: MonotonicTime?, Lifeline_Session_V1_Request)
        case refuse(IncomingRequest, RequestRefusal)
        case cancel(IncomingRequest)
        case tell(SessionEngineEvent)
        case waitForRoom(any TransportConnection, id: UInt64, PendingSend)
        case close(any TransportConnection, SessionClosing)
        case setTimer(MonotonicTime)
    }

    let clock: any ClientClock
    /// The owner of the session. Weak, as it has the engine.
    private let owner: NIOLockedValueBox<WeakOwner>
    /// What all sessions of the server share; nil at a client.
    let budget: SharedSessionBudget?
    /// Opens when the owner has been told that the session is over.
    private let ended = Latch<Void>()
    let state: NIOLockedValueBox<State>

    private struct WeakOwner {
        weak var owner: (any SessionOwner)?
    }

    init(
        role: Machine.Role,
        options: SessionOptions,
        details: SessionOpeningDetails,
        budget: SharedSessionBudget? = nil,
        clock: any ClientClock
    ) {
        self.clock = clock
        self.budget = budget
        owner = NIOLockedValueBox(WeakOwner())
        var machine = Machine(role: role, options: options)
        if budget != nil { machine.allowance = .none }
        state = NIOLockedValueBox(State(machine: machine, details: details))
    }

    deinit {
        guard let budget else { return }
        state.withLockedValue { budget.takeBackAll(of: &$0.machine) }
    }

    /// Sets the owner of the session.
    func attach(_ owner: any SessionOwner) {
        self.owner.withLockedValue { $0.owner = owner }
    }

    var statistics: SessionStatistics {
        state.withLockedValue { state in
            var statistics = state.statistics
            statistics.keptMessageCount = state.machine.outbound.keptSize.frameCount
            statistics.keptByteCount = state.machine.outbound.keptSize.byteCount
            statistics.lateMessageCount = state.machine.lateMessageCount
            statistics.duplicateMessageCount = state.machine.inbound.duplicateCount
            statistics.droppedPushCount += state.machine.droppedPushCount
            return statistics
        }
    }

    /// Whether the session was ever opened.
    var wasOpened: Bool { state.withLockedValue { $0.machine.wasOpened } }

    /// Whether the peer has made use of the session.
    var isUsed: Bool { state.withLockedValue { $0.machine.isUsed } }

    /// The connection that stands; nil while there is none.
    var connection: (any TransportConnection)? { state.withLockedValue { $0.outlet?.connection } }

    /// Why the session is over; nil while it is not.
    var endReason: SessionEndReason? { state.withLockedValue { $0.machine.endReason } }

    /// Waits until the session is over and its owner has been told, whatever happens to the task.
    func waitUntilEnded() async { await ended.waitUninterrupted() }

    /// Changes the state under the lock, sends what there is to send, and runs what comes of it after.
    ///
    /// - Parameter isOneOfMany: whether others like it are to be expected, so that what there is to send may wait for
    ///   them where the connection says so.
    func change<Result>(isOneOfMany: Bool = false, _ body: (inout State, MonotonicTime) -> Result) -> Result {
        let now = clock.now
        let (result, runs) = state.withLockedValue { state in
            let result = body(&state, now)
            if !isOneOfMany || !offersLater(&state) { pump(&state, now: now) }
            armTimer(&state)
            giveBackExcess(&state)
            let runs = !state.runsEffects && !state.effects.isEmpty
            if runs { state.runsEffects = true }
            return (result, runs)
        }
        if runs { runEffects() }
        return result
    }

    /// Whether the connection has the session offer what there is to send before long. Not a goodbye: what is done once
    /// the lock is free may close the connection.
    private func offersLater(_ state: inout State) -> Bool {
        if state.machine.hasControlFrames { return false }
        if state.outlet?.offersLater == true { return true }
        guard state.outlet?.connection.offerLater(self) == true else { return false }
        state.outlet?.offersLater = true
        return true
    }

    /// Offers deferred frames first, so that what follows sees them as sent where there is room.
    func offerHeld(_ state: inout State, now: MonotonicTime) {
        if state.outlet?.offersLater == true { pump(&state, now: now) }
    }

    private func runEffects() {
        while true {
            let effects = state.withLockedValue { state in
                defer { state.effects = [] }
                if state.effects.isEmpty { state.runsEffects = false }
                return state.effects
            }
            if effects.isEmpty { return }
            let owner = owner.withLockedValue { $0.owner }
            for effect in effects { run(effect, owner) }
        }
    }

    private func run(_ effect: Effect, _ owner: (any SessionOwner)?) {
        switch effect {
        case .resolve(let call, let result): call.resolve(with: result)
        case .admit(let latch, let error): latch.open(with: error)
        case .deliver(let push, let receipt, let call):
            let item = SessionInbox.Item(push: push, receipt: receipt)
            let inbox = push.serial == 0 ? owner?.inbox(for: push) : call?.inbox
            if inbox?.append(item) != true { finish(receipt) }
        case .begin(let request, let deadline, let content): owner?.begin(request, deadline: deadline, content)
        case .refuse(let request, let refusal): refuse(request, refusal)
        case .cancel(let request): owner?.cancel(request)
        case .tell(let event):
            owner?.received(event)
            if case .ended = event { ended.open(with: ()) }
        case .waitForRoom(let connection, let id, let pending):
            // Detached, as the timer is: this may be anybody's task, whose values and priority are its own.
            Task.detached {
                // Where it throws, the connection is gone, and its end is reported.
                try? await connection.wait(for: pending)
                self.madeRoom(on: id)
            }
        case .close(let connection, let closing): connection.perform(closing)
        case .setTimer(let deadline): setTimer(deadline)
        }
    }
}

extension SessionEngine: FrameSource {
    func offer() {
        change { state, _ in state.outlet?.offersLater = false }
    }
}

/// What a session tells its owner.
enum SessionEngineEvent: Sendable {
    case opened(SessionID, isResumed: Bool)
    /// The peer has forgotten the session, or cannot go on with it: why, and what is known of messages that had been
    /// accepted.
    case lost(SessionError, [SessionMessageInDoubt])
    /// Messages that were accepted before the peer was known, which takes no frames of their length. Comes after
    /// `opened`.
    case refused([SessionMessageInDoubt])
    /// The peer goes away: come back after the pause.
    case peerLeaving(pause: Duration)
    case peerViolated(String)
    /// The peer says that this side broke the rules.
    case peerAccused(SessionError)
    /// The session is over.
    case ended(SessionEndReason, [SessionMessageInDoubt])
}

/// The owner of a session: receives its events and starts handlers. Called in order, one call at a time, without a lock
/// held.
protocol SessionOwner: AnyObject, Sendable {
    /// Where a push that belongs to no request goes; nil when nobody wants it.
    func inbox(for push: Lifeline_Session_V1_Push) -> SessionInbox?
    func begin(_ request: IncomingRequest, deadline: MonotonicTime?, _ content: Lifeline_Session_V1_Request)
    func cancel(_ request: IncomingRequest)
    func received(_ event: SessionEngineEvent)
}

// The timer.
extension SessionEngine {
    private func armTimer(_ state: inout State) {
        guard let next = state.machine.nextDeadline else {
            if state.machine.endReason != nil { stopTimer(&state) }
            return
        }
        if let armed = state.armedDeadline, armed <= next { return }
        state.armedDeadline = next
        state.effects.append(.setTimer(next))
    }

    private func stopTimer(_ state: inout State) {
        state.armedDeadline = nil
        state.timer.take()?.cancel()
    }

    private func setTimer(_ deadline: MonotonicTime) {
        let timer = Task.detached {
            do {
                try await self.clock.sleep(until: deadline)
                self.timerFired(deadline)
            } catch {
                // A new one was set, or the session has ended.
            }
        }
        let replaced = state.withLockedValue { state in
            if state.armedDeadline != deadline { return timer as Task<Void, Never>? }
            defer { state.timer = timer }
            return state.timer
        }
        replaced?.cancel()
    }

    private func timerFired(_ deadline: MonotonicTime) {
        change { state, now in
            guard state.armedDeadline == deadline else { return }
            state.armedDeadline = nil
            offerHeld(&state, now: now)
            run(state.machine.timerFired(now: now), in: &state)
        }
    }
}
