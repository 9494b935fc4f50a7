public import LifelineCore

/// The address of a Redis server, and the behaviour of its client.
public struct RedisConfiguration: Sendable {
    /// The server's endpoint: TCP, TCP with TLS, or a Unix socket.
    public var endpoint: Endpoint

    /// The user and the password, or nil for a server that requires none. Default: nil.
    public var credentials: RedisCredentials?

    /// The number of the database. Default: 0. Channels for messages are shared by all databases.
    public var database = 0

    /// The name of the connections in `CLIENT LIST`, without spaces. Default: `lifeline`.
    public var clientName = "lifeline"

    /// The TLS settings, used if the endpoint has TLS. Default: the system's roots; for an authority of your own, set
    /// `tls.trust = .roots(.file("ca.pem"))`.
    public var tls = TLSClientConfiguration()

    /// How long it may take to connect, with TLS and the first commands. Default: 10 s, as for other connections.
    public var connectTimeout = Duration.seconds(10)

    /// The timeout of a command that has none of its own. It covers the wait for room, for a connection and for the
    /// reply. Default: 10 s, enough for a restart of Redis with little data.
    public var timeout = Duration.seconds(10)

    /// The pauses between attempts to connect. `maximumAttempts` has no effect: the client goes on until it is closed.
    /// Default: 100 ms, then twice as long each time, up to 5 s: shorter than for other connections, because a whole
    /// server waits for Redis.
    public var backoff = {
        var backoff = BackoffConfiguration()
        backoff.initialDelay = .milliseconds(100)
        backoff.cap = .seconds(5)
        return backoff
    }()

    /// Settings for when a silent server is asked for a sign of life, and when it counts as gone. Default: after 5 s of
    /// silence, and two unanswered questions of 5 s each: 15 s, for a server nearby.
    public var heartbeat = {
        var heartbeat = HeartbeatConfiguration()
        heartbeat.interval = .seconds(5)
        heartbeat.timeout = .seconds(5)
        heartbeat.allowedMisses = 2
        return heartbeat
    }()

    /// The number of commands that may be written and not answered; more commands wait. Default: 1,024, enough to keep
    /// Redis busy, which reads 16 KiB from a connection at once. At least 1.
    public var maximumCommandsInFlight = 1_024

    /// The number of bytes of such commands. A command that alone has more fails. Default: 16 MiB. From 1 KiB to 1 GiB.
    public var maximumBytesInFlight = 16 << 20

    /// Limits for a reply.
    public var replyLimits = RedisReplyLimits()

    /// Makes a configuration with the default values.
    public init(endpoint: Endpoint) { self.endpoint = endpoint }
}

/// Limits for a reply of Redis. The client disconnects from a server that exceeds one.
public struct RedisReplyLimits: Sendable, Hashable {
    /// The most bytes of one string. Default: 64 MiB; Redis itself allows 512 MiB. At most 1 GiB.
    public var stringByteCount = 64 << 20
    /// The most elements of one array. Default: 1,048,576.
    public var arrayCount = 1 << 20
    /// How deep arrays may be nested. Default: 8; the entries of a stream need 4.
    public var depth = 8
    /// The most bytes of a whole reply. Default: 128 MiB.
    public var byteCount = 128 << 20

    /// Makes limits with the default values.
    public init() {}
}

/// A user's name and password.
public struct RedisCredentials: Sendable, Hashable {
    /// The user's name; nil for the default user.
    public var user: String?
    /// The password. Nothing prints it.
    public var password: String

    /// Makes credentials.
    public init(user: String? = nil, password: String) {
        (self.user, self.password) = (user, password)
    }
}

extension RedisCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The user's name, without the password.
    public var description: String { "\(user?.escaped() ?? "the default user"), password hidden" }
    /// The user's name, without the password.
    public var debugDescription: String { description }
    /// A mirror without the password, which `dump` would print.
    public var customMirror: Mirror { Mirror(self, children: ["user": user as Any]) }
}
