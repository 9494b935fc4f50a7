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
    /// Ask for the pushes before, so that none of them finds nobody.
    ///
    /// - Parameter start: which messages come first.
    /// - Throws: `SessionError`: `status` when the server refuses the client, and why the session has ended; what `body`
    ///   throws.
    public nonisolated(nonsending) func withGroup<Result>(
        _ name: String,
        from start: GroupStart = .now,
        _ body: nonisolated(nonsending) (SessionGroup) async throws -> Result
    ) async throws -> Result {
        let group = SessionGroup(name, of: self, from: start)
        follow(name)
        // Cancelled and awaited at the end.
        async let _: Void = group.keep()
        do {
            try await group.firstJoin()
            let result = try await body(group)
            await group.end()
            return result
        } catch {
            await group.end()
            throw error
        }
    }
}
