import LifelineCore
import Testing

@Suite struct EndpointTests {
    @Test(arguments: [
        ("tcp://127.0.0.1:7000", Endpoint.tcp(host: "127.0.0.1", port: 7000)),
        ("tcp://example.org:0", .tcp(host: "example.org", port: 0)),
        ("TCP://h:65535", .tcp(host: "h", port: 65535)),
        ("tcp://[::1]:7000", .tcp(host: "::1", port: 7000)),
        ("unix:///run/lifeline.sock", .unix(path: "/run/lifeline.sock")),
        ("unix:///with space/%20", .unix(path: "/with space/%20")),
    ])
    func parses(text: String, endpoint: Endpoint) throws {
        let parsed = try Endpoint(text)
        #expect(parsed == endpoint)
        #expect(try Endpoint(parsed.description) == endpoint)
    }

    @Test(arguments: [
        ("", "no scheme"),
        ("127.0.0.1:7000", "no scheme"),
        ("tcp:/127.0.0.1:7000", "no scheme"),
        ("http://h:80", "neither tcp nor unix"),
        ("tcp://", "port is missing"),
        ("tcp://host", "port is missing"),
        ("tcp://host:", "no number from 0 to 65535"),
        ("tcp://host:65536", "no number from 0 to 65535"),
        ("tcp://host:+1", "no number from 0 to 65535"),
        ("tcp://host:-1", "no number from 0 to 65535"),
        ("tcp://host:7000/", "no number from 0 to 65535"),
        ("tcp://:7000", "host is missing"),
        ("tcp://[]:7000", "host is missing"),
        ("tcp://::1:7000", "needs brackets"),
        ("tcp://[::1:7000", "not closed"),
        ("tcp://[::1]7000", "port is missing"),
        ("tcp://a b:1", "no host has"),
        ("tcp://user@host:1", "no host has"),
        ("unix://relative", "not absolute"),
        ("unix://", "not absolute"),
        ("unix:///", "directory"),
        ("unix:///a\0b", "NUL"),
    ])
    func refuses(text: String, reason: String) {
        let error = #expect(throws: ConnectionError.self) { try Endpoint(text) }
        #expect(error?.code == .invalidEndpoint)
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }

    @Test func waterMarksAreClamped() {
        #expect(WaterMarks(low: 10, high: 5) == WaterMarks(low: 4, high: 5))
        #expect(WaterMarks(low: -1, high: 0) == WaterMarks(low: 0, high: 1))
    }
}
