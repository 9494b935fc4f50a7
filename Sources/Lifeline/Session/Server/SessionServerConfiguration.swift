public import LifelineCore

/// The configuration of a server of sessions.
public struct SessionServerConfiguration: Sendable {
    /// The configuration of the listeners and connections. `shutdownOrder` is ignored. `maximumConnections` should be
    /// above `maximumSessionCount`, so that a client that comes back finds a place beside its old connection.
    public var server = ServerConfiguration()

    /// The limits of what is kept for each client, and accepted from it. Default: as for clients. In addition,
    /// `maximumKeptByteCount` of this configuration limits all sessions together.
    public var limits = SessionLimits()

    /// The most bytes that all sessions keep together, counted as `SessionLimits` does: messages that wait for clients,
    /// and received ones that are not handled. At the limit, requests are refused with `resourceExhausted`, the
    /// server's own pushes throw `serverExhausted`, and a client whose push finds no room is sent away for up to
    /// `drainSpread`, and then sends it again. Each session with a connection holds 4 KiB of it once it has kept
    /// something. Default: 1 GiB.
    public var maximumKeptByteCount = 1 << 30

    /// The most requests that all sessions together handle at once; further ones are refused with `resourceExhausted`.
    /// A handler that waits takes some 5 KiB besides the size of its request. Default: 16,384, which is 16 sessions at
    /// the limit of `SessionLimits.maximumHandlerCount`, and some 80 MiB.
    public var maximumHandlerCount = 16_384

    /// The most sessions, including those without a connection. Values below 1 count as 1. Default: 10,000, as many as
    /// a server accepts connections.
    ///
    /// A full server forgets sessions without a connection to make room for new clients: first sessions that were never
    /// used, then the oldest of the address that has left the most sessions behind, as long as that is more than the
    /// new client's address has.
    public var maximumSessionCount = 10_000

    /// The most sessions with one identity (`SessionIdentity.subject`). A new session replaces the oldest one without a
    /// connection. If all have a connection, the new client is sent away for a while. Values below 1 count as 1.
    /// Default: 100, more devices and windows than one person uses.
    public var maximumSessionCountPerIdentity = 100

    /// The most sessions of one IP address, or of one IPv6 network (the first 64 bits). Nil sets no limit but
    /// `maximumSessionCount`. Clients of Unix sockets have no address. Default: nil, because many clients share one
    /// address behind a proxy or a carrier's gateway. Set it if clients connect directly: to some hundreds.
    public var maximumSessionCountPerAddress: Int?

    /// The most sessions that may begin in a second; nil for no limit. Values below 1 count as 1. Default: nil.
    ///
    /// Further clients are sent away with pauses, so that they come back one after the other at this rate: after a
    /// restart of the server, all of its clients come at once. Resumed sessions are not counted. A server with TLS
    /// takes some 1 ms of processor time for each client, and more if `authenticate` queries a database. Set half of
    /// the rate that the server can handle, so that the other half is left for the sessions that it has.
    public var maximumOpeningRate: Int?

    /// The time for which a session without a connection is kept. Default: 2 min, which outlast a tunnel, a restart of
    /// a router, and the first attempts of a client's backoff.
    public var keptDuration = Duration.seconds(120)

    /// Keeps durable messages for clients, and the numbers of their processed ones, over a restart of the server. This
    /// works for clients with their own store. Nil keeps nothing. Default: nil.
    public var store: (any SessionStore)?

    /// The most bytes of durable messages that are kept for one client; further pushes wait. Default: 64 MiB.
    public var maximumStoredByteCount = 64 << 20

    /// The time for which durable messages of a client without a session are kept; nil for ever. The server removes
    /// older messages when it starts, and once a day, and logs their number (`warning`). Default: 90 days, which
    /// outlast a machine that is off for a holiday.
    public var maximumStoredDuration: Duration? = .seconds(90 * 86_400)

    /// The delivery of pushes that name none: `reliable`, or `durable`, which needs a `store`. A durable push to a
    /// client without a store throws `noStore`: name `reliable` for those. Default: `reliable`.
    public var defaultDelivery = SessionDelivery.reliable

    /// The time for a client's hello and the server's decision together. Default: 10 s, as long as connecting may take.
    public var helloTimeout = Duration.seconds(10)

    /// The time over which the clients of a server that shuts down come to the next server, so that they do not all
    /// come at once. Default: 5 s.
    ///
    /// Each client is told a random pause up to this. If another server can continue its session (`LifelineFleet` with
    /// a shared engine), the client is served for this random time instead, and then goes to that server at once. A
    /// longer spread, such as 3 ms for each session, means shorter interruptions. It is at most three quarters of the
    /// grace period: lengthen that, too.
    public var drainSpread = Duration.seconds(5)

    /// Decides for each connection of a client whether to let it in, and with which identity. Default: lets all clients
    /// in, without an identity.
    ///
    /// - A `SessionIdentity` is what handlers find in their context, and sets the name by which the session is found. A
    ///   session can only be resumed with the `subject` that it began with; another subject begins a new session.
    /// - Nil lets the client in without an identity. Its session has the name that the client chose, which can be any.
    ///   If names are to be trusted, use identities.
    /// - A `SessionStatus` `unauthenticated` or `permissionDenied` refuses the client for good, with its message as the
    ///   reason.
    /// - Any other error is the server's fault, and the client learns nothing of it. The client is sent away, and comes
    ///   back after a random pause of up to `drainSpread`, or its backoff if that is longer.
    ///
    /// It is cancelled when the client leaves, after `helloTimeout`, and when the server has to end. If it ignores
    /// that, it holds a place for connections, and delays the server's end.
    public var authenticate: @Sendable (SessionCandidate) async throws -> SessionIdentity? = { _ in nil }

    /// Called for each connection of a session, before anything that arrives over it is handled: with false for the
    /// first connection, and with true for those that resume the session. Default: nothing.
    ///
    /// This function, `whenInDoubt` and `whenEnded` are called in order for one session, on any thread, and other
    /// events of the session wait for them. So they must be quick, and must not wait for a lock that is held while a
    /// task is cancelled or a message is sent.
    public var whenOpened: @Sendable (_ session: SessionServerEnd, _ isResumed: Bool) -> Void = { _, _ in }

    /// Called when a session has ended and the client may not have processed some of the server's pushes, because it
    /// did not come back in time or left, or because the server shut down. Messages of streams are not included: their
    /// handlers and callers know that the stream broke off. Also called when a session begins with a client that takes
    /// no frames as long as pushes that were accepted just before, and when durable pushes have expired. Default:
    /// nothing.
    public var whenInDoubt: @Sendable (_ session: SessionServerEnd, [SessionMessageInDoubt]) -> Void = { _, _ in }

    /// Called once for each session that is over, because its client has left or did not come back in time, or because
    /// the server has shut down. Handlers of the session may still run. Default: nothing.
    public var whenEnded: @Sendable (_ session: SessionServerEnd) -> Void = { _ in }

    /// Makes a configuration with the default values.
    public init() {}
}

/// A client that asks to be let in. Its name and its metadata together have at most 16 KiB, like the fields of an HTTP
/// request in most servers.
public struct SessionCandidate: Sendable {
    /// The name by which the client wants its session to be found; may be empty.
    public let name: String
    /// The client's `SessionClientConfiguration.metadata`.
    public let metadata: SessionMetadata
    /// The address from which the client connects.
    public let remoteEndpoint: Endpoint
    /// Whether it names a session to resume, which the server need not know.
    public let isReturning: Bool
}
