public import Lifeline
internal import LifelineRuntime
internal import Logging
internal import NIOConcurrencyHelpers

// The beginning, end and move of sessions.
extension Fleet {
    /// Joins the groups that a session was in at another server, and its automatic groups, after it has begun or
    /// arrived here.
    public func sessionOpened(_ session: SessionServerEnd) {
        let memberships = transfers.withLockedValue { $0.opened(session) }
        let groups = configuration.automaticGroups(session)
        guard !groups.isEmpty || !memberships.isEmpty else { return }
        Task.detached {
            for membership in memberships { await self.join(membership, session) }
            for group in groups { await self.joinWithRetries(group, session) }
        }
    }

    private func join(_ membership: Lifeline_Fleet_V1_ParkedSession.Membership, _ session: SessionServerEnd) async {
        let group = membership.group
        let position = GroupPosition(membership.position)
        await joinWithRetries(group, session, from: .after(position), isReturning: true)
        // If it has moved on meanwhile, the next node joins it.
        if !session.hasMoved { transfers.withLockedValue { $0.joined(group, session.id) } }
        guard membership.followsGap else { return }
        directory.withLockedValue { $0.node(of: ExactName(group)) }?.missed(session)
    }

    /// Joins, and tries again while the engine fails and the session lasts.
    private func joinWithRetries(
        _ group: String,
        _ session: SessionServerEnd,
        from start: GroupStart = .now,
        isReturning: Bool = false
    ) async {
        while !session.hasEnded {
            do throws(FleetError) {
                _ = try await join(group, session, from: start, isReturning: isReturning)
                return
            } catch {
                if error.code == .sessionEnded { return }
                logger.warning(
                    "A session cannot join a group",
                    metadata: ["group": "\(group.escaped(limit: 100))", "error": "\(error)"]
                )
                guard error.code == .engineFailed else { return }
                try? await clock.sleep(until: clock.now + .seconds(1))
            }
        }
    }

    /// Removes a session that is over at this server from all groups here.
    public func sessionEnded(_ session: SessionServerEnd) {
        let groups = directory.withLockedValue { $0.groups(of: session.id) }
        let over = transfers.withLockedValue { $0.ended(session, in: groups) }
        for node in directory.withLockedValue({ $0.leaveAll(session.id) }) {
            hidePresence(of: session.id, in: ExactName(node.name))
            node.remove(session.id)
        }
        guard let over else { return }
        // If this fails, the claim expires in the engine.
        Task.detached { try? await self.engine.forget(FleetSession(over), by: self.nodeName) }
    }
}
