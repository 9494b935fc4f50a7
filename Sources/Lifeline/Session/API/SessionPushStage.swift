/// The point at which a push returns.
public enum SessionPushStage: Sendable, Hashable {
    /// The session has accepted the push, and keeps it until the peer has processed it. A durable push is in the store,
    /// safe from a loss of power. After this only messages in doubt are reported.
    case accepted
    /// The peer has processed the push: its handler has returned, or its loop over the pushes has asked for the next
    /// one. For a push that is sent at most once, which the peer does not confirm: the connection has taken it.
    ///
    /// If the push does not get that far, it throws `messageExpired`, `messageReplaced`, `messageDropped`,
    /// `messageRefused`, `messageUnsent`, `messageKept`, or, when the outcome is unknown, `messageInDoubt`.
    /// **Cancelling the task only ends the waiting**: it does not take back an accepted message. Without a connection
    /// the push waits for as long as the session lasts.
    case processed
}
