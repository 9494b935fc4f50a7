internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Drives the machine of one end of a session, which makes all decisions: translates events from any thread into the
/// machine's, under one lock, and runs its actions.
///
/// All frames of a read take one lock. What there is to send is offered under the lock, so that frames go out in the
/// machine's order. Where many events are to be expected, the connection may ask for it later instead, once the tasks
/// that it runs have run. A connection's side is ended under it, too, so that the end comes behind what was offered and
/// before a close by the owner. All other effects run after the lock is free, in the machine's order: only one thread
/// runs effects at a time, and a second one leaves its effects to the first. Effects of the frames of one read run
/// together, after the last frame.
///
/// Nothing runs by itself: a timer is set while the machine has a deadline, and a task waits where the connection has
/// no room. Both end with the session.
final class SessionEngine: Sendable {
    typealias Receipt = SessionMachine.Receipt

    /// The present connection. The machine has its number.
    struct Outlet {
        let connection: any TransportConnection
        /// What runs the tasks that its frames wake; nil: nothing of its own.
        let executor: (any TaskExecutor)?
        /// Whether what was offered last waits for room.
        var isBlocked = false
        /// Whether it asks for what there is to send before long.
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

    /// A method of the peer's, which frames name by its number.
    struct Route {
        let name: ExactName
        /// Which of this server's methods it is; nil at a client, and for one that the server does not have.
        let method: ServerMethod?
        /// Where its pushes go; nil: nobody wants them, or none has come.
        var inbox: SessionInbox?
        /// Whether the owner was told that nobody wants its pushes.
        var isToldUnwanted = false
    }

    /// Pushes of sessions that were lost and that nobody has taken yet: they count against no window, so that a server
    /// that loses its sessions again and again could fill the memory. Where they exceed what one session takes, the
    /// next connection waits.
    struct Leftovers {
        let limit: SessionWindow
        /// How many bytes of late replies of a method are kept before anybody has asked for them: half its credit.
        let replyLimit: Int
        var size = SessionSize()
        /// Opens when there is room; nil while nobody waits for that.
        var room: Latch<Void>?

        var isExceeded: Bool { size.frameCount > limit.frameCount || size.byteCount > limit.byteCount }
    }

    /// Replies to durable calls of one method that nobody waits for.
    struct LateReplies {
        let inbox: SessionInbox
        /// How many bytes are kept before anybody has asked for them; nil: somebody has.
        var keptByteCount: Int? = 0
    }

    /// A group that a client's user follows.
    struct FollowedGroup {
        /// The place of the newest push that has come.
        var newestPlace: String?
        /// Opens when it is followed no more; nil: nobody is about to end that.
        var left: Latch<Void>?
    }

    struct State: ~Copyable {
        var machine: SessionMachine
        /// Decisions of the machine that are not carried out yet.
        var actions: [SessionMachine.Action] = []
        var outlet: Outlet?
        /// Other connections that are not closed yet.
        var otherConnections: [UInt64: any TransportConnection] = [:]
        /// Messages of this side's that somebody waits for, by the machine's numbers.
        var messages: [UInt64: PendingMessage] = [:]
        /// Told what becomes of the session. Weak, as it has the engine.
        weak var owner: (any SessionOwner)?
        /// By the peer's numbers, from 1 on.
        var routes: [Route] = []
        /// Those that users have asked for, by method.
        var pushInboxes: [ExactName: SessionInbox] = [:]
        /// Where replies to durable calls go that nobody waits for, by method.
        var lateReplies: [ExactName: LateReplies] = [:]
        /// The groups that its user follows.
        var groups: [ExactName: FollowedGroup] = [:]
        /// Where parts of the peer's requests go, by the requests' counts.
        var requestInboxes = SparseQueue<SessionInbox>()
        var leftovers: Leftovers
        /// Those of which it is to be looked how many are processed, when the session offers what there is to send.
        /// Some may be processed whole by then.
        var watched: [TakenMessages] = []
        /// The present opening's, and the next one's.
        var details: SessionMachine.OpeningDetails
        var statistics = SessionStatistics()
        /// Nil: it has none.
        var store: Store?
        /// What the store has just failed with; nil: nothing.
        var storeError: StoreError?
        /// Opens when the store knows all that was processed; nil while nobody waits for that.
        var stored: Latch<Void>?
        /// Opens when the session can go to another server, with all that this needs, or stays here, with nil; nil while
        /// it is not to go.
        var moved: Latch<SessionSnapshot?>?
        /// When the timer rings.
        var alarm: (deadline: MonotonicTime, call: SharedTimer.CallID)?

