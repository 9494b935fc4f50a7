package import LifelineCore

/// The nodes that did not listen when sessions were looked for at them, so that the next search need not wait for them
/// again: a server that was killed had many sessions.
package struct SilentNodes: Sendable {
    /// As many are remembered; of more, the newest. A fleet hardly loses more servers at once.
    package static let maximumCount = 64

    /// In the order in which they are forgotten.
    private var nodes: [(name: String, forgottenAt: MonotonicTime)] = []
    private let lifetime: Duration

    /// - Parameter lifetime: how long a node is remembered: as long as its lease.
    package init(lifetime: Duration) { self.lifetime = lifetime }

    /// Whether a node that does not listen now can be taken for dead at once.
    package func contains(_ node: String, now: MonotonicTime) -> Bool {
        nodes.contains { $0.name == node && $0.forgottenAt > now }
    }

    /// A node has not listened for as long as it may take to connect to the engine again.
    package mutating func foundSilent(_ node: String, now: MonotonicTime) {
        nodes.removeAll { $0.name == node || $0.forgottenAt <= now }
        if nodes.count == Self.maximumCount { nodes.removeFirst() }
        nodes.append((node, now + lifetime))
    }

    /// A node is there.
    package mutating func heard(_ node: String) { nodes.removeAll { $0.name == node } }

    /// This node has lost the engine itself: the others may be about to come back to it, too.
    package mutating func engineWasLost() { nodes = [] }
}
