internal import Lifeline
internal import Logging
internal import NIOConcurrencyHelpers

extension Fleet {
    /// Returns the members of a group at all servers, in no order: those from `FleetConfiguration.presence`.
    ///
    /// - Throws: `FleetError`: `badName`, `engineFailed`, `cancelled`.
    public func members(of group: String) async throws(FleetError) -> [GroupMember] {
        try FleetError.checkName(group)
        return try await withEngine { try await self.presences.members(of: ExactName(group)) }
    }

    /// Returns the members of a group at all servers, and then their changes.
    ///
    /// The first event has all present members. A member that is away for less than `FleetConfiguration.presenceGrace`
    /// has not left. A reader that is too slow for single events gets all present members again.
    ///
    ///     for try await event in fleet.presence(of: "rooms/7") {
    ///         switch event {
    ///         case .present(let members): …
    ///         case .joined(let member): …
    ///         case .left(let member): …
    ///         }
    ///     }
    public func presence(of group: String) -> GroupPresence {
        GroupPresence(
            name: Result { () throws(FleetError) in
                try FleetError.checkName(group)
                return ExactName(group)
            },
            presences: presences
        )
    }

    // MARK: Sessions that come and go

    /// Shows a session that has joined a group.
    func showPresence(of session: SessionServerEnd, in name: ExactName) {
        var member = configuration.presence(name.name, session)
        if member?.isValid == false {
            logger.warning(
                "A member is not shown, as its name or its attributes are too long",
                metadata: ["group": "\(name.name.escaped(limit: 100))"]
            )
            member = nil
        }
        presences.set(member, of: session.id, in: name) { isMember(session.id, of: name) }
    }

    /// Hides a session that has left a group.
    func hidePresence(of session: String, in name: ExactName) {
        presences.remove(session, from: name) { isMember(session, of: name) }
    }

    private func isMember(_ session: String, of name: ExactName) -> Bool {
        directory.withLockedValue { $0.isMember(session, of: name) }
    }
}
