import Foundation
import Lifeline
import LifelineCore
import LifelineReachability
import Testing

@testable import LifelineCLI

/// The output of `lifeline monitor`.
@Suite struct PathLineTests {
    private static let name = "e\"\\\u{1b}[2J\u{9b}0"

    private var line: PathLine {
        let interface = NetworkInterface(
            name: Self.name,
            index: 2,
            kind: .ethernet,
            isUp: true,
            hasCarrier: true,
            addresses: [IPAddress("192.0.2.2"), IPAddress("2001:db8::2")].compactMap { $0 },
            usesIPv4: true,
            usesIPv6: false,
            hasDefaultRoute: true
        )
        let time = PathLine.Time(
            calendar: timespec(tv_sec: 0, tv_nsec: 5_000_000),
            uptime: timespec(tv_sec: 12, tv_nsec: 345_000_006)
        )
        return PathLine(
            path: NetworkPath(interfaces: [interface]),
            reachability: (
                .tcp(host: "example.org", port: 443), Reachability(reason: .routed, interface: Self.name)
            ),
            time: time
        )
    }

    @Test func aLineOfJSON() throws {
        let json = try line.json
        #expect(json.utf8.allSatisfy { $0 >= 0x20 })
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        #expect(json.contains("\"uptime\":12.345000006"))
        #expect(object["status"] as? String == "satisfied" && object["known"] as? Bool == true)
        #expect(object["ipv4"] as? Bool == true && object["ipv6"] as? Bool == false)
        #expect(object["defaultRoute"] as? Bool == true)
        let interface = try #require((object["interfaces"] as? [[String: Any]])?.first)
        #expect(interface["name"] as? String == Self.name && interface["index"] as? Int == 2)
        #expect(interface["addresses"] as? [String] == ["192.0.2.2", "2001:db8::2"])
        #expect(interface["kind"] as? String == "ethernet" && interface["up"] as? Bool == true)
        let reach = try #require(object["reach"] as? [String: Any])
        #expect(reach["endpoint"] as? String == "tcp://example.org:443" && reach["reachable"] as? Bool == true)
        #expect(reach["reason"] as? String == "routed" && reach["interface"] as? String == Self.name)
        #expect(reach["address"] == nil && reach["detail"] == nil, "what is not known is left out")
    }

    @Test func aLineForATerminal() {
        #expect(line.text.contains(#"e"\\u{1b}[2J\u{9b}0 (ethernet) 192.0.2.2"#))
        #expect(line.text.hasSuffix(#"over e"\\u{1b}[2J\u{9b}0"#))
        #expect(!line.text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) })
    }
}
