internal import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import Logging
internal import NIOConcurrencyHelpers

/// A group at this node: drives its machine, which decides everything.
///
/// One task works through the turns, and each member that is behind is served by a task of its own. Both end when there
/// is nothing to do.
final class GroupNode: Sendable {
    typealias Machine = GroupMachine<SessionServerEnd>
    typealias Content = Lifeline_Fleet_V1_GroupMessage

    private struct State {
        var machine: Machine
        /// Whether a task works through the turns.
        var isWorking = false
        /// The tasks of members that are served. A member that has left and joined again has another one.
        var servings: [String: (number: UInt64, task: Task<Void, Never>)] = [:]
        var lastServing: UInt64 = 0
        /// Opens when those who push need not wait any more; nil: nobody waits.
        var room: Latch<Void>?
    }

    let name: String
    private let engine: any FleetEngine
    private let clock: any ClientClock
    private let logger: Logger
    /// Called with how many members have gone.
    private let whenGone: @Sendable (Int) -> Void
    private let state: NIOLockedValueBox<State>

    init(
        _ name: String,
        _ page: GroupPage,
        _ configuration: FleetConfiguration,
        engine: any FleetEngine,
        clock: any ClientClock,
        logger: Logger,
        whenGone: @escaping @Sendable (Int) -> Void
    ) {
        (self.name, self.engine, self.clock, self.logger) = (name, engine, clock, logger)
        self.whenGone = whenGone
        let machine = Machine(
            page,
            keeping: configuration.history,
            slowByteLimit: configuration.slowMemberByteCount,
            now: clock.now
        )
        state = NIOLockedValueBox(State(machine: machine))
    }

    /// Changes the machine, and has the work done that comes of it.
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

    func join(_ session: SessionServerEnd, from start: GroupStart) -> (GroupJoin, isNew: Bool) {
        change { machine, now in
            let isNew = !machine.contains(session.id)
            return (machine.join(session, from: start, now: now), isNew)
        }
    }

    /// A session leaves once it has got what is there.
    func leave(_ session: SessionServerEnd) { change { machine, _ in machine.leave(session.id) } }

    /// A session is over.
    func remove(_ session: SessionServerEnd) {
        change { machine, _ in machine.remove(session.id) }
        state.withLockedValue { $0.servings[session.id]?.task }?.cancel()
    }

    var memberCount: Int { state.withLockedValue { $0.machine.memberCount } }

    // MARK: News

    func received(_ bytes: [UInt8], at position: GroupPosition) {
        change { machine, now in machine.received(bytes, at: position, now: now) }
    }

    func noted(_ position: GroupPosition) { change { machine, _ in _ = machine.noted(position) } }

    /// Waits while more is pushed than the members here get.
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
            if work.goneCount > 0 { whenGone(work.goneCount) }
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

    private func read(after offset: UInt64) async {
        do {
            let page = try await engine.read(name, after: offset)
            change { machine, now in machine.read(page, now: now) }
        } catch {
            logger.warning(
                "The engine cannot be read",
                metadata: ["group": "\(name.escaped(limit: 100))", "error": "\(error)"]
            )
            // The next comparison, or the next message, has it read again.
            state.withLockedValue { $0.machine.readFailed() }
        }
    }

    /// Offers the messages of a turn to all live members. Returns who could not take one at once, and its offset.
    private func offer(_ turn: Machine.Turn) async -> [(id: String, offset: UInt64)] {
        let pushes = turn.messages.map { (message: $0, push: livePush($0, epoch: turn.epoch)) }
        var blocked: [(id: String, offset: UInt64)] = []
        for (index, live) in turn.members.enumerated() {
            for (message, push) in pushes where live.wants(message) {
                guard let push else { continue }
                if case .accepted = live.member.offer(push) { continue }
                blocked.append((live.member.id, message.offset))
                break
            }
            // Other tasks of the thread go on meanwhile.
            if index % 64 == 63 { await Task.yield() }
        }
        return blocked
    }

    /// What live members get; nil for what is no message.
    private func livePush(_ message: Machine.Message, epoch: UInt64) -> SessionServerEnd.EncodedPush? {
        let mark = GroupMark(
            group: name,
            position: GroupPosition(epoch: epoch, offset: message.offset),
            isRecovered: false,
            followsGap: message.followsGap
        )
        return content(message).flatMap { try? $0.push(mark) }
    }

    /// Nil, which is logged, for what another program has put there.
    private func content(_ message: Machine.Message) -> Content? {
        do {
            return try Content(serializedBytes: message.bytes)
        } catch {
            logger.warning(
                "The engine has something that is no message",
                metadata: ["group": "\(name.escaped(limit: 100))", "offset": "\(message.offset)"]
            )
            return nil
        }
    }

    // MARK: Members that are behind

    private func serve(_ id: String) {
        state.withLockedValue { state in
            state.lastServing += 1
            let number = state.lastServing
            let last = state.servings[id]?.task
            let task = Task.detached {
                // The same session's, of an earlier membership.
                await last?.value
                await self.serve(id, number)
            }
            state.servings[id] = (number, task)
        }
    }

    private func serve(_ id: String, _ number: UInt64) async {
        while let (session, serving) = next(for: id, number) {
            guard let result = await send(serving, to: session) else { break }
            change { machine, _ in machine.served(id, serving, result) }
        }
        state.withLockedValue { state in
            if state.servings[id]?.number == number { state.servings[id] = nil }
        }
        change { _, _ in }
    }

    private func next(for id: String, _ number: UInt64) -> (SessionServerEnd, Machine.Serving)? {
        let now = clock.now
        return state.withLockedValue { state in
            guard state.servings[id]?.number == number else { return nil }
            let next = state.machine.next(for: id, now: now)
            // Who is served again has another task.
            if next == nil { state.servings[id] = nil }
            return next
        }
    }

    /// Returns nil where the session takes nothing any more, or is no member any more.
    private func send(_ serving: Machine.Serving, to session: SessionServerEnd) async -> Machine.Served? {
        let message = serving.message
        let mark = GroupMark(
            group: name,
            position: GroupPosition(epoch: serving.epoch, offset: message.offset),
            isRecovered: serving.isRecovered,
            followsGap: serving.followsGap
        )
        guard let content = content(message), !content.delivery.atMostOnce else { return .passedOver }
        do throws(SessionError) {
            guard let push = try content.push(mark, age: clock.now - message.time) else { return .passedOver }
            try await session.send(push)
            return .sent
        } catch {
            return session.hasEnded || error.code == .cancelled ? nil : .lost
        }
    }
}
