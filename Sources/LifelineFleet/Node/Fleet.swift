public import Lifeline
internal import LifelineCore
public import LifelineMessages
package import LifelineRuntime
public import Logging
internal import NIOConcurrencyHelpers
public import ServiceLifecycle

/// Groups of sessions: what is pushed to a group reaches each of its members, in the group's order, and the latest
/// messages are kept for members that were away.
///
/// A fleet is a service of a session server. By itself it serves one process; servers whose fleets share an engine serve
/// the same groups together.
///
///     let fleet = Fleet()
///     try await withSessionServer(listeningOn: endpoint, services: [Room(fleet), fleet]) { server in … }
///
///     // In a handler of Room:
///     try await fleet.join("rooms/7", context.session)
///     try await fleet.push(Sample_Room_V1_RoomPushes.news, item, to: "rooms/7")
///
/// **What is promised.** A member gets every message that is pushed to the group while it is one, once and in order, for
/// as long as its session lasts, whatever becomes of connections. A member that takes messages more slowly than they come
/// holds up nobody: it gets them from the group's history. Where it is slower, or away for longer, than the history
/// reaches, its next message says that others before it are lost (`GroupMark.followsGap`).
public final class Fleet: Sendable {
    /// What joins the processes of the fleet.
    public let engine: any FleetEngine
    /// Names this process among those that share the engine.
    public let nodeName: String

    enum Group {
        /// It is asked for at the engine. Opens when that has answered.
        case loading(Latch<Void>, noted: GroupPosition?)
        /// So many sessions are members, or about to be.
        case ready(GroupNode, userCount: Int)
        /// The engine is told that nobody here follows it. Opens when it knows.
        case leaving(Latch<Void>)
    }

    struct State {
        var groups: [String: Group] = [:]
        /// The groups of each session, by its id, those that it is about to join among them.
        var memberships: [String: Set<String>] = [:]
    }

    let configuration: FleetConfiguration
    let clock: any ClientClock
    let logger: Logger
    let state = NIOLockedValueBox(State())
    /// Rings when groups are to be compared at once.
    private let bell = Doorbell()

    /// Makes a fleet.
    ///
    /// - Parameters:
    ///   - engine: default: one in memory, for this process alone.
    ///   - nodeName: names this process among those that share the engine. Default: a random one.
    ///   - logger: gets what fails at the engine: `warning`.
    public convenience init(
        engine: any FleetEngine = MemoryFleetEngine(),
        nodeName: String? = nil,
        configuration: FleetConfiguration = FleetConfiguration(),
        logger: Logger = Logger(label: "lifeline.fleet")
    ) {
        self.init(
            engine: engine,
            nodeName: nodeName,
            configuration: configuration,
            logger: logger,
            clock: BootTimeClock()
        )
    }

    package init(
        engine: any FleetEngine,
        nodeName: String?,
        configuration: FleetConfiguration,
        logger: Logger,
        clock: any ClientClock
    ) {
        self.engine = engine
        self.nodeName = nodeName ?? String(UInt64.random(in: .min ... .max), radix: 36)
        self.configuration = configuration
        self.logger = logger
        self.clock = clock
        engine.attach(node)
    }

    /// This process for its engine, which may outlive it.
    private var node: FleetNode { FleetNode(name: nodeName) { [weak self] in self?.received($0) } }

    // MARK: Members

    /// Makes a session a member of a group, until it is over or leaves. One that is a member stays where it is.
    ///
    /// - Parameter start: which messages it gets first.
    /// - Throws: `FleetError`: `badName`, `tooManyGroups`, `sessionEnded`, `engineFailed`, `cancelled`.
    @discardableResult
    public func join(
        _ group: String,
        _ session: SessionServerEnd,
        from start: GroupStart = .now
    ) async throws(FleetError) -> GroupJoin {
        try FleetError.checkName(group)
        try enter(group, session)
        let node: GroupNode
        do {
            node = try await use(group)
        } catch {
            exit(group, session)
            throw error
        }
        let (join, isNew) = node.join(session, from: start)
        if !isNew { await release(group) }
        // Its end may have been told before it was a member.
        guard session.hasEnded else { return join }
        remove(session, from: group)
        throw .sessionEnded
    }

    /// Ends the membership of a session. It may be none. What was pushed before reaches it.
    public func leave(_ group: String, _ session: SessionServerEnd) {
        exit(group, session)
        node(of: group)?.leave(session)
    }

    private func remove(_ session: SessionServerEnd, from group: String) {
        exit(group, session)
        node(of: group)?.remove(session)
    }

