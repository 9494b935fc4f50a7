public import Lifeline
internal import LifelineCore
public import LifelineMessages
package import LifelineRuntime
public import Logging
internal import NIOConcurrencyHelpers
public import ServiceLifecycle

/// Groups of sessions: messages to a group reach each of its members, in the group's order, and the latest messages are
/// kept for members that were away.
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
/// **Guarantees.** A member gets every message that is pushed to the group during its membership, once and in order,
/// for as long as its session lasts, over all connections. A member that takes messages more slowly than they arrive
/// does not delay others: it gets them from the group's history. If it is slower, or away for longer, than the history
/// reaches, its next message reports that earlier ones are lost (`GroupMark.followsGap`).
///
/// **Sessions move.** A client that comes to another server of the fleet continues its session there: the server that
/// has the session is asked to park it in the engine, and a server that goes away parks all of its sessions there. No
/// message is lost, doubled, or in doubt. Calls that run when a session moves are cancelled after a second, and end
/// with the status `unavailable`. A session with a store (`SessionServerConfiguration.store`) stays with its store. All
/// servers of a fleet must have the same `SessionLimits`.
public final class Fleet: Sendable {
    /// The engine that connects the processes of the fleet.
    public let engine: any FleetEngine
    /// The name of this process among those that share the engine.
    public let nodeName: String

    let configuration: FleetConfiguration
    let directory = NIOLockedValueBox(GroupDirectory())
    let transfers: NIOLockedValueBox<SessionTransfers>
    let presences: FleetPresence
    let clock: any ClientClock
    private let log: LimitedLog
    /// Rings when groups have to be compared at once.
    private let bell = Doorbell()
    /// Rings when the engine may have lost this node's lease.
    let leaseBell = Doorbell()
    /// Rings when the engine may have lost this node's claims to sessions.
    let claimBell = Doorbell()

    var logger: Logger { log.logger }

