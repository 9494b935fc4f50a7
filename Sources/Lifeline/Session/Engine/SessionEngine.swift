internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Drives the machine of one end of a session, which makes all decisions. The engine translates events from any thread
/// into the machine's events, under one lock, and runs the machine's actions.
///
/// The frames of one read take one lock. The engine offers frames to the connection under the lock, so that they leave
/// in the machine's order. If more events are likely to follow, the connection may instead ask for the frames later,
/// after its tasks have run. The engine also ends a connection's sending side under the lock, so that the end comes
/// after the offered frames and before a close by the owner. All other effects run after the lock is released, in the
/// machine's order. Only one thread runs effects at a time; a second one leaves its effects to the first. Effects of
/// the frames of one read run together, after the last frame.
///
/// The engine has no task of its own: it sets a timer while the machine has a deadline, and starts a task to wait while
/// the connection has no room. Both end with the session.
final class SessionEngine: Sendable {
    typealias Receipt = SessionMachine.Receipt

    /// The present connection. The machine has its number.
    struct Outlet {
        let connection: any TransportConnection
        /// The executor of the tasks that its frames wake; nil if it has none of its own.
        let executor: (any TaskExecutor)?
        /// Whether the last offer waits for room.
        var isBlocked = false
        /// Whether the connection will call `offer()` soon.
        var offersLater = false
    }

    /// One of a server's methods.
    struct ServerMethod {
        /// Its number among those of the server.
        let index: Int
        let takesPushes: Bool
        /// Whether its handler does not wait, so that it runs on the connection's loop at once.
        let isSynchronous: Bool
    }

    /// A method of the peer, which frames name by its number.
    struct Route {
        let name: ExactName
        /// The server's method of this name; nil at a client, and if the server has none.
        let method: ServerMethod?
        /// The inbox of its pushes; nil if no reader wants them, or none has arrived.
        var inbox: SessionInbox?
        /// Whether the owner was told that its pushes are unwanted.
        var isToldUnwanted = false
    }

    /// Pushes of lost sessions that no reader has taken yet. They count against no window, so without a limit a server
    /// that loses its sessions again and again could fill the memory. While they exceed what one session takes, the
    /// next connection waits.
    struct Leftovers {
        let limit: SessionWindow
        /// The limit of late replies in bytes for a method that no reader has asked for: half the method's credit.
        let replyLimit: Int
        var size = SessionSize()
        /// Opens when there is room; nil while no connection waits for it.
        var room: Latch<Void>?

        var isExceeded: Bool { size.frameCount > limit.frameCount || size.byteCount > limit.byteCount }
    }

    /// The replies to durable calls of one method whose callers no longer wait.
    struct LateReplies {
        let inbox: SessionInbox
        /// The number of bytes kept before a reader has asked for the replies; nil once one has.
        var keptByteCount: Int? = 0
    }

    /// A group that the client's user follows.
    struct FollowedGroup {
        /// The place of the newest received push.
        var newestPlace: String?
        /// Opens when the client has stopped following the group; nil unless it is about to stop.
        var left: Latch<Void>?
    }

    struct State: ~Copyable {
        var machine: SessionMachine
        /// Decisions of the machine that are not carried out yet.
        var actions: [SessionMachine.Action] = []
        var outlet: Outlet?
        /// Other connections that are not closed yet.
        var otherConnections: [UInt64: any TransportConnection] = [:]
        /// This side's messages whose senders wait, by the machine's numbers.
        var messages: [UInt64: PendingMessage] = [:]
        /// The owner of the session. Weak, because the owner has the engine.
        weak var owner: (any SessionOwner)?
        /// The peer's methods, by their numbers from 1 on.
        var routes: [Route] = []
        /// The inboxes of pushes that users have asked for, by method.
        var pushInboxes: [ExactName: SessionInbox] = [:]
        /// The replies to durable calls whose callers no longer wait, by method.
        var lateReplies: [ExactName: LateReplies] = [:]
        /// The groups that the client's user follows.
        var groups: [ExactName: FollowedGroup] = [:]
        /// The inboxes of parts of the peer's requests, by the requests' counts.
        var requestInboxes = SparseQueue<SessionInbox>()
        var leftovers: Leftovers
        /// Taken messages whose number of processed ones the engine reads when it next offers frames. By then, all
        /// messages of some may be processed.
        var watched: [TakenMessages] = []
        /// The details of the present opening and of the next one.
        var details: SessionMachine.OpeningDetails
        var statistics = SessionStatistics()
        /// The store of durable messages, if any.
        var store: Store?
        /// The error that the store has just thrown, if any.
        var storeError: StoreError?
        /// Opens when the store has everything that was processed; nil while nothing waits for it.
        var stored: Latch<Void>?
        /// Opens with the snapshot for another server when the session ends here, or with nil when it stays; nil unless
        /// the session is about to move.
        var moved: Latch<SessionSnapshot?>?
        /// The deadline that the timer is set for.
        var alarm: (deadline: MonotonicTime, call: SharedTimer.CallID)?