    /// The node of a group that is loaded.
    private func node(of group: String) -> GroupNode? {
        guard case .ready(let node, _)? = state.withLockedValue({ $0.groups[group] }) else { return nil }
        return node
    }

    /// The groups that a session is a member of, in no order.
    public func groups(of session: SessionServerEnd) -> [String] {
        state.withLockedValue { Array($0.memberships[session.id] ?? []) }
    }

    /// How many sessions of this process are members of a group.
    public func memberCount(of group: String) -> Int {
        node(of: group)?.memberCount ?? 0
    }

    /// Whether any group has members at this process, or is about to have some.
    package var hasGroups: Bool { state.withLockedValue { !$0.groups.isEmpty } }

    private func enter(_ group: String, _ session: SessionServerEnd) throws(FleetError) {
        let limit = max(configuration.maximumGroupCountPerSession, 1)
        let isEntered = state.withLockedValue { state in
            var groups = state.memberships[session.id] ?? []
            guard groups.count < limit || groups.contains(group) else { return false }
            groups.insert(group)
            state.memberships[session.id] = groups
            return true
        }
        if !isEntered { throw .tooManyGroups(limit) }
    }

    private func exit(_ group: String, _ session: SessionServerEnd) {
        state.withLockedValue { state in
            state.memberships[session.id]?.remove(group)
            if state.memberships[session.id]?.isEmpty == true { state.memberships[session.id] = nil }
        }
    }

    // MARK: Messages

    /// Pushes to all members of a group, wherever they are connected. Returns its position when the engine has it; waits
    /// while more is pushed than the members at this process get.
    ///
    /// Pushes of one task are in their order, as each waits for the one before it.
    ///
    /// - Parameters:
    ///   - method: that of generated code: `Sample_Room_V1_RoomPushes.news`, for example.
    ///   - delivery: what is promised of it to each member. One that is to be sent at most once goes to members that are
    ///     not behind.
    ///   - metadata: what travels beside the message.
    /// - Throws: `FleetError`: `badName`, `badMessage`, `engineFailed`, `cancelled`.
    @discardableResult
    public func push<Message: DelimitedMessage>(
        _ method: SessionPushMethod<Message>,
        _ message: Message,
        to group: String,
        delivery: SessionDelivery = .reliable,
        metadata: SessionMetadata = [:]
    ) async throws(FleetError) -> GroupPosition {
        try FleetError.checkName(group)
        let payload: [UInt8]
        do {
            payload = try message.sessionPayload()
        } catch {
            throw FleetError(code: .badMessage, message: "The message cannot be encoded.", cause: error)
        }
        let bytes = try Lifeline_Fleet_V1_GroupMessage.encoded(
            method.name,
            payload: payload,
            metadata: metadata,
            delivery: delivery
        )
        if bytes.count > configuration.history.maximumByteCount {
            throw FleetError(
                code: .badMessage,
                message:
                    "The message takes \(bytes.count) bytes, more than the history of a group "
                    + "(GroupHistory.maximumByteCount), \(configuration.history.maximumByteCount). Send less at once."
            )
        }
        do { try await node(of: group)?.waitForRoom() } catch { throw .cancelled }
        return try await asking("append") {
            try await self.engine.append(bytes, to: group, keeping: self.configuration.history)
        }
    }
}

// Groups at this node.
extension Fleet {
    /// The node of a group, which is loaded where nobody uses it yet. Say `release` once for each call.
    private func use(_ name: String) async throws(FleetError) -> GroupNode {
        enum Step {
            case use(GroupNode)
            case wait(Latch<Void>)
            case load(Latch<Void>)
        }
        while true {
            let step = state.withLockedValue { state -> Step in
                switch state.groups[name] {
                case .ready(let node, let count)?:
                    state.groups[name] = .ready(node, userCount: count + 1)
                    return .use(node)
                case .loading(let latch, _)?, .leaving(let latch)?:
                    return .wait(latch)
                case nil:
                    let latch = Latch<Void>()
                    state.groups[name] = .loading(latch, noted: nil)
                    return .load(latch)
                }
            }
            switch step {
            case .use(let node): return node
            case .wait(let latch): do { try await latch.wait() } catch { throw .cancelled }
            case .load(let latch): return try await load(name, latch)
            }
        }
    }

    private func load(_ name: String, _ latch: Latch<Void>) async throws(FleetError) -> GroupNode {
        defer { latch.open(with: ()) }
        do {
            let page = try await asking("follow") { try await self.engine.follow(name, self.node) }
            let node = GroupNode(
                name,
                page,
                configuration,
                engine: engine,
                clock: clock,
                logger: logger
            ) { [weak self] count in
                Task.detached { await self?.release(name, count) }
            }
            let noted = state.withLockedValue { state -> GroupPosition? in
                guard case .loading(_, let noted)? = state.groups[name] else { return nil }
                state.groups[name] = .ready(node, userCount: 1)
                return noted
            }
            if let noted { node.noted(noted) }
            return node
        } catch {
            state.withLockedValue { $0.groups[name] = nil }
            throw error
        }
    }

