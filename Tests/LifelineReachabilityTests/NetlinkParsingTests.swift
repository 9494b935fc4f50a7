import LifelineReachability
import LifelineTestSupport
import Testing

/// Records from bytes: those of a kernel, and malformed ones.
@Suite struct NetlinkParsingTests {
    // MARK: Messages of a kernel

    @Test func linksOfACapturedDump() throws {
        let records = try Records(CapturedDumps.links)
        #expect(records.links.map(\.name) == ["lo", "eth0", "tap0"])
        #expect(records.links.map(\.index) == [1, 2, 3])
        #expect(records.links.map(\.hardwareType) == [772, 1, 65534])
        #expect(records.links.map(\.kind) == [nil, "veth", "tun"])
        #expect(records.links.map(\.isUp) == [true, true, false])
        #expect(records.links.map(\.hasCarrier) == [true, true, false])
        #expect(records.links.map(\.isLoopback) == [true, false, false])
        #expect(records.others == [Kernel.done])
    }

    @Test func addressesOfACapturedDump() throws {
        let addresses = try Records(CapturedDumps.addresses).addresses
        #expect(addresses.count == 5)
        #expect(addresses.filter(\.isUsable).map { "\($0.address)" } == ["10.9.0.2", "2001:db8::2"])
        #expect(addresses.contains { $0.address.isLinkLocal && $0.interface == 2 && $0.scope == 253 })
        #expect(addresses.filter { $0.address.isLoopback }.map(\.interface) == [1, 1])
    }

    @Test func routesOfACapturedDump() throws {
        let routes = try Records(CapturedDumps.routes).routes
        let defaults = routes.filter { $0.isDefault && $0.isUsable }
        #expect(defaults.map { $0.gateway.map { "\($0)" } } == ["10.9.0.1", "2001:db8::1"])
        #expect(defaults.map(\.metric) == [100, 1024])
        #expect(defaults.map(\.interfaces) == [[2], [2]])
        #expect(defaults.map(\.table) == [254, 254])
        let multipath = try #require(routes.first { $0.destination == IPAddress("198.51.100.0") })
        #expect(multipath.interfaces == [2, 2])
        #expect(multipath.prefixLength == 24)
        let blackHole = try #require(routes.first { $0.destination == IPAddress("203.0.113.0") })
        #expect(!blackHole.isUsable)
        #expect(blackHole.interfaces == [])
        let linkLocal = routes.filter { $0.destination?.isLinkLocal == true || $0.destination?.isMulticast == true }
        #expect(!linkLocal.isEmpty && linkLocal.allSatisfy { !$0.isUsable })
    }

    @Test(arguments: CapturedNexthops.refusals)
    func defaultRoutesThatRefuseAreNone(captured: String) throws {
        let routes = try Records([CapturedNexthops.datagram(captured)]).routes
        #expect(routes.count == 1)
        #expect(routes[0].isDefault && !routes[0].isUnicast && !routes[0].isUsable)
        #expect(routes[0].metric == 50)
    }

    // MARK: Malformed messages

    static let malformed: [(NetlinkError, [UInt8])] = [
        (.truncatedHeader, [16, 0, 0]),
        (.truncatedHeader, message(type: 99, []) + [1, 2, 3, 4]),
        (.invalidMessageLength(15), bytes(of: UInt32(15)) + [UInt8](repeating: 0, count: 12)),
        (.invalidMessageLength(17), bytes(of: UInt32(17)) + [UInt8](repeating: 0, count: 12)),
        (.invalidMessageLength(.max), bytes(of: UInt32.max) + [UInt8](repeating: 0, count: 12)),
        (.truncatedPayload(type: Kernel.newLink), message(type: Kernel.newLink, [UInt8](repeating: 0, count: 15))),
        (.truncatedPayload(type: Kernel.newAddress), message(type: Kernel.newAddress, [2, 24, 0])),
        (.truncatedPayload(type: Kernel.newRoute), message(type: Kernel.newRoute, [2, 24, 0, 0])),
        (.missingName(index: 5), link(index: 5, [])),
        (.missingName(index: 5), link(index: 5, attribute(3, [0]))),
        (.invalidAttribute(type: 3), link(index: 5, attribute(3, [UInt8](repeating: 65, count: 16)))),
        (.invalidAttribute(type: 16), link(index: 5, attribute(3, [65, 0]) + attribute(16, [1, 2]))),
        (.invalidAttributeLength(3), link(index: 5, [3, 0, 3, 0])),
        (.invalidAttributeLength(5), link(index: 5, [5, 0, 3, 0])),
        (.invalidAttributeLength(2), link(index: 5, [3, 0])),
        (.invalidAttributeLength(9), link(index: 5, attribute(18, [9, 0, 1, 0]))),
        (.invalidAttribute(type: 1), message(type: Kernel.newAddress, [2, 24, 0, 0, 1, 0, 0, 0] + attribute(1, [1]))),
        (
            .invalidAttribute(type: 1),
            message(type: Kernel.newAddress, [10, 0, 0, 0, 1, 0, 0, 0] + attribute(1, [1, 2, 3, 4]))
        ),
        (.invalidPrefixLength(33), route(family: 2, prefix: 33, [])),
        (.invalidPrefixLength(129), route(family: 10, prefix: 129, [])),
        (.invalidAttribute(type: 4), route(family: 2, prefix: 0, attribute(4, [1, 0]))),
        // Hops: one of length 0, which could cause an endless loop, and one that is longer than the rest.
        (.invalidAttribute(type: 9), route(family: 2, prefix: 0, attribute(9, [0, 0, 0, 0, 2, 0, 0, 0]))),
        (.invalidAttribute(type: 9), route(family: 2, prefix: 0, attribute(9, [9, 0, 0, 0, 2, 0, 0, 0]))),
        (.invalidAttribute(type: 9), route(family: 2, prefix: 0, attribute(9, [8, 0, 0]))),
        (.invalidAttribute(type: 30), route(family: 2, prefix: 0, attribute(30, [8, 0, 0]))),
        (.invalidAttribute(type: 10), link(index: 5, attribute(3, [65, 0]) + attribute(10, [8, 0, 0]))),
        (.truncatedPayload(type: Kernel.newNexthop), message(type: Kernel.newNexthop, [2, 0, 0, 0])),
        (
            .invalidAttribute(type: 2),
            message(type: Kernel.newNexthop, [2, 0, 0, 0, 0, 0, 0, 0] + attribute(2, [1, 0, 0, 0, 1, 0, 0]))
        ),
        (
            .invalidAttribute(type: 5),
            message(type: Kernel.newNexthop, [2, 0, 0, 0, 0, 0, 0, 0] + attribute(5, [1, 0]))
        ),
    ]

