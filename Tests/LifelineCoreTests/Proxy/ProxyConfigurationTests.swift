import Testing

@testable import LifelineCore

@Suite struct ProxyConfigurationTests {
    private typealias Credentials = ProxyConfiguration.Credentials

    @Test(
        arguments: [
            ("http://proxy:3128", .http(host: "proxy", port: 3128)),
            ("http://proxy:3128/", .http(host: "proxy", port: 3128)),
            ("HTTP://proxy", .http(host: "proxy", port: 1080)),
            ("proxy:3128", .http(host: "proxy", port: 3128)),
            ("proxy", .http(host: "proxy", port: 1080)),
            ("socks5://[::1]:9", .socks5(host: "::1", port: 9)),
            ("socks5h://127.0.0.1", .socks5(host: "127.0.0.1", port: 1080)),
            ("http://[fe80::1%eth0]:1", .http(host: "fe80::1%eth0", port: 1)),
            (
                "http://ada:s3cret@proxy:1",
                .http(host: "proxy", port: 1, credentials: .init(user: "ada", password: "s3cret"))
            ),
            ("ada:s3cret@proxy:1", .http(host: "proxy", port: 1, credentials: .init(user: "ada", password: "s3cret"))),
            ("http://ada@proxy:1", .http(host: "proxy", port: 1, credentials: .init(user: "ada", password: ""))),
            ("http://ada:@proxy:1", .http(host: "proxy", port: 1, credentials: .init(user: "ada", password: ""))),
            ("http://ada:a:b@proxy:1", .http(host: "proxy", port: 1, credentials: .init(user: "ada", password: "a:b"))),
            ("ada:x://y@proxy:1", .http(host: "proxy", port: 1, credentials: .init(user: "ada", password: "x://y"))),
            (
                "socks5://a%64a:p%40ss%2F%3a%C3%BC%25@proxy:1",
                .socks5(host: "proxy", port: 1, credentials: .init(user: "ada", password: "p@ss/:ü%"))
            ),
            (
                "http://ada:p@ss/w@proxy:1",
                .http(host: "proxy", port: 1, credentials: .init(user: "ada", password: "p@ss/w"))
            ),
        ] as [(String, ProxyConfiguration)]
    )
    func reads(url: String, proxy: ProxyConfiguration) throws {
        #expect(try ProxyConfiguration(url) == proxy)
    }

