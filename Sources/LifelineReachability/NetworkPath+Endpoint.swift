public import LifelineCore

extension NetworkPath {
    /// Whether it makes sense to connect to `endpoint` while the path is as it is. It asks nobody and takes no time.
    ///
    /// True for what is within the machine (a Unix socket, `localhost`, a loopback address or one of the machine's
    /// own); for a link-local address when some interface is up with carrier; for another address when its version of
    /// IP works; for a name when the path is satisfied. (Where `leadsBeyondHost` is false, only a look-up could tell
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
    /// What a path says of an endpoint by itself.
    package enum Prospect: Hashable, Sendable {
        /// Nothing leads there.
        case none
        /// It is worth an attempt: more can be known only by one.
        case good
        /// The kernel's route to it has to tell.
        case byRoute
        /// The name service and the kernel's route have to tell: it is there if the name is that of a container, say.
        case byName
    }

    /// What to think of `endpoint` while the path is as it is.
    ///
    /// A name is worth an attempt as soon as some network leads beyond this machine, with or without a default route:
    /// the name may be that of a machine nearby, an attempt costs little, and to wait for a default route that never
    /// comes costs all. Where the networks that there are all end on this machine (`docker0` is up, and the cable is
    /// out), a name is looked up before it is tried. An address needs no such rule: its route tells.
    package func prospect(of endpoint: Endpoint) -> Prospect {
        guard mayReach(endpoint) else { return .none }
        guard case .tcp(let host, _) = endpoint.address, !host.isLocalhost else { return .good }
        if IPAddress(withoutZone: host) != nil { return .byRoute }
        return leadsBeyondHost ? .good : .byName
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
