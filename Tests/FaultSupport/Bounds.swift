/// A client's configuration, and the bounds that follow from it.
package struct Bounds: Sendable {
    // Short, so that a hundred black holes take minutes; the state machine is the same as with the defaults.
    private let heartbeatInterval = Duration.milliseconds(500)
    private let heartbeatTimeout = Duration.milliseconds(250)
    private let allowedMisses = 3
    private let connectTimeout = Duration.milliseconds(500)
    private let longestBackoff = Duration.milliseconds(500)

    /// The longest delay of timers and tasks on a busy machine with two cores.
    package let tolerance = Duration.milliseconds(100)

    package init() {}

    /// A peer that is silent.
    package var silence: Duration { heartbeatInterval + heartbeatTimeout * allowedMisses + tolerance }
    /// A report of the kernel about the network: 100 ms in which a flap may pass, and the delay.
    package let network = Duration.milliseconds(300)
    /// An error of the kernel on the socket.
    package let socket = Duration.milliseconds(200)
    /// From the return of the network until the client is ready: 300 ms and a round trip of less than 1 ms here.
    package let networkBack = Duration.milliseconds(301)
    /// From the return of a carrier, after a packet was sent without one. The kernel then asks once a second for the
    /// address of its neighbour, the router, and an attempt to connect may meanwhile fail and be followed by a delay.
    package var neighbourFound: Duration { .seconds(1) + longestBackoff * 1.2 + networkBack }
    /// From the return of the peer or the path, which the client finds by trying. A failing attempt may just have
    /// begun, and the delay after it has a jitter of 20 %.
    package var retry: Duration { connectTimeout + longestBackoff * 1.2 + networkBack }

    package var clientArguments: [String] {
        heartbeatArguments(interval: heartbeatInterval, timeout: heartbeatTimeout) + [
            "--connect-timeout", "\(connectTimeout.milliseconds)",
            "--longest-backoff", "\(longestBackoff.milliseconds)",
        ]
    }

    /// For a machine so busy that a peer may stall for seconds: the heartbeat must not fire.
    var patientArguments: [String] {
        heartbeatArguments(interval: .seconds(10), timeout: .seconds(10)) + [
            "--connect-timeout", "10000", "--longest-backoff", "\(longestBackoff.milliseconds)",
        ]
    }

    /// For packet loss: the default heartbeat, of 30 + 3 × 10 s. A run of a few minutes needs a heartbeat that fits
    /// into it three times, or it could not show that a living peer is given up. Within 15 s the kernel tries at least
    /// ten times: at least once a second with TCP_RTO_MAX_MS, which the heartbeat sets.
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
