/// What is promised of a message of a session.
public struct SessionDelivery: Sendable, Hashable {
    /// How long after it was accepted the message is worth sending; nil: for ever.
    public let timeToLive: Duration?
    /// Of messages of one method with the same key that are not sent yet, only the newest counts; nil: it stands for
    /// itself. A message that belongs to a request replaces only others of that request.
    public let key: String?
    /// Whether the message is lost with the connection that it is sent over.
    public let isAtMostOnce: Bool
    /// Whether the message survives the process.
    public let isDurable: Bool

    /// Whether nothing is asked for but that it comes once, and in order.
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

    /// Kept in the store of this side's (`SessionClientConfiguration.store`, `SessionServerConfiguration.store`) before
    /// it is sent, and until the peer has processed it, also where the session or the process ends before. Where the
    /// peer has a store, too, it is processed exactly once; where it has none, perhaps a second time when the session
    /// is lost, or either process is started again. In the order of the others of its method that are durable.
    ///
    /// A unary call can be durable, too. The server's store then keeps the reply with the mark that the call was
    /// processed, until the client has the reply. Durable calls are handled side by side.
    public static let durable = SessionDelivery(isDurable: true)

    /// Durable, but given up where the peer has not said after so long that it has processed it. Of pushes. It leaves the
    /// store then, and `SessionEvent.Kind.expired` and `SessionServerConfiguration.whenInDoubt` tell of it. Values below 0
    /// count as 0, those over 365 days as 365 days.
    ///
    /// The time goes on while no process runs. A message that is read from the store goes by the date: a clock that was
    /// put forward meanwhile takes time from it; where it was put back, the time goes on from the last date that was
    /// stored. In memory it does not matter that the clock is set.
    public static func durable(expiringAfter timeToLive: Duration) -> SessionDelivery {
        SessionDelivery(timeToLive: timeToLive.clamped(atLeast: .zero), isDurable: true)
    }

    /// Sent over the present connection or not at all, and never again. Without a connection it is dropped at once.
    public static let atMostOnce = SessionDelivery(isAtMostOnce: true)

    /// Reliable, but dropped where it has not reached the peer after so long. Values below 0 count as 0, those over 365
    /// days as 365 days.
    public static func expiring(after timeToLive: Duration) -> SessionDelivery {
        SessionDelivery(timeToLive: timeToLive.clamped(atLeast: .zero))
    }

    /// Reliable, but dropped when a newer message of the same method, or the same request, with the same key is
    /// accepted before it has reached the peer.
    ///
    /// The newer one takes the older one's place in the queue where that still waits, before what was accepted in
    /// between. A value that changes all the time is therefore sent as often as the queue moves.
    public static func replaceable(key: String, timeToLive: Duration? = nil) -> SessionDelivery {
        SessionDelivery(timeToLive: timeToLive?.clamped(atLeast: .zero), key: key)
    }
}

/// What became of a message of a session.
public enum SessionDeliveryOutcome: Sendable, Hashable {
    /// The peer has processed it.
    case processed
    /// It was to be sent at most once, and the connection took it.
    case sent
    /// Its time to live was over before it reached the peer.
    case expired
    /// A newer one with its key came before it had reached the peer.
    case replaced
    /// It was to be sent at most once, and there was no connection, or no room.
    case dropped
    /// It waited, and the session that was opened then is with a peer that takes no frame of its length. It was not
    /// sent.
    case refused
    /// It was sent, and the session was lost before the peer said that it had processed it: nobody knows whether it
    /// has.
    case inDoubt
    /// The session ended before it was sent.
    case unsent
    /// The session ended before the peer said that it had processed it. It is durable, and in the store: the next
    /// session with that store sends it.
    case kept
    /// It was to be durable, and could not be stored. It was not sent.
    case notStored
}
