/// What a client is told, and so what can be asked of it.
package struct Bounds: Sendable {
    // Short, so that a hundred black holes take minutes; the machine is the same as with the defaults.
    private let heartbeatInterval = Duration.milliseconds(500)
    private let heartbeatTimeout = Duration.milliseconds(250)
    private let allowedMisses = 3
    private let connectTimeout = Duration.milliseconds(500)
    private let longestBackoff = Duration.milliseconds(500)

    /// What timers and tasks of a busy machine with two cores take at most.
    package let tolerance = Duration.milliseconds(100)

    package init() {}

    /// A peer that is silent.
    package var silence: Duration { heartbeatInterval + heartbeatTimeout * allowedMisses + tolerance }
    /// What the kernel tells of the network: 100 ms in which a flap may pass, and the rest.
    package let network = Duration.milliseconds(300)
    /// What the kernel says on the socket.
    package let socket = Duration.milliseconds(200)
    /// The network's return, until the client is ready: 300 ms and a round trip, of less than 1 ms here.
    package let networkBack = Duration.milliseconds(301)
    /// A carrier's return, after something was sent without one: then the kernel asks once a second for the address of
    /// its neighbour, the router, and an attempt to connect may be in vain and be followed by a delay meanwhile.
    package var neighbourFound: Duration { .seconds(1) + longestBackoff * 1.2 + networkBack }
    /// The peer's or the way's return, which the client finds by trying: an attempt may just have begun in vain, and
    /// the delay after it has a jitter of 20 %.
    package var retry: Duration { connectTimeout + longestBackoff * 1.2 + networkBack }

    package var clientArguments: [String] {
        heartbeatArguments(interval: heartbeatInterval, timeout: heartbeatTimeout) + [
            "--connect-timeout", "\(connectTimeout.milliseconds)",
            "--longest-backoff", "\(longestBackoff.milliseconds)",
        ]
    }

    /// On a machine so busy that a peer may stand still for seconds, where the heartbeat is to find nothing.
    var patientArguments: [String] {
        heartbeatArguments(interval: .seconds(10), timeout: .seconds(10)) + [
            "--connect-timeout", "10000", "--longest-backoff", "\(longestBackoff.milliseconds)",
        ]
    }

    /// While packets are lost: the default heartbeat, of 30 + 3 × 10 s. A run of a few minutes at most needs one that
    /// fits into it three times, or it could not find a living peer given up. Within 15 s the kernel tries ten times
    /// and more: once a second at least with TCP_RTO_MAX_MS, which the heartbeat sets.
    func lossArguments(lasting time: Duration) -> [String] {
        time >= .seconds(180) ? [] : heartbeatArguments(interval: .milliseconds(500), timeout: .seconds(5))
    }

    private func heartbeatArguments(interval: Duration, timeout: Duration) -> [String] {
        [
            "--heartbeat-interval", "\(interval.milliseconds)",
            "--heartbeat-timeout", "\(timeout.milliseconds)",
            "--allowed-misses", "\(allowedMisses)",
        ]
    }
}
