public import ClubProtos
public import Lifeline
internal import Synchronization

/// The service of the rooms. Each member has a task that reads new messages of the room and pushes them. So members
/// get messages in order, a slow member does not delay others, and its backlog stays in the database.
public final class Rooms: Example_Club_V1_RoomsHandler {
    /// The number of messages that are read at once for a member.
    public static let pageSize = 4

    private struct State {
        /// The tasks of the open sessions, by session id and room.
        var members: [String: [String: Task<Void, Never>]] = [:]
        var waitingCount = 0
    }

    private let database: any ClubDatabase
    private let bells = Bells()
    private let state = Mutex(State())

    public init(_ database: any ClubDatabase) { self.database = database }

    /// The number of memberships in all rooms.
    public var memberCount: Int { state.withLock { $0.members.values.reduce(0) { $0 + $1.count } } }

    /// The number of messages that were read and wait for a member's session: at most a page for each member.
    public var waitingCount: Int { state.withLock { $0.waitingCount } }

    // MARK: Sessions

    public func sessionOpened(_ session: SessionServerEnd) { state.withLock { $0.members[session.id] = [:] } }

    public func sessionEnded(_ session: SessionServerEnd) {
        let tasks = state.withLock { $0.members.removeValue(forKey: session.id) } ?? [:]
        for task in tasks.values { task.cancel() }
    }

    // MARK: Methods

    public func join(
        _ request: Example_Club_V1_JoinRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_JoinReply {
        _ = try await database.transaction { try $0.room(request.room).lastNumber }
        let session = context.session
        try state.withLock { state in
            // The caller may have given up, and left. After the end of the session, nothing would remove the task.
            guard !Task.isCancelled, state.members[session.id] != nil else { throw SessionStatus(.cancelled) }
            let former = state.members[session.id]?[request.room]
            former?.cancel()
            state.members[session.id]?[request.room] = Task {
                // Otherwise both tasks would push, out of order.
                await former?.value
                await self.tell(session, of: request.room, after: request.after)
            }
        }
        return Example_Club_V1_JoinReply()
    }

    public func leave(
        _ request: Example_Club_V1_LeaveRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_LeaveReply {
        let task = state.withLock { $0.members[context.session.id]?.removeValue(forKey: request.room) }
        task?.cancel()
        await task?.value
        return Example_Club_V1_LeaveReply()
    }

    public func say(
        _ request: Example_Club_V1_SayRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_SayReply {
        // Rings after an error too, because the change may have been made.
        defer { bells.ring(request.room) }
        let number = try await database.transaction { try $0.say(request) }
        return .with { $0.number = number }
    }

    public func history(
        _ request: Example_Club_V1_HistoryRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_HistoryReply {
        let messages = try await database.transaction { try $0.room(request.room).messages }
        return .with { $0.messages.append(contentsOf: messages) }
    }

    // MARK: Pushing

    /// Pushes the messages after `number`, and later ones, until the task is cancelled or the session ends.
    private func tell(_ session: SessionServerEnd, of room: String, after number: UInt64) async {
        let pushes = Example_Club_V1_RoomsPushes(session)
        var last = number
        for await _ in bells.rings(of: room) {
            while let page = await page(of: room, after: last) {
                for (index, message) in page.enumerated() {
                    var message = message
                    message.missedCount = message.number - last - 1
                    last = message.number
                    let isPushed = (try? await pushes.heard(message)) != nil
                    let countGone = isPushed ? 1 : page.count - index
                    state.withLock { $0.waitingCount -= countGone }
                    guard isPushed else { return }
                }
            }
        }
    }

    /// Returns the next messages; nil if there are none, or the task is cancelled.
    private func page(of room: String, after number: UInt64) async -> [Example_Club_V1_Message]? {
        while !Task.isCancelled {
            do {
                let page = try await database.transaction {
                    try $0.messages(in: room, after: number, limit: Rooms.pageSize)
                }
                if page.isEmpty || Task.isCancelled { return nil }
                state.withLock { $0.waitingCount += page.count }
                return page
            } catch let status as SessionStatus where status.code != .unavailable {
                return nil
            } catch {
                // Tries again, because no ring may follow for messages that are already stored.
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
        return nil
    }
}
