/// The guarantees for the delivery of a session's message.
public struct SessionDelivery: Sendable, Hashable {
    /// How long after it was accepted the message may still be sent; nil for no limit.
    public let timeToLive: Duration?
    /// A message replaces an unsent message of the same method with the same key; nil when it replaces none. A message
    /// that belongs to a request replaces only messages of that request.
    public let key: String?
    /// Whether the message is lost with the connection that it is sent over.
    public let isAtMostOnce: Bool
    /// Whether the message survives the process.
    public let isDurable: Bool

    /// Whether the message only has to arrive once and in order.
    @inline(__always) var isPlain: Bool { timeToLive == nil && key == nil && !isAtMostOnce && !isDurable }

    private init(
        timeToLive: Duration? = nil,
        key: String? = nil,
        isAtMostOnce: Bool = false,
        isDurable: Bool = false
    ) {
        self.timeToLive = timeToLive
        self.key = key
        self.isAtMostOnce = isAtMostOnce
        self.isDurable = isDurable
    }

    /// Processed exactly once, and in order, for as long as the session lasts.
    public static let reliable = SessionDelivery()

    /// Kept in the store of this side (`SessionClientConfiguration.store`, `SessionServerConfiguration.store`) before
    /// it is sent, and until the peer has processed it, even when the session or the process ends before. If the peer
    /// has a store too, the message is processed exactly once. Otherwise it may be processed a second time after the
    /// session is lost or either process is restarted. Durable messages of a method keep their order.
    ///
    /// A unary call can be durable, too. The server's store then keeps the reply with the mark that the call was
    /// processed, until the client has the reply. Durable calls are handled side by side.
    public static let durable = SessionDelivery(isDurable: true)

    /// Durable, but given up when the peer has not confirmed within this time that it has processed the message. For
    /// pushes only. The message then leaves the store, and `SessionEvent.Kind.expired` and
    /// `SessionServerConfiguration.whenInDoubt` report it. Values below 0 count as 0, those over 365 days as 365 days.
    ///
    /// The time also passes while no process runs. A message read from the store uses the date. If the clock was set
    /// forward meanwhile, the message has less time; if it was set back, the time continues from the last stored date.
    /// Messages in memory are not affected by clock changes.
    public static func durable(expiringAfter timeToLive: Duration) -> SessionDelivery {
        SessionDelivery(timeToLive: timeToLive.clamped(atLeast: .zero), isDurable: true)
    }

    /// Sent over the present connection or not at all, and never repeated. Without a connection it is dropped at once.
    public static let atMostOnce = SessionDelivery(isAtMostOnce: true)

    /// Reliable, but dropped when it has not reached the peer within this time. Values below 0 count as 0, those over
    /// 365 days as 365 days.
    public static func expiring(after timeToLive: Duration) -> SessionDelivery {
        SessionDelivery(timeToLive: timeToLive.clamped(atLeast: .zero))
    }

    /// Reliable, but dropped when a newer message of the same method or request with the same key is accepted before
    /// this one has reached the peer.
    ///
    /// If the older message still waits, the newer one takes its place in the queue, ahead of messages accepted in
    /// between. So a value that changes all the time is sent as often as the queue moves.
    public static func replaceable(key: String, timeToLive: Duration? = nil) -> SessionDelivery {
        SessionDelivery(timeToLive: timeToLive?.clamped(atLeast: .zero), key: key)
    }
}

/// The final state of a session's message.
public enum SessionDeliveryOutcome: Sendable, Hashable {
    /// The peer has processed the message.
    case processed
    /// The message was to be sent at most once, and the connection took it.
    case sent
    /// The time to live was over before the message reached the peer.
    case expired
    /// A newer message with the same key came before this one had reached the peer.
    case replaced
    /// The message was to be sent at most once, and there was no connection or no room.
    case dropped
    /// The message waited for a session, and the peer of the new session takes no frame of this length. It was not
    /// sent.
    case refused
    /// The message was sent, and the session was lost before the peer confirmed that it had processed the message.
    /// Whether it was processed is unknown.
    case inDoubt
    /// The session ended before it was sent.
    case unsent
    /// The session ended before the peer confirmed that it had processed the message. The message is durable and in the
    /// store: the next session with that store sends it.
    case kept
    /// The message was to be durable, and could not be stored. It was not sent.
    case notStored
}
