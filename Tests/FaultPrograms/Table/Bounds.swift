import FaultSupport

/// What the client is told, and so what can be asked of it.
struct Bounds: Sendable {
    // Short, so that a hundred black holes take minutes; the machine is the same as with the defaults.
    let heartbeatInterval = Duration.milliseconds(500)
    let heartbeatTimeout = Duration.milliseconds(250)
    let allowedMisses = 3
    let connectTimeout = Duration.milliseconds(500)
    let longestBackoff = Duration.milliseconds(500)

    /// What timers and tasks of a busy machine with two cores take at most.
    let tolerance = Duration.milliseconds(100)

    /// A peer that is silent.
    var silence: Duration { heartbeatInterval + heartbeatTimeout * allowedMisses + tolerance }
    /// What the kernel tells: 100 ms in which a flap may pass, and the rest.
    let network = Duration.milliseconds(300)
    /// What the kernel says on the socket.
    let socket = Duration.milliseconds(200)
    /// The network's return, until the client is ready: 300 ms and a round trip, of less than 1 ms here.
    let networkBack = Duration.milliseconds(301)
    /// The peer's or the way's return, which the client finds by trying: an attempt may just have begun in vain, and the
    /// delay after it has a jitter of 20 %.
    var retry: Duration { connectTimeout + longestBackoff * 1.2 + networkBack }

    var clientArguments: [String] {
        [
            "--heartbeat-interval", "\(heartbeatInterval.milliseconds)",
            "--heartbeat-timeout", "\(heartbeatTimeout.milliseconds)",
            "--allowed-misses", "\(allowedMisses)",
            "--connect-timeout", "\(connectTimeout.milliseconds)",
            "--longest-backoff", "\(longestBackoff.milliseconds)",
        ]
    }
}