    /// Makes a fleet.
    ///
    /// - Parameters:
    ///   - engine: Default: one in memory, only for this process.
    ///   - nodeName: the name of this process among those that share the engine. Default: a random name.
    ///   - logger: receives failures of the engine at `warning`. At most 100 lines with the same message are written in
    ///     ten seconds.
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
        self.clock = clock
        transfers = NIOLockedValueBox(SessionTransfers(leaseDuration: configuration.leaseDuration))
        log = .ofServer(logger) { clock.now }
        presences = FleetPresence(
            engine: engine,
            nodeName: self.nodeName,
            configuration,
            clock: clock,
            logger: log.logger
        )
        engine.attach(FleetNode(name: self.nodeName) { [weak self] in self?.received($0) })
    }

    // In another task, because the engine may be about to deliver news.
    deinit { Task { [engine, nodeName] in engine.detach(nodeName) } }

    // MARK: Members

    /// Makes a session a member of a group, until it ends or leaves. A session that is already a member keeps its
    /// position.
    ///
    /// - Parameter start: the first message that it gets.
    /// - Throws: `FleetError`: `badName`, `tooManyGroups`, `sessionEnded`, `engineFailed`, `cancelled`.
    @discardableResult
    public func join(
        _ group: String,
        _ session: SessionServerEnd,
        from start: GroupStart = .now
    ) async throws(FleetError) -> GroupJoin {
        try await join(group, session, from: start, isReturning: false)
    }

    /// - Parameter isReturning: whether it has come from another node, where it was a member.
    func join(
        _ group: String,
        _ session: SessionServerEnd,
        from start: GroupStart,
        isReturning: Bool
    ) async throws(FleetError) -> GroupJoin {
        try FleetError.checkName(group)
        let name = ExactName(group)
        while true {
            if Task.isCancelled { throw .cancelled }
            if session.hasEnded { throw .sessionEnded }
            let limit = max(configuration.maximumGroupCountPerSession, 1)
            switch directory.withLockedValue({ $0.beginJoin(name, session.id, limit: limit) }) {
            case .tooMany:
                throw .tooManyGroups(limit)
            case .member(let node, let began, let changed):
                if let position = node.position(of: session) {
                    // Messages since it became a member are on their way.
                    guard case .after(let start) = start,
                        start.epoch != position.epoch || start.epoch == began.epoch && start.offset < began.offset
                    else { return GroupJoin(position: position, isRecovered: true) }
                    node.missed(session)
                    return GroupJoin(position: position, isRecovered: false)
                }
                do { try await changed.wait() } catch { throw .cancelled }
            case .wait(let changed):
                do { try await changed.wait() } catch { throw .cancelled }
            case .endFirst(let node, let changed):
                node.remove(session.id)
                do { try await changed.wait() } catch { throw .cancelled }
            case .begin:
                return try await join(name, session, from: start, isReturning: isReturning)
            }
        }
    }

    private func join(
        _ name: ExactName,
        _ session: SessionServerEnd,
        from start: GroupStart,
        isReturning: Bool
    ) async throws(FleetError) -> GroupJoin {
        let node: GroupNode
        do {
            node = try await retainNode(name)
        } catch {
            directory.withLockedValue { $0.joinFailed(name, session.id) }?.open(with: ())
            throw error
        }
        let join: GroupJoin
        do {
            join = try await withEngine { try await node.join(session, from: start, isReturning: isReturning) }
        } catch {
            isGone(session.id, from: name, nil)
            throw error
        }
        // Its end, or its leaving, may have been reported before it was a member.
        let (isWanted, changed) = directory.withLockedValue {
            $0.joined(name, session.id, at: join.position, isWanted: !session.hasEnded && !Task.isCancelled)
        }
        changed?.open(with: ())
        if isWanted {
            showPresence(of: session, in: name)
            return join
        }
        node.remove(session.id)
        throw session.hasEnded ? .sessionEnded : .cancelled
    }

    /// Ends the membership of a session, if it is a member. Messages pushed before still reach it, unless it joins
    /// again before.
    public func leave(_ group: String, _ session: SessionServerEnd) {
        let name = ExactName(group)
        guard let node = directory.withLockedValue({ $0.leave(name, session.id) }) else { return }
        hidePresence(of: session.id, in: name)
        node.leave(session)
    }

    /// The groups that a session is a member of, in no order.
    public func groups(of session: SessionServerEnd) -> [String] {
        directory.withLockedValue { $0.groups(of: session.id) }
    }

    /// Returns the number of this process's sessions in a group, including leaving ones that have not got all messages.
    public func memberCount(of group: String) -> Int {
        directory.withLockedValue { $0.node(of: ExactName(group)) }?.memberCount ?? 0
    }

    /// Whether any group has, or is about to have, members at this process.
    package var hasGroups: Bool { directory.withLockedValue { !$0.isEmpty } }

    // MARK: Messages

    /// Pushes a message to all members of a group, at all servers. Returns its position when the engine has it. Waits
    /// while messages are pushed faster than the members at this process get them.
    ///
    /// Pushes of one task keep their order, because each waits for the one before.
    ///
    /// - Parameters:
    ///   - method: the method from generated code: `Sample_Room_V1_RoomPushes.news`, for example.
    ///   - delivery: the guarantees for each member. A message that is sent at most once only goes to members that are
    ///     not behind. Of messages with the same key, members that are behind get only the newest.
    ///   - metadata: the metadata of the message.
    /// - Throws: `FleetError`: `badName`, `badMessage`; `engineFailed` and `cancelled`: then the message may have been
    ///   pushed nevertheless.
    @discardableResult
    public func push<Message: DelimitedMessage>(
        _ method: SessionPushMethod<Message>,
        _ message: Message,
        to group: String,
        delivery: SessionDelivery = .reliable,
        metadata: SessionMetadata = [:]
    ) async throws(FleetError) -> GroupPosition {
        try FleetError.checkName(group)
        let bytes = try encoded(method.name, message, group, delivery, metadata)
        do { try await directory.withLockedValue { $0.node(of: ExactName(group)) }?.waitForRoom() } catch {
            throw .cancelled
        }
        return try await withEngine {
            try await self.engine.append(bytes, to: group, keeping: self.configuration.history)
        }
    }

    private func encoded(
        _ method: String,
        _ message: some DelimitedMessage,
        _ group: String,
        _ delivery: SessionDelivery,
        _ metadata: SessionMetadata
    ) throws(FleetError) -> [UInt8] {
        let bytes: [UInt8]
        do {
            let message = try Lifeline_Fleet_V1_GroupMessage(
                method,
                payload: try message.sessionPayload(),
                metadata: metadata,
                delivery: delivery
            )
            // The mark needs room.
            if !metadata.isEmpty { _ = try message.push(.longest(group), age: .zero) }
            bytes = try message.serializedBytes()
        } catch let error as FleetError {
            throw error
        } catch {
            throw FleetError(code: .badMessage, message: "The message cannot be pushed.", cause: error)
        }
        let limit = configuration.history.maximumByteCount
        if bytes.count <= limit { return bytes }
        throw FleetError(
            code: .badMessage,
            message:
                "The message takes \(bytes.count) bytes, more than the history of a group "
                + "(GroupHistory.maximumByteCount), \(limit). Send less at once."
        )
    }
}

