package import LifelineCore

/// The nodes that did not listen during searches for their sessions, so that the next search need not wait for them
/// again: a killed server may have had many sessions.
package struct SilentNodes: Sendable {
    /// The most nodes that are remembered, the newest ones. A fleet hardly loses more servers at once.
    package static let maximumCount = 64

    /// The nodes in the order in which they are forgotten.
    private var nodes: [(name: String, forgottenAt: MonotonicTime)] = []
    private let lifetime: Duration

    /// - Parameter lifetime: how long a node is remembered: as long as its lease.
    package init(lifetime: Duration) { self.lifetime = lifetime }

    /// Returns whether a node that does not listen now counts as dead at once.
    package func contains(_ node: String, now: MonotonicTime) -> Bool {
        nodes.contains { $0.name == node && $0.forgottenAt > now }
    }

    /// Notes that a node has not listened for the time that it may take to connect to the engine again.
    package mutating func foundSilent(_ node: String, now: MonotonicTime) {
        nodes.removeAll { $0.name == node || $0.forgottenAt <= now }
        if nodes.count == Self.maximumCount { nodes.removeFirst() }
        nodes.append((node, now + lifetime))
    }

    /// Notes that a node is there.
    package mutating func heard(_ node: String) { nodes.removeAll { $0.name == node } }

    /// Notes that this node itself has lost the engine: the others may be about to come back to it, too.
    package mutating func engineWasLost() { nodes = [] }
}
