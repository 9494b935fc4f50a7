/// The settings of a registry.
package struct SessionRegistryConfiguration: Sendable {
    /// How long a session is kept without a connection: 2 minutes, enough for a tunnel, a restart of a router, and the
    /// first attempts of a client's backoff.
    package var keptDuration = Duration.seconds(120)
    /// The most sessions: 10,000, so that clients cannot take all memory.
    package var maximumSessionCount = 10_000
    /// The most sessions of one identity: 100, more devices and windows than a person uses.
    package var maximumCountPerIdentity = 100
    /// The most sessions of one network: unlimited, because many clients may share one address.
    package var maximumCountPerAddress = Int.max
    /// The time for the client's hello and the server's decision together: 10 s, the default for connecting.
    package var helloTimeout = Duration.seconds(10)
    /// The period over which clients come back that were sent away by a server that goes away, or cannot let them in: 5
    /// s, so that they do not all come at once.
    package var drainSpread = Duration.seconds(5)
    /// The period over which clients come back that a full server has sent away: a quarter of the time that sessions
    /// are kept.
    package var fullSpread = Duration.seconds(30)
    /// The most sessions that begin in a second; nil for no limit.
    package var maximumOpeningRate: Int?
    /// Whether the server keeps durable messages.
    package var hasStore = false
    /// Whether sessions move between servers.
    package var movesSessions = false

    package init() {}
}
