package import LifelineCore

/// The sessions of a server. Decides which session a hello resumes, which connection each session has, and how long it
/// is kept without one.
///
/// It is pure, like the machines, and does not depend on them: the driver keeps its data of each session in `Session`,
/// calls the registry under one lock, and runs the returned actions afterwards.
///
/// - The newer of two connections that claim a session gets it; the older is told `replaced`. The attempts of the
///   hellos show which is newer, because a hello may be delayed on its way, or while the server decides.
/// - To a client an unknown session and a wrong token look the same: it gets a new session.
/// - Of two sessions with one name, the newer gets it; the older goes on without a name.
/// - A full registry accepts clients that come back. For a new client, a session makes way: first a detached one that
///   was never used, because it has nothing to lose. Then the oldest detached one of the network with the most detached
///   sessions, if that has at least two more than the new client's network; otherwise the oldest of the new client's
///   network. So no client can fill the registry with sessions that are used once, and none loses a session to a
///   network that has left more.
/// - The sessions of one identity, and of one network, are limited: a new session replaces their oldest detached one.
///   If all of them have connections, it is refused.
///
/// Every event takes constant time on average, a deadline logarithmic time. Memory is proportional to the sessions.
package struct SessionRegistry<Session: Sendable>: Sendable {
    /// The driver's number for a connection, which is never used twice.
    package typealias ConnectionID = UInt64

    private struct Entry {
        let token: SessionToken
        let session: Session
        var name: String
        var connection: ConnectionID?
        let origin: SessionOrigin
        /// The client's store; nil if the client or the server has none.
        let store: SessionStoreID?
        /// The attempt of the last hello that was let in.
        var attempt: UInt64
        /// The time at which it expires; nil while it has a connection.
        var deadline: (time: MonotonicTime, id: UInt64)?

        /// Orders sessions with connections first.
        var order: (UInt64, UInt64) { (connection ?? .max, deadline?.id ?? 0) }
    }

    private enum StoreUse {
        /// A connection whose session begins after the driver has read the server's store.
        case opening(ConnectionID)
        /// A session until all its work is done, and the connection that waits for that.
        case used(SessionID, Session, awaitedBy: ConnectionID?)
    }

    private let configuration: SessionRegistryConfiguration
    /// The limit of new sessions in a second; nil for none.
    private var openingRate: OpeningRate?
    private var random: SplitMix64
    private var entries: [SessionID: Entry] = [:]
    private var idsByName: [String: SessionID] = [:]
    private var deadlines = DeadlineHeap()
    /// The sessions by the numbers of their deadlines.
    private var idsByDeadline: [UInt64: SessionID] = [:]
    private var deadlineCount: UInt64 = 0
    /// The detached sessions that were never used, by their deadlines.
    private var unused = SparseQueue<SessionID>()
    /// All detached sessions by network.
    private var abandoned = AbandonedSessions()
    /// All detached sessions by identity.
    private var abandonedByIdentity = AbandonedSessions()
    /// The number of sessions of each identity and each network.
    private var countByIdentity: [String: Int] = [:]
    private var countByNetwork: [String: Int] = [:]
    /// The use of each client's store: by one session at a time, because only one knows the processed messages.
    private var stores: [SessionStoreID: StoreUse] = [:]
    /// The sessions that are searched for elsewhere, and the connections that wait for them.
    private var sought: [SessionID: ConnectionID] = [:]
    private var forgotten: [(id: SessionID, session: Session)] = []
    /// Whether the server goes away.
    package private(set) var isDraining = false

    /// Makes an empty registry.
    ///
    /// - Parameter seed: the seed for the pauses of clients that are sent away. It need not be secret.
    package init(_ configuration: SessionRegistryConfiguration, seed: UInt64) {
        openingRate = configuration.maximumOpeningRate.map { OpeningRate(perSecond: $0) }
        self.configuration = configuration
        random = SplitMix64(seed: seed)
    }

    /// The number of sessions.
    package var count: Int { entries.count }
    /// The time at which to call `timerFired`; nil to wait for another event.
    package var nextDeadline: MonotonicTime? { isDraining ? nil : deadlines.next }

    /// The session with an id.
    package subscript(id: SessionID) -> Session? { entries[id]?.session }
    /// The session with a name; nil when there is none, or the name is empty.
    package subscript(name name: String) -> (id: SessionID, session: Session)? {
        idsByName[name].flatMap { id in entries[id].map { (id, $0.session) } }
    }
    /// The ids of all sessions, in no order.
    package var ids: some Collection<SessionID> { entries.keys }

    /// Returns the time by which a client that connects now must be let in. Cut its connection then.
    package func helloDeadline(now: MonotonicTime) -> MonotonicTime { now + configuration.helloTimeout }

    /// Returns the goodbye for a client that is not let in; nil when the connection is closed without one.
    package mutating func goodbye(for failure: SessionHelloFailure) -> SessionGoodbye? {
        switch failure {
        case .ended: nil
        case .violation(let message): SessionGoodbye(.violation, message)
        case .refused(let message): SessionGoodbye(.refused, message)
        // The client learns no details of the server's own errors.
        case .undecided:
            SessionGoodbye(
                .draining,
                "The server cannot let clients in.",
                pause: pause(upTo: configuration.drainSpread)
            )
        }
    }

    /// How to treat a connection after its hello.
    package enum HelloAction {
        /// It begins this session.
        case create(SessionCredentials, Session)
        /// It resumes this session, and takes it from an older connection.
        case resume(SessionCredentials, Session)
        /// Read the content for the client's store from the server's store, and call `receivedHello` again with
        /// `storeIsOpen`; if that fails, call `storeNotOpened`.
        case openStore(SessionStoreID)
        /// Search for the session at other servers, and call `receivedHello` again with the result. Call `soughtFor` in
        /// any case.
        case seek(SessionClaim)
        /// The connection resumes this session, which has come from another server.
        case adopt(SessionCredentials, Session)
        /// An older session of the same client, of a process that is gone, is still there: end it, wait until
        /// `nothingIsLeft` of it, and call `receivedHello` again.
        case endFirst(Session)
        /// Send this goodbye, and close the connection.
        case refuse(SessionGoodbye)
    }

    /// Handles a client's hello.
    ///
    /// - Parameters:
    ///   - name: the name of the session; empty for none. A resumed session takes it, too.
    ///   - origin: the client's identity and network. Only the identity that began a session can resume it, so stolen
    ///     credentials alone give no access to its messages. The session counts for the network that it began from.
    ///   - storeIsOpen: whether the driver has read the content for the client's store.
    ///   - found: the result of the search at other servers; nil if they were not asked.
    ///   - lingering: the number of ended sessions with work left; they also count against the maximum.
    ///   - fresh: credentials that nobody can guess, for a new session.
    ///   - makeSession: makes the driver's data of a new session.
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
            // Regardless of the sessions of its origin: it was let in before, and nobody else has it now.
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
        // 128 random bits are never the same twice. A driver without randomness must not mix up sessions.
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

    /// Returns what to do about a session that is not here, and may be elsewhere; nil to begin a new one.
    private mutating func seek(
        _ hello: ClientOpening,
        of origin: SessionOrigin,
        over connection: ConnectionID,
        _ found: SessionFinding?
    ) -> HelloAction? {
        // A session with a store stays here: only that store knows which durable messages were processed.
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

    /// Notes that the search for a connection's session at other servers is over.
    package mutating func soughtFor(_ connection: ConnectionID, _ hello: ClientOpening) {
        guard let id = hello.credentials?.id, sought[id] == connection else { return }
        sought[id] = nil
    }

    /// Returns the claim of the client of a session; nil if there is none, or it cannot move to other servers.
    package func claim(of id: SessionID) -> SessionClaim? {
        guard let entry = entries[id], entry.store == nil else { return nil }
        let credentials = SessionCredentials(id: id, token: entry.token)
        return SessionClaim(credentials: credentials, attempt: entry.attempt, subject: entry.origin.subject)
    }

    /// The answer to another server that asks for a session.
    package enum Owner {
        case session(Session)
        /// The session is not here, or does not belong to this client.
        case unknown
        /// A newer connection has the session.
        case stale
    }

    /// Answers another server that asks for a session, because its client is there.
    package func handOver(_ claim: SessionClaim) -> Owner {
        guard let own = self.claim(of: claim.credentials.id), own.credentials.token == claim.credentials.token,
            own.subject == claim.subject, let session = self[claim.credentials.id]
        else { return .unknown }
        return claim.attempt > own.attempt ? .session(session) : .stale
    }

    /// Returns the pause after which the client of a moved session comes back.
    package mutating func movePause() -> Duration { pause(upTo: configuration.drainSpread) }

    // MARK: Stores

    /// Returns the client's store, if the server has one, too.
    private func keptStore(of hello: ClientOpening) -> SessionStoreID? {
        configuration.hasStore ? hello.store?.id : nil
    }

    /// Gives a client's store to a connection. Returns what to do before its session begins, if anything.
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
            // An older connection of the client is about to begin a session that the client does not know about.
            return .refuse(anotherIsLetIn())
        }
    }

    /// Notes that a connection is not let in, because its store could not be opened.
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

    /// Notes that all work of an ended session is done: no handler runs, and everything is stored.
    package mutating func nothingIsLeft(of id: SessionID, _ store: SessionStoreID?) {
        guard let store, case .used(id, _, _)? = stores[store] else { return }
        stores[store] = nil
    }

    /// Returns the sessions that made way for others since the last call: abandon them.
    package mutating func takeForgotten() -> [(id: SessionID, session: Session)] {
        defer { forgotten = [] }
        return forgotten
    }

    /// Notes the end of a connection. Returns its session, which now has none; nil when another connection has it, or
    /// the session has ended.
    ///
    /// - Parameter wasUsed: whether anything was received from the client since the welcome of its session.
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

    /// Notes the end of a session. Returns it; nil when it had ended before.
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

    /// Notes that `nextDeadline` has passed; calling this early does no harm. Returns the sessions that expire, the
    /// earliest first: abandon them.
    package mutating func timerFired(now: MonotonicTime) -> [(id: SessionID, session: Session)] {
        var expired: [(id: SessionID, session: Session)] = []
        // The sessions of a server that goes away end with it.
        guard !isDraining else { return [] }
        while let deadline = deadlines.takeDue(now: now) {
            if let id = idsByDeadline[deadline], let session = ended(id) { expired.append((id, session)) }
        }
        return expired
    }

    /// Drains the server: from now on it begins no sessions, and none expires. Returns all sessions with their drains.
    /// A session without a connection tells its client when the client comes back.
    ///
    /// Clients are spread over `drainSpread`. Where another server can continue a session at once, its client is served
    /// until its turn, and then does not pause. Other clients are told at once, and pause.
    ///
    /// - Parameters:
    ///   - end: the time at which the server ends. Clients are told after three quarters of the remaining time at the
    ///     latest. The last quarter is left for responses.
    ///   - othersContinue: whether other servers can continue the sessions now.
    package mutating func drain(
        until end: MonotonicTime,
        othersContinue: Bool,
        now: MonotonicTime
    ) -> [(session: Session, drain: SessionDrain)] {
        isDraining = true
        let deadline = now + max(end - now, .zero) * 3 / 4
        // In a fixed order, so that the times depend only on the seed: sessions with connections first, then those
        // without.
        return entries.values.sorted { $0.order < $1.order }
            .map { entry in
                // A session with a store stays here.
                guard othersContinue, entry.store == nil else {
                    let pause = pause(upTo: configuration.drainSpread)
                    return (entry.session, SessionDrain(pause: pause, deadline: deadline))
                }
                let delay = pause(upTo: min(configuration.drainSpread, deadline - now))
                return (entry.session, SessionDrain(start: now + delay, deadline: deadline))
            }
    }

    /// Makes way for a session. Returns the reason why it cannot begin; nil when it can.
    private mutating func makeWay(for origin: SessionOrigin, besides lingering: Int) -> String? {
        if let subject = origin.subject, countByIdentity[subject, default: 0] >= configuration.maximumCountPerIdentity,
            !forget(abandonedByIdentity.oldest(of: subject))
        {
            return "The identity has reached the limit of its sessions."
        }
        if let network = origin.network, countByNetwork[network, default: 0] >= configuration.maximumCountPerAddress,
            !forget(abandoned.oldest(of: network))
        {
            return "The address has reached the limit of its sessions."
        }
        // A session that made way above also made room here.
        guard entries.count + lingering >= configuration.maximumSessionCount else { return nil }
        return forget(unused.first?.element) || forget(oldestOfGreediest(besides: origin)) ? nil : "The server is full."
    }

    /// Returns the session that makes way for one of an origin in a full registry.
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

    /// Notes that a session has a connection again: it no longer expires.
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
