/// What the router does with packets, by its nftables.
extension TestNetwork {
    /// A rule for all packets between client and server, in nft's language.
    package struct PacketRule: Hashable, Sendable {
        fileprivate let text: String

        /// Packets vanish, both ways.
        package static let dropAll = PacketRule(text: "counter name affected drop")
        /// So many of a hundred packets vanish, both ways, at random.
        package static func drop(percent: Int) -> PacketRule {
            PacketRule(text: "numgen random mod 100 < \(percent) counter name affected drop")
        }
        /// Packets of TCP connections to a port vanish, both ways.
        package static func drop(port: UInt16) -> PacketRule {
            PacketRule(
                text: "meta l4proto tcp th dport \(port) counter name affected drop; "
                    + "add rule inet faults forward meta l4proto tcp th sport \(port) counter name affected drop"
            )
        }
        /// A segment of TCP is answered by a reset to who sent it, and goes no further.
        package static let reset = PacketRule(text: "meta l4proto tcp counter name affected reject with tcp reset")
    }

    /// Makes the router follow a rule, and that one alone.
    package func filter(by rule: PacketRule) async throws -> Moment {
        // One transaction: there is no time between its parts.
        try await nft("flush chain inet faults forward; add rule inet faults forward \(rule.text)").moment
    }

    /// Makes the router let everything through.
    ///
    /// Packets pass some milliseconds before it returns: `nft` waits until no packet can meet the old rule.
    package func stopFiltering() async throws -> Moment {
        try await nft("flush chain inet faults forward").moment
    }

    /// How many packets rules were applied to since the network was made.
    package func affectedPacketCount() async throws -> Int {
        try await count("affected")
    }

    /// How many packets came to the router to be passed on.
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
