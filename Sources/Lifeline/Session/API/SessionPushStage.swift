/// The point at which a push returns.
public enum SessionPushStage: Sendable, Hashable {
    /// The session has accepted it, and keeps it until the peer has processed it; a durable one is in the store, safe
    /// from a loss of power. What becomes of it then is told for
    /// messages in doubt only.
    case accepted
    /// The peer has processed it: its handler has returned, or whoever iterates over the pushes has asked for the next
    /// one. Of a push that is sent at most once, of which no peer tells that: the connection has taken it.
    ///
    /// The push throws when it does not come to that: `messageExpired`, `messageReplaced`, `messageDropped`,
    /// `messageRefused`, `messageUnsent`, `messageKept`, or `messageInDoubt` where nobody knows. **Cancelling the task ends the
    /// waiting only**: it does not take back a message that was accepted. Without a connection it waits for as long as
    /// the session lasts.
    case processed
}
