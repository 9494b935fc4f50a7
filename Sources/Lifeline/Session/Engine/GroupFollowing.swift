package import LifelineRuntime

/// The answer to a client that begins to follow a group.
package enum GroupFollowing: Sendable {
    case begun
    /// The client already follows the group.
    case present
    /// The client is about to stop following the group: wait, and ask again.
    case leaving(Latch<Void>)
}