    private func release(_ name: String, _ released: Int = 1) async {
        let latch = state.withLockedValue { state -> Latch<Void>? in
            guard case .ready(let node, let count)? = state.groups[name] else { return nil }
            guard count == released else {
                state.groups[name] = .ready(node, userCount: count - released)
                return nil
            }
            let latch = Latch<Void>()
            state.groups[name] = .leaving(latch)
            return latch
        }
        guard let latch else { return }
        await engine.unfollow(name, node)
        state.withLockedValue { $0.groups[name] = nil }
        latch.open(with: ())
    }

    /// - Throws: `engineFailed`, `cancelled`.
    private func asking<Result: Sendable>(
        _ what: String,
        _ body: @Sendable () async throws -> Result
    ) async throws(FleetError) -> Result {
        do {
            return try await body()
        } catch let error as FleetError {
            throw error
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw FleetError(
                code: .engineFailed,
                message: "The fleet's engine cannot \(what) now. Try again when it is there.",
                cause: error
            )
        }
    }
}

// News of the engine.
extension Fleet {
    private func received(_ news: FleetNews) {
        switch news {
        case .message(let bytes, let position, let name):
            let node = state.withLockedValue { state -> GroupNode? in
                switch state.groups[name] {
                case .ready(let node, _)?:
                    return node
                case .loading(let latch, let noted)?:
                    // The answer of the engine may be older.
                    let newest = noted.map { max($0, position) } ?? position
                    state.groups[name] = .loading(latch, noted: newest)
                    return nil
                case .leaving?, nil:
                    return nil
                }
            }
            node?.received(bytes, at: position)
        case .interrupted:
            bell.ring()
        }
    }

    /// Looks for messages that this node was not told of.
    private func compare() async {
        let nodes = state.withLockedValue { state in
            state.groups.values.compactMap { if case .ready(let node, _) = $0 { node } else { nil } }
        }
        guard !nodes.isEmpty else { return }
        do {
            let positions = try await engine.newest(of: nodes.map(\.name))
            for (node, position) in zip(nodes, positions) { node.noted(position) }
        } catch {
            logger.warning("The engine cannot be compared with", metadata: ["error": "\(error)"])
        }
    }
}

extension Fleet: Service {
    /// Works with the engine until the task is cancelled, or a graceful shutdown begins. A fleet whose engine is in
    /// memory works without.
    ///
    /// - Throws: `CancellationError`; why the engine cannot work, when that will not change.
    public func run() async throws {
        try await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup { group in
                group.addTask { try await self.engine.run(self.node) }
                group.addTask { try await self.compareAgainAndAgain() }
                defer { group.cancelAll() }
                try await group.next()
            }
        }
    }

    private func compareAgainAndAgain() async throws {
        while true {
            let deadline = clock.now + configuration.comparisonInterval
            await clock.race(until: deadline) { await self.bell.wait() }
            try Task.checkCancellation()
            await compare()
        }
    }
}

extension Fleet {
    /// The session has begun: it joins the groups that every session is in.
    public func sessionOpened(_ session: SessionServerEnd) {
        let groups = configuration.automaticGroups(session)
        guard !groups.isEmpty else { return }
        Task.detached {
            for group in groups { await self.joinAtLast(group, session) }
        }
    }

    /// Joins, and tries again while the engine fails and the session lasts.
    private func joinAtLast(_ group: String, _ session: SessionServerEnd) async {
        while !session.hasEnded {
            do throws(FleetError) {
                try await join(group, session)
                return
            } catch {
                logger.warning(
                    "A session cannot join a group",
                    metadata: ["group": "\(group.escaped(limit: 100))", "error": "\(error)"]
                )
                guard error.code == .engineFailed else { return }
                try? await clock.sleep(until: clock.now + .seconds(1))
            }
        }
    }

    /// The session is over: it is in no group any more.
    public func sessionEnded(_ session: SessionServerEnd) {
        let groups = state.withLockedValue { $0.memberships[session.id] ?? [] }
        guard !groups.isEmpty else { return }
        for group in groups { remove(session, from: group) }
    }
}

extension GroupPosition: Comparable {
    /// Whether one comes before another one: epochs ascend.
    public static func < (first: GroupPosition, second: GroupPosition) -> Bool {
        (first.epoch, first.offset) < (second.epoch, second.offset)
    }
}