    @Test(arguments: malformed)
    func malformedBytesAreTypedErrors(expected: NetlinkError, bytes: [UInt8]) {
        #expect(throws: expected) { try Records([bytes]) }
    }

    @Test func otherProtocolsAreLeftOut() throws {
        let records = try Records([
            message(type: Kernel.newAddress, [28, 20, 0, 0, 1, 0, 0, 0] + attribute(1, [1])),
            route(family: 128, prefix: 255, []),
        ])
        #expect(records == Records())
    }

    @Test func aDeadHopIsNone() throws {
        let dead: [UInt8] = [8, 0, 1, 0, 2, 0, 0, 0]
        let alive: [UInt8] = [8, 0, 0, 0, 3, 0, 0, 0]
        #expect(try Records([route(family: 2, prefix: 0, attribute(9, dead + alive))]).routes[0].interfaces == [3])
    }

    @Test func anExceptionToARouteIsNotUsable() throws {
        // RTM_F_CLONED, which is 0x200 of the flags, in the machine's order of bytes.
        let exception = [2, 32, 0, 0, 254, 3, 0, 1] + bytes(of: UInt32(0x200)) + attribute(4, bytes(of: Int32(2)))
        let route = try Records([message(type: Kernel.newRoute, exception)]).routes[0]
        #expect(route.isCached && route.isUnicast && !route.isUsable)
    }

    @Test func aCutAnywhereIsAnErrorOrTheBeginning() throws {
        for dump in [CapturedDumps.links, CapturedDumps.addresses, CapturedDumps.routes] {
            let datagram = dump[0]
            let boundaries = boundaries(of: datagram)
            for count in 0..<datagram.count {
                if boundaries.contains(count) {
                    #expect(throws: Never.self) { try Records([Array(datagram.prefix(count))]) }
                } else {
                    #expect(throws: NetlinkError.self, "cut at \(count)") {
                        try Records([Array(datagram.prefix(count))])
                    }
                }
            }
        }
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func damageNeverTraps(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let datagrams = CapturedDumps.links + CapturedDumps.addresses + CapturedDumps.routes
        var refused = 0
        for _ in 0..<200 {
            var datagram = datagrams[Int.random(in: 0..<datagrams.count, using: &random)]
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let edges: [UInt8] = [0, 1, 4, 0x7F, 0x80, 0xFF, .random(in: 0...255, using: &random)]
                datagram[.random(in: 0..<datagram.count, using: &random)] = edges.randomElement(using: &random) ?? 0
            }
            // Sanitizers and the traps of spans detect errors. Refused messages show that the damage has an effect.
            do { _ = try Records([datagram]) } catch { refused += 1 }
        }
        #expect(refused > 0)
    }

    private func boundaries(of datagram: [UInt8]) -> Set<Int> {
        var result: Set = [0]
        var offset = 0
        while offset < datagram.count {
            offset += (Int(datagram[offset]) + Int(datagram[offset + 1]) << 8 + 3) & ~3
            result.insert(offset)
        }
        return result
    }

    private static func link(index: Int32, _ attributes: [UInt8]) -> [UInt8] {
        message(type: Kernel.newLink, [0, 0, 1, 0] + bytes(of: index) + bytes(of: UInt64(0)) + attributes)
    }

    private static func route(family: UInt8, prefix: UInt8, _ attributes: [UInt8]) -> [UInt8] {
        message(type: Kernel.newRoute, [family, prefix, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0] + attributes)
    }

    private func route(family: UInt8, prefix: UInt8, _ attributes: [UInt8]) -> [UInt8] {
        Self.route(family: family, prefix: prefix, attributes)
    }
}
