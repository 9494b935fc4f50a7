extension Trial {
    /// Every fault, with the expected behavior of the client.
    static func all(_ bounds: Bounds) -> [Trial] {
        [
            linkDown(bounds),
            Trial(
                fault: .carrierLoss,
                reaction: Reaction("networkLost", .carrier),
                bound: bounds.network,
                healBound: bounds.neighbourFound,
                accounting: .reportedAtLeast
            ),
            losingNetwork(.routeRemoval, bounds),
            blackHole(bounds),
            Trial(
                fault: .peerStopped,
                reaction: Reaction("heartbeatTimeout", .silentPeer),
                bound: bounds.silence,
                healBound: bounds.retry,
                accounting: .reportedAtMost
            ),
            // 60 MB: more than the buffers of both kernels hold.
            Trial(
                fault: .peerNotReading,
                reaction: Reaction("heartbeatTimeout", .silentPeer),
                bound: bounds.silence,
                // Waiting messages are sent first.
                healBound: bounds.retry + .seconds(5),
                accounting: .reportedAtMost,
                messagesIntoIt: 2000,
                messageSize: 30_000
            ),
        ]
            // The kernel's error is "reset", and "aborted" for a socket that it destroys itself.
            + [
                (Fault.reset, "closedByPeer"), (.clientSocketKilled, "connectionFailed"),
                (.peerSocketKilled, "closedByPeer"), (.peerKilled, "closedByPeer"), (.peerShutDown, "closedByPeer"),
            ].map { fault, reason in
                Trial(
                    fault: fault,
                    reaction: Reaction(reason, .peer),
                    bound: bounds.socket,
                    healBound: bounds.retry,
                    accounting: fault.name == Fault.peerShutDown.name ? .nothingLost : .exact
                )
            }
    }

    static func linkDown(_ bounds: Bounds) -> Trial { losingNetwork(.linkDown, bounds) }

    static func blackHole(_ bounds: Bounds) -> Trial {
        Trial(
            fault: .blackHole,
            reaction: Reaction("heartbeatTimeout", .peer),
            bound: bounds.silence,
            healBound: bounds.retry
        )
    }

    private static func losingNetwork(_ fault: Fault, _ bounds: Bounds) -> Trial {
        Trial(
            fault: fault,
            reaction: Reaction("networkLost", .network),
            bound: bounds.network,
            healBound: bounds.networkBack
        )
    }
}
