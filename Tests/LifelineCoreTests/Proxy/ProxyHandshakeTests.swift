import LifelineTestSupport
import Testing

@testable import LifelineCore

@Suite struct ProxyHandshakeTests {
    private static let credentials = ProxyConfiguration.Credentials(user: "ada", password: "s3cret")

    private func handshake(
        _ kind: ProxyServer.Kind,
        to endpoint: String = "tcp://chat.example:7000",
        credentials: ProxyConfiguration.Credentials? = nil
    ) throws -> any ProxyHandshake {
        let proxy = ProxyServer(kind: kind, host: "proxy", port: 3128, credentials: credentials)
        return try ProxyRoute(proxy: proxy, endpoint: Endpoint(endpoint)).makeHandshake()
    }

    private struct Outcome: Equatable {
        var sent: [[UInt8]] = []
        /// How many bytes the handshake took until it ended; nil if it has not.
        var length: Int?
        var error: ConnectionError.Code?
        var message = ""
        var answer: ProxyAnswer?
    }

    /// Feeds the bytes until the handshake ends.
    private func run(_ handshake: any ProxyHandshake, _ bytes: [UInt8]) -> Outcome {
        var handshake = handshake
        var outcome = Outcome()
        for (index, byte) in bytes.enumerated() {
            do throws(ConnectionError) {
                switch try handshake.receive(byte) {
                case .none: continue
                case .send(let bytes): outcome.sent.append(bytes)
                case .established:
                    outcome.length = index + 1
                    return outcome
                }
            } catch {
                outcome.length = index + 1
                outcome.error = error.code
                outcome.message = "\(error)"
                outcome.answer = error.cause as? ProxyAnswer
                #expect(!outcome.message.contains("s3cret"))
                return outcome
            }
        }
        return outcome
    }

    private func runHTTP(_ head: String, credentials: ProxyConfiguration.Credentials? = nil) throws -> Outcome {
        run(try handshake(.http, credentials: credentials), Array(head.utf8))
    }

    // MARK: HTTP

