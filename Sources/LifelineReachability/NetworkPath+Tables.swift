extension NetworkPath {
    /// Makes the path from the kernel's tables, by the rule of `NetworkPath`.
    ///
    /// - Parameter kind: returns the kind of an interface.
    package init(_ tables: NetworkTables, kind: (LinkRecord) -> NetworkInterface.Kind) {
        let links = tables.links.values.sorted { $0.index < $1.index }
        // Bridges with a port to something other than a container or a virtual machine.
        let uplinked = Set(links.filter { !Self.guestPorts.contains($0.kind ?? "") }.compactMap(\.master))
        self.init(
            interfaces: links.map { link in
                let isHostOnly = link.kind == "dummy" || (link.kind == "bridge" && !uplinked.contains(link.index))
                return NetworkInterface(link, in: tables, kind: kind(link), isHostOnly: isHostOnly)
            }
        )
    }

    /// The kinds of interfaces that connect containers and virtual machines.
    private static let guestPorts: Set = ["dummy", "tun", "veth"]
}

extension NetworkInterface {
    fileprivate init(_ link: LinkRecord, in tables: NetworkTables, kind: Kind, isHostOnly: Bool) {
        let addresses = tables.addresses[link.index] ?? []
        let isActive = link.isUp && link.hasCarrier && !link.isLoopback
        func isUsable(_ version: IPAddress.Version) -> Bool {
            isActive && tables.routed.contains(NetworkTables.Way(version: version, interface: link.index))
                && addresses.contains { $0.address.version == version && $0.isUsable }
        }
        let (usesIPv4, usesIPv6) = (isUsable(.v4), isUsable(.v6))
        func hasDefaultRoute(_ version: IPAddress.Version) -> Bool {
            tables.routedByDefault.contains(NetworkTables.Way(version: version, interface: link.index))
        }
        self.init(
            name: link.name,
            index: Int(link.index),
            kind: kind,
            isUp: link.isUp,
            hasCarrier: link.hasCarrier,
            addresses: Set(addresses.map(\.address)).sorted(),
            usesIPv4: usesIPv4,
            usesIPv6: usesIPv6,
            hasDefaultRoute: usesIPv4 && hasDefaultRoute(.v4) || usesIPv6 && hasDefaultRoute(.v6),
            isHostOnly: isHostOnly
        )
    }
}
