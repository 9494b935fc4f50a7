/// Connections whose peers have not sent anything useful yet, the oldest first.
///
/// A connection that leaves the line, because its peer has sent something or is gone, is not searched for: `isWaiting`
/// is asked when its turn comes.
package struct NewcomerLine<Connection: Sendable>: Sendable {
    private var connections: [Connection] = []
    /// Connections before this index were removed.
    private var first = 0
    /// The number of connections at which those that have left are removed.
    private var nextSweep = NewcomerLine.leastSweep

    private static var leastSweep: Int { 64 }

    package init() {}

    /// Adds an accepted connection.
    package mutating func append(_ connection: Connection, isWaiting: (Connection) -> Bool) {
        connections.append(connection)
        guard connections.count - first >= nextSweep else { return }
        connections = connections[first...].filter(isWaiting)
        first = 0
        nextSweep = max(Self.leastSweep, 2 * connections.count)
    }

    /// Returns whether a connection waits.
    package mutating func hasWaiting(_ isWaiting: (Connection) -> Bool) -> Bool {
        while first < connections.count {
            if isWaiting(connections[first]) { return true }
            first += 1
        }
        connections = []
        first = 0
        return false
    }

    /// Removes and returns the connection that has waited longest.
    package mutating func popFirst(_ isWaiting: (Connection) -> Bool) -> Connection? {
        guard hasWaiting(isWaiting) else { return nil }
        defer { first += 1 }
        return connections[first]
    }
}
