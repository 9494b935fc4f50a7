extension NetworkPath {
    /// The path that follows from what the kernel has, by the rule above.
    ///
    /// - Parameter kind: says what an interface is.
    package init(_ tables: NetworkTables, kind: (LinkRecord) -> NetworkInterface.Kind) {
        let links = tables.links.values.sorted { $0.index < $1.index }
        self.init(interfaces: links.map { NetworkInterface($0, in: tables, kind: kind($0)) })
    }
}

extension NetworkInterface {
    fileprivate init(_ link: LinkRecord, in tables: NetworkTables, kind: Kind) {
        let addresses = tables.addresses[link.index] ?? []
        let isActive = link.isUp && link.hasCarrier && !link.isLoopback
        func works(_ version: IPAddress.Version) -> Bool {
            isActive && tables.routed.contains(NetworkTables.Way(version: version, interface: link.index))
                && addresses.contains { $0.address.version == version && $0.isUsable }
        }
        let (usesIPv4, usesIPv6) = (works(.v4), works(.v6))
        func isDefault(_ version: IPAddress.Version) -> Bool {
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
            hasDefaultRoute: usesIPv4 && isDefault(.v4) || usesIPv6 && isDefault(.v6)
        )
    }
}
