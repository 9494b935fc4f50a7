import LifelineReachability
import Testing

/// Three requests and their answers become one table.
@Suite struct NetworkDumpTests {
    /// Passes in a datagram. Returns the action of its last message that has one.
    private func receive(_ datagram: [UInt8], _ dump: inout NetworkDump) throws(NetlinkError) -> NetworkDump.Action {
        var result = NetworkDump.Action.none
        try datagram.span.bytes.forEachNetlinkMessage { (header, payload) throws(NetlinkError) in
            let action = try dump.received(header, payload)
            if action != .none { result = action }
        }
        return result
    }

    private func receive(_ datagrams: [[UInt8]], as sequence: UInt32, _ dump: inout NetworkDump) throws
        -> NetworkDump.Action
    {
        try datagrams.map { try receive(withSequence(sequence, $0), &dump) }.last ?? .none
    }

    @Test func aCapturedDumpBecomesAPath() throws {
        var dump = NetworkDump(number: 0)
        #expect(dump.firstRequest == .dump(.links, sequence: 1))
        #expect(try receive(CapturedDumps.links, as: 1, &dump) == .send(.dump(.addresses, sequence: 2)))
        #expect(try receive(CapturedDumps.addresses, as: 2, &dump) == .send(.dump(.routes, sequence: 3)))
        let end = try receive(CapturedDumps.routes, as: 3, &dump)
        guard case .finish(let tables, isConsistent: true) = end else {
            Issue.record("\(end)")
            return
        }
        let path = NetworkPath(tables, kind: InterfaceKinds(sysfs: "/nowhere").kind(of:))
        #expect(path.status == .satisfied)
        #expect(path.usesIPv4 && path.usesIPv6 && path.hasDefaultRoute)
        #expect(path.interfaces.map(\.kind) == [.loopback, .ethernet, .tunnel])
        #expect(path.interfaces.map(\.isUsable) == [false, true, false])
        let addresses = path.interfaces[1].addresses
        #expect(addresses.count == 3)
        #expect(addresses.prefix(2).map { "\($0)" } == ["10.9.0.2", "2001:db8::2"])
    }

    @Test func answersToOtherRequestsAreLeftOut() throws {
        var dump = NetworkDump(number: 5)
        #expect(try receive(CapturedDumps.links, as: 20, &dump) == .none)
        #expect(try receive(CapturedDumps.addresses, as: 22, &dump) == .none)
        #expect(try receive(CapturedDumps.links, as: 21, &dump) == .send(.dump(.addresses, sequence: 22)))
    }

    @Test func anInterruptedAnswerMakesTheDumpInconsistent() throws {
        var dump = NetworkDump(number: 0)
        let interrupted = message(type: Kernel.done, flags: Kernel.dumpInterrupted, sequence: 1, bytes(of: Int32(0)))
        #expect(try receive(interrupted, &dump) == .send(.dump(.addresses, sequence: 2)))
        #expect(try receive(message(type: Kernel.done, sequence: 2, []), &dump) == .send(.dump(.routes, sequence: 3)))
        let end = try receive(message(type: Kernel.done, sequence: 3, []), &dump)
        #expect(end == .finish(NetworkTables(), isConsistent: false))
    }

    @Test(arguments: [Kernel.done, Kernel.error])
    func aRefusalIsAnError(type: UInt16) {
        var dump = NetworkDump(number: 0)
        #expect(throws: NetlinkError.refused(1)) {
            try receive(message(type: type, sequence: 1, bytes(of: Int32(-1))), &dump)
        }
        #expect(throws: NetlinkError.refused(.max)) {
            try receive(message(type: type, sequence: 1, bytes(of: Int32.min)), &dump)
        }
    }

    @Test func numbersOfDumpsMayWrapAround() {
        #expect(NetworkDump(number: .max).firstRequest == .dump(.links, sequence: .max - 2))
    }

    /// With `net.ipv4.nexthop_compat_mode` 0, and with 1, as it is by default.
    @Test(arguments: [CapturedNexthops.routes, CapturedNexthops.compatibleRoutes])
    func routesByNexthopObjectsCount(routes: [String]) throws {
        var dump = NetworkDump(number: 0)
        _ = try receive(withSequence(1, CapturedNexthops.datagram(CapturedNexthops.link)), &dump)
        _ = try receive(message(type: Kernel.done, sequence: 1, []), &dump)
        _ = try receive(message(type: Kernel.done, sequence: 2, []), &dump)
        for route in routes { _ = try receive(withSequence(3, CapturedNexthops.datagram(route)), &dump) }
        var end = try receive(message(type: Kernel.done, sequence: 3, []), &dump)
        if routes == CapturedNexthops.routes {
            #expect(end == .send(.dump(.nexthops, sequence: 4)))
            for nexthop in CapturedNexthops.nexthops {
                _ = try receive(withSequence(4, CapturedNexthops.datagram(nexthop)), &dump)
            }
            end = try receive(message(type: Kernel.done, sequence: 4, []), &dump)
        }
        guard case .finish(let tables, isConsistent: true) = end else {
            Issue.record("\(end)")
            return
        }
        for ways in [tables.routedByDefault, tables.routed] {
            #expect(Set(ways.map(\.version)) == [.v4, .v6])
            #expect(ways.allSatisfy { $0.interface == 3 })
        }
        #expect(!tables.awaitsNexthops)
    }

    @Test func nexthopObjectsThatLeadNowhereAreNoRoute() throws {
        var tables = NetworkTables()
        try tables.add(LinkRecord(index: 3, name: "eth0", flags: 1, hardwareType: 1))
        for id in 1...4 as ClosedRange<UInt32> {
            try tables.add(
                RouteRecord(
                    version: .v4,
                    destination: nil,
                    prefixLength: 0,
                    interfaces: [],
                    nexthop: id,
                    table: 254,
                    type: 1
                )
            )
        }
        // A black hole, a group with a missing member or itself, and a missing interface; 4 is missing.
        try tables.add(NexthopRecord(id: 1))
        try tables.add(NexthopRecord(id: 2, group: [2, 7, 1]))
        try tables.add(NexthopRecord(id: 3, interface: 9))
        tables.resolveNexthops()
        #expect(tables.routed.isEmpty && tables.routedByDefault.isEmpty)
    }

    @Test func recordsAreBounded() throws {
        var tables = NetworkTables()
        let address = AddressRecord(interface: 1, address: try #require(IPAddress("192.0.2.1")), scope: 0, flags: 0)
        for _ in 0..<NetworkTables.maximumRecordCount { try tables.add(address) }
        #expect(throws: NetlinkError.tooManyRecords) { try tables.add(address) }
    }
}
