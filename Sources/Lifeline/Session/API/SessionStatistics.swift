/// What became of a session's messages so far, and what is under way.
public struct SessionStatistics: Sendable, Hashable {
    /// How often the two sides have agreed on the session over a connection: for its first one, and each that it went
    /// on over.
    public internal(set) var openingCount = 0
    /// How many sessions have begun. A client begins another one where the server has forgotten the last; a server's is
    /// one.
    public internal(set) var sessionCount = 0
    /// Messages that are kept because the peer has not processed them yet.
    public internal(set) var keptMessageCount = 0
    /// Their size in bytes, as `SessionLimits` counts it.
    public internal(set) var keptByteCount = 0
    /// Pushes that came in, and messages of streams.
    public internal(set) var receivedPushCount = 0
    /// Pushes that came in and that nobody had asked for.
    public internal(set) var unwantedPushCount = 0
    /// Pushes that were to be sent at most once and could not be, or came when there was no room for them.
    public internal(set) var droppedPushCount = 0
    /// Requests that were refused because as many as may be handled at once were.
    public internal(set) var refusedRequestCount = 0
    /// Messages whose time to live was over before they had reached the peer.
    public internal(set) var expiredMessageCount = 0
    /// Pushes that waited for a session, and are longer than what its peer takes.
    public internal(set) var refusedMessageCount = 0
    /// Messages that a newer one with the same key replaced before they had reached the peer.
    public internal(set) var replacedMessageCount = 0
    /// Responses and pushes that came in too late for their requests.
    public internal(set) var lateMessageCount = 0
}