    @Test(arguments: [
        ("tcp://chat.example:7000", "chat.example:7000"), ("wss://chat.example/x?y", "chat.example:443"),
        ("tcp://[2001:db8::1]:1", "[2001:db8::1]:1"), ("tls://127.0.0.1:65535", "127.0.0.1:65535"),
    ])
    func theRequest(endpoint: String, authority: String) throws {
        let plain = try handshake(.http, to: endpoint)
        #expect(
            String(decoding: plain.greeting, as: UTF8.self)
                == "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n"
        )
    }

    /// RFC 7617's examples, and one for each padding of base64.
    @Test(arguments: [
        ("Aladdin", "open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("test", "123£", "dGVzdDoxMjPCow=="),
        ("", "", "Og=="),
        ("a", "", "YTo="), ("a", "b", "YTpi"), ("ÿÿ", "~", "w7/Dvzp+"),
    ])
    func basicCredentials(user: String, password: String, encoded: String) throws {
        let request = try handshake(.http, credentials: .init(user: user, password: password)).greeting
        #expect(String(decoding: request, as: UTF8.self).hasSuffix("\r\nProxy-Authorization: Basic \(encoded)\r\n\r\n"))
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 200 Connection established\r\nProxy-agent: tinyproxy/1.11.1\r\n\r\n",
        "HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 \r\n\r\n", "HTTP/1.1 299 Grüezi\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nEmpty:\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\nA:\tb \r\n\r\n",
    ])
    func accepted(head: String) throws {
        // The next bytes belong to the endpoint, whatever they are.
        #expect(try runHTTP(head + "HTTP/1.1 500\r\n\r\n") == Outcome(length: head.utf8.count))
        #expect(try runHTTP(String(head.dropLast())) == Outcome())
    }

    @Test(
        arguments: [
            (407, .proxyAuthenticationRequired), (400, .proxyRefused), (401, .proxyAuthenticationRequired),
            (403, .proxyRefused),
            (404, .proxyRefused), (405, .proxyRefused), (302, .proxyRefused), (501, .proxyRefused),
            (505, .proxyRefused),
            (999, .proxyRefused), (408, .proxyConnectFailed), (425, .proxyConnectFailed), (429, .proxyConnectFailed),
            (500, .proxyConnectFailed), (502, .proxyConnectFailed), (503, .proxyConnectFailed),
            (504, .proxyConnectFailed),
            (599, .proxyConnectFailed),
        ] as [(Int, ConnectionError.Code)]
    )
    func refused(status: Int, code: ConnectionError.Code) throws {
        let head = "HTTP/1.1 \(status) Not \u{9B}now\r\nContent-Length: 4\r\n\r\n"
        let outcome = try runHTTP(head + "body")
        #expect(outcome.error == code)
        #expect(outcome.length == head.utf8.count)
        #expect(outcome.answer == ProxyAnswer(proxyProtocol: .http, code: status, words: "Not \\u{9b}now"))
        #expect(outcome.message.contains("http://proxy:3128"))
        if code != .proxyAuthenticationRequired { #expect(outcome.message.contains("\(status), \"Not \\u{9b}now\"")) }
        let isFatal = TransitionReason.connectFailed(ConnectionError(code: code, message: "")).isFatal
        #expect(isFatal == (code != .proxyConnectFailed))
    }

    @Test(arguments: [
        ("", false, "Set the proxy's credentials"), ("", true, "Check user and password"),
        ("Proxy-Authenticate: Basic realm=\"x\"\r\n", true, "Check user and password"),
        ("Proxy-Authenticate: Negotiate\r\nPROXY-AUTHENTICATE:\tbasic\r\n", true, "Check user and password"),
        (
            "Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM, x\r\n", true,
            "only by Negotiate, NTLM, x; Lifeline has Basic"
        ),
        ("Proxy-Authenticate: Digest realm=x\r\n", false, "only by Digest"),
        // Several challenges in one field. A comma in quotes or between parameters does not begin one.
        ("Proxy-Authenticate: Negotiate, Basic realm=\"x\"\r\n", true, "Check user and password"),
        (
            "Proxy-Authenticate: Digest realm=\"a, \\\", Basic\", nonce = b,,BASIC realm=c\r\n", true,
            "Check user and password"
        ),
        (
            "Proxy-Authenticate: Digest realm=\"a, \\\", Basic\", basic=c, Negotiate YQ==\r\n", true,
            "only by Digest, Negotiate; Lifeline has Basic"
        ),
    ])
    func credentialsWanted(fields: String, hasCredentials: Bool, advice: String) throws {
        let head = "HTTP/1.1 407 Proxy Authentication Required\r\n\(fields)\r\n"
        let outcome = try runHTTP(head, credentials: hasCredentials ? Self.credentials : nil)
        #expect(outcome.error == .proxyAuthenticationRequired)
        #expect(outcome.message.contains(advice), "\(outcome.message)")
    }

    @Test(arguments: [
        "SSH-2.0-x\r\n", "HTTP/2 200\r\n", "HTTP/1.1 20 OK\r\n", "HTTP/1.1  200 OK\r\n", "HTTP/1.1 2000\r\n",
        "http/1.1 200\r\n",
        "HTTP/1.1 020 OK\r\n", "HTTP/1.x 200\r\n", "HTTP/1.1 2O0 OK\r\n", " HTTP/1.1 200\r\n", "\r\n",
        "HTTP/1.1 101 Up\r\n\r\n",
        "HTTP/1.1 200 OK\n", "HTTP/1.1 200 OK\rX", "HTTP/1.1 200 OK\r\r", "\u{5}", "HTTP/1.1 200 O\u{0}",
        "HTTP/1.1 200 \u{7F}",
        "HTTP/1.1 200 OK\r\n folded: x\r\n", "HTTP/1.1 200 OK\r\n: x\r\n", "HTTP/1.1 200 OK\r\nname : x\r\n",
        "HTTP/1.1 200 OK\r\nname\r\n", "HTTP/1.1 200 OK\r\nA: \u{1B}", "HTTP/1.1 100 C\r\n\r\nx\r\n",
    ])
    func noHTTPProxy(head: String) throws {
        let outcome = try runHTTP(head)
        #expect(outcome.error == .proxyProtocolViolation)
        #expect(outcome.length == head.utf8.count, "at the first byte that is wrong")
    }

    @Test func headsAreBounded() throws {
        let start = "HTTP/1.1 200 OK\r\n"
        for endless in ["A: \(String(repeating: "x", count: 9000))", String(repeating: "A: b\r\n", count: 2000)] {
            let outcome = try runHTTP(start + endless)
            #expect(outcome.error == .proxyProtocolViolation && outcome.length == 8193)
        }
        let interim = try runHTTP(String(repeating: "HTTP/1.1 100 C\r\n\r\n", count: 1000) + start + "\r\n")
        #expect(interim.error == .proxyProtocolViolation && interim.length == 8193)
        let most = start + "A: " + String(repeating: "x", count: 8192 - start.utf8.count - 7) + "\r\n\r\n"
        #expect(try runHTTP(most) == Outcome(length: 8192))
        let words = String(repeating: "x", count: 300)
        #expect(try runHTTP("HTTP/1.1 403 \(words)\r\n\r\n").answer?.words == words.prefix(200) + "…")
    }

    // MARK: SOCKS5

    private static let success: [UInt8] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]

    private static let socksRequests: [(endpoint: String, address: [UInt8])] = [
        ("tcp://chat.example:7000", [3, 12] + "chat.example".utf8 + [0x1B, 0x58]),
        ("tcp://127.0.0.1:1", [1, 127, 0, 0, 1, 0, 1]),
        (
            "tls://[2001:db8::ff]:65535",
            [4, 0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF]
        ),
    ]

    @Test(arguments: socksRequests)
    func theSOCKSRequest(endpoint: String, address: [UInt8]) throws {
        let open = try handshake(.socks5, to: endpoint)
        #expect(open.greeting == [5, 1, 0])
        #expect(run(open, [5, 0] + Self.success + [5]) == Outcome(sent: [[5, 1, 0] + address], length: 12))
    }

    private static let socksReplies: [[UInt8]] = [
        [5, 0, 0, 1, 127, 0, 0, 1, 0, 80], [5, 0, 0, 3, 0, 0, 80], [5, 0, 0, 3, 2, 97, 98, 0, 80],
        [5, 0, 0, 4] + [UInt8](repeating: 5, count: 18), [5, 0, 9, 1, 0, 0, 0, 0, 0, 0],
        [5, 0, 0, 3, 255] + [UInt8](repeating: 5, count: 257),
    ]

    @Test(arguments: socksReplies)
    func acceptedBySOCKS(reply: [UInt8]) throws {
        let machine = try handshake(.socks5)
        #expect(run(machine, [5, 0] + reply + [5, 1, 1]).length == 2 + reply.count)
        for length in 0..<reply.count {
            let cut = run(machine, [5, 0] + reply[..<length])
            #expect(cut.length == nil && cut.error == nil)
        }
    }

    @Test func credentialsAreOfferedAndHandedOver() throws {
        let machine = try handshake(.socks5, credentials: Self.credentials)
        #expect(machine.greeting == [5, 2, 0, 2])
        let pair: [UInt8] = [1, 3] + "ada".utf8 + [6] + "s3cret".utf8
        for version: UInt8 in [1, 5] {
            let outcome = run(machine, [5, 2, version, 0] + Self.success)
            #expect(outcome.sent.first == pair && outcome.sent.count == 2 && outcome.length == 14)
        }
        // A proxy that asks for no credentials gets none.
        #expect(run(machine, [5, 0] + Self.success).sent.count == 1)
        let wrong = run(machine, [5, 2, 1, 1])
        #expect(wrong.error == .proxyAuthenticationRequired && wrong.message.contains("Check user and password"))
    }

    @Test func methodsThatAreRefused() throws {
        let none = run(try handshake(.socks5), [5, 0xFF])
        #expect(none.error == .proxyAuthenticationRequired && none.message.contains("Set the proxy's credentials"))
        let some = run(try handshake(.socks5, credentials: Self.credentials), [5, 0xFF])
        #expect(some.error == .proxyAuthenticationRequired)
    }

    @Test(
        arguments: [
            (1, "general", .proxyConnectFailed), (2, "not allowed", .proxyRefused), (3, "Network", .proxyConnectFailed),
            (4, "Host", .proxyConnectFailed), (5, "refused", .proxyConnectFailed), (6, "TTL", .proxyConnectFailed),
            (7, "Command", .proxyRefused), (8, "Address", .proxyRefused), (9, "unassigned", .proxyConnectFailed),
            (255, "unassigned", .proxyConnectFailed),
        ] as [(UInt8, String, ConnectionError.Code)]
    )
    func refusedBySOCKS(reply: UInt8, words: String, code: ConnectionError.Code) throws {
        let outcome = run(try handshake(.socks5), [5, 0, 5, reply, 0, 1])
        #expect(outcome.error == code && outcome.length == 4)
        #expect(outcome.answer?.code == Int(reply) && outcome.answer?.words.contains(words) == true)
        #expect(outcome.message.contains(words))
    }

    @Test(
        arguments: [
            [4], [0x48], [0], [5, 2], [5, 1], [5, 3], [5, 0, 4], [5, 0, 5, 0, 0, 2, 0], [5, 0, 5, 0, 0, 0, 0],
        ] as [[UInt8]]
    )
    func noSOCKSProxy(bytes: [UInt8]) throws {
        let outcome = run(try handshake(.socks5), bytes)
        #expect(outcome.error == .proxyProtocolViolation && outcome.length == bytes.count)
        let verdict = run(try handshake(.socks5, credentials: Self.credentials), [5, 2, 0x48])
        #expect(verdict.error == .proxyProtocolViolation && verdict.length == 3)
    }

    // MARK: Both

    @Test(arguments: [ProxyServer.Kind.http, .socks5]) func unsupportedEndpoints(kind: ProxyServer.Kind) throws {
        let proxy = ProxyServer(kind: kind, host: "proxy", port: 1, credentials: nil)
        let long = String(repeating: "x", count: 256)
        for host in [
            "", "a b", "a\r\nX: y", "bücher.example", "a/b", "a:b", "fe80::1%eth0", "a@b", "a\0", "a%20", long,
        ] {
            let error = #expect(throws: ConnectionError.self) {
                try ProxyRoute(proxy: proxy, endpoint: .tcp(host: host, port: 1)).makeHandshake()
            }
            #expect(error?.code == .invalidEndpoint)
        }
        for endpoint in [Endpoint.tcp(host: "h", port: 0), .unix(path: "/x")] {
            #expect(throws: ConnectionError.self) { try ProxyRoute(proxy: proxy, endpoint: endpoint).makeHandshake() }
        }
    }

    /// No input causes a trap or unbounded memory. Input with a valid beginning gets far.
    @Test func randomBytes() throws {
        var random = SeededGenerator(seed: 7)
        let pieces = [
            Array("HTTP/1.1 200 OK\r\n".utf8), Array("HTTP/1.1 407 x\r\n".utf8), Array("Proxy-Authenticate: ".utf8),
            Array("\r\n".utf8), [5, 0], [5, 2], [1, 0], [5, 0, 0, 3], [0], [255],
        ]
        var established = 0
        for round in 0..<5_000 {
            var bytes: [UInt8] = []
            for _ in 0..<12 {
                bytes += Bool.random(using: &random) ? random.bytes(3) : pieces.randomElement(using: &random) ?? []
            }
            if round % 2 == 0 { bytes = Self.valid(for: round, &random) + bytes }
            let kind: ProxyServer.Kind = round % 4 < 2 ? .http : .socks5
            let credentials = round % 8 < 4 ? nil : Self.credentials
            let outcome = run(try handshake(kind, credentials: credentials), bytes)
            if outcome.length != nil, outcome.error == nil { established += 1 }
        }
        #expect(established > 100)
    }

    private static func valid(for round: Int, _ random: inout SeededGenerator) -> [UInt8] {
        round % 4 < 2
            ? Array("HTTP/1.1 200 OK\r\nA: b\r\n".utf8)
            : [5, 0] + success.dropLast(Int.random(in: 0...5, using: &random))
    }
}
