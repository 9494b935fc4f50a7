package import LifelineRuntime

/// The answer to a client that begins to follow a group.
package enum GroupFollowing: Sendable {
    case begun
    /// The client follows it already.
    case present
    /// The client follows it yet, and is about to end that: wait, and ask again.
    case leaving(Latch<Void>)
}
