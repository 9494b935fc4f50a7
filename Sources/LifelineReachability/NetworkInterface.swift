internal import LifelineCore

/// A network interface, as the kernel sees it at one moment.
public struct NetworkInterface: Sendable, Hashable {
    /// What an interface is.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// Wireless LAN.
        case wifi
        /// Ethernet, or what behaves like it: a virtual pair, a bridge, a bond, a VLAN.
        case ethernet
        /// A modem of a mobile network.
        case cellular
        /// The machine itself.
        case loopback
        /// A network inside another one: WireGuard, TUN and TAP, IP in IP, GRE, VXLAN and their kin.
        case tunnel
        /// Anything else.
        case other
    }

    /// The name, such as `eth0`. It may change while the interface exists.
    public let name: String
    /// The number by which the kernel knows it.
    public let index: Int
    /// What it is.
    public let kind: Kind
    /// Whether it was set up by the administrator (`IFF_UP`).
    public let isUp: Bool
    /// Whether there is a link below it: a cable, a radio association, a peer (`IFF_LOWER_UP`, and not dormant, as a
    /// wireless interface is until it is let in).
    public let hasCarrier: Bool
    /// Its addresses, also those that only count on the link.
    public let addresses: [IPAddress]
    /// Whether IPv4 works over it, by the rule of `NetworkPath`.
    public let usesIPv4: Bool
    /// Whether IPv6 works over it, by the rule of `NetworkPath`.
    public let usesIPv6: Bool
    /// Whether a default route of a version that works over it goes out here.
    public let hasDefaultRoute: Bool
    /// Whether all that is behind it runs on this machine: a bridge to which nothing but containers and virtual
    /// machines are plugged (`docker0`, `virbr0`), or a dummy.
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

    /// Whether it carries traffic to other machines: IPv4 or IPv6 works over it.
    public var isUsable: Bool { usesIPv4 || usesIPv6 }
}

extension NetworkInterface: CustomStringConvertible {
    /// Name, kind, what is missing, and the addresses: `eth0 (ethernet) 192.0.2.2`.
    public var description: String {
        let state = isUp ? (hasCarrier ? "" : ", no carrier") : ", down"
        // A name may hold anything but slashes, colons and white space.
        return (["\(name.escaped()) (\(kind.rawValue)\(state))"] + addresses.map(\.description)).joined(separator: " ")
    }
}
