/// Settings for how the kernel watches a silent TCP peer. It checks that the peer's kernel is still there, which shows
/// nothing about the peer's program.
///
/// By default a dead peer is noticed 60 s after its last packet, as with a heartbeat: after `unacknowledgedTimeout`,
/// but not before the first probe; if that is nil, after `idle + probes × interval`. A value out of range counts as the
/// nearest one in range.
public struct KeepaliveConfiguration: Sendable, Hashable {
    /// How long the peer may be silent before the kernel probes it (`TCP_KEEPIDLE`). Default: 30 s, below the idle
    /// timeouts of common NATs and load balancers, of which 60 s is the shortest usual one. From 1 s to 32,767 s, in
    /// whole seconds, rounded up.
    public var idle = Duration.seconds(30)

    /// How long the kernel waits for an answer before it probes again (`TCP_KEEPINTVL`). Default: 10 s. In the range of
    /// `idle`.
    public var interval = Duration.seconds(10)

    /// The number of unanswered probes in a row after which the peer counts as gone (`TCP_KEEPCNT`). Default: 3, so
    /// that lost packets alone do not cut a connection. From 1 to 127. Linux uses it only if `unacknowledgedTimeout` is
    /// nil.
    public var probes = 3

    /// How long written bytes may stay unacknowledged, or a full buffer of the peer unread, before the peer counts as
    /// gone (`TCP_USER_TIMEOUT`). Nil for the kernel's own bound: some 15 minutes for lost bytes, and none for a peer
    /// that does not read. Default: 60 s. It also counts for a silent peer, once a probe was sent. From 1 ms to 24
    /// days.
    ///
    /// Raise it, or set it to nil, if a peer may pause for longer with a full buffer. Otherwise Linux cuts such a
    /// connection, although the peer's kernel answers that there is no room.
    public var unacknowledgedTimeout: Duration? = .seconds(60)

    /// Makes a configuration with the default values.
    public init() {}

    /// Returns the same settings, but starting only after the heartbeat's time, so that only one of the two decides.
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

    /// The time after which a dead silent peer is noticed.
    private var bound: Duration {
        min(
            idle.clamped(atLeast: .seconds(1)) + interval.clamped(atLeast: .seconds(1)) * min(max(probes, 1), 127),
            .longest
        )
    }
}

extension KeepaliveConfiguration {
    /// The kernel's value for `TCP_KEEPIDLE`, in seconds.
    package var idleSeconds: Int { KeepaliveConfiguration.seconds(idle) }
    /// The kernel's value for `TCP_KEEPINTVL`, in seconds.
    package var intervalSeconds: Int { KeepaliveConfiguration.seconds(interval) }
    /// The kernel's value for `TCP_KEEPCNT`.
    package var probeCount: Int { min(max(probes, 1), 127) }
    /// The kernel's value for `TCP_USER_TIMEOUT`, in milliseconds; 0 for its own bound.
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
