import FaultSupport
import Foundation
import LifelineCore
import LifelineTestSupport
import Testing

/// The monitor, run as the command, in network namespaces that a test controls. These tests need root.
@Suite(.timeLimit(.minutes(1)), .serialized) struct NamespaceTests {
    private let beyond = "tcp://198.51.100.1:80"

    @Test func thePathAsItIs() async throws {
        try await TestNetwork.with { network in
            try await MonitorProcess.with(in: network, "--reach", beyond) { _, line in
                #expect(line.known && line.status == "satisfied" && line.ipv4 && line.ipv6 && line.defaultRoute)
                #expect(line.interfaces.map(\.name) == ["lo", "eth0"])
                #expect(line.interfaces.map(\.kind) == ["loopback", "ethernet"])
                #expect(line.eth0?.addresses.prefix(2) == ["10.77.1.2", "fd77:1::2"])
                #expect(line.reach?.reason == "routed")
                #expect(line.reach?.interface == "eth0")
            }
        }
    }

    @Test func linkDownAndUp() async throws {
        try await TestNetwork.with { network in
            try await MonitorProcess.with(in: network, "--reach", beyond) { monitor, _ in
                try await network.ip(["link set eth0 down"], at: .client)
                let down = try await monitor.next { $0.status == "unsatisfied" }
                #expect(down.eth0?.up == false)
                #expect(down.reach?.reason == "noRoute")

                try await network.ip(["link set eth0 up"], at: .client)
                // The kernel brings back the routes of the network, and not the default routes.
                let up = try await monitor.next { $0.status == "satisfied" }
                #expect(up.ipv4 && !up.defaultRoute)
                #expect(up.reach?.reason == "noRoute")

                try await network.ip(["route add default via 10.77.1.1"], at: .client)
                let whole = try await monitor.next { $0.defaultRoute }
                #expect(whole.reach?.reason == "routed")
            }
        }
    }

    @Test func carrierLossAndReturn() async throws {
        try await TestNetwork.with { network in
            try await MonitorProcess.with(in: network, "--reach", beyond) { monitor, _ in
                try await network.ip(["link set client down"], at: .router)
                // All routes are still there.
                let lost = try await monitor.next { $0.status == "unsatisfied" }
                #expect(lost.eth0?.up == true && lost.eth0?.carrier == false)
                #expect(lost.reach?.reason == "noCarrier")
                #expect(lost.reach?.interface == "eth0")

                try await network.ip(["link set client up"], at: .router)
                let back = try await monitor.next { $0.status == "satisfied" }
                #expect(back.defaultRoute)
                #expect(back.reach?.reason == "routed")
            }
        }
    }

    /// The kernel reports lost carriers once a second, so all but the first about 0.9 s late.
    @Test func repeatedCarrierLossIsNoticedBeforeTheKernelTells() async throws {
        try await TestNetwork.with { network in
            try await MonitorProcess.with(in: network) { monitor, _ in
                var delays: [Double] = []
                for _ in 0..<7 {
                    let moment = try await network.ip(["link set client down"], at: .router)
                    // Measured from the latest time at which it is down, because starting the command takes long on a
                    // busy machine.
                    let lost = try await monitor.next { $0.status == "unsatisfied" }
                    delays.append(lost.uptime - Double(moment.ended.nanoseconds) / 1e9)
                    try await network.ip(["link set client up"], at: .router)
                    _ = try await monitor.next { $0.status == "satisfied" }
                }
                // Most of them, because this machine may be busy.
                #expect(delays.sorted()[3] < 0.5, "\(delays)")
            }
        }
    }

    @Test func missingPartsAreNamed() throws {
        #expect(throws: Never.self) { try TestNetwork.checkRequirements() }
        let user = #expect(throws: FaultFailure.self) { try TestNetwork.checkRequirements(user: 65534) }
        #expect(user?.description.contains("root") == true)
        let tool = #expect(throws: FaultFailure.self) {
            try TestNetwork.checkRequirements(tools: ["ip", "no-such-tool"])
        }
        #expect(tool?.description.contains("no-such-tool") == true)
    }

    @Test func routesThatAreRemovedByHand() async throws {
        try await TestNetwork.with { network in
            try await MonitorProcess.with(in: network, "--reach", beyond) { monitor, _ in
                try await network.ip(
                    ["route delete default via 10.77.1.1", "route delete default via fd77:1::1"],
                    at: .client
                )
                let near = try await monitor.next { !$0.defaultRoute }
                #expect(near.status == "satisfied")
                #expect(near.reach?.reason == "noRoute")

                try await network.ip(["route delete 10.77.1.0/24 dev eth0"], at: .client)
                let v6 = try await monitor.next { !$0.ipv4 }
                #expect(v6.status == "satisfied" && v6.ipv6)

                try await network.ip(["route delete fd77:1::/64 dev eth0"], at: .client)
                let none = try await monitor.next { $0.status == "unsatisfied" }
                #expect(none.eth0?.carrier == true)
            }
        }
    }

    @Test func addressesThatAreRemovedByHand() async throws {
        try await TestNetwork.with { network in
            try await MonitorProcess.with(in: network, "--reach", "tcp://[fd77:1::1]:80") { monitor, first in
                #expect(first.reach?.reason == "routed")
                try await network.ip(["address delete 10.77.1.2/24 dev eth0"], at: .client)
                let v6 = try await monitor.next { !$0.ipv4 }
                #expect(v6.status == "satisfied" && v6.defaultRoute)
                #expect(v6.eth0?.addresses.contains("10.77.1.2") == false)

                try await network.ip(
                    ["route delete default via fd77:1::1", "address delete fd77:1::2/64 dev eth0"],
                    at: .client
                )
                let none = try await monitor.next { $0.status == "unsatisfied" }
                #expect(none.reach?.reason == "noRoute")
            }
        }
    }

    @Test func aBlackHoleIsNoRoute() async throws {
        try await TestNetwork.with { network in
            try await network.ip(["route add blackhole 198.51.100.0/24"], at: .client)
            try await MonitorProcess.with(in: network, "--reach", beyond) { _, line in
                #expect(line.reach?.reason == "noRoute")
            }
        }
    }

    @Test func defaultRoutesThatRefuseAreNoRoutes() async throws {
        try await TestNetwork.with { network in
            let kinds = ["unreachable", "prohibit", "blackhole", "throw"]
            let delete = ["10.77.1.1", "fd77:1::1"].map { "route delete default via \($0)" }
            try await network.ip(delete + ["route delete 10.77.1.0/24 dev eth0"], at: .client)
            for (kind, endpoint) in kinds.flatMap({ kind in [beyond, "tcp://[2001:db8::1]:80"].map { (kind, $0) } }) {
                let family = endpoint == beyond ? "0.0.0.0/0" : "::/0"
                try await network.ip(["route add \(kind) \(family) metric 9"], at: .client)
                try await MonitorProcess.with(in: network, "--reach", endpoint) { monitor, first in
                    // The kernel makes a new link's IPv6 routes with a delay.
                    let line = first.ipv6 ? first : try await monitor.next { $0.ipv6 }
                    #expect(!line.defaultRoute && !line.ipv4, "\(kind)")
                    #expect(line.reach?.reason == "noRoute", "\(kind)")
                }
                try await network.ip(["route delete \(kind) \(family) metric 9"], at: .client)
            }
        }
    }

    /// This also holds if the kernel does not name the interfaces of such routes.
    @Test(arguments: [0, 1]) func routesByNexthopObjectsCount(compatibility: Int) async throws {
        try await TestNetwork.with { network in
            let setting = "/proc/sys/net/ipv4/nexthop_compat_mode"
            try await network.run("sh", ["-ec", "echo \(compatibility) > \(setting)"], at: .client)
            let delete = ["10.77.1.1", "fd77:1::1"].map { "route delete default via \($0)" }
            try await network.ip(delete, at: .client)
            try await MonitorProcess.with(in: network, "--reach", beyond) { monitor, _ in
                try await network.ip(
                    [
                        "nexthop add id 7 via 10.77.1.1 dev eth0", "nexthop add id 8 group 7",
                        "route add default nhid 8",
                    ],
                    at: .client
                )
                let added = try await monitor.next { $0.defaultRoute }
                #expect(added.reach?.reason == "routed")
                // The route is removed with it, and the kernel does not report this.
                try await network.ip(["nexthop delete id 7"], at: .client)
                _ = try await monitor.next { !$0.defaultRoute }
            }
        }
    }

    @Test func aProbeThatNobodyAnswers() async throws {
        try await TestNetwork.with { network in
            try await MonitorProcess.with(in: network, "--reach", "tcp://10.77.1.1:1", "--probe") { _, line in
                #expect(line.reach?.reason == "refused")
            }
        }
    }

    // MARK: Flaps

    /// Whether the commands of one process were so far apart, because it was suspended, that the state between them had
    /// to be reported. (A state of less than 100 ms is not reported: see `NetworkMonitorConfiguration`.)
    private func mayHaveLasted(_ moment: Moment) -> Bool { moment.ended - moment.began > .milliseconds(100) }

    @Test func aShortFlapIsOneChange() async throws {
        var wasShort = false
        while !wasShort {
            try await TestNetwork.with { network in
                try await MonitorProcess.with(in: network) { monitor, _ in
                    // In one process, milliseconds apart. This removes the default routes.
                    let moment = try await network.ip(["link set eth0 down", "link set eth0 up"], at: .client)
                    let flapped = try await monitor.next { _ in true }
                    wasShort = !(flapped.status == "unsatisfied" && mayHaveLasted(moment))
                    guard wasShort else { return }
                    #expect(flapped.status == "satisfied" && !flapped.defaultRoute && flapped.eth0?.up == true)
                    try await network.ip(["address add 10.77.8.2/24 dev eth0"], at: .client)
                    let next = try await monitor.next { _ in true }
                    #expect(next.eth0?.addresses.contains("10.77.8.2") == true, "\(next) came of the flap too")
                }
            }
        }
    }

    @Test func aFlapThatLeavesNothingIsNoChange() async throws {
        var wasShort = false
        while !wasShort {
            try await TestNetwork.with { network in
                try await MonitorProcess.with(in: network) { monitor, _ in
                    let moment = try await network.ip(
                        ["address add 10.77.8.2/24 dev eth0", "address delete 10.77.8.2/24 dev eth0"],
                        at: .client
                    )
                    try await network.ip(["address add 10.77.9.2/24 dev eth0"], at: .client)
                    let next = try await monitor.next { _ in true }
                    let isFlapTold = next.eth0?.addresses.contains("10.77.8.2") != false
                    wasShort = !(isFlapTold && mayHaveLasted(moment))
                    guard wasShort else { return }
                    #expect(!isFlapTold)
                    #expect(next.eth0?.addresses.contains("10.77.9.2") == true)
                }
            }
        }
    }

    @Test func eventsThatAreLostAreMadeUpFor() async throws {
        try await TestNetwork.with { network in
            try await MonitorProcess.with(in: network) { monitor, _ in
                monitor.signal(SIGSTOP)
                let flaps = (0..<200).flatMap { _ in ["link set eth0 down", "link set eth0 up"] }
                try await network.ip(flaps + ["link set eth0 down"], at: .client)
                #expect(try await lostEvents(of: monitor, in: network) > 0)
                monitor.signal(SIGCONT)
                let down = try await monitor.next { _ in true }
                #expect(down.status == "unsatisfied" && down.eth0?.up == false)

                // The new socket has events.
                try await network.ip(["link set eth0 up"], at: .client)
                _ = try await monitor.next { $0.status == "satisfied" }
            }
        }
    }

    /// The kernel's count of messages that did not fit into the socket's queue.
    private func lostEvents(of monitor: MonitorProcess, in network: TestNetwork) async throws -> Int {
        let table = try await network.run("cat", ["/proc/net/netlink"], at: .client).output.split(separator: "\n")
        let columns = table[0].split(separator: " ")
        let port = try #require(columns.firstIndex(of: "Pid"))
        let drops = try #require(columns.firstIndex(of: "Drops"))
        let rows = table.dropFirst().map { $0.split(separator: " ") }
        let own = try #require(rows.first { $0[port] == "\(monitor.identifier)" })
        return try #require(Int(own[drops]))
    }
}
