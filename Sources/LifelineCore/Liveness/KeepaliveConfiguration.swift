/// How the kernel watches a TCP peer from which nothing comes: whether its kernel is still there, which says nothing of
/// its program.
///
/// A peer that is gone is noticed 60 s after its last packet by default, as with a heartbeat: after
/// `unacknowledgedTimeout`, but not before the first probe, or, where that is nil, after `idle + probes × interval`.
/// What is out of range counts as the nearest value in range.
public struct KeepaliveConfiguration: Sendable, Hashable {
    /// How long nothing may have come until the kernel probes (`TCP_KEEPIDLE`). Default: 30 s, below the idle timeouts
    /// of common NATs and load balancers, of which 60 s is the shortest usual one. From 1 s to 32,767 s, in whole
    /// seconds, rounded up.
    public var idle = Duration.seconds(30)

    /// How long it waits for an answer until it probes again (`TCP_KEEPINTVL`). Default: 10 s. In the range of `idle`.
    public var interval = Duration.seconds(10)

    /// After how many probes in a row without an answer the peer is gone (`TCP_KEEPCNT`). Default: 3, so that lost
    /// packets alone do not cut a connection. From 1 to 127. Linux looks at it only where `unacknowledgedTimeout` is
    /// nil.
    public var probes = 3

    /// How long what was written may remain unacknowledged, or untaken by a peer that does not read, until the peer is
    /// gone (`TCP_USER_TIMEOUT`); nil for the kernel's own bound, which is some 15 minutes for what is lost, and none
    /// for a peer that does not read. Default: 60 s. It counts for a silent peer, too, once a probe was sent. From 1 ms
    /// to 24 days.
    ///
    /// Raise it, or set it to nil, where a peer may pause for longer with a full buffer: Linux cuts such a connection,
    /// although the peer's kernel answers that there is no room.
    public var unacknowledgedTimeout: Duration? = .seconds(60)

    /// Makes a configuration with the default values.
    public init() {}

    /// The same watch, but not before a heartbeat has had its chance, so that one of the two decides.
    package func beginning(after heartbeat: HeartbeatConfiguration) -> KeepaliveConfiguration {
        var later = self
        let interval = heartbeat.interval.clamped(atLeast: .milliseconds(1))
        let timeout = heartbeat.timeout.clamped(atLeast: .milliseconds(1))
        // Bounded so that the product fits a Duration.
        let bound = interval + timeout * min(max(heartbeat.allowedMisses, 1), Int(Int32.max))
        later.idle = max(idle, min(bound, .longest))
        if let unacknowledgedTimeout { later.unacknowledgedTimeout = max(unacknowledgedTimeout, later.bound) }
        return later
    }

    /// How long a silent peer that is gone remains unnoticed.
    private var bound: Duration {
        min(
            idle.clamped(atLeast: .seconds(1)) + interval.clamped(atLeast: .seconds(1)) * min(max(probes, 1), 127),
            .longest
        )
    }
}

extension KeepaliveConfiguration {
    /// What the kernel takes for `TCP_KEEPIDLE`, in seconds.
    package var idleSeconds: Int { KeepaliveConfiguration.seconds(idle) }
    /// What the kernel takes for `TCP_KEEPINTVL`, in seconds.
    package var intervalSeconds: Int { KeepaliveConfiguration.seconds(interval) }
    /// What the kernel takes for `TCP_KEEPCNT`.
    package var probeCount: Int { min(max(probes, 1), 127) }
    /// What the kernel takes for `TCP_USER_TIMEOUT`, in milliseconds; 0 is its own bound.
    package var unacknowledgedMilliseconds: Int {
        guard let unacknowledgedTimeout else { return 0 }
        let nanoseconds = unacknowledgedTimeout.clamped(atLeast: .milliseconds(1)).saturatedNanoseconds
        return Int(min((nanoseconds + 999_999) / 1_000_000, Int64(Int32.max)))
    }

    private static func seconds(_ duration: Duration) -> Int {
        let nanoseconds = duration.clamped(atLeast: .seconds(1)).saturatedNanoseconds
        return Int(min((nanoseconds + 999_999_999) / 1_000_000_000, 32_767))
    }
}
