/// The messages that one client has sent and received, and the events that were reported to it.
package struct ClientReport: Codable, Hashable, Sendable {
    /// The messages of one method that the client has sent: 1, 2, 3…
    package struct Sent: Codable, Hashable, Sendable {
        package var count = 0
        /// The messages that were reported to the client as possibly lost.
        package var inDoubt: Set<Int> = []

        package init() {}
    }

    package let client: Int
    package var sent: [ClientMethod: Sent] = [:]
    package var direct = DirectCheck()
    package var groups: [String: GroupCheck] = [:]
    /// How often a session was opened, or continued over another connection.
    package private(set) var openingCount = 0
    /// The number of sessions that were reported lost.
    package private(set) var lostSessions: [String] = []
    /// Events that must not happen.
    package var problems: [String] = []
    package var pause = DeliveryPause()
    private var session = ""

    package init(client: Int) {
        self.client = client
    }

    /// A session was opened, or continues.
    package mutating func opened(_ session: String) {
        self.session = session
        openingCount += 1
    }

    /// The session was lost, and with it perhaps messages to automatic groups.
    package mutating func lost(automaticGroup: String) {
        lostSessions.append(session)
        groups[automaticGroup, default: GroupCheck()].wasInterrupted()
    }
}

/// The ways in which clients send.
package enum ClientMethod: String, Codable, CodingKeyRepresentable, CaseIterable, Sendable {
    /// Pushes.
    case note
    /// Calls.
    case ask
}