        /// Work for synchronous handlers, in the order of arrival.
        var synchronousWork: [SynchronousWork] = []
        /// Whether a thread does such work. The thread also does the work that is added meanwhile.
        var doesSynchronousWork = false
        /// Whether to tell the owner when no such work is left.
        var tellsEndOfSynchronousWork = false

        var effects: [Effect] = []
        /// Whether a thread runs effects. The thread also runs those that are added meanwhile.
        var runsEffects = false

        init(machine: consuming SessionMachine, details: SessionMachine.OpeningDetails, _ options: SessionOptions) {
            self.machine = machine
            self.details = details
            leftovers = Leftovers(limit: options.inboundWindow, replyLimit: options.inboundCredit / 2)
        }
    }

    /// An effect of an event, which runs after the lock is released.
    enum Effect {
        case resolve(PendingCall, PendingCall.Outcome)
        case resume(PendingMessage.Continuation, SessionError?)
        case wake(Waiter)
        case begin(InboundRequest)
        case doSynchronousWork((any TaskExecutor)?)
        case handlePushes(method: Int, SessionInbox)
        case unwanted(method: String)
        case cancel(IncomingRequest)
        case tell(SessionEngineEvent)
        case waitForRoom(any TransportConnection, id: UInt64, PendingSend)
        case close(any TransportConnection, SessionClosing)
        case makeRoom(Latch<Void>)
        case store(SessionMachine.StoreWork, in: Store)
        case moved(Latch<SessionSnapshot?>, SessionSnapshot?)
    }

    let role: SessionRole
    private let timer: SharedTimer
    /// Finds a server's method by its name; nil at a client, which has none.
    let findMethod: (@Sendable (String) -> ServerMethod?)?
    /// The budget that all sessions of the server share; nil at a client.
    let budget: SharedSessionBudget?
    /// Opens when the owner has been told that the session is over.
    private let ended = Latch<Void>()
    let state: LockedBox<State>

    /// - Parameter snapshot: the session as another server left it; nil for a new session.
    init(
        role: SessionRole,
        options: SessionOptions,
        details: SessionMachine.OpeningDetails,
        snapshot: SessionSnapshot? = nil,
        findMethod: (@Sendable (String) -> ServerMethod?)? = nil,
        budget: SharedSessionBudget? = nil,
        awaitsStore: Bool = false,
        timer: SharedTimer
    ) {
        self.role = role
        self.timer = timer
        self.findMethod = findMethod
        self.budget = budget
        var machine =
            if let snapshot {
                SessionMachine(snapshot, options: options)
            } else {
                SessionMachine(role: role, options: options, awaitsStore: awaitsStore)
            }
        if budget != nil { machine.allowance = .none }
        state = LockedBox(State(machine: machine, details: details, options))
        if let snapshot { takePromises(of: snapshot) }
    }

    deinit {
        guard let budget else { return }
        state.withLock { budget.takeBackAll(of: &$0.machine) }
    }

    /// Sets the owner of the session.
    func attach(_ owner: any SessionOwner) {
        state.withLock { $0.owner = owner }
    }

    var clock: any ClientClock { timer.clock }

    var owner: (any SessionOwner)? { state.withLock { $0.owner } }

