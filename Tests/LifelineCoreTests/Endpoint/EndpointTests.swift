import LifelineCore
import Testing

@Suite struct EndpointTests {
    @Test(arguments: [
        ("tcp://127.0.0.1:7000", Endpoint.tcp(host: "127.0.0.1", port: 7000)),
        ("tcp://example.org:0", .tcp(host: "example.org", port: 0)),
        ("TCP://h:65535", .tcp(host: "h", port: 65535)),
        ("tcp://[::1]:7000", .tcp(host: "::1", port: 7000)),
        ("tls://example.org:7001", .tls(host: "example.org", port: 7001)),
        ("unix:///run/lifeline.sock", .unix(path: "/run/lifeline.sock")),
        ("unix:///with space/%20", .unix(path: "/with space/%20")),
    ])
    func parses(text: String, endpoint: Endpoint) throws {
        let parsed = try Endpoint(text)
        #expect(parsed == endpoint)
        #expect(try Endpoint(parsed.description) == endpoint)
    }

    @Test(arguments: [
        ("ws://h", "h", 80, "/", false),
        ("wss://h", "h", 443, "/", true),
        ("WSS://[::1]", "::1", 443, "/", true),
        ("ws://[::1]:8000/", "::1", 8000, "/", false),
        ("ws://h:1/chat/a%20b?x=1&y=/", "h", 1, "/chat/a%20b?x=1&y=/", false),
        ("ws://h?x", "h", 80, "/?x", false),
    ])
    func parsesWebSockets(text: String, host: String, port: UInt16, target: String, isEncrypted: Bool) throws {
        let endpoint = try Endpoint.webSocket(host: host, port: port, target: target, isEncrypted: isEncrypted)
        #expect(try Endpoint(text) == endpoint)
        let withoutQuery = target.prefix { $0 != "?" }
        #expect(
            try Endpoint(endpoint.description)
                == .webSocket(host: host, port: port, target: String(withoutQuery), isEncrypted: isEncrypted)
        )
        #expect(endpoint.isWebSocket && endpoint.isEncrypted == isEncrypted)
    }

    /// A query may contain a token, and descriptions are written to logs.
    @Test func descriptionsHaveNoQuery() throws {
        let endpoint = try Endpoint("wss://h/chat?token=secret")
        #expect(endpoint.description == "wss://h:443/chat")
        #expect("\([endpoint])" == "[wss://h:443/chat]")
    }

    @Test func theTargetIsChecked() {
        for target in ["", "chat", "?x", "/a b", "/a#b", "/ü", "/\r\nHost: h"] {
            let error = #expect(throws: ConnectionError.self) {
                try Endpoint.webSocket(host: "h", port: 1, target: target, isEncrypted: true)
            }
            #expect(error?.code == .invalidEndpoint)
        }
    }

    @Test(arguments: [
        ("", "no scheme"),
        ("127.0.0.1:7000", "no scheme"),
        ("tcp:/127.0.0.1:7000", "no scheme"),
        ("http://h:80", "unknown scheme \"http\". Use tcp, tls, ws, wss or unix."),
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
        ("tcp://[::1]7000", "comes no port"),
        ("tcp://[::1]", "port is missing"),
        ("tls://h", "port is missing"),
        ("tls://h:1/", "no number from 0 to 65535"),
        ("ws://", "host is missing"),
        ("ws:///path", "host is missing"),
        ("ws://::1/", "needs brackets"),
        ("ws://h:/", "no number from 0 to 65535"),
        ("ws://user:word@h/", "names a user"),
        ("ws://user@h/", "names a user"),
        ("ws://h/a b", "percent-encoded"),
        ("ws://h/#x", "no fragment"),
        ("ws://h#x", "no fragment"),
        ("tcp://a b:1", "no host has"),
        ("tcp://user@host:1", "names a user"),
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

    @Test(arguments: [
        "wss://ada:s3cret@host/", "wss://ada:s3cret@host:x/", "ada:s3cret@host:1", "ftp://ada:s3cret@host",
        "wss://ada:s3cret",
        "wss://ada:s3cret%40host:1/", "wss://ada:12/s3cret%40host:1/ x", "tcp://ada:s3cret@host:1",
        "s3cret://ada@host:1",
        "wss://ada:p@s3cret@host/#", "wss://host/chat?token=s3cret#top", "wss://host/chat?token=s3cret s3cret",
        "wss://host/chat?key=ada@s3cret#x",
    ])
    func printsNoPassword(text: String) throws {
        let error = try #require(throws: ConnectionError.self) { try Endpoint(text) }
        #expect(!"\(error)".contains("s3cret") && !"\(error)".contains("ada"), "\(error)")
    }

    @Test(arguments: [
        ("tls://h", "tls://host:port"), ("tcp://h", "tcp://host:port"), ("ws://", "ws://host:port"),
        ("wss://::1/", "wss://[address]:port"), ("tls://[::1]1", "tls://[address]:port"),
    ])
    func advisesTheSchemeThatWasRead(text: String, advice: String) throws {
        let error = try #require(throws: ConnectionError.self) { try Endpoint(text) }
        #expect(error.message.contains("Write \(advice)"), "\(error)")
        #expect(error.message.contains("\"\(text)\""), "what harms nobody is shown: \(error)")
    }

    @Test func waterMarksAreClamped() {
        #expect(WaterMarks(low: 10, high: 5) == WaterMarks(low: 4, high: 5))
        #expect(WaterMarks(low: -1, high: 0) == WaterMarks(low: 0, high: 1))
    }
}
