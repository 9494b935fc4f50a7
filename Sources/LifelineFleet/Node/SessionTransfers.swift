internal import Lifeline
internal import LifelineRuntime

/// The sessions of this node, and those that come and go.
struct SessionTransfers: Sendable {
    typealias Membership = Lifeline_Fleet_V1_ParkedSession.Membership

    /// A session that leaves for another node.
    private struct Departure {
        /// The groups that have not said where it is.
        var awaited: Set<ExactName>
        var memberships: [Membership] = []
        let isComplete = Latch<Void>()
        /// Opens when the engine has it, or it is lost.
        let isOver = Latch<Void>()
    }

    /// A session that is looked for.
    private struct Search {
        let attempt: UInt64
        let bell: Doorbell
        var answer: SessionSearch.Answer?
    }

    private var sessions: [SessionID: (session: SessionServerEnd, claim: SessionClaim)] = [:]
    /// The same by what groups know of them.
    private var departures: [String: Departure] = [:]
    /// The groups of sessions that were found, and are about to be opened.
    private var arrivals: [SessionID: (claim: SessionClaim, memberships: [Membership])] = [:]
    private var searches: [SessionID: Search] = [:]
    /// Sessions that are being handed over.
    private var handedOver: Set<SessionID> = []

    // MARK: Sessions of this node

    mutating func began(_ session: SessionServerEnd, _ claim: SessionClaim) {
        sessions[claim.credentials.id] = (session, claim)
    }

    /// A session is open. Returns the groups that it was in at another node.
    mutating func opened(_ session: SessionServerEnd) -> [Membership] {
        guard let (claim, memberships) = arrivals.removeValue(forKey: session.sessionID) else { return [] }
        began(session, claim)
        return memberships
    }

    /// A session is over here. Returns its claim where it is over everywhere.
    mutating func ended(_ session: SessionServerEnd, in groups: [String]) -> SessionClaim? {
        let claim = sessions.removeValue(forKey: session.sessionID)?.claim
        guard session.hasMoved else { return claim }
        let departure = Departure(awaited: Set(groups.map { ExactName($0) }))
        if groups.isEmpty { departure.isComplete.open(with: ()) }
        departures[session.id] = departure
        return nil
    }

    func session(_ id: SessionID) -> SessionServerEnd? { sessions[id]?.session }

    var all: [SessionServerEnd] { sessions.values.map(\.session) }

    // MARK: Sessions that go

    /// A session is no member of a group any more. Returns what to open.
    mutating func left(_ session: String, _ group: ExactName, _ left: GroupNode.Machine.Left?) -> Latch<Void>? {
        guard var departure = departures[session], departure.awaited.remove(group) != nil else { return nil }
        if let left {
            departure.memberships.append(
                .with {
                    $0.group = group.name
                    $0.position = .init(left.position)
                    $0.followsGap = left.followsGap
                }
            )
        }
        departures[session] = departure
        return departure.awaited.isEmpty ? departure.isComplete : nil
    }

    /// Opens when all groups have said where a session is that goes; nil: it does not.
    func departure(of session: SessionServerEnd) -> Latch<Void>? { departures[session.id]?.isComplete }

    func memberships(of session: SessionServerEnd) -> [Membership] { departures[session.id]?.memberships ?? [] }

    /// The engine has a session, or it is lost. Returns what to open.
    mutating func departed(_ session: SessionServerEnd) -> Latch<Void>? {
        departures.removeValue(forKey: session.id)?.isOver
    }

    /// Opens when the engine has a session that is over here, and on its way there; nil: it is not.
    func onItsWay(_ id: SessionID) -> Latch<Void>? { departures["\(id)"]?.isOver }

    /// Another node asks for a session. Returns false where it is being handed over already.
    mutating func beginHandOver(_ id: SessionID) -> Bool { handedOver.insert(id).inserted }

    mutating func endHandOver(_ id: SessionID) { handedOver.remove(id) }

    // MARK: Sessions that come

    /// Begins to look for a session; one search at a time.
    mutating func beginSearch(_ claim: SessionClaim, _ bell: Doorbell) {
        searches[claim.credentials.id] = Search(attempt: claim.attempt, bell: bell)
    }

    mutating func endSearch(_ claim: SessionClaim) { searches[claim.credentials.id] = nil }

    /// A node has answered. Returns what to ring.
    mutating func answered(_ id: SessionID, attempt: UInt64, _ answer: SessionSearch.Answer) -> Doorbell? {
        guard let search = searches[id], search.attempt == attempt else { return nil }
        searches[id]?.answer = answer
        return search.bell
    }

    mutating func takeAnswer(_ claim: SessionClaim) -> SessionSearch.Answer? {
        defer { searches[claim.credentials.id]?.answer = nil }
        return searches[claim.credentials.id]?.answer
    }

    mutating func found(_ claim: SessionClaim, _ memberships: [Membership]) {
        arrivals[claim.credentials.id] = (claim, memberships)
    }
}
