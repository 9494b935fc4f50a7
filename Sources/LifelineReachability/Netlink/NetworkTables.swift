/// What a dump found, reduced to what a path is made of: memory grows with interfaces and addresses, not with routes, of
/// which a router has a million.
package struct NetworkTables: Hashable, Sendable {
    /// A version of IP over an interface.
    package struct Way: Hashable, Sendable {
        package var version: IPAddress.Version
        package var interface: Int32
    }

    package private(set) var links: [Int32: LinkRecord] = [:]
    package private(set) var addresses: [Int32: Set<AddressRecord>] = [:]
    /// Where usable routes go out.
    package private(set) var routed: Set<Way> = []
    /// Where usable default routes go out.
    package private(set) var routedByDefault: Set<Way> = []

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
        for interface in route.interfaces {
            // Routes come behind the links, so that one over an interface that is not known is out of date.
            guard links[interface] != nil else { continue }
            let way = Way(version: route.version, interface: interface)
            routed.insert(way)
            if route.isDefault { routedByDefault.insert(way) }
        }
    }

    private mutating func countRecord() throws(NetlinkError) {
        guard recordCount < Self.maximumRecordCount else { throw .tooManyRecords }
        recordCount += 1
    }

    /// Links and addresses together: far more than any machine has, and about 30 MB.
    package static let maximumRecordCount = 200_000
}
