import Foundation
import LifelineTestSupport
import Testing

/// The monitor, as the command, in network namespaces where the network does what a test says. They need root.
@Suite(.timeLimit(.minutes(1)), .serialized) struct NamespaceTests {
    private let beyond = "tcp://198.51.100.1:80"

    @Test func thePathAsItIs() async throws {
        try await NetworkNamespaces.with { network in
            try await MonitorProcess.with(in: network.here, "--reach", beyond) { _, line in
                #expect(line.known && line.status == "satisfied" && line.ipv4 && line.ipv6 && line.defaultRoute)
                #expect(line.interfaces.map(\.name) == ["lo", "eth0"])
                #expect(line.interfaces.map(\.kind) == ["loopback", "ethernet"])
                #expect(line.eth0?.addresses.prefix(2) == ["10.9.0.2", "2001:db8::2"])
                #expect(line.reach?.reason == "routed")
                #expect(line.reach?.interface == "eth0")
            }
        }
    }

    @Test func linkDownAndUp() async throws {
        try await NetworkNamespaces.with { network in
            try await MonitorProcess.with(in: network.here, "--reach", beyond) { monitor, _ in
                try await network.ip("link set eth0 down")
                let down = try await monitor.next { $0.status == "unsatisfied" }
                #expect(down.eth0?.up == false)
                #expect(down.reach?.reason == "noRoute")

                try await network.ip("link set eth0 up")
                // The kernel brings back the route of the network, and not the default route.
                let up = try await monitor.next { $0.status == "satisfied" }
                #expect(up.ipv4 && !up.defaultRoute)
                #expect(up.reach?.reason == "noRoute")

                try await network.ip("route add default via 10.9.0.1")
                let whole = try await monitor.next { $0.defaultRoute }
                #expect(whole.reach?.reason == "routed")
            }
        }
    }

    @Test func carrierLossAndReturn() async throws {
        try await NetworkNamespaces.with { network in
            try await MonitorProcess.with(in: network.here, "--reach", beyond) { monitor, _ in
                try await network.ip(atPeer: "link set eth0 down")
                // All routes are still there.
                let lost = try await monitor.next { $0.status == "unsatisfied" }
                #expect(lost.eth0?.up == true && lost.eth0?.carrier == false)
                #expect(lost.reach?.reason == "noCarrier")
                #expect(lost.reach?.interface == "eth0")

                try await network.ip(atPeer: "link set eth0 up")
                let back = try await monitor.next { $0.status == "satisfied" }
                #expect(back.defaultRoute)
                #expect(back.reach?.reason == "routed")
            }
        }
    }

    @Test func routesThatAreRemovedByHand() async throws {
        try await NetworkNamespaces.with { network in
            try await MonitorProcess.with(in: network.here, "--reach", beyond) { monitor, _ in
                try await network.ip("route delete default")
                let near = try await monitor.next { !$0.defaultRoute }
                #expect(near.status == "satisfied")
                #expect(near.reach?.reason == "noRoute")

                try await network.ip("route delete 10.9.0.0/24 dev eth0")
                let v6 = try await monitor.next { !$0.ipv4 }
                #expect(v6.status == "satisfied" && v6.ipv6)

                try await network.ip("route delete 2001:db8::/64 dev eth0")
                let none = try await monitor.next { $0.status == "unsatisfied" }
                #expect(none.eth0?.carrier == true)
            }
        }
    }

    @Test func addressesThatAreRemovedByHand() async throws {
        try await NetworkNamespaces.with { network in
            try await MonitorProcess.with(in: network.here, "--reach", "tcp://[2001:db8::1]:80") { monitor, first in
                #expect(first.reach?.reason == "routed")
                try await network.ip("address delete 10.9.0.2/24 dev eth0")
                let v6 = try await monitor.next { !$0.ipv4 }
                #expect(v6.status == "satisfied" && !v6.defaultRoute)
                #expect(v6.eth0?.addresses.contains("10.9.0.2") == false)

                try await network.ip("address delete 2001:db8::2/64 dev eth0")
                let none = try await monitor.next { $0.status == "unsatisfied" }
                #expect(none.reach?.reason == "noRoute")
            }
        }
    }

    @Test func aBlackHoleIsNoRoute() async throws {
        try await NetworkNamespaces.with { network in
            try await network.ip("route add blackhole 198.51.100.0/24")
            try await MonitorProcess.with(in: network.here, "--reach", beyond) { _, line in
                #expect(line.reach?.reason == "noRoute")
            }
        }
    }

    @Test func aProbeThatNobodyAnswers() async throws {
        try await NetworkNamespaces.with { network in
            try await MonitorProcess.with(in: network.here, "--reach", "tcp://10.9.0.1:1", "--probe") { _, line in
                #expect(line.reach?.reason == "refused")
            }
        }
    }

    // MARK: Flaps

    @Test func aShortFlapIsOneChange() async throws {
        try await NetworkNamespaces.with { network in
            try await MonitorProcess.with(in: network.here) { monitor, _ in
                // In one process, milliseconds apart. It costs the default route and the IPv6 address.
                try await network.ip("link set eth0 down", "link set eth0 up")
                let flapped = try await monitor.next { _ in true }
                #expect(flapped.status == "satisfied" && !flapped.defaultRoute && flapped.eth0?.up == true)
                try await network.ip("address add 10.9.1.2/24 dev eth0")
                let next = try await monitor.next { _ in true }
                #expect(next.eth0?.addresses.contains("10.9.1.2") == true, "\(next) came of the flap too")
            }
        }
    }

    @Test func aFlapThatLeavesNothingIsNoChange() async throws {
        try await NetworkNamespaces.with { network in
            try await MonitorProcess.with(in: network.here) { monitor, _ in
                try await network.ip("address add 10.9.1.2/24 dev eth0", "address delete 10.9.1.2/24 dev eth0")
                try await network.ip("address add 10.9.2.2/24 dev eth0")
                let next = try await monitor.next { _ in true }
                #expect(next.eth0?.addresses.contains("10.9.1.2") == false)
                #expect(next.eth0?.addresses.contains("10.9.2.2") == true)
            }
        }
    }

    @Test func eventsThatAreLostAreMadeUpFor() async throws {
        try await NetworkNamespaces.with { network in
            try await MonitorProcess.with(in: network.here) { monitor, _ in
                monitor.signal(SIGSTOP)
                let flaps = (0..<200).flatMap { _ in ["link set eth0 down", "link set eth0 up"] }
                try await network.batch(flaps + ["link set eth0 down"], in: network.here)
                #expect(try await lostEvents(of: monitor, in: network) > 0)
                monitor.signal(SIGCONT)
                let down = try await monitor.next { _ in true }
                #expect(down.status == "unsatisfied" && down.eth0?.up == false)

                // And the new socket has events.
                try await network.ip("link set eth0 up")
                _ = try await monitor.next { $0.status == "satisfied" }
            }
        }
    }

    /// The kernel's count of what found no room in the socket's queue.
    private func lostEvents(of monitor: MonitorProcess, in network: NetworkNamespaces) async throws -> Int {
        let table = try await network.run("cat", "/proc/net/netlink").split(separator: "\n")
        let columns = table[0].split(separator: " ")
        let port = try #require(columns.firstIndex(of: "Pid"))
        let drops = try #require(columns.firstIndex(of: "Drops"))
        let rows = table.dropFirst().map { $0.split(separator: " ") }
        let own = try #require(rows.first { $0[port] == "\(monitor.identifier)" })
        return try #require(Int(own[drops]))
    }
}
