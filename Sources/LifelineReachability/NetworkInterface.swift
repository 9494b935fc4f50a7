internal import LifelineCore

/// A network interface, from the kernel, at one moment.
public struct NetworkInterface: Sendable, Hashable {
    /// The kind of an interface.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// Wireless LAN.
        case wifi
        /// Ethernet, or a similar interface: a virtual pair, a bridge, a bond, a VLAN.
        case ethernet
        /// A modem of a mobile network.
        case cellular
        /// The machine itself.
        case loopback
        /// A network inside another one: WireGuard, TUN and TAP, IP in IP, GRE, VXLAN and similar.
        case tunnel
        /// Anything else.
        case other
    }

    /// The name, such as `eth0`. It may change while the interface exists.
    public let name: String
    /// The kernel's number for the interface.
    public let index: Int
    /// The kind of the interface.
    public let kind: Kind
    /// Whether it was set up by the administrator (`IFF_UP`).
    public let isUp: Bool
    /// Whether there is a link below it: a cable, a radio association, a peer (`IFF_LOWER_UP`, and not dormant, as a
    /// wireless interface is until it is let in).
    public let hasCarrier: Bool
    /// The addresses, including those that are only valid on the link.
    public let addresses: [IPAddress]
    /// Whether IPv4 works over the interface, by the rule of `NetworkPath`.
    public let usesIPv4: Bool
    /// Whether IPv6 works over the interface, by the rule of `NetworkPath`.
    public let usesIPv6: Bool
    /// Whether a default route of a working version goes out over the interface.
    public let hasDefaultRoute: Bool
    /// Whether everything behind the interface runs on this machine: a bridge with only containers and virtual machines
    /// (`docker0`, `virbr0`), or a dummy.
    public let isHostOnly: Bool

    /// Makes an interface, for tests of code that handles paths.
    public init(
        name: String,
        index: Int,
        kind: Kind,
        isUp: Bool,
        hasCarrier: Bool,
        addresses: [IPAddress],
        usesIPv4: Bool,
        usesIPv6: Bool,
        hasDefaultRoute: Bool,
        isHostOnly: Bool = false
    ) {
        self.name = name
        self.index = index
        self.kind = kind
        self.isUp = isUp
        self.hasCarrier = hasCarrier
        self.addresses = addresses
        self.usesIPv4 = usesIPv4
        self.usesIPv6 = usesIPv6
        self.hasDefaultRoute = hasDefaultRoute
        self.isHostOnly = isHostOnly
    }

    /// Whether the interface carries traffic to other machines: IPv4 or IPv6 works over it.
    public var isUsable: Bool { usesIPv4 || usesIPv6 }
}

extension NetworkInterface: CustomStringConvertible {
    /// Name, kind, missing properties, and the addresses: `eth0 (ethernet) 192.0.2.2`.
    public var description: String {
        let state = isUp ? (hasCarrier ? "" : ", no carrier") : ", down"
        // A name may contain anything except slashes, colons and white space.
        return (["\(name.escaped()) (\(kind.rawValue)\(state))"] + addresses.map(\.description)).joined(separator: " ")
    }
}
