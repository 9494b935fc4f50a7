/// Counts of a session's messages so far.
public struct SessionStatistics: Sendable, Hashable {
    /// The number of connections over which the two sides have opened or resumed the session.
    public internal(set) var openingCount = 0
    /// The number of sessions that have begun. A client begins another one when the server has forgotten the last; on a
    /// server it is 1.
    public internal(set) var sessionCount = 0
    /// Messages that are kept because the peer has not processed them yet.
    public internal(set) var keptMessageCount = 0
    /// The size of kept messages in bytes, as `SessionLimits` counts it.
    public internal(set) var keptByteCount = 0
    /// Pushes and messages of streams that were received.
    public internal(set) var receivedPushCount = 0
    /// Received pushes that nobody had asked for.
    public internal(set) var unwantedPushCount = 0
    /// Pushes with delivery at most once that could not be sent, or arrived when there was no room.
    public internal(set) var droppedPushCount = 0
    /// Requests that were refused because the limit of handled requests was reached.
    public internal(set) var refusedRequestCount = 0
    /// Messages whose time to live was over before they had reached the peer.
    public internal(set) var expiredMessageCount = 0
    /// Pushes that waited for a session, and are too long for its peer.
    public internal(set) var refusedMessageCount = 0
    /// Messages that were replaced by a newer one with the same key before they had reached the peer.
    public internal(set) var replacedMessageCount = 0
    /// Responses and pushes that arrived too late for their requests.
    public internal(set) var lateMessageCount = 0
}
