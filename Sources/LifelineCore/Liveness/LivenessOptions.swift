/// Settings for when a connection's peer is given up. Durations count as at least 1 ms and at most 365 days.
package struct LivenessOptions: Sendable, Hashable {
    /// When a silent peer is asked for a sign of life; nil without heartbeat messages.
    package var heartbeat: HeartbeatConfiguration?
    /// How long the peer may send nothing.
    package var idleTimeout: Duration?
    /// How long bytes may wait for the peer while it takes none.
    package var writeTimeout: Duration?
    /// How many bytes may be written after the last byte from the peer.
    package var unansweredByteLimit: Int?

    package init(
        heartbeat: HeartbeatConfiguration? = nil,
        idleTimeout: Duration? = nil,
        writeTimeout: Duration? = nil,
        unansweredByteLimit: Int? = nil
    ) {
        self.heartbeat = heartbeat
        self.idleTimeout = idleTimeout
        self.writeTimeout = writeTimeout
        self.unansweredByteLimit = unansweredByteLimit
    }
}
