internal import CLifelineNetlink
internal import Glibc

/// Determines the kind of an interface: from netlink, and for hardware from sysfs, where drivers have more details.
package struct InterfaceKinds: Sendable {
    private let sysfs: String

    /// - Parameter sysfs: the path at which sysfs is mounted.
    package init(sysfs: String = "/sys") {
        self.sysfs = sysfs
    }

    package func kind(of link: LinkRecord) -> NetworkInterface.Kind {
        if link.isLoopback || link.hardwareType == UInt16(ARPHRD_LOOPBACK) { return .loopback }
        if let kind = link.kind {
            if Self.likeEthernet.contains(kind) { return .ethernet }
            if Self.tunnels.contains(kind) { return .tunnel }
            if Self.modems.contains(kind) { return .cellular }
            if kind == "virt_wifi" { return .wifi }
        }
        switch deviceType(of: link.name) {
        case "wlan": return .wifi
        case "wwan": return .cellular
        default: break
        }
        if hasEntry("wireless", of: link.name) || hasEntry("phy80211", of: link.name) { return .wifi }
        // Checked after sysfs, because a modem may have the type of a TUN device.
        if Self.tunnelHardware.contains(link.hardwareType) { return .tunnel }
        return link.hardwareType == UInt16(ARPHRD_ETHER) && link.kind == nil ? .ethernet : .other
    }

    private static let likeEthernet: Set = [
        "bond", "bridge", "ipvlan", "ipvtap", "macsec", "macvlan", "macvtap", "team", "veth", "vlan",
    ]
    private static let tunnels: Set = [
        "bareudp", "erspan", "geneve", "gre", "gretap", "gtp", "ip6erspan", "ip6gre", "ip6gretap", "ip6tnl", "ipip",
        "ovpn", "sit", "tun", "vti", "vti6", "vxlan", "wireguard", "xfrm",
    ]
    private static let modems: Set = ["rmnet", "wwan"]
    /// The hardware types of tunnels. TUN and WireGuard have none; the others have their own.
    private static let tunnelHardware = Set(
        [ARPHRD_NONE, ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT, ARPHRD_IPGRE, ARPHRD_IP6GRE].map { UInt16($0) }
    )

    /// Returns the driver's name for the kind of device (`DEVTYPE=` in `uevent`).
    private func deviceType(of name: String) -> String? {
        guard let path = path("uevent", of: name) else { return nil }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // A file of sysfs has at most one page.
        var text = [UInt8](repeating: 0, count: 4096)
        let count = max(0, read(descriptor, &text, text.count))
        let prefix = Array("DEVTYPE=".utf8)
        let line = text[..<count].split(separator: UInt8(ascii: "\n")).first { $0.starts(with: prefix) }
        return line.map { String(decoding: $0.dropFirst(prefix.count), as: UTF8.self) }
    }

    private func hasEntry(_ entry: String, of name: String) -> Bool {
        guard let path = path(entry, of: name) else { return false }
        return access(path, F_OK) == 0
    }

    private func path(_ entry: String, of name: String) -> String? {
        // The kernel allows no such names, but a name that becomes a path is checked nevertheless.
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(UInt8(ascii: "/")) else { return nil }
        return "\(sysfs)/class/net/\(name)/\(entry)"
    }
}
