internal import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import Logging
internal import NIOConcurrencyHelpers

/// A group at this node: drives its machine, which decides everything.
///
/// One task works through the turns, and each member that is behind is served by its own task. The tasks end when there
/// is no work.
final class GroupNode: Sendable {
    typealias Content = Lifeline_Fleet_V1_GroupMessage
    typealias Machine = GroupMachine<SessionServerEnd, Content>

    private struct State {
        var machine: Machine
        /// Whether a task works through the turns.
        var isWorking = false
        /// The tasks that serve members.
        var servings: [String: (number: UInt64, task: Task<Void, Never>)] = [:]
        var lastServing: UInt64 = 0
        /// Opens when senders need not wait any more; nil when none waits.
        var room: Latch<Void>?
    }

    let name: String
    private let engine: any FleetEngine
    private let clock: any ClientClock
    private let logger: Logger
    /// Called for each member that has left, once nothing more is sent to it.
    private let whenGone: @Sendable (_ session: String, Machine.Left?) -> Void
    private let state: NIOLockedValueBox<State>

    init(
        _ name: String,
        _ page: GroupPage,
        _ configuration: FleetConfiguration,
        engine: any FleetEngine,
        clock: any ClientClock,
        logger: Logger,
        whenGone: @escaping @Sendable (_ session: String, Machine.Left?) -> Void
    ) {
        (self.name, self.engine, self.clock, self.logger) = (name, engine, clock, logger)
        self.whenGone = whenGone
        let machine = Machine(
            page,
            keeping: configuration.history,
            slowByteLimit: configuration.slowMemberByteCount,
            now: clock.now,
            decode: Content.decoded
        )
        state = NIOLockedValueBox(State(machine: machine))
    }

    /// Changes the machine, and starts the resulting work.
    @discardableResult
    private func change<Result>(_ body: (inout Machine, MonotonicTime) -> Result) -> Result {
        let now = clock.now
        let (result, begins) = state.withLockedValue { state in
            let result = body(&state.machine, now)
            defer { state.isWorking = true }
            return (result, !state.isWorking)
        }
        if begins { Task.detached { await self.work() } }
        return result
    }

    // MARK: Members

    /// Adds a session that is not a member.
    ///
    /// - Throws: what the engine throws.
    func join(
        _ session: SessionServerEnd,
        from start: GroupStart,
        isReturning: Bool
    ) async throws -> GroupJoin {
        if case .after(let position) = start, position.isUnknown(to: self.position) {
            // The client may have got messages from another node that this one does not have yet.
            let (present, newest) = (self.position, try await engine.newest(of: [name]))
            if let newest = newest.first, newest != present {
                let offset = newest.epoch == present.epoch ? present.offset : 0
                let page = try await engine.read(name, after: offset)
                change { machine, now in machine.read(page, after: offset, in: present.epoch, now: now) }
            }
        }
        return change { machine, now in machine.join(session, from: start, isReturning: isReturning, now: now) }
    }

    private var position: GroupPosition { state.withLockedValue { $0.machine.position } }

    /// Notes that a member has missed messages. Its next message reports it.
    func missed(_ session: SessionServerEnd) { change { machine, _ in machine.missed(session.id) } }

    /// Returns the position after which a member gets the next message; nil if it is not a member.
    func position(of session: SessionServerEnd) -> GroupPosition? {
        state.withLockedValue { $0.machine.position(of: session.id) }
    }

    /// Lets a session leave once it has got the present messages.
    func leave(_ session: SessionServerEnd) { change { machine, _ in machine.leave(session.id) } }

    /// Removes a session that is no longer a member.
    func remove(_ id: String) { change { machine, _ in machine.remove(id) } }

    var memberCount: Int { state.withLockedValue { $0.machine.memberCount } }

    // MARK: News

    func received(_ bytes: [UInt8], at position: GroupPosition) {
        change { machine, now in machine.received(bytes, at: position, now: now) }
    }

    func noted(_ position: GroupPosition) { change { machine, _ in machine.noted(position) } }

    /// Waits while messages are pushed faster than the members here get them.
    func waitForRoom() async throws {
        while let room = room() { try await room.wait() }
    }

    private func room() -> Latch<Void>? {
        state.withLockedValue { state in
            guard state.machine.hasBacklog else { return nil }
            let room = state.room ?? Latch()
            state.room = room
            return room
        }
    }

    // MARK: Work

