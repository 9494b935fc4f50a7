package import LifelineCore

/// The sessions of a server: which of them a hello goes on with, which connection each has, and how long each is kept
/// without one.
///
/// It is pure, as the machines are, and knows nothing of them: the driver keeps what it needs of each session in
/// `Session`, calls the registry under one lock, and does what it returns after it.
///
/// - The newer of two connections that claim a session has it; the older is told `replaced`. The hellos' attempts say
///   which is newer, as one may be held up on its way, or while the server decides whom to let in.
/// - To a client an unknown session and a wrong token look the same: it gets a new session.
/// - Of two sessions with one name the newer has it; the older lives on without a name.
/// - A full registry takes clients that come back. For a new client, detached sessions that were never used make way
///   first: they have nothing to lose. Then the oldest detached one of the network that has left the most behind, where
///   that has left at least two more than the new client's; else the oldest of the new client's. So nobody can fill the
///   registry with sessions that are used once, and nobody loses a session to those who have left more behind.
/// - One identity, and one network, have so many sessions at most: a new one takes the place of their oldest detached
///   one. Where all of them have connections, it is refused.
///
/// Every event costs constant time on average, a deadline logarithmic time. Memory follows the sessions.
package struct SessionRegistry<Session: Sendable>: Sendable {
    /// The driver's number for a connection: never used twice.
    package typealias ConnectionID = UInt64

    private struct Entry {
        let token: SessionToken
        let session: Session
        var name: String
        var connection: ConnectionID?
        let origin: SessionOrigin
        /// The client's store; nil where it has none, or the server.
        let store: SessionStoreID?
        /// That of the last hello which was let in.
        var attempt: UInt64
        /// When it expires; nil while it has a connection.
        var deadline: (time: MonotonicTime, id: UInt64)?

        /// Those that have connections are first.
        var order: (UInt64, UInt64) { (connection ?? .max, deadline?.id ?? 0) }
    }

    private enum StoreUse {
        /// A connection, whose session begins when the driver has looked into the server's store.
        case opening(ConnectionID)
        /// A session, until nothing of it is left, and the connection that waits for that.
        case used(SessionID, Session, awaitedBy: ConnectionID?)
    }

    private let configuration: SessionRegistryConfiguration
    /// Nil: as many as come.
    private var openingRate: OpeningRate?
    private var random: SplitMix64
    private var entries: [SessionID: Entry] = [:]
    private var idsByName: [String: SessionID] = [:]
    private var deadlines = DeadlineHeap()
    /// Whose deadlines they are.
    private var idsByDeadline: [UInt64: SessionID] = [:]
    private var deadlineCount: UInt64 = 0
    /// The detached sessions that were never used, by their deadlines.
    private var unused = SparseQueue<SessionID>()
    /// All detached sessions, by where they come from.
    private var abandoned = AbandonedSessions()
    /// The same of each identity.
    private var abandonedByIdentity = AbandonedSessions()
    /// How many sessions each identity and each network has.
    private var countByIdentity: [String: Int] = [:]
    private var countByNetwork: [String: Int] = [:]
    /// What has each client's store: one session at a time, as what was processed is known to one.
    private var stores: [SessionStoreID: StoreUse] = [:]
    /// Sessions that are looked for elsewhere, and for which connections.
    private var sought: [SessionID: ConnectionID] = [:]
    private var forgotten: [(id: SessionID, session: Session)] = []
    /// Whether the server goes away.
    package private(set) var isDraining = false

    /// Makes an empty registry.
    ///
    /// - Parameter seed: what the pauses of clients that are sent away follow from. It needs not be secret.
    package init(_ configuration: SessionRegistryConfiguration, seed: UInt64) {
        openingRate = configuration.maximumOpeningRate.map { OpeningRate(perSecond: $0) }
        self.configuration = configuration
        random = SplitMix64(seed: seed)
    }

    /// How many sessions there are.
    package var count: Int { entries.count }
    /// When `timerFired` is to be called; nil: not until there was another event.
    package var nextDeadline: MonotonicTime? { isDraining ? nil : deadlines.next }

    /// The session of an id.
    package subscript(id: SessionID) -> Session? { entries[id]?.session }
    /// The session that has a name; nil when there is none, or the name is empty.
    package subscript(name name: String) -> (id: SessionID, session: Session)? {
        idsByName[name].flatMap { id in entries[id].map { (id, $0.session) } }
    }
    /// Which sessions there are, in no order.
    package var ids: some Collection<SessionID> { entries.keys }

    /// The deadline for a client that connects now to be let in. Cut its connection then.
    package func helloDeadline(now: MonotonicTime) -> MonotonicTime { now + configuration.helloTimeout }

    /// Returns the goodbye for a client that is not let in; nil when the connection is closed without one.
    package mutating func goodbye(for failure: SessionHelloFailure) -> SessionGoodbye? {
        switch failure {
        case .ended: nil
        case .violation(let message): SessionGoodbye(.violation, message)
        case .refused(let message): SessionGoodbye(.refused, message)
        // Of the server's own errors it learns nothing.
        case .undecided:
            SessionGoodbye(
                .draining,
                "The server cannot let clients in.",
                pause: pause(upTo: configuration.drainSpread)
            )
        }
    }

    /// What to do with a connection that was opened.
    package enum HelloAction {
        /// It begins this session.
        case create(SessionCredentials, Session)
        /// It goes on with this session, which takes it from an older connection.
        case resume(SessionCredentials, Session)
        /// Look into the server's store for what it has for the client's, and call `receivedHello` again with
        /// `storeIsOpen`; or `storeNotOpened`, when that fails.
        case openStore(SessionStoreID)
        /// Look for the session at other servers, and call `receivedHello` again with what was found. Say `soughtFor` in
        /// any case.
        case seek(SessionClaim)
        /// The connection goes on with this session, which has come from another server.
        case adopt(SessionCredentials, Session)
        /// An older session of the same client's is left, of a process that is gone: end it, wait until `nothingIsLeft`
        /// of it, and call `receivedHello` again.
        case endFirst(Session)
        /// Say this, and close it.
        case refuse(SessionGoodbye)
    }

    /// A client has said hello.
    ///
    /// - Parameters:
    ///   - name: what the session is to be found by; empty: nothing. A session that goes on takes it, too.
    ///   - origin: who and where from the client is. A session goes on only for the subject that began it, as stolen
    ///     credentials alone give no access to its messages; and it counts for the network that it began with.
    ///   - storeIsOpen: whether the driver has what the server's store has for the client's.
    ///   - found: what other servers have of the session; nil: they were not asked.
    ///   - lingering: sessions that have ended and of which something is left; they count against the maximum, too.
    ///   - fresh: credentials that nobody can guess, for a session that begins.
    ///   - makeSession: makes what the driver needs of a session that begins.
    package mutating func receivedHello(
        _ hello: ClientOpening,
        name: String,
        of origin: SessionOrigin = SessionOrigin(),
        over connection: ConnectionID,
        storeIsOpen: Bool = false,
        found: SessionFinding? = nil,
        besides lingering: Int = 0,
        now: MonotonicTime,
        fresh: @autoclosure () -> SessionCredentials,
        makeSession: (SessionCredentials) -> Session
    ) -> HelloAction {
        guard hello.commonVersion != nil else {
            let message = "This server speaks versions \(SessionVersion.lowest) to \(SessionVersion.highest)."
            return .refuse(SessionGoodbye(.version, message))
        }
        if hello.attempt > 0, let known = hello.credentials, let entry = entries[known.id], entry.token == known.token,
            entry.origin.subject == origin.subject, entry.store == keptStore(of: hello)
        {
            guard hello.attempt > entry.attempt else {
                return .refuse(SessionGoodbye(.replaced, "A newer connection has the session."))
            }
            entries[known.id]?.connection = connection
            entries[known.id]?.attempt = hello.attempt
            attached(known.id)
            rename(known.id, to: name)
            return .resume(known, entry.session)
        }
        if case .snapshot? = found, let known = hello.credentials, entries[known.id] == nil {
            // Whatever its origin has already: it was let in before, and nobody else has it now.
            let session = makeSession(known)
            insert(session, known, name: name, of: origin, over: connection, hello)
            return .adopt(known, session)
        }
        if isDraining {
            let pause = pause(upTo: configuration.drainSpread)
            return .refuse(SessionGoodbye(.draining, "The server goes away.", pause: pause))
        }
        if let action = seek(hello, of: origin, over: connection, found) { return action }
        if let store = keptStore(of: hello), let action = open(store, over: connection, isOpen: storeIsOpen) {
            return action
        }
        if let pause = openingRate?.admit(now: now) {
            return .refuse(SessionGoodbye(.full, "Many clients come at once.", pause: pause))
        }
        if let refusal = makeWay(for: origin, besides: lingering) {
            return .refuse(SessionGoodbye(.full, refusal, pause: pause(upTo: configuration.fullSpread)))
        }
        let credentials = fresh()
        // 128 random bits are never the same twice; a driver that has no randomness must not mix up sessions.
        precondition(entries[credentials.id] == nil)
        let session = makeSession(credentials)
        insert(session, credentials, name: name, of: origin, over: connection, hello)
        return .create(credentials, session)
    }

    private mutating func insert(
        _ session: Session,
        _ credentials: SessionCredentials,
        name: String,
        of origin: SessionOrigin,
        over connection: ConnectionID,
        _ hello: ClientOpening
    ) {
        entries[credentials.id] = Entry(
            token: credentials.token,
            session: session,
            name: "",
            connection: connection,
            origin: origin,
            store: keptStore(of: hello),
            attempt: hello.attempt
        )
        if let store = keptStore(of: hello) { stores[store] = .used(credentials.id, session, awaitedBy: nil) }
        if let subject = origin.subject { countByIdentity[subject, default: 0] += 1 }
        if let network = origin.network { countByNetwork[network, default: 0] += 1 }
        rename(credentials.id, to: name)
    }

    // MARK: Other servers

    /// Returns what is to be done about a session that is not here, and may be elsewhere; nil: a new one begins.
    private mutating func seek(
        _ hello: ClientOpening,
        of origin: SessionOrigin,
        over connection: ConnectionID,
        _ found: SessionFinding?
    ) -> HelloAction? {
        // A session with a store stays: only that store knows which durable messages were processed.
        guard configuration.movesSessions, hello.attempt > 0, let known = hello.credentials, entries[known.id] == nil,
            keptStore(of: hello) == nil
        else { return nil }
        switch found {
        case nil:
            guard sought[known.id] == nil else { return .refuse(anotherIsLetIn()) }
            sought[known.id] = connection
            return .seek(SessionClaim(credentials: known, attempt: hello.attempt, subject: origin.subject))
        case .nothing?, .snapshot?:
            return nil
        case .stale?:
            return .refuse(SessionGoodbye(.replaced, "A newer connection has the session."))
        case .notNow?:
            let message = "The session is busy at another server."
            return .refuse(SessionGoodbye(.draining, message, pause: pause(upTo: .seconds(1))))
        }
    }

    private mutating func anotherIsLetIn() -> SessionGoodbye {
        let message = "Another connection of the client is being let in."
        return SessionGoodbye(.draining, message, pause: pause(upTo: .seconds(1)))
    }

    /// A connection is let in, or not, for which a session was looked for elsewhere.
    package mutating func soughtFor(_ connection: ConnectionID, _ hello: ClientOpening) {
        guard let id = hello.credentials?.id, sought[id] == connection else { return }
        sought[id] = nil
    }

    /// The claim of the client that has a session; nil where there is none, or it cannot go to other servers.
    package func claim(of id: SessionID) -> SessionClaim? {
        guard let entry = entries[id], entry.store == nil else { return nil }
        let credentials = SessionCredentials(id: id, token: entry.token)
        return SessionClaim(credentials: credentials, attempt: entry.attempt, subject: entry.origin.subject)
    }

    /// The answer to another server that asks for a session.
    package enum Owner {
        case session(Session)
        /// It is not here, or not this client's.
        case unknown
        /// A newer connection has it.
        case stale
    }

    /// Another server asks for a session, whose client is there.
    package func handOver(_ claim: SessionClaim) -> Owner {
        guard let own = self.claim(of: claim.credentials.id), own.credentials.token == claim.credentials.token,
            own.subject == claim.subject, let session = self[claim.credentials.id]
        else { return .unknown }
        return claim.attempt > own.attempt ? .session(session) : .stale
    }

    /// After which pause the client of a session comes back that goes to another server.
    package mutating func movePause() -> Duration { pause(upTo: configuration.drainSpread) }

    // MARK: Stores

    /// The client's store, where the server has one, too.
    private func keptStore(of hello: ClientOpening) -> SessionStoreID? {
        configuration.hasStore ? hello.store?.id : nil
    }

    /// Gives a client's store to a connection. Returns what is to be done before its session begins; nil: nothing.
    private mutating func open(
        _ store: SessionStoreID,
        over connection: ConnectionID,
        isOpen: Bool
    ) -> HelloAction? {
        switch stores[store] {
        case nil:
            stores[store] = .opening(connection)
            return .openStore(store)
        case .opening(connection)?: return isOpen ? nil : .openStore(store)
        case .used(let id, let session, let waiting)? where waiting == nil || waiting == connection:
            stores[store] = .used(id, session, awaitedBy: connection)
            return .endFirst(session)
        case .opening?, .used?:
            // An older connection of the client's is about to begin a session, which the client knows nothing of.
            return .refuse(anotherIsLetIn())
        }
    }

    /// The connection of a client, whose store was to be opened, is not let in.
    package mutating func storeNotOpened(over connection: ConnectionID, _ hello: ClientOpening) {
        guard let store = keptStore(of: hello) else { return }
        switch stores[store] {
        case .opening(connection)?: stores[store] = nil
        case .used(let id, let session, connection)?: stores[store] = .used(id, session, awaitedBy: nil)
        case .opening?, .used?, nil: break
        }
    }

    /// The stores of clients that have sessions, or are about to.
    package var usedStores: Set<SessionStoreID> { Set(stores.keys) }

    /// Nothing is left of a session that has ended: no handler runs, and everything is stored.
    package mutating func nothingIsLeft(of id: SessionID, _ store: SessionStoreID?) {
        guard let store, case .used(id, _, _)? = stores[store] else { return }
        stores[store] = nil
    }

    /// The sessions that made way for others since it was asked last: abandon them.
    package mutating func takeForgotten() -> [(id: SessionID, session: Session)] {
        defer { forgotten = [] }
        return forgotten
    }

    /// A connection is gone. Returns the session that it had, which has none now; nil when another connection has it,
    /// or the session has ended.
    ///
    /// - Parameter wasUsed: whether anything has come from the client since the welcome of its session.
    @discardableResult
    package mutating func disconnected(
        _ connection: ConnectionID,
        of id: SessionID,
        wasUsed: Bool = true,
        now: MonotonicTime
    ) -> Session? {
        guard let entry = entries[id], entry.connection == connection else { return nil }
        deadlineCount += 1
        let deadline = now + configuration.keptDuration
        deadlines.insert(deadline, id: deadlineCount)
        idsByDeadline[deadlineCount] = id
        entries[id]?.deadline = (deadline, deadlineCount)
        entries[id]?.connection = nil
        if !wasUsed { unused.append(deadlineCount, id) }
        if let network = entry.origin.network { abandoned.add(id, of: network, number: deadlineCount) }
        if let subject = entry.origin.subject { abandonedByIdentity.add(id, of: subject, number: deadlineCount) }
        return entry.session
    }

    /// A session has ended. Returns it; nil when it had ended before.
    @discardableResult
    package mutating func ended(_ id: SessionID) -> Session? {
        guard let origin = entries[id]?.origin else { return nil }
        rename(id, to: "")
        attached(id)
        if let subject = origin.subject { Self.countDown(subject, in: &countByIdentity) }
        if let network = origin.network { Self.countDown(network, in: &countByNetwork) }
        return entries.removeValue(forKey: id)?.session
    }

    private static func countDown(_ name: String, in counts: inout [String: Int]) {
        guard let count = counts[name] else { return }
        counts[name] = count > 1 ? count - 1 : nil
    }

    /// `nextDeadline` has come; calling it early does no harm. Returns the sessions that expire, the earliest first:
    /// abandon them.
    package mutating func timerFired(now: MonotonicTime) -> [(id: SessionID, session: Session)] {
        var expired: [(id: SessionID, session: Session)] = []
        // Those of a server that goes away end with it.
        guard !isDraining else { return [] }
        while let deadline = deadlines.takeDue(now: now) {
            if let id = idsByDeadline[deadline], let session = ended(id) { expired.append((id, session)) }
        }
        return expired
    }

    /// The server goes away: from now on it begins no sessions, and none expires. Returns all sessions, and after which
    /// pause the client of each is to come back: drain them. A session without a connection tells its client when the
    /// client comes back.
    ///
    /// - Parameter end: when the server ends. Clients are told when three quarters of the time until then are over, at
    ///   the latest. The last quarter is left for responses.
    package mutating func drain(
        until end: MonotonicTime,
        now: MonotonicTime
    ) -> [(session: Session, pause: Duration, deadline: MonotonicTime)] {
        isDraining = true
        let deadline = now + max(end - now, .zero) * 3 / 4
        // In one order, so that the pauses follow from the seed: those that have connections, then those that were cut.
        return entries.sorted { $0.value.order < $1.value.order }
            .map { ($0.value.session, pause(upTo: configuration.drainSpread), deadline) }
    }

    /// Makes way for a session. Returns why it cannot begin; nil when it can.
    private mutating func makeWay(for origin: SessionOrigin, besides lingering: Int) -> String? {
        if let subject = origin.subject, countByIdentity[subject, default: 0] >= configuration.maximumCountPerIdentity,
            !forget(abandonedByIdentity.oldest(of: subject))
        {
            return "There are as many sessions of this identity as there may be."
        }
        if let network = origin.network, countByNetwork[network, default: 0] >= configuration.maximumCountPerAddress,
            !forget(abandoned.oldest(of: network))
        {
            return "There are as many sessions from this address as there may be."
        }
        // What made way above made room here.
        guard entries.count + lingering >= configuration.maximumSessionCount else { return nil }
        return forget(unused.first?.element) || forget(oldestOfGreediest(besides: origin)) ? nil : "The server is full."
    }

    /// The session that makes way for one of an origin in a full registry.
    private func oldestOfGreediest(besides origin: SessionOrigin) -> SessionID? {
        guard let greediest = abandoned.greediest else { return nil }
        let own = origin.network.map { abandoned.count(of: $0) } ?? 0
        if abandoned.count(of: greediest) >= own + 2 { return abandoned.oldest(of: greediest) }
        return origin.network.flatMap { abandoned.oldest(of: $0) }
    }

    private mutating func forget(_ id: SessionID?) -> Bool {
        guard let id, let session = ended(id) else { return false }
        forgotten.append((id, session))
        return true
    }

    private mutating func pause(upTo spread: Duration) -> Duration {
        .nanoseconds(Int64.random(in: 0...max(spread.saturatedNanoseconds, 0), using: &random))
    }

    /// It does not expire any more.
    private mutating func attached(_ id: SessionID) {
        if let deadline = entries[id]?.deadline {
            idsByDeadline[deadline.id] = nil
            unused.remove(deadline.id)
            if let network = entries[id]?.origin.network { abandoned.remove(number: deadline.id, of: network) }
            if let subject = entries[id]?.origin.subject {
                abandonedByIdentity.remove(number: deadline.id, of: subject)
            }
        }
        entries[id]?.deadline = nil
        deadlines.compact(liveCount: idsByDeadline.count) { [idsByDeadline] in idsByDeadline[$0] != nil }
    }

    private mutating func rename(_ id: SessionID, to name: String) {
        guard let old = entries[id]?.name, old != name else { return }
        idsByName[old] = nil
        if let other = idsByName[name] { entries[other]?.name = "" }
        if !name.isEmpty { idsByName[name] = id }
        entries[id]?.name = name
    }
}

