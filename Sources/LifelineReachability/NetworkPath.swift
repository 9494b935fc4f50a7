/// The state of the network at one moment: its interfaces, and whether other machines can be reached at all.
///
/// **The rule.** A version of IP works over an interface when all of these hold:
/// - the interface is not a loopback, is up (`IFF_UP`), and has carrier (`IFF_LOWER_UP`, and is not dormant);
/// - it has an address of that version that is valid beyond the link: neither link-local (169.254.0.0/16, fe80::/10, or
///   of link or host scope) nor loopback, and neither tentative nor refused by duplicate address detection;
/// - a unicast route of that version goes out over it, in any table but the kernel's `local`, to a destination that is
///   neither link-local nor loopback nor multicast. It need not be a default route: a network without a router counts,
///   and so does a bridge to containers of this machine. Neither metrics nor rules between tables are weighed.
///
/// The path is satisfied when some version works over some interface. That does not apply to a particular host: see
/// `NetworkMonitor.reachability(of:)`. Connections within the machine work without any network: see `mayReach(_:)`.
public struct NetworkPath: Sendable, Hashable {
    /// Whether other machines can be reached at all.
    public enum Status: String, Sendable, Hashable {
        /// IPv4 or IPv6 works over some interface.
        case satisfied
        /// Neither works over any.
        case unsatisfied
    }

    /// All interfaces, including those that are down, in the order of their numbers.
    public let interfaces: [NetworkInterface]
    /// Whether the kernel has answered. If it refuses (a sandbox without netlink), the path counts as satisfied without
    /// interfaces: a failed attempt is better than waiting for a network that exists.
    public let isKnown: Bool

    /// Makes a path from its interfaces.
    public init(interfaces: [NetworkInterface]) {
        self.interfaces = interfaces
        self.isKnown = true
    }

    private init() {
        self.interfaces = []
        self.isKnown = false
    }

    /// The path that is reported when the kernel does not answer.
    public static let unknown = NetworkPath()

    /// Whether other machines can be reached at all.
    public var status: Status { !isKnown || interfaces.contains(where: \.isUsable) ? .satisfied : .unsatisfied }

    /// Whether IPv4 works over some interface; true when nothing is known.
    public var usesIPv4: Bool { !isKnown || interfaces.contains(where: \.usesIPv4) }

    /// Whether IPv6 works over some interface; true when nothing is known.
    public var usesIPv6: Bool { !isKnown || interfaces.contains(where: \.usesIPv6) }

    /// Whether there is a default route over a working interface, which leads to the Internet.
    public var hasDefaultRoute: Bool { interfaces.contains(where: \.hasDefaultRoute) }

    /// Whether some network may lead to other machines: a default route, or a working interface that is not
    /// `isHostOnly`; true when nothing is known.
    public var leadsBeyondHost: Bool {
        !isKnown || interfaces.contains { $0.hasDefaultRoute || ($0.isUsable && !$0.isHostOnly) }
    }
}

extension NetworkPath: CustomStringConvertible {
    /// Status, versions, routes and interfaces in a line: `satisfied, IPv4, default route: eth0 (ethernet) 192.0.2.2`.
    public var description: String {
        guard isKnown else { return "unknown, taken as satisfied: the kernel does not tell" }
        var words = [status.rawValue]
        if usesIPv4 { words.append("IPv4") }
        if usesIPv6 { words.append("IPv6") }
        if hasDefaultRoute { words.append("default route") }
        // Loopback is always up, so it is left out.
        let others = interfaces.filter { $0.kind != .loopback }.map(\.description)
        return words.joined(separator: ", ") + ": "
            + (others.isEmpty ? "no interfaces" : others.joined(separator: "; "))
    }
}
