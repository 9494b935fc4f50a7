public import LifelineCore

/// How a server of sessions behaves.
public struct SessionServerConfiguration: Sendable {
    /// How it listens, and how its connections behave. `shutdownOrder` plays no part. `maximumConnections` should be
    /// above `maximumSessionCount`, so that a client that comes back finds a place beside its old connection.
    public var server = ServerConfiguration()

    /// What is kept for each client, and taken from it. Default: as for clients; `maximumKeptByteCount` is what all
    /// together take.
    public var limits = SessionLimits()

    /// What all sessions keep together, in bytes, as `SessionLimits` counts them: what waits for clients, and what came
    /// from them and is not handled. Where there is no more, requests are refused with `resourceExhausted`, the
    /// server's own pushes throw `serverExhausted`, and a client whose push finds no room is sent away for up to
    /// `drainSpread`, to send it again. Each session that has a connection holds 4 KiB of it when it has kept
    /// something. Default: 1 GiB.
    public var maximumKeptByteCount = 1 << 30

    /// How many requests may be handled at once in all sessions together; those above are refused with
    /// `resourceExhausted`. A handler that waits takes some 5 KiB beside what its request counts for. Default: 16,384,
    /// which is 16 sessions at the limit of `SessionLimits.maximumHandlerCount`, and some 80 MiB.
    public var maximumHandlerCount = 16_384

    /// How many sessions there may be, those that have no connection at present included. Values below 1 count as 1.
    /// Default: 10,000, as many as a server takes connections.
    ///
    /// A server that is full forgets sessions without a connection for clients that are new: first those that were
    /// never used, then the oldest of the address that has left the most behind, as long as that has left more than the
    /// new client's.
    public var maximumSessionCount = 10_000

    /// How many sessions may have one identity (`SessionIdentity.subject`). A new one takes the place of the oldest of
    /// them that has no connection; where all have one, its client is sent away for a while. Values below 1 count as 1.
    /// Default: 100, more devices and windows than somebody uses.
    public var maximumSessionCountPerIdentity = 100

    /// The same for one IP address, or one network of IPv6 (its first 64 bits); nil: `maximumSessionCount` alone
    /// counts. Clients of Unix sockets have no address. Default: nil, as behind a proxy or a carrier's gateway many
    /// clients have one address. Set it where clients connect directly: some hundreds.
    public var maximumSessionCountPerAddress: Int?

    /// How many sessions may begin in a second; nil: as many as come. Values below 1 count as 1. Default: nil.
    ///
    /// Clients that are too many are sent away with a pause, one after the other, so that they come back at this rate:
    /// after a restart of the server, all of its clients come at once. Sessions that go on are not counted. A server with
    /// TLS takes some 1 ms of processor time for each client, and one whose `authenticate` asks a database may take more:
    /// set what it can do, and half of that is a good value.
    public var maximumOpeningRate: Int?

    /// How long a session is kept without a connection. Default: 2 min, which outlast a tunnel, a restart of a router,
    /// and the first attempts of a client's backoff.
    public var keptDuration = Duration.seconds(120)

    /// Keeps durable messages for clients, and which of theirs were processed, over a restart of the server. Clients
    /// that have a store of their own take part. Nil: nothing is kept. Default: nil.
    public var store: (any SessionStore)?

    /// How many bytes of durable messages are kept for one client; pushes wait above that. Default: 64 MiB.
    public var maximumStoredByteCount = 64 << 20

    /// How long durable messages are kept for a client that has no session; nil: for ever. Looked through when the server
    /// begins, and once a day. The log says how many were removed (`warning`). Default: 90 days, which outlast a machine
    /// that is off for a holiday.
    public var maximumStoredDuration: Duration? = .seconds(90 * 86_400)

    /// The delivery of pushes that name none: `reliable`, or `durable`, which needs a `store`. A durable push to a client
    /// without a store throws `noStore`: name `reliable` for those. Default: `reliable`.
    public var defaultDelivery = SessionDelivery.reliable

    /// How long a client may take to say hello and the server to let it in, together. Default: 10 s, as long as
    /// connecting may take.
    public var helloTimeout = Duration.seconds(10)

    /// Over how long clients come back that are sent away by a shutdown: each is told a random pause up to this, so
    /// that they do not all come at once. Default: 5 s.
    public var drainSpread = Duration.seconds(5)

    /// Decides with each connection of a client whether to let it in, and as whom. Default: everybody is let in, as
    /// nobody in particular.
    ///
    /// - A `SessionIdentity` is what handlers find in their context, and decides the name by which the session is
    ///   found. A session goes on only with the `subject` that it was begun with; anybody else begins a new one.
    /// - Nil lets the client in without one. Its session has the name that the client asks for, which may be any:
    ///   whoever is to be found by a name that means something needs an identity.
    /// - A `SessionStatus` `unauthenticated` or `permissionDenied` refuses the client for good, with its message as the
    ///   reason.
    /// - Any other error is one of the server's, of which the client learns nothing: it is sent away, and comes back
    ///   after a random pause of up to `drainSpread`, as its backoff has it.
    ///
    /// It is cancelled when the client leaves, after `helloTimeout`, and when the server has to end. One that ignores
    /// that holds a place for connections, and the end of the server, up.
    public var authenticate: @Sendable (SessionCandidate) async throws -> SessionIdentity? = { _ in nil }

    /// Called for each connection of a session, before anything that comes over it is handled: with false for the first
    /// one, with true for those over which the session goes on. Default: nothing.
    ///
    /// This, `whenInDoubt` and `whenEnded` are called for one session in order, on any thread, and others of the
    /// session's events wait for them: they are to be quick, and to wait for no lock that is held while a task is
    /// cancelled or a message is sent.
    public var whenOpened: @Sendable (_ session: SessionServerEnd, _ isResumed: Bool) -> Void = { _, _ in }

    /// Called when a session has ended with pushes of the server's of which it is not known that the client has
    /// processed them: it did not come back in time, left, or the server shut down. Messages of streams are not among
    /// them: whoever asked for those knows that they did not come to their end. Also called when a session begins whose
    /// client takes no frames that are long enough for pushes which were accepted a moment before, and when durable pushes
    /// have expired. Default: nothing.
    public var whenInDoubt: @Sendable (_ session: SessionServerEnd, [SessionMessageInDoubt]) -> Void = { _, _ in }

    /// Called once for each session that is over: its client has left or did not come back in time, or the server has
    /// shut down. Handlers of it may still run. Default: nothing.
    public var whenEnded: @Sendable (_ session: SessionServerEnd) -> Void = { _ in }

    /// Makes a configuration with the default values.
    public init() {}
}

/// A client that wants to be let in. Its name and its metadata take 16 KiB together at most, as the fields of an HTTP
/// request do in most servers.
public struct SessionCandidate: Sendable {
    /// How it wants its session to be found; may be empty.
    public let name: String
    /// What it says of itself: `SessionClientConfiguration.metadata`.
    public let metadata: SessionMetadata
    /// Where it connects from.
    public let remoteEndpoint: Endpoint
    /// Whether it names a session to go on with, which the server need not know.
    public let isReturning: Bool
}
