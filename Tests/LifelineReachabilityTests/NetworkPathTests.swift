import LifelineCore
import LifelineReachability
import Testing

/// The rule for a satisfied path, and its result for endpoints.
@Suite struct NetworkPathTests {
    private static let up: UInt32 = 0x1
    private static let lowerUp: UInt32 = 0x10000

    struct Case: CustomTestStringConvertible {
        var name: String
        var flags = up | lowerUp
        var operationalState: UInt8 = 6
        var address: String? = "192.0.2.2"
        var scope: UInt8 = 0
        var addressFlags: UInt32 = 0x80
        var routeVersion = IPAddress.Version.v4
        var destination: String? = "192.0.2.0"
        var prefixLength: UInt8 = 24
        var table: UInt32 = 254
        var type: UInt8 = 1
        var isCached = false
        var routeInterface: Int32 = 2
        var isSatisfied = false

        var testDescription: String { name }
    }

    static let cases = [
        Case(name: "an address and the route of its network", isSatisfied: true),
        Case(name: "a default route", destination: nil, prefixLength: 0, isSatisfied: true),
        Case(name: "a route in a table of its own", table: 1000, isSatisfied: true),
        Case(name: "an operational state that is unknown", operationalState: 0, isSatisfied: true),
        Case(
            name: "a network's own unique local address",
            address: "fd00::2",
            routeVersion: .v6,
            destination: "fd00::",
            isSatisfied: true
        ),
        Case(
            name: "an optimistic address",
            address: "2001:db8::2",
            addressFlags: 0x44,
            routeVersion: .v6,
            destination: nil,
            prefixLength: 0,
            isSatisfied: true
        ),
        Case(name: "not up", flags: lowerUp),
        Case(name: "no carrier", flags: up),
        Case(name: "dormant", operationalState: 5),
        Case(name: "a loopback", flags: up | lowerUp | 0x8),
        Case(name: "no address", address: nil),
        Case(name: "an IPv4 address that is link-local", address: "169.254.1.1"),
        Case(name: "an IPv6 address that is link-local", address: "fe80::1", routeVersion: .v6, destination: nil),
        Case(name: "an address of link scope", scope: 253),
        Case(name: "an address of host scope", scope: 254),
        Case(name: "a loopback address elsewhere", address: "127.0.0.2"),
        Case(
            name: "a tentative address",
            address: "2001:db8::2",
            addressFlags: 0x40,
            routeVersion: .v6,
            destination: nil
        ),
        Case(
            name: "a duplicate address",
            address: "2001:db8::2",
            addressFlags: 0x88,
            routeVersion: .v6,
            destination: nil
        ),
        Case(name: "a route of the other version", address: "2001:db8::2"),
        Case(name: "a route over another interface", routeInterface: 3),
        Case(name: "a black hole", type: 6),
        Case(name: "a route in the table of local addresses", table: 255),
        Case(name: "a route to the link only", destination: "169.254.0.0"),
        Case(name: "an exception to a route", destination: "198.51.100.1", prefixLength: 32, isCached: true),
        Case(name: "a multicast route", destination: "224.0.0.0"),
    ]

