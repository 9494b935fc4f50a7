/// The result of a dump, reduced to the data for a path: memory grows with interfaces and addresses, not with routes,
/// of which a router may have a million.
package struct NetworkTables: Hashable, Sendable {
    /// A version of IP over an interface.
    package struct Way: Hashable, Sendable {
        package var version: IPAddress.Version
        package var interface: Int32
    }

    package private(set) var links: [Int32: LinkRecord] = [:]
    package private(set) var addresses: [Int32: Set<AddressRecord>] = [:]
    /// The ways of usable routes.
    package private(set) var routed: Set<Way> = []
    /// The ways of usable default routes.
    package private(set) var routedByDefault: Set<Way> = []

    /// The routes of which only the number of a nexthop object is known.
    private var awaited: [UInt32: Set<Awaited>] = [:]
    private var nexthops: [UInt32: NexthopRecord] = [:]

    private struct Awaited: Hashable, Sendable {
        var version: IPAddress.Version
        var isDefault: Bool
    }

    private var recordCount = 0

    package init() {}

    package mutating func add(_ link: LinkRecord) throws(NetlinkError) {
        try countRecord()
        links[link.index] = link
    }

    package mutating func add(_ address: AddressRecord) throws(NetlinkError) {
        try countRecord()
        addresses[address.interface, default: []].insert(address)
    }

    package mutating func add(_ route: RouteRecord) throws(NetlinkError) {
        guard route.isUsable else { return }
        for interface in route.interfaces { add(route.version, over: interface, isDefault: route.isDefault) }
        if route.interfaces.isEmpty, let nexthop = route.nexthop {
            if awaited[nexthop] == nil { try countRecord() }
            awaited[nexthop, default: []].insert(Awaited(version: route.version, isDefault: route.isDefault))
        }
    }

    /// Whether nexthop objects have to be requested.
    package var awaitsNexthops: Bool { !awaited.isEmpty }

    package mutating func add(_ nexthop: NexthopRecord) throws(NetlinkError) {
        try countRecord()
        nexthops[nexthop.id] = nexthop
    }

    /// Resolves nexthop objects, which are now all known: routes that use them become routes over their interfaces.
    package mutating func resolveNexthops() {
        for (id, routes) in awaited {
            guard let nexthop = nexthops[id] else { continue }
            // The kernel allows no groups of groups.
            let interfaces = ([nexthop] + nexthop.group.compactMap { nexthops[$0] }).compactMap(\.interface)
            for interface in interfaces {
                for route in routes { add(route.version, over: interface, isDefault: route.isDefault) }
            }
        }
        (awaited, nexthops) = ([:], [:])
    }

    private mutating func add(_ version: IPAddress.Version, over interface: Int32, isDefault: Bool) {
        // Routes come after the links, so a route over an unknown interface is out of date.
        guard links[interface] != nil else { return }
        let way = Way(version: version, interface: interface)
        routed.insert(way)
        if isDefault { routedByDefault.insert(way) }
    }

    private mutating func countRecord() throws(NetlinkError) {
        guard recordCount < Self.maximumRecordCount else { throw .tooManyRecords }
        recordCount += 1
    }

    /// The most links, addresses and nexthop objects together: far more than any machine has, and about 30 MB.
    package static let maximumRecordCount = 200_000
}
