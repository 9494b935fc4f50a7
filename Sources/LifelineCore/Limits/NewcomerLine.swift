/// Connections whose peers have not shown yet that they are any use, the oldest first.
///
/// A connection that leaves the line, as its peer has spoken or is gone, is not looked for: it says so itself when it
/// is asked.
package struct NewcomerLine<Connection: Sendable>: Sendable {
    private var connections: [Connection] = []
    /// Those before this index have gone.
    private var first = 0
    /// With so many, those that have left are taken out.
    private var nextSweep = NewcomerLine.leastSweep

    private static var leastSweep: Int { 64 }

    package init() {}

    /// A connection was accepted.
    package mutating func append(_ connection: Connection, isWaiting: (Connection) -> Bool) {
        connections.append(connection)
        guard connections.count - first >= nextSweep else { return }
        connections = connections[first...].filter(isWaiting)
        first = 0
        nextSweep = max(Self.leastSweep, 2 * connections.count)
    }

    /// Whether a connection waits.
    package mutating func hasWaiting(_ isWaiting: (Connection) -> Bool) -> Bool {
        while first < connections.count {
            if isWaiting(connections[first]) { return true }
            first += 1
        }
        connections = []
        first = 0
        return false
    }

    /// Takes out the connection that has waited longest.
    package mutating func popFirst(_ isWaiting: (Connection) -> Bool) -> Connection? {
        guard hasWaiting(isWaiting) else { return nil }
        defer { first += 1 }
        return connections[first]
    }
}