    private func path(_ test: Case) throws -> NetworkPath {
        var tables = NetworkTables()
        for index in [2, 3] as [Int32] {
            try tables.add(
                LinkRecord(
                    index: index,
                    name: "eth\(index)",
                    flags: index == 2 ? test.flags : 0,
                    operationalState: test.operationalState,
                    hardwareType: 1
                )
            )
        }
        if let text = test.address {
            let address = try #require(IPAddress(text))
            try tables.add(AddressRecord(interface: 2, address: address, scope: test.scope, flags: test.addressFlags))
        }
        try tables.add(
            RouteRecord(
                version: test.routeVersion,
                destination: test.destination.map { try #require(IPAddress($0)) },
                prefixLength: test.prefixLength,
                interfaces: [test.routeInterface],
                table: test.table,
                type: test.type,
                isCached: test.isCached
            )
        )
        return NetworkPath(tables) { _ in .ethernet }
    }

    @Test(arguments: cases)
    func theRule(test: Case) throws {
        let path = try path(test)
        #expect(path.status == (test.isSatisfied ? .satisfied : .unsatisfied))
        #expect(path.usesIPv4 == (test.isSatisfied && test.routeVersion == .v4))
        #expect(path.usesIPv6 == (test.isSatisfied && test.routeVersion == .v6))
        #expect(path.hasDefaultRoute == (test.isSatisfied && test.prefixLength == 0))
    }

    @Test func theOrderOfRecordsDoesNotMatter() throws {
        let addresses = try ["192.0.2.3", "2001:db8::2", "192.0.2.2"].map { try #require(IPAddress($0)) }
        func path(_ addresses: [IPAddress]) throws -> NetworkPath {
            var tables = NetworkTables()
            try tables.add(LinkRecord(index: 2, name: "eth0", flags: 1, hardwareType: 1))
            for address in addresses {
                try tables.add(AddressRecord(interface: 2, address: address, scope: 0, flags: 0))
            }
            return NetworkPath(tables) { _ in .ethernet }
        }
        #expect(try path(addresses) == path(addresses.reversed()))
        #expect(
            try path(addresses).interfaces[0].addresses.map { "\($0)" } == ["192.0.2.2", "192.0.2.3", "2001:db8::2"]
        )
    }

    @Test(arguments: [
        ("unix:///run/chat.sock", true), ("tcp://localhost:1", true), ("tcp://127.1.2.3:1", true),
        ("tcp://[::1]:1", true),
        ("tcp://[::ffff:127.0.0.1]:1", true), ("tcp://0.0.0.0:1", true), ("tcp://192.0.2.2:1", true),
        ("tcp://[fe80::1%eth0]:1", true), ("tcp://192.0.2.9:1", false), ("tcp://example.org:1", false),
        ("tcp://[2001:db8::1]:1", false),
    ])
    func withoutANetworkOnlyWhatIsNearMayBeReached(text: String, expected: Bool) throws {
        let interface = NetworkInterface(
            name: "eth0",
            index: 2,
            kind: .ethernet,
            isUp: true,
            hasCarrier: true,
            addresses: [try #require(IPAddress("192.0.2.2"))],
            usesIPv4: false,
            usesIPv6: false,
            hasDefaultRoute: false
        )
        #expect(NetworkPath(interfaces: [interface]).mayReach(try Endpoint(text)) == expected)
        #expect(NetworkPath.unknown.mayReach(try Endpoint(text)))
    }

    @Test func anEndpointNeedsItsVersionOfIP() throws {
        let path = try path(Case(name: "IPv4 only"))
        #expect(path.mayReach(try Endpoint("tcp://198.51.100.1:1")))
        #expect(path.mayReach(try Endpoint("tcp://example.org:1")))
        #expect(!path.mayReach(try Endpoint("tcp://[2001:db8::1]:1")))
    }

    /// For names, an attempt is made if a network leads beyond the machine, with or without a default route. Otherwise
    /// the name is resolved.
    @Test(arguments: [
        (["eth0"], NetworkPath.Prospect.good), (["docker0"], .byName), (["docker0", "eth0"], .good),
        (["docker0 default"], .good), (["docker0 down", "eth0 down"], .none), ([], .none),
    ])
    func prospectOfAName(interfaces: [String], expected: NetworkPath.Prospect) throws {
        let path = NetworkPath(interfaces: interfaces.enumerated().map { interface($1, index: $0 + 2) })
        #expect(path.prospect(of: try Endpoint("tcp://example.org:1")) == expected)
        #expect(path.leadsBeyondHost == (expected == .good))
        let address = path.prospect(of: try Endpoint("tcp://198.51.100.1:1"))
        #expect(address == (expected == .none ? .none : .byRoute))
        for near in ["tcp://localhost:1", "unix:///run/chat.sock"] {
            #expect(path.prospect(of: try Endpoint(near)) == .good)
        }
    }

    @Test func whereNothingIsKnownANameIsTried() throws {
        #expect(NetworkPath.unknown.prospect(of: try Endpoint("tcp://example.org:1")) == .good)
        #expect(NetworkPath.unknown.leadsBeyondHost)
    }

    /// A name and its properties.
    private func interface(_ text: String, index: Int) -> NetworkInterface {
        let words = text.split(separator: " ")
        let works = !words.contains("down")
        return NetworkInterface(
            name: String(words[0]),
            index: index,
            kind: .ethernet,
            isUp: works,
            hasCarrier: works,
            addresses: [],
            usesIPv4: works,
            usesIPv6: false,
            hasDefaultRoute: words.contains("default"),
            isHostOnly: words[0] == "docker0"
        )
    }

    /// Bridges have the number 2; the others are their ports by default.
    @Test(arguments: [
        (["bridge"], true), (["bridge", "veth"], true), (["bridge", "veth", "tun"], true), (["bridge", "-"], false),
        (["bridge", "veth", "vlan"], false), (["bridge", "bond"], false), (["dummy"], true), (["veth"], false),
        (["-"], false), (["vlan"], false), (["wireguard"], false),
    ])
    func interfacesThatEndOnThisMachine(kinds: [String], expected: Bool) throws {
        var tables = NetworkTables()
        for (offset, kind) in kinds.enumerated() {
            try tables.add(
                LinkRecord(
                    index: Int32(2 + offset),
                    name: "if\(offset)",
                    flags: 1,
                    hardwareType: 1,
                    kind: kind == "-" ? nil : kind,
                    master: offset == 0 ? nil : 2
                )
            )
        }
        #expect(NetworkPath(tables) { _ in .ethernet }.interfaces[0].isHostOnly == expected)
    }

    @Test func thePathThatIsNotKnownIsSatisfied() {
        #expect(NetworkPath.unknown.status == .satisfied)
        #expect(NetworkPath.unknown != NetworkPath(interfaces: []))
        #expect(NetworkPath(interfaces: []).status == .unsatisfied)
    }
}
