/// The router's treatment of packets, by nftables.
extension TestNetwork {
    /// A rule for all packets between client and server, in nft's language.
    package struct PacketRule: Hashable, Sendable {
        fileprivate let text: String

        /// Packets vanish in both directions.
        package static let dropAll = PacketRule(text: "counter name affected drop")
        /// A percentage of packets vanishes at random, in both directions.
        package static func drop(percent: Int) -> PacketRule {
            PacketRule(text: "numgen random mod 100 < \(percent) counter name affected drop")
        }
        /// Packets of TCP connections to a port vanish in both directions.
        package static func drop(port: UInt16) -> PacketRule {
            PacketRule(
                text: "meta l4proto tcp th dport \(port) counter name affected drop; "
                    + "add rule inet faults forward meta l4proto tcp th sport \(port) counter name affected drop"
            )
        }
        /// A TCP segment is answered with a reset to its sender, and is not forwarded.
        package static let reset = PacketRule(text: "meta l4proto tcp counter name affected reject with tcp reset")
    }

    /// Makes the router follow only this rule.
    package func filter(by rule: PacketRule) async throws -> Moment {
        // A single transaction has no gap between its parts.
        try await nft("flush chain inet faults forward; add rule inet faults forward \(rule.text)").moment
    }

    /// Makes the router forward everything.
    ///
    /// Packets pass a few milliseconds before this returns: `nft` waits until the old rule applies to no packet.
    package func stopFiltering() async throws -> Moment {
        try await nft("flush chain inet faults forward").moment
    }

    /// The number of packets to which rules were applied since the network was made.
    package func affectedPacketCount() async throws -> Int {
        try await count("affected")
    }

    /// The number of packets that reached the router for forwarding.
    package func arrivedPacketCount() async throws -> Int {
        try await count("arrived")
    }

    func makeFilter() async throws {
        try await nft(
            """
            add table inet faults
            add counter inet faults arrived
            add counter inet faults affected
            add chain inet faults arrivals { type filter hook forward priority -1; }
            add rule inet faults arrivals counter name arrived
            add chain inet faults forward { type filter hook forward priority 0; }
            """
        )
    }

    private func count(_ counter: String) async throws -> Int {
        let words = try await nft("list counter inet faults \(counter)").output.split(whereSeparator: \.isWhitespace)
        guard let index = words.firstIndex(of: "packets"),
            let count = words.dropFirst(index + 1).first.flatMap({ Int($0) })
        else { throw FaultFailure("nft does not say how many packets it counted: \(words)") }
        return count
    }

    @discardableResult private func nft(_ commands: String) async throws -> Tool.Run {
        try await run("nft", [commands], at: .router)
    }
}
