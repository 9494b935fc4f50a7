/// Where the servers of a fleet leave sessions for each other: a service of each of them. `Fleet` is one.
package protocol SessionDepot: SessionService {
    /// A session begins at a server. Returns when other servers can find it, or when that takes too long.
    func begin(_ session: SessionServerEnd, _ claim: SessionClaim) async

    /// Looks for a session that a client has claimed, and that its server does not have. It is taken with that, so that
    /// nobody else finds it.
    func find(_ claim: SessionClaim) async -> SessionFinding

    /// Keeps a session, which is over here, for another server.
    ///
    /// - Returns: whether it is kept.
    func park(_ session: SessionServerEnd, _ claim: SessionClaim, _ snapshot: SessionSnapshot) async -> Bool
}
