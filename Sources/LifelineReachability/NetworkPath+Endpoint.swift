public import LifelineCore

extension NetworkPath {
    /// Whether it makes sense to connect to `endpoint` while the path is as it is. It asks nobody and takes no time.
    ///
    /// True for what is within the machine (a Unix socket, `localhost`, a loopback address or one of the machine's own);
    /// for a link-local address when some interface is up with carrier; for another address when its version of IP works;
    /// for a name when the path is satisfied.
    public func mayReach(_ endpoint: Endpoint) -> Bool {
        guard case .tcp(let host, _) = endpoint.address else { return true }
        guard let address = IPAddress(withoutZone: host)?.unmapped else {
            return host.isLocalhost || status == .satisfied
        }
        if address.isLoopback || address.isUnspecified { return true }
        if interfaces.contains(where: { $0.addresses.contains(address) }) { return true }
        if address.isLinkLocal {
            return !isKnown || interfaces.contains { $0.kind != .loopback && $0.isUp && $0.hasCarrier }
        }
        return address.version == .v4 ? usesIPv4 : usesIPv6
    }
}

extension IPAddress {
    /// Reads an address that a zone may follow, such as `fe80::1%eth0`.
    init?(withoutZone text: String) {
        self.init(String(text.prefix { $0 != "%" }))
    }
}

extension String {
    /// Whether it is the name of the machine itself (RFC 6761).
    var isLocalhost: Bool {
        let name = lowercased()
        return name == "localhost" || name == "localhost." || name.hasSuffix(".localhost")
    }
}
