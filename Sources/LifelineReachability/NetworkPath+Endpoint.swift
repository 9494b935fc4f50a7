public import LifelineCore

extension NetworkPath {
    /// Returns whether it makes sense to connect to `endpoint` with this path. It makes no system calls.
    ///
    /// True for endpoints within the machine (a Unix socket, `localhost`, a loopback address or one of the machine's
    /// own); for a link-local address when some interface is up with carrier; for another address when its version of
    /// IP works; for a name when the path is satisfied. (If `leadsBeyondHost` is false, only a look-up could show
    /// more.)
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

extension NetworkPath {
    /// A path's prospect of reaching an endpoint, without system calls.
    package enum Prospect: Hashable, Sendable {
        /// Nothing leads there.
        case none
        /// An attempt is worthwhile; only that shows more.
        case good
        /// The kernel's route to it decides.
        case byRoute
        /// The name service and the kernel's route decide: for example, the name may be that of a container.
        case byName
    }

    /// Returns the prospect of reaching `endpoint` with this path.
    ///
    /// A name is worth an attempt as soon as some network leads beyond this machine, with or without a default route:
    /// the name may be that of a machine nearby, an attempt costs little, and waiting for a default route that never
    /// comes would prevent the connection. If all networks end on this machine (`docker0` is up, and the cable is out),
    /// a name is looked up before an attempt. An address needs no such rule, because its route decides.
    package func prospect(of endpoint: Endpoint) -> Prospect {
        guard mayReach(endpoint) else { return .none }
        guard case .tcp(let host, _) = endpoint.address, !host.isLocalhost else { return .good }
        if IPAddress(withoutZone: host) != nil { return .byRoute }
        return leadsBeyondHost ? .good : .byName
    }
}

extension IPAddress {
    /// Reads an address with an optional zone, such as `fe80::1%eth0`.
    init?(withoutZone text: String) {
        self.init(String(text.prefix { $0 != "%" }))
    }
}

extension String {
    /// Whether the text is the name of the machine itself (RFC 6761).
    var isLocalhost: Bool {
        let name = lowercased()
        return name == "localhost" || name == "localhost." || name.hasSuffix(".localhost")
    }
}