    private func work() async {
        while let work = takeWork() {
            for id in work.served { serve(id) }
            if let offset = work.readAfter { Task.detached { await self.read(after: offset) } }
            for id in work.gone { tellGone(id) }
            guard let turn = work.turn else { continue }
            let blocked = await offer(turn)
            state.withLockedValue { $0.machine.turnEnded(turn, blocked: blocked) }
        }
    }

    private func takeWork() -> Machine.Work? {
        let now = clock.now
        let (work, room) = state.withLockedValue { state in
            let work = state.machine.takeWork(now: now)
            if work == nil { state.isWorking = false }
            return (work, state.machine.hasBacklog ? nil : state.room.take())
        }
        room?.open(with: ())
        return work
    }

    private func tellGone(_ id: String) {
        guard let serving = state.withLockedValue({ $0.servings[id]?.task }) else { return isGone(id) }
        serving.cancel()
        Task.detached {
            await serving.value
            self.isGone(id)
        }
    }

    private func isGone(_ id: String) { whenGone(id, state.withLockedValue { $0.machine.takeLeft(id) }) }

    private func read(after offset: UInt64) async {
        do {
            let page = try await engine.read(name, after: offset)
            change { machine, now in machine.read(page, now: now) }
        } catch {
            logger.warning(
                "The engine cannot be read",
                metadata: ["group": "\(name.escaped(limit: 100))", "error": "\(error)"]
            )
            // The next comparison, or the next message, causes another read.
            state.withLockedValue { $0.machine.readFailed() }
        }
    }

    /// Offers the messages of a turn to all live members. Returns the members that could not take one at once, and its
    /// offset.
    private func offer(_ turn: Machine.Turn) async -> [(id: String, offset: UInt64)] {
        let now = clock.now
        let pushes = turn.messages.map { message in
            let mark = GroupMark(
                group: name,
                position: GroupPosition(epoch: turn.epoch, offset: message.offset),
                isRecovered: false,
                followsGap: message.followsGap
            )
            return (message: message, push: Result { try message.content.push(mark, age: now - message.time) })
        }
        var blocked: [(id: String, offset: UInt64)] = []
        for (index, live) in turn.members.enumerated() {
            for (message, push) in pushes where live.wants(message) {
                switch push {
                case .success(nil): continue
                case .success(let push?): if case .accepted = live.member.offer(push) { continue }
                case .failure: break
                }
                blocked.append((live.member.id, message.offset))
                break
            }
            // Lets other tasks of the thread run.
            if index % 64 == 63 { await Task.yield() }
        }
        return blocked
    }

    // MARK: Members that are behind

    private func serve(_ id: String) {
        state.withLockedValue { state in
            state.lastServing += 1
            let number = state.lastServing
            // A task that has just found no work ends at once.
            let last = state.servings[id]?.task
            let task = Task.detached {
                await last?.value
                await self.serve(id, number)
            }
            state.servings[id] = (number, task)
        }
    }

    private func serve(_ id: String, _ number: UInt64) async {
        while !Task.isCancelled, let (session, serving) = next(for: id) {
            guard let result = await send(serving, to: session) else {
                remove(id)
                break
            }
            change { machine, _ in machine.served(id, serving, result) }
        }
        state.withLockedValue { state in
            if state.servings[id]?.number == number { state.servings[id] = nil }
        }
        // The member may be live, or gone.
        change { _, _ in }
    }

    private func next(for id: String) -> (SessionServerEnd, Machine.Serving)? {
        let now = clock.now
        return state.withLockedValue { $0.machine.next(for: id, now: now) }
    }

    /// Sends a message. Returns nil when the session takes no more messages.
    private func send(_ serving: Machine.Serving, to session: SessionServerEnd) async -> Machine.Served? {
        let message = serving.message
        let mark = GroupMark(
            group: name,
            position: GroupPosition(epoch: serving.epoch, offset: message.offset),
            isRecovered: serving.isRecovered,
            followsGap: serving.followsGap
        )
        // Interceptors wait, so all members of a server with interceptors are served here. A message that reports a gap
        // is always sent.
        if message.content.delivery.atMostOnce, !serving.followsGap,
            serving.isRecovered || !session.hasInterceptors
        {
            return .passedOver
        }
        do throws(SessionError) {
            guard let push = try message.content.push(mark, age: clock.now - message.time) else { return .passedOver }
            try await session.send(push)
            return .sent
        } catch {
            return session.hasEnded || error.code == .cancelled ? nil : .lost
        }
    }
}

extension GroupPosition {
    /// Returns whether a node whose newest message is at another position does not have this one.
    fileprivate func isUnknown(to newest: GroupPosition) -> Bool { epoch != newest.epoch || offset > newest.offset }
}
