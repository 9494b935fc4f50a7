public import LifelineCore

/// Where Redis is, and how a client behaves.
public struct RedisConfiguration: Sendable {
    /// A TCP port, a TCP port on which TLS is spoken, or a Unix socket.
    public var endpoint: Endpoint

    /// What the server asks its users for; nil: it asks for nothing. Default: nil.
    public var credentials: RedisCredentials?

    /// The number of the database. Default: 0. Channels for messages are shared by all databases.
    public var database = 0

    /// What `CLIENT LIST` calls the connections. No blanks. Default: `lifeline`.
    public var clientName = "lifeline"

    /// Whom the client trusts where the endpoint speaks TLS. Default: the system's roots; for an authority of your own,
    /// set `tls.trust = .roots(.file("ca.pem"))`.
    public var tls = TLSClientConfiguration()

    /// How long it may take to connect, with TLS and the first commands. Default: 10 s, as for other connections.
    public var connectTimeout = Duration.seconds(10)

    /// How long a command may take where nothing else is said: to wait for its turn and for a connection, and for the
    /// reply. Default: 10 s, which a restart of Redis with little data fits into.
    public var timeout = Duration.seconds(10)

    /// When to connect again. `maximumAttempts` plays no part: the client goes on until it is closed. Default: after
    /// 100 ms, then 200 ms and so on up to 5 s, as many servers wait for Redis, and each for their users.
    public var backoff = {
        var backoff = BackoffConfiguration()
        backoff.initialDelay = .milliseconds(100)
        backoff.cap = .seconds(5)
        return backoff
    }()

    /// When a silent server is asked for a sign of life, and when it counts as gone. Default: after 5 s of silence, and
    /// two unanswered questions of 5 s each: 15 s, for a server nearby.
    public var heartbeat = {
        var heartbeat = HeartbeatConfiguration()
        heartbeat.interval = .seconds(5)
        heartbeat.timeout = .seconds(5)
        heartbeat.allowedMisses = 2
        return heartbeat
    }()

    /// How many commands may be written and not answered. Others wait. Default: 1,024, more than what Redis takes from a
    /// connection at once (16 KiB). At least 1.
    public var maximumCommandsInFlight = 1_024

    /// How many bytes of commands may be written and not answered. Others wait; a command that is larger fails. Default:
    /// 16 MiB. At least 1 KiB.
    public var maximumBytesInFlight = 16 << 20

    /// What one reply may take up.
    public var replyLimits = RedisReplyLimits()

    /// Makes a configuration with the default values.
    public init(endpoint: Endpoint) { self.endpoint = endpoint }
}

/// What one reply of Redis may take up. A server that sends more is disconnected.
public struct RedisReplyLimits: Sendable, Hashable {
    /// The most bytes of one string. Default: 64 MiB; Redis itself allows 512 MiB.
    public var stringByteCount = 64 << 20
    /// The most elements of one array. Default: 1,048,576.
    public var arrayCount = 1 << 20
    /// How deep arrays may be nested. Default: 8; the entries of a stream need 4.
    public var depth = 8
    /// The most bytes of a reply, with everything in it. Default: 128 MiB.
    public var byteCount = 128 << 20

    /// Makes limits with the default values.
    public init() {}
}

/// What Redis asks its users for.
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
    /// The user's name.
    public var description: String { "\(user?.escaped() ?? "the default user"), password hidden" }
    /// The user's name.
    public var debugDescription: String { description }
    /// Without the password, which `dump` would print.
    public var customMirror: Mirror { Mirror(self, children: ["user": user as Any]) }
}