    @Test(arguments: [
        ("", "host is missing"),
        ("http://", "host is missing"),
        ("http://:80", "host is missing"),
        ("http://ada:s3cret@", "host is missing"),
        ("http://ada:s3cret@:80", "host is missing"),
        ("http://proxy:0", "port is 0"),
        ("http://proxy:", "colon and a port"),
        ("http://proxy:65536", "colon and a port"),
        ("http://proxy:+1", "colon and a port"),
        ("http://proxy:1/path", "colon and a port"),
        ("http://proxy/path", "no host has"),
        ("http://[::1", "not closed"),
        ("http://[::1]1", "colon and a port"),
        ("http://::1:80", "needs brackets"),
        ("http://a b:80", "no host has"),
        ("http://a\r\nHost:80", "no host has"),
        ("https://ada:s3cret@proxy:443", "TLS to the proxy"),
        ("socks4://ada:s3cret@proxy", "version 5"),
        ("socks://proxy", "version 5"),
        ("ftp://ada:s3cret@proxy", "unknown"),
        ("s3cret://ada@proxy", "unknown"),
        ("http://ada:s3cret%@proxy", "%"),
        ("http://ada:s3cret%4@proxy", "%"),
        ("http://ada:s3cret%zz@proxy", "%"),
        ("http://ada:s3cret%ff@proxy", "%"),
        ("http://a%3Ada:s3cret@proxy", "colon"),
        ("http://ada:s3cret%0A@proxy", "control character"),
        ("http://ada:s3cret%C2%9B@proxy", "control character"),
        ("socks5://:s3cret@proxy", "1 to 255 bytes"),
        ("http://ada:s3cret@proxy:99999", "colon and a port"),
        ("http://ada:s3cret", "colon and a port"),
        ("ada:s3cret", "colon and a port"),
        ("http://ada:s3cret%40proxy:3128", "brackets"),
        ("http://ada:12/s3cret%40proxy:3128", "brackets"),
        ("http://ada:pass/word:s3cret@proxy:99999", "colon and a port"),
    ])
    func refuses(url: String, reason: String) {
        let error = #expect(throws: ConnectionError.self) { try ProxyConfiguration(url) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
        for secret in ["s3cret", "ada"] { #expect(error.map { "\($0)".contains(secret) } == false) }
    }

    @Test func lengthsOfSOCKSCredentials() throws {
        for (length, isAllowed) in [(255, true), (256, false)] {
            let text = String(repeating: "x", count: length)
            for url in ["socks5://\(text)@p", "socks5://u:\(text)@p"] {
                let proxy = try? ProxyConfiguration(url)
                #expect((proxy != nil) == isAllowed)
            }
            #expect((try? ProxyConfiguration("http://\(text):\(text)@p")) != nil)
        }
    }

    @Test func nothingPrintsThePassword() {
        let proxy = ProxyConfiguration.http(
            host: "proxy",
            port: 1,
            credentials: Credentials(user: "ada", password: "s3cret")
        )
        var dumped = ""
        dump(proxy, to: &dumped)
        let credentials = Credentials(user: "ada", password: "s3cret")
        dump(credentials, to: &dumped)
        let all = ["\(proxy)", String(reflecting: proxy), dumped, "\(credentials)", String(reflecting: credentials)]
        for text in all + ["\([credentials])", "\(["a": [proxy]])"] { #expect(!text.contains("s3cret"), "\(text)") }
        #expect("\(proxy)" == "http://proxy:1")
        #expect("\(ProxyConfiguration.environment)" == "environment")
    }

    @Test func aProxyMadeByHandIsChecked() throws {
        let endpoint = try Endpoint("tcp://h:1")
        for proxy in [
            ProxyConfiguration.http(host: "", port: 1), .http(host: "h", port: 0), .socks5(host: "a\nb", port: 1),
            .http(host: "h", port: 1, credentials: Credentials(user: "a:b", password: "")),
            .http(host: "h", port: 1, credentials: Credentials(user: "a", password: "\r\n")),
            .socks5(host: "h", port: 1, credentials: Credentials(user: "", password: "")),
        ] {
            let error = #expect(throws: ConnectionError.self) { try proxy.server(for: endpoint, environment: [:]) }
            #expect(error?.code == .invalidConfiguration)
        }
    }
}

@Suite struct ProxyEnvironmentTests {
    private func proxy(for endpoint: String, _ environment: [String: String]) throws -> String? {
        try ProxyConfiguration.environment.server(for: Endpoint(endpoint), environment: environment).map { "\($0)" }
    }

    /// Each variable is set to its own name: the first one wins, and without it the next one.
    @Test(arguments: [
        ("tcp://h:1", ["tcp_proxy", "TCP_PROXY", "all_proxy", "ALL_PROXY"]),
        ("tls://h:1", ["tls_proxy", "TLS_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
        ("ws://h:1", ["ws_proxy", "WS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"]),
        ("wss://h:1", ["wss_proxy", "WSS_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
        ("unix:///h", []),
    ])
    func whichVariable(endpoint: String, variables: [String]) throws {
        var environment: [String: String] = [:]
        for name in ProxyConfiguration.environmentVariables + ["HTTP_PROXY"] where !name.lowercased().hasPrefix("no_") {
            environment[name] = "http://\(name):1"
        }
        for name in variables {
            #expect(try proxy(for: endpoint, environment) == "http://\(name):1")
            // An empty variable counts as not set.
            environment[name] = ""
        }
        #expect(try proxy(for: endpoint, environment) == nil)
    }

    @Test func exceptionsCount() throws {
        let environment = ["all_proxy": "socks5://p:1", "NO_PROXY": "a"]
        #expect(try proxy(for: "tcp://a:1", environment) == nil)
        #expect(try proxy(for: "tcp://b:1", environment) == "socks5://p:1")
        let both = environment.merging(["no_proxy": "b"]) { $1 }
        #expect(try proxy(for: "tcp://a:1", both) == "socks5://p:1", "small letters come first")
        #expect(try proxy(for: "tcp://b:1", both) == nil)
        // As in curl.
        #expect(try proxy(for: "tcp://127.0.0.1:1", environment) == "socks5://p:1")
    }

    @Test func errorsNameTheVariableAndNotThePassword() throws {
        let environment = ["https_proxy": "http://ada:s3cret@proxy:x"]
        let error = #expect(throws: ConnectionError.self) { try proxy(for: "wss://h", environment) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains("https_proxy") == true && error?.message.contains("s3cret") == false)
        #expect(try proxy(for: "tcp://h:1", environment) == nil, "what is not for this endpoint does not count")
        // If a host needs no proxy, the proxy's URL may be malformed.
        #expect(try proxy(for: "wss://h", environment.merging(["no_proxy": "h"]) { $1 }) == nil)
    }

    @Test(arguments: [
        (
            "example.org", ["example.org", "www.example.org", "a.b.EXAMPLE.org.", "example.org:7000"],
            ["nonexample.org", "org"]
        ),
        (".example.org", ["example.org", "www.example.org"], ["nonexample.org"]),
        ("*.example.org", ["example.org", "www.example.org"], ["nonexample.org"]),
        ("EXAMPLE.org.", ["example.org", "www.example.org."], ["example.com"]),
        ("*", ["a", "127.0.0.1", "[::1]"], []),
        ("a, *", ["b"], []),
        ("a,b  c,\td,", ["a", "b", "c", "d"], ["e"]),
        ("a:7000", ["a:7000", "x.a:7000"], ["a:7001", "a"]),
        ("127.0.0.1", ["127.0.0.1", "[::ffff:127.0.0.1]"], ["127.0.0.2", "1.127.0.0.1.example"]),
        ("10.0.0.0/8,192.168.1.0/24", ["10.255.1.2", "192.168.1.77"], ["11.0.0.1", "192.168.2.1", "10.example"]),
        ("10.0.0.0/8:7000", ["10.1.1.1:7000"], ["10.1.1.1:7001"]),
        ("0.0.0.0/0", ["1.2.3.4"], ["[::1]", "h"]),
        ("::1", ["[::1]", "[0:0::1]"], ["[::2]", "127.0.0.1"]),
        ("[::1]", ["[::1]"], ["[::2]"]),
        ("[::1]:7000", ["[::1]:7000"], ["[::1]:7001"]),
        ("fd00::/8", ["[fd12::1]"], ["[fe12::1]"]),
        ("fe80::/10", ["[fe80::1%eth0]"], ["[fd80::1%eth0]"]),
        ("fe80::1%eth0", ["[fe80::1%eth0]", "[fe80::1]"], ["[fe80::2%eth0]"]),
        ("[fd00::]/8", ["[fd12::1]"], ["[fe12::1]"]),
        ("::ffff:10.0.0.0/104", ["10.1.1.1", "[::ffff:10.1.1.1]"], ["11.1.1.1"]),
        (
            "10.0.0.0/33,10.0.0.0/-1,10.0.0.0/x,10.0.0.0/,a/8,:80,a:x,[::1]x,.,*.,/", [],
            ["10.0.0.0", "10.1.1.1", "a", "[::1]"]
        ),
        ("", [], ["a", "127.0.0.1"]),
    ])
    func exceptions(list: String, without: [String], with: [String]) throws {
        let exceptions = ProxyExceptions(list)
        for (hosts, isExcepted) in [(without, true), (with, false)] {
            for host in hosts {
                let endpoint = try Endpoint("ws://\(host)")
                guard case .tcp(let host, let port) = endpoint.address else { continue }
                #expect(exceptions.contain(host: host, port: port) == isExcepted, "\(host) \(port)")
            }
        }
    }
}
