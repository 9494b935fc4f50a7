public import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime

extension SessionClient {
    /// Joins a group for the duration of `body`, over all connections and sessions.
    ///
    /// Messages to the group arrive as pushes of their methods, like all others; `SessionPushes.withMetadata` has their
    /// places in the group. When the session is lost, the client joins again after the last message that it got, so
    /// that the group's history fills the gap. If it cannot, the next message reports the gap (`GroupMark.followsGap`).
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
    /// - Parameter start: the first message to get.
    /// - Throws: `SessionError`: `status` when the server refuses the client, or the reason for the end of the session.
    ///   `FleetError` `alreadyJoined` when the client is already in the group. Errors of `body`. If the server later
    ///   refuses to let the client join again, `SessionGroup.joins` throws.
    public nonisolated(nonsending) func withGroup<Result>(
        _ name: String,
        from start: GroupStart = .now,
        _ body: nonisolated(nonsending) (SessionGroup) async throws -> Result
    ) async throws -> Result {
        try await begin(name)
        let group = SessionGroup(name, of: self, from: start)
        do {
            let result = try await withThrowingDiscardingTaskGroup { tasks in
                // It stops joining when the client leaves.
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

    /// Starts to follow the group.
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
