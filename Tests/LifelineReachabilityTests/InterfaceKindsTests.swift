import Foundation
import LifelineReachability
import Testing

/// The kinds of interfaces, from netlink and from a tree like sysfs.
@Suite struct InterfaceKindsTests {
    private func link(_ name: String, _ hardwareType: UInt16 = 1, kind: String? = nil, flags: UInt32 = 1) -> LinkRecord
    {
        LinkRecord(index: 2, name: name, flags: flags, hardwareType: hardwareType, kind: kind)
    }

    @Test(
        arguments: [
            (1, nil, .ethernet), (1, "veth", .ethernet), (1, "bridge", .ethernet), (1, "vlan", .ethernet),
            (65534, nil, .tunnel), (65534, "tun", .tunnel), (1, "tun", .tunnel), (65534, "wireguard", .tunnel),
            (768, "ipip", .tunnel), (768, nil, .tunnel), (1, "vxlan", .tunnel), (772, nil, .loopback),
            (519, "rmnet", .cellular), (1, "ifb", .other), (512, nil, .other), (1, "new-kind-of-the-future", .other),
        ] as [(UInt16, String?, NetworkInterface.Kind)]
    )
    func byNetlink(hardwareType: UInt16, kind: String?, expected: NetworkInterface.Kind) {
        #expect(InterfaceKinds(sysfs: "/nowhere").kind(of: link("x0", hardwareType, kind: kind)) == expected)
    }

    @Test func aLoopbackIsOneByItsFlag() {
        #expect(InterfaceKinds(sysfs: "/nowhere").kind(of: link("x0", flags: 0x9)) == .loopback)
    }

    @Test func bySysfs() throws {
        let root = FileManager.default.temporaryDirectory.appending(path: "sysfs-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        func make(_ path: String, _ text: String = "") throws {
            let file = root.appending(path: "class/net/\(path)")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: file)
        }
        try make("wlan0/uevent", "INTERFACE=wlan0\nDEVTYPE=wlan\nIFINDEX=3\n")
        try make("wlan1/wireless/status")
        try make("wlan2/phy80211/name")
        try make("wwan0/uevent", "DEVTYPE=wwan\nINTERFACE=wwan0\n")
        try make("eth0/uevent", "INTERFACE=eth0\nIFINDEX=2\n")
        try make("eth1/uevent", String(repeating: "X", count: 10_000))
        try make("eth2/uevent", "INTERFACE=eth2\nXDEVTYPE=wlan\n")
        let kinds = InterfaceKinds(sysfs: root.path)
        #expect(kinds.kind(of: link("wlan0")) == .wifi)
        #expect(kinds.kind(of: link("wlan1")) == .wifi)
        #expect(kinds.kind(of: link("wlan2")) == .wifi)
        #expect(kinds.kind(of: link("wwan0")) == .cellular)
        #expect(kinds.kind(of: link("wwan0", 519)) == .cellular)
        #expect(kinds.kind(of: link("wwan0", 65534)) == .cellular)
        for name in ["eth0", "eth1", "eth2", "missing", "..", "../net/wlan0", ""] {
            #expect(kinds.kind(of: link(name)) == .ethernet, "\(name)")
        }
    }
}
