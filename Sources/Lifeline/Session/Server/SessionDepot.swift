/// A store in which the servers of a fleet leave sessions for each other, and a service of each server. `Fleet` is one.
package protocol SessionDepot: SessionService {
    /// Whether other servers can take the sessions.
    var isShared: Bool { get }

    /// Announces a new session of a server. Returns when other servers can find it, or when that takes too long.
    func begin(_ session: SessionServerEnd, _ claim: SessionClaim) async

    /// Looks for a session that a client has claimed and that its server does not have. Finding it also takes it, so
    /// that no other server finds it.
    func find(_ claim: SessionClaim) async -> SessionFinding

    /// Keeps a session, which has ended here, for another server.
    ///
    /// - Returns: whether the session is kept.
    func park(_ session: SessionServerEnd, _ claim: SessionClaim, _ snapshot: SessionSnapshot) async -> Bool
}