    var statistics: SessionStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.keptMessageCount = state.machine.keptSize.frameCount
            statistics.keptByteCount = state.machine.keptSize.byteCount
            statistics.lateMessageCount = state.machine.lateMessageCount
            statistics.droppedPushCount += state.machine.droppedMessageCount
            return statistics
        }
    }

    /// Whether the session was ever opened.
    var wasOpened: Bool { state.withLock { $0.machine.wasOpened } }

    /// Whether the peer has made use of the session.
    var isUsed: Bool { state.withLock { $0.machine.isUsed } }

    /// The present connection, if any.
    var connection: (any TransportConnection)? { state.withLock { $0.outlet?.connection } }

    /// The reason for the session's end; nil until it ends.
    var endReason: SessionEndReason? { state.withLock { $0.machine.endReason } }

    /// Waits until the session is over and its owner has been told, whether or not the task is cancelled.
    func waitUntilEnded() async { await ended.waitUninterrupted() }

    /// Changes the state under the lock, sends the frames that are ready, and then runs the effects.
    ///
    /// - Parameter isOneOfMany: whether similar events are likely to follow. Frames then wait for them if the
    ///   connection will ask for frames soon.
    @inline(__always)
    func change<Result>(isOneOfMany: Bool = false, _ body: (inout State, MonotonicTime) -> Result) -> Result {
        let now = clock.now
        let (result, runs) = state.withLock { state in
            let result = body(&state, now)
            run(&state, now: now)
            return (result, settle(&state, isOneOfMany: isOneOfMany, now: now))
        }
        if runs { runEffects() }
        return result
    }

    /// Sends the frames that are ready, or lets the connection ask for them later. Returns whether to run effects.
    private func settle(_ state: inout State, isOneOfMany: Bool, now: MonotonicTime) -> Bool {
        if state.machine.hasHeldCalls { beginCalls(&state, now: now) }
        if state.moved != nil { goOnMoving(&state, now: now) }
        if state.machine.isDurable { useStore(&state, now: now) }
        if !isOneOfMany || state.machine.wantsOffer(now: now) {
            if !isOneOfMany || !offersLater(&state) { pump(&state, now: now) }
        }
        armTimer(&state)
        giveBackExcess(&state)
        if state.runsEffects || state.effects.isEmpty { return false }
        state.runsEffects = true
        return true
    }

    /// Returns whether the connection will ask for frames soon. A goodbye does not wait for that, because an effect may
    /// close the connection as soon as the lock is released.
    func offersLater(_ state: inout State) -> Bool {
        if state.machine.hasControlFrames { return false }
        if state.outlet?.offersLater == true { return true }
        guard state.outlet?.connection.offerLater(self) == true else { return false }
        state.outlet?.offersLater = true
        return true
    }

    /// Offers deferred frames first, so that the next event sees them as sent if there is room.
    func offerHeld(_ state: inout State, now: MonotonicTime) {
        if state.outlet?.offersLater == true { pump(&state, now: now) }
    }

    private func runEffects() {
        while true {
            let (effects, owner) = state.withLock { state in
                defer { state.effects = [] }
                if state.effects.isEmpty { state.runsEffects = false }
                return (state.effects, state.owner)
            }
            if effects.isEmpty { return }
            for effect in effects { run(effect, owner) }
        }
    }

    private func run(_ effect: Effect, _ owner: (any SessionOwner)?) {
        switch effect {
        case .resolve(let call, let outcome): call.resolve(with: outcome)
        case .resume(let sender, let error): sender.resume(returning: error)
        case .wake(let waiter): waiter.resume()
        case .begin(let request): owner?.begin(request)
        case .doSynchronousWork(let executor):
            Task.detached(executorPreference: executor) { self.doSynchronousWork() }
        case .handlePushes(let method, let inbox): owner?.handlePushes(of: method, from: inbox)
        case .unwanted(let method): owner?.unwanted(method)
        case .cancel(let request): owner?.cancel(request)
        case .tell(let event):
            owner?.received(event)
            if case .ended = event { ended.open(with: ()) }
        case .waitForRoom(let connection, let id, let pending):
            // Detached, so that it has neither the values nor the priority of the task that runs the effects.
            Task.detached {
                // If it throws, the connection is gone, and its end is reported.
                try? await connection.wait(for: pending)
                self.madeRoom(on: id)
            }
        case .close(let connection, let closing): connection.perform(closing)
        case .makeRoom(let latch): latch.open(with: ())
        case .moved(let latch, let snapshot): latch.open(with: snapshot)
        case .store(let work, let store):
            Task.detached { await self.perform(work, in: store) }
        }
    }
}

