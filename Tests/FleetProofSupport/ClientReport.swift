/// What one client has sent, what came to it, and what it was told.
package struct ClientReport: Codable, Hashable, Sendable {
    /// The messages of one method that the client has sent: 1, 2, 3…
    package struct Sent: Codable, Hashable, Sendable {
        package var count = 0
        /// Those of which the client was told that they may be lost.
        package var inDoubt: Set<Int> = []

        package init() {}
    }

    package let client: Int
    package var sent: [ClientMethod: Sent] = [:]
    package var direct = DirectCheck()
    package var groups: [String: GroupCheck] = [:]
    /// How often a session was opened, or went on over another connection.
    package private(set) var openingCount = 0
    /// The sessions that the client was told are lost.
    package private(set) var lostSessions: [String] = []
    /// What must not happen, and did.
    package var problems: [String] = []
    package var pause = DeliveryPause()
    private var session = ""

    package init(client: Int) {
        self.client = client
    }

    /// A session was opened, or goes on.
    package mutating func opened(_ session: String) {
        self.session = session
        openingCount += 1
    }

    /// The session was lost, and with it perhaps messages to groups that the client is in by itself.
    package mutating func lost(automaticGroup: String) {
        lostSessions.append(session)
        groups[automaticGroup, default: GroupCheck()].wasInterrupted()
    }
}

/// How clients send.
package enum ClientMethod: String, Codable, CodingKeyRepresentable, CaseIterable, Sendable {
    /// Pushes.
    case note
    /// Calls.
    case ask
}