// Groups at this node.
extension Fleet {
    /// Returns the node of a group, and loads it if it is not in use. Counts one more user.
    private func retainNode(_ name: ExactName) async throws(FleetError) -> GroupNode {
        while true {
            switch directory.withLockedValue({ $0.retain(name) }) {
            case .ready(let node):
                return node
            case .loading(let loaded):
                let result: Result<Void, FleetError>
                do { result = try await loaded.wait() } catch { throw .cancelled }
                // If the task that was loading it was cancelled, another one loads it.
                if case .failure(let error) = result, error.code != .cancelled { throw error }
            case .unloading(let unloaded):
                do { try await unloaded.wait() } catch { throw .cancelled }
            case .load(let loaded):
                let result = await load(name)
                loaded.open(with: result.map { _ in })
                return try result.get()
            }
        }
    }

    private func load(_ name: ExactName) async -> Result<GroupNode, FleetError> {
        do throws(FleetError) {
            let page = try await withEngine { try await self.engine.follow(name.name, self.nodeName) }
            let node = GroupNode(
                name.name,
                page,
                configuration,
                engine: engine,
                clock: clock,
                logger: logger
            ) { [weak self] in self?.isGone($0, from: name, $1) }
            if let news = directory.withLockedValue({ $0.loaded(name, node) }) { node.noted(news) }
            return .success(node)
        } catch {
            directory.withLockedValue { $0.loadFailed(name) }
            return .failure(error)
        }
    }

    /// Notes that a session is no longer a member of a group.
    private func isGone(_ session: String, from name: ExactName, _ left: GroupNode.Machine.Left?) {
        // Before its membership ends, so that it is always counted here or at the other node.
        let isMember = directory.withLockedValue { $0.isMember(session, of: name) }
        transfers.withLockedValue { $0.left(session, name, left, isMember: isMember) }?.open(with: ())
        let (changed, unloaded) = directory.withLockedValue { $0.isGone(session, from: name) }
        changed?.open(with: ())
        hidePresence(of: session, in: name)
        guard let unloaded else { return }
        Task.detached {
            await self.engine.unfollow(name.name, self.nodeName)
            self.directory.withLockedValue { $0.unloaded(name) }
            unloaded.open(with: ())
        }
    }

    /// - Throws: `engineFailed`, `cancelled`.
    func withEngine<Result: Sendable>(
        _ body: @Sendable () async throws -> Result
    ) async throws(FleetError) -> Result {
        do {
            return try await body()
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw FleetError(
                code: .engineFailed,
                message: "The engine of the fleet has failed.",
                cause: error
            )
        }
    }
}

// News of the engine.
extension Fleet {
    private func received(_ news: FleetNews) {
        switch news {
        case .message(let bytes, let position, let group):
            let node = directory.withLockedValue { $0.received(position, in: ExactName(group)) }
            node?.received(bytes, at: position)
        case .presence(let change, let group):
            presences.received(change, in: ExactName(group))
        case .interrupted:
            transfers.withLockedValue { $0.silentNodes.engineWasLost() }
            bell.ring()
            leaseBell.ring()
            claimBell.ring()
        case .told(let bytes):
            told(bytes)
        }
    }

    /// Looks for messages that this node was not notified of.
    private func compare() async {
        presences.compareAll()
        let nodes = directory.withLockedValue { $0.nodes }
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
    /// Works with the engine until the task is cancelled, or a graceful shutdown begins. A fleet with an engine in
    /// memory that no other fleet uses works without this call.
    ///
    /// - Throws: `CancellationError` when the task is cancelled; the reason for a permanent failure of the engine.
    public func run() async throws {
        do {
            try await cancelWhenGracefulShutdown {
                try await withThrowingTaskGroup { group in
                    group.addTask { try await self.engine.run(self.nodeName) }
                    group.addTask { try await self.compareAgainAndAgain() }
                    group.addTask { await self.keepLease() }
                    group.addTask { await self.keepClaims() }
                    defer { group.cancelAll() }
                    try await group.next()
                }
            }
        } catch is CancellationError where !Task.isCancelled {
            // A graceful shutdown.
        }
    }

    private func compareAgainAndAgain() async throws {
        let interval = max(configuration.comparisonInterval, .milliseconds(10))
        while true {
            await clock.race(until: clock.now + interval) { await self.bell.wait() }
            try Task.checkCancellation()
            await compare()
        }
    }
}