extension SessionEngine: FrameSource {
    func offer() {
        change { state, now in
            state.outlet?.offersLater = false
            finishWatched(&state, now: now)
        }
    }
}

/// A request of the peer to be handled. A class, because it is passed on several times.
final class InboundRequest: Sendable {
    let request: IncomingRequest
    /// `package.Service/Method`.
    let name: String
    /// The index of the server's method; nil if the server has none of this name.
    let method: Int?
    let deadline: MonotonicTime?
    let metadata: SessionMetadata
    /// Empty if the request has parts.
    let payload: [UInt8]
    /// The parts; nil if it has none.
    let parts: SessionInbox?
    /// The executor of the tasks of the request's connection.
    let executor: (any TaskExecutor)?

    init(
        _ request: IncomingRequest,
        _ message: InboundMessage,
        _ route: SessionEngine.Route,
        deadline: MonotonicTime?,
        parts: SessionInbox?,
        executor: (any TaskExecutor)?
    ) {
        self.request = request
        name = route.name.name
        method = route.method?.index
        self.deadline = deadline
        metadata = message.metadata
        payload = [UInt8](message.payload)
        self.parts = parts
        self.executor = executor
    }
}

/// News of a session for its owner.
enum SessionEngineEvent: Sendable {
    case opened(SessionID, isResumed: Bool)
    /// The peer has forgotten the session, or cannot continue it. Has the reason, and the accepted messages with what
    /// is known of each.
    case lost(SessionError, [SessionMessageInDoubt])
    /// Accepted messages that are longer than the frames that the peer takes. They were accepted before the peer was
    /// known. Comes after `opened`.
    case refused([SessionMessageInDoubt])
    /// Durable messages whose time to live is over.
    case expired([SessionMessageInDoubt])
    /// The peer goes away. Come back after the pause.
    case peerLeaving(pause: Duration)
    case peerViolated(String)
    /// The peer says that this side broke the rules.
    case peerAccused(SessionError)
    /// The session is over.
    case ended(SessionEndReason, [SessionMessageInDoubt])
}

/// The owner of a session: receives its events and starts handlers. Calls come in order, one at a time, without a lock
/// held.
protocol SessionOwner: AnyObject, Sendable {
    /// Handles a request. It must respond in every case.
    func begin(_ request: InboundRequest)
    /// Notes that the peer no longer waits for a response.
    func cancel(_ request: IncomingRequest)
    /// Handles the pushes of a method, of which the first has arrived.
    func handlePushes(of method: Int, from inbox: SessionInbox)
    /// Notes that a push has arrived that no reader wants.
    func unwanted(_ method: String)
    func received(_ event: SessionEngineEvent)

    /// Handles a request of a synchronous method, and returns the response. Calls of this function and of `handle` come
    /// one at a time, but may overlap with the others.
    func answer(_ request: InboundRequest) -> EncodedContent
    /// Handles pushes of a synchronous method.
    func handle(_ pushes: SessionInbox.Run, of method: Int)
    /// Notes that the last of these calls has returned and no more follow. Called only if `endSynchronousWork` returned
    /// false.
    func synchronousWorkEnded()
}

// The timer.
extension SessionEngine {
    private func armTimer(_ state: inout State) {
        guard let next = state.machine.nextDeadline else {
            if state.machine.endReason != nil { stopTimer(&state) }
            return
        }
        if let alarm = state.alarm, alarm.deadline <= next { return }
        stopTimer(&state)
        state.alarm = (next, timer.run(at: next) { self.timerFired(next) })
    }

    private func stopTimer(_ state: inout State) {
        if let alarm = state.alarm.take() { timer.cancel(alarm.call) }
    }

    private func timerFired(_ deadline: MonotonicTime) {
        change { state, now in
            // Another timer may have been set meanwhile.
            guard state.alarm?.deadline == deadline else { return }
            state.alarm = nil
            offerHeld(&state, now: now)
            state.machine.timerFired(now: now, into: &state.actions)
        }
    }
}
