public import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime

extension SessionClient {
    /// Is a member of a group for as long as `body` takes, over all connections and sessions.
    ///
    /// What is pushed to the group comes as pushes of its methods, as all others do; `SessionPushes.withMetadata` has
    /// their places in the group. Where the session is lost, the client joins again behind the last message that had
    /// come, so that the group's history fills the gap. What it cannot fill, the next message tells
    /// (`GroupMark.followsGap`).
    ///
    ///     let room = Sample_Room_V1_RoomClient(session)
    ///     try await session.withGroup("rooms/7", from: .earliest) { group in
    ///         for try await push in room.news.withMetadata {
    ///             if push.group?.followsGap == true { print("(something is missing here)") }
    ///             print(push.message)
    ///         }
    ///     }
    ///
    /// Create the sequence of pushes before you join: pushes that come without one are dropped.
    ///
    /// - Parameter start: which messages come first.
    /// - Throws: `SessionError`: `status` when the server refuses the client, and why the session has ended. `FleetError`
    ///   `alreadyJoined` where the client is in the group. What `body` throws. Where the server does not let the client
    ///   join again later, `SessionGroup.joins` throws.
    public nonisolated(nonsending) func withGroup<Result>(
        _ name: String,
        from start: GroupStart = .now,
        _ body: nonisolated(nonsending) (SessionGroup) async throws -> Result
    ) async throws -> Result {
        try await begin(name)
        let group = SessionGroup(name, of: self, from: start)
        do {
            let result = try await withThrowingDiscardingTaskGroup { tasks in
                // It joins no more when the client leaves.
                tasks.addTask { await group.keep() }
                defer { tasks.cancelAll() }
                try await group.firstJoin()
                return try await body(group)
            }
            await group.leave()
            return result
        } catch {
            await group.leave()
            throw error
        }
    }

    /// Follows the group from now on.
    private nonisolated(nonsending) func begin(_ name: String) async throws {
        while true {
            switch follow(name) {
            case .begun: return
            case .present: throw FleetError.alreadyJoined
            case .leaving(let left): try await left.wait()
            }
        }
    }
}