/// What a registry is told once.
package struct SessionRegistryConfiguration: Sendable {
    /// How long a session is kept without a connection: 2 minutes, which outlast a tunnel, a restart of a router, and
    /// the first attempts of a client's backoff.
    package var keptDuration = Duration.seconds(120)
    /// 10,000 sessions, so that those who connect cannot take all memory.
    package var maximumSessionCount = 10_000
    /// How many sessions one identity may have: 100, more devices and windows than somebody uses.
    package var maximumCountPerIdentity = 100
    /// How many one network may have: any number, as many clients may have one address.
    package var maximumCountPerAddress = Int.max
    /// How long a client may take to say hello and the server to let it in, together: 10 s, as long as connecting may
    /// take.
    package var helloTimeout = Duration.seconds(10)
    /// Over how long clients come back that are sent away by a server that goes away, or cannot let them in: 5 s, so
    /// that they do not all come at once.
    package var drainSpread = Duration.seconds(5)
    /// Over how long clients come back that a full server has sent away: a quarter of the time that sessions are kept.
    package var fullSpread = Duration.seconds(30)
    /// How many sessions begin in a second; nil: as many as come.
    package var maximumOpeningRate: Int?
    /// Whether the server keeps durable messages.
    package var hasStore = false
    /// Whether sessions come from other servers, and go to them.
    package var movesSessions = false

    package init() {}
}
