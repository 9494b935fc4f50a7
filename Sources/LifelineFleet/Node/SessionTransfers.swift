internal import Lifeline
internal import LifelineRuntime

/// The sessions of this node, and those that move to or from it.
struct SessionTransfers: Sendable {
    typealias Membership = Lifeline_Fleet_V1_ParkedSession.Membership

    /// A session that moves to another node.
    private struct Departure {
        /// The session's positions in groups that have reported them.
        var memberships: [ExactName: Membership] = [:]
        /// The groups that have not; nil when the session's end is not reported yet.
        var awaited: Set<ExactName>?
        let isComplete = Latch<Void>()
    }

    /// A session that is being searched for.
    private struct Search {
        let attempt: UInt64
        let bell: Doorbell
        var answer: SessionHandOver?
    }

    private struct Arrival {
        let claim: SessionClaim
        let memberships: [Membership]
    }

    /// The sessions, including those that move to other nodes, until the engine has them.
    private var sessions: [SessionID: (session: SessionServerEnd, claim: SessionClaim)] = [:]
    /// The departures, by the sessions' ids in groups.
    private var departures: [String: Departure] = [:]
    /// Sessions that were found, and are about to be opened.
    private var arrivals: [SessionID: Arrival] = [:]
    /// The groups that sessions were in at other nodes, and are not in here yet.
    private var unjoined: [String: [ExactName: Membership]] = [:]
    private var searches: [SessionID: Search] = [:]
    /// The sessions that are being handed over.
    private var handedOver: Set<SessionID> = []
    var silentNodes: SilentNodes

    /// - Parameter leaseDuration: the time for which a silent node is remembered.
    init(leaseDuration: Duration) { silentNodes = SilentNodes(lifetime: leaseDuration) }

    // MARK: Sessions of this node

    /// Notes that a session begins here. Returns the groups that it was in at another node.
    mutating func opened(_ session: SessionServerEnd) -> [Membership] {
        let arrival = arrivals.removeValue(forKey: session.sessionID)
        guard !session.hasEnded, let claim = arrival?.claim ?? session.claim else { return [] }
        sessions[session.sessionID] = (session, claim)
        let memberships = arrival?.memberships ?? []
        for membership in memberships { unjoined[session.id, default: [:]][ExactName(membership.group)] = membership }
        return memberships
    }

    /// Notes that a session is in a group again, or cannot join it.
    mutating func joined(_ group: String, _ session: String) {
        unjoined[session]?[ExactName(group)] = nil
        if unjoined[session]?.isEmpty == true { unjoined[session] = nil }
    }

    /// Notes that a session is over here. Returns the claim for the engine to forget; nil when the session has moved.
    ///
    /// - Parameter groups: the groups that it is a member of.
    mutating func ended(_ session: SessionServerEnd, in groups: [String]) -> SessionClaim? {
        guard session.hasMoved else {
            unjoined[session.id] = nil
            return sessions.removeValue(forKey: session.sessionID)?.claim
        }
        var departure = departures[session.id] ?? Departure()
        let awaited = Set(groups.map { ExactName($0) }).subtracting(departure.memberships.keys)
        departure.awaited = awaited
        departures[session.id] = departure
        if awaited.isEmpty { departure.isComplete.open(with: ()) }
        return nil
    }

    func session(_ id: SessionID) -> SessionServerEnd? { sessions[id]?.session }

    var all: [SessionServerEnd] { sessions.values.map(\.session) }

    // MARK: Sessions that go

    /// Notes that a session is no longer a member of a group. Returns the latch to open.
    ///
    /// - Parameter isMember: whether it had not asked to leave.
    mutating func left(
        _ session: String,
        _ group: ExactName,
        _ left: GroupNode.Machine.Left?,
        isMember: Bool
    ) -> Latch<Void>? {
        let isAwaited = departures[session]?.awaited?.remove(group) != nil
        // Its end may not be reported yet.
        if isMember || isAwaited, let left {
            departures[session, default: Departure()].memberships[group] = .with {
                $0.group = group.name
                $0.position = .init(left.position)
                $0.followsGap = left.followsGap
            }
        }
        guard isAwaited, let departure = departures[session] else { return nil }
        return departure.awaited?.isEmpty == true ? departure.isComplete : nil
    }

    /// Returns a latch that opens when all groups have reported the positions of a departing session.
    func departure(of session: SessionServerEnd) -> Latch<Void>? { departures[session.id]?.isComplete }

    /// Returns the groups of a departing session.
    func memberships(of session: SessionServerEnd) -> [Membership] {
        let left = departures[session.id]?.memberships ?? [:]
        return Array((unjoined[session.id] ?? [:]).merging(left) { $1 }.values)
    }

    /// Notes that the engine has a session, or it is lost.
    mutating func departed(_ session: SessionServerEnd) {
        sessions[session.sessionID] = nil
        departures[session.id] = nil
        unjoined[session.id] = nil
    }

    enum HandOver {
        case ask(SessionServerEnd)
        case unknown
        /// The session is on its way here, or already asked for: the asking node tries again.
        case noAnswer
    }

    /// Begins to hand over a session that another node asks for. After `ask` call `endHandOver`.
    ///
    /// - Parameter isOwn: whether the asking node is this one.
    mutating func beginHandOver(_ id: SessionID, isOwn: Bool) -> HandOver {
        if let session = session(id) { return handedOver.insert(id).inserted ? .ask(session) : .noAnswer }
        return arrivals[id] != nil || !isOwn && searches[id] != nil ? .noAnswer : .unknown
    }

    mutating func endHandOver(_ id: SessionID) { handedOver.remove(id) }

    // MARK: Sessions that come

    /// Begins to search for a session; one search at a time.
    mutating func beginSearch(_ claim: SessionClaim, _ bell: Doorbell) {
        searches[claim.credentials.id] = Search(attempt: claim.attempt, bell: bell)
    }

    /// - Parameter found: the groups of the session; nil if it was not found.
    mutating func endSearch(_ claim: SessionClaim, found: [Membership]?) {
        searches[claim.credentials.id] = nil
        if let found { arrivals[claim.credentials.id] = Arrival(claim: claim, memberships: found) }
    }

    /// Receives a node's answer. Returns the bell to ring.
    mutating func answered(_ id: SessionID, attempt: UInt64, _ answer: SessionHandOver) -> Doorbell? {
        guard let search = searches[id], search.attempt == attempt else { return nil }
        searches[id]?.answer = answer
        return search.bell
    }

    mutating func takeAnswer(_ claim: SessionClaim) -> SessionHandOver? {
        defer { searches[claim.credentials.id]?.answer = nil }
        return searches[claim.credentials.id]?.answer
    }
}