        /// For handlers that do not wait, in the order in which it came.
        var synchronousWork: [SynchronousWork] = []
        /// Whether a thread does such work, and goes on with what is added.
        var doesSynchronousWork = false
        /// Whether the owner is to be told once there is none.
        var tellsEndOfSynchronousWork = false

        var effects: [Effect] = []
        /// Whether a thread runs effects, and goes on with those that are added.
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
    /// What all sessions of the server share; nil at a client.
    let budget: SharedSessionBudget?
    /// Opens when the owner has been told that the session is over.
    private let ended = Latch<Void>()
    let state: LockedBox<State>

    /// - Parameter snapshot: of the session at the server that had it; nil: it begins.
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

    /// The connection that stands; nil while there is none.
    var connection: (any TransportConnection)? { state.withLock { $0.outlet?.connection } }

    /// Why the session is over; nil while it is not.
    var endReason: SessionEndReason? { state.withLock { $0.machine.endReason } }

    /// Waits until the session is over and its owner has been told, whatever happens to the task.
    func waitUntilEnded() async { await ended.waitUninterrupted() }

    /// Changes the state under the lock, sends what there is to send, and runs what comes of it after.
    ///
    /// - Parameter isOneOfMany: whether others like it are to be expected, so that what there is to send may wait for
    ///   them where the connection says so.
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

    /// Sends what there is to send, or has the connection ask for it later. Returns whether effects are to run.
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

    /// Whether the connection has the session offer what there is to send before long. Not a goodbye: what is done once
    /// the lock is free may close the connection.
    func offersLater(_ state: inout State) -> Bool {
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
            // Detached, as the timer is: this may be anybody's task, whose values and priority are its own.
            Task.detached {
                // Where it throws, the connection is gone, and its end is reported.
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

/// A request of the peer's that is to be handled. An object, as it is handed on several times.
final class InboundRequest: Sendable {
    let request: IncomingRequest
    /// `package.Service/Method`.
    let name: String
    /// Which of the server's methods it is; nil: none.
    let method: Int?
    let deadline: MonotonicTime?
    let metadata: SessionMetadata
    /// Empty where it has parts.
    let payload: [UInt8]
    /// Its parts; nil where it has none.
    let parts: SessionInbox?
    /// What runs the tasks of the connection that it came over.
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

/// A session's news for its owner.
enum SessionEngineEvent: Sendable {
    case opened(SessionID, isResumed: Bool)
    /// The peer has forgotten the session, or cannot go on with it: why, and what is known of messages that had been
    /// accepted.
    case lost(SessionError, [SessionMessageInDoubt])
    /// Messages that were accepted before the peer was known, which takes no frames of their length. Comes after
    /// `opened`.
    case refused([SessionMessageInDoubt])
    /// Durable messages whose time to live is over.
    case expired([SessionMessageInDoubt])
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
    /// Handle a request, and respond to it in any case.
    func begin(_ request: InboundRequest)
    /// The peer does not wait for a response any more.
    func cancel(_ request: IncomingRequest)
    /// The first push of a method has come.
    func handlePushes(of method: Int, from inbox: SessionInbox)
    /// A push has come that nobody wants.
    func unwanted(_ method: String)
    func received(_ event: SessionEngineEvent)

    /// Handle a request of a synchronous method. Returns the response. Called for one after the other, as pushes are,
    /// but beside the other calls.
    func answer(_ request: InboundRequest) -> EncodedContent
    /// Handle pushes of a synchronous method.
    func handle(_ pushes: SessionInbox.Run, of method: Int)
    /// The last of these calls has returned, and no more come. Called where `endSynchronousWork` has said so.
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
            // Another one may have been set meanwhile.
            guard state.alarm?.deadline == deadline else { return }
            state.alarm = nil
            offerHeld(&state, now: now)
            state.machine.timerFired(now: now, into: &state.actions)
        }
    }
}
