import LifelineTestSupport
import Testing

@testable import LifelineCore

@Suite struct WebSocketClientHandshakeTests {
    /// RFC 6455, section 1.3.
    private static let nonce = Array("the sample nonce".utf8)

    // MARK: The request

    @Test func theRequestOfTheDefaults() throws {
        let fields = try handshake(to: "ws://example.org/chat?room=1").fields
        #expect(fields["host"] == "example.org")
        #expect(fields["Upgrade"] == "websocket" && fields["Connection"] == "Upgrade")
        #expect(fields["Sec-WebSocket-Version"] == "13")
        #expect(fields["Sec-WebSocket-Key"] == "dGhlIHNhbXBsZSBub25jZQ==")
        #expect(fields.names.count == 5, "nothing else")
    }

    @Test(
        arguments: [
            ("ws://example.org", "example.org"), ("ws://example.org:443", "example.org:443"),
            ("wss://example.org", "example.org"), ("wss://example.org:80/", "example.org:80"),
            ("ws://[::1]:7000", "[::1]:7000"), ("ws://[::1]", "[::1]"),
        ]
    )
    func hosts(endpoint: String, host: String) throws {
        #expect(try handshake(to: endpoint).fields["Host"] == host)
    }

    @Test func theRequestHasTheConfiguredValues() throws {
        let fields = try handshake {
            $0.headers = ["X-Key": "secret"]
            $0.cookies = ["b": "2", "a": "1"]
            $0.credentials = WebSocketCredentials(user: "Aladdin", password: "open sesame")
            $0.origin = "https://example.org"
            $0.subprotocols = ["chat.v2", "chat.v1"]
        }.fields
        #expect(fields["X-Key"] == "secret")
        #expect(fields["Cookie"] == "a=1; b=2")
        #expect(fields["Authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "RFC 7617's example")
        #expect(fields["Origin"] == "https://example.org")
        #expect(fields["Sec-WebSocket-Protocol"] == "chat.v2, chat.v1")
    }

    private static let misuses: [@Sendable (inout WebSocketConfiguration) -> Void] = [
        { $0.headers = ["Host": "x"] }, { $0.headers = ["upgrade": "x"] }, { $0.headers = ["sec-websocket-foo": "x"] },
        { $0.headers = ["Content-Length": "1"] }, { $0.headers = ["A": "b\r\nC: d"] }, { $0.headers = ["A\r\nB": "c"] },
        { $0.headers = ["A:": "c"] }, { $0.headers = ["": "c"] }, { $0.headers = ["A": "\0"] },
        { $0.cookies = ["a": "1;b=2"] }, { $0.cookies = ["a": "\""] }, { $0.cookies = ["a b": "1"] },
        { $0.origin = "a\nb" }, { $0.subprotocols = ["a b"] }, { $0.subprotocols = [""] },
        { $0.subprotocols = ["a", "a"] }, { $0.credentials = WebSocketCredentials(user: "a:b", password: "") },
        {
            $0.origin = "https://a"
            $0.headers = ["origin": "https://b"]
        },
        {
            $0.credentials = WebSocketCredentials(user: "a", password: "b")
            $0.headers = ["Authorization": "Bearer c"]
        },
    ]

    @Test(arguments: misuses.indices)
    func misuseIsRefused(index: Int) {
        let error = #expect(throws: ConnectionError.self) { try handshake(configure: Self.misuses[index]) }
        #expect(error?.code == .invalidConfiguration)
        #expect(TransitionReason.connectFailed(error ?? .connectionRefused(status: 0)).isFatal)
    }

    @Test func secretsAreNotPrinted() throws {
        var configuration = WebSocketConfiguration()
        configuration.headers = ["X-Key": "hidden1"]
        configuration.cookies = ["session": "hidden2"]
        configuration.credentials = WebSocketCredentials(user: "ada", password: "hidden3")
        for text in [
            "\(configuration)", String(reflecting: configuration), dumped(configuration), dumped([configuration]),
        ] {
            #expect(text.contains("X-Key") && text.contains("session") && text.contains("ada"))
            #expect(!text.contains("hidden"))
        }
        let credentials = WebSocketCredentials(user: "ada", password: "hidden")
        #expect(!dumped(credentials).contains("hidden") && !"\(credentials)".contains("hidden"))
        let fields = try handshake { $0 = configuration }.fields
        #expect(!dumped(fields).contains("hidden") && !"\([fields])".contains("hidden"))
    }

    private func dumped(_ value: some Any) -> String {
        var text = ""
        dump(value, to: &text)
        return text
    }

    // MARK: The answer

    @Test func theAnswerOfTheStandard() throws {
        let handshake = try handshake { $0.subprotocols = ["superchat", "chat"] }
        let answer: HTTPFields = [
            "upgrade": "WebSocket", "connection": "keep-alive, upgrade",
            "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "sec-websocket-protocol": "chat",
        ]
        let opening = try handshake.opening(status: 101, reason: "", fields: answer)
        #expect(opening == WebSocketOpening(subprotocol: "chat", target: "/", headers: answer))
    }

    @Test func aServerNeedNotChooseASubprotocol() throws {
        let handshake = try handshake { $0.subprotocols = ["chat"] }
        #expect(try handshake.opening(status: 101, reason: "", fields: .good()).subprotocol == nil)
    }

    @Test(
        arguments: [
            .good(without: "Upgrade"), .good(without: "Connection"), .good(without: "Sec-WebSocket-Accept"),
            .good(with: ["Upgrade": "h2c"], without: "Upgrade"),
            .good(with: ["Upgrade": "websocket, h2c"], without: "Upgrade"), .good(with: ["Upgrade": "h2c"]),
            .good(
                with: ["Sec-WebSocket-Accept": "c3BwTE1CaVR4YVE5a1lHenpoWlJiSytYT289"],
                without: "Sec-WebSocket-Accept"
            ),
            .good(with: ["Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="]),
            .good(with: ["Sec-WebSocket-Extensions": "permessage-deflate"]),
            .good(with: ["Sec-WebSocket-Protocol": "chat"]), .good(with: ["Sec-WebSocket-Protocol": "CHAT"]),
        ] as [HTTPFields]
    )
    func wrongAnswers(fields: HTTPFields) throws {
        let handshake = try handshake { $0.subprotocols = ["other"] }
        let error = #expect(throws: ConnectionError.self) {
            try handshake.opening(status: 101, reason: "", fields: fields)
        }
        #expect(error?.code == .protocolViolation)
    }

    @Test(
        arguments: [
            (200, true), (301, true), (302, true), (400, true), (401, true), (403, true), (404, true), (426, true),
            (408, false), (429, false), (500, false), (502, false), (503, false), (504, false),
        ]
    )
    func refusals(status: Int, isFatal: Bool) throws {
        let fields: HTTPFields = ["Location": "https://example.org/there"]
        let handshake = try handshake()
        let error = try #require(
            #expect(throws: ConnectionError.self) {
                try handshake.opening(status: status, reason: "Why\r\nSet-Cookie: x", fields: fields)
            }
        )
        #expect(error.code == .webSocketRefused)
        let refusal = try #require(error.cause as? WebSocketRefusal)
        #expect(refusal.status == status)
        #expect(refusal.reason == "Why\\u{d}\\u{a}Set-Cookie: x", "nothing that breaks a log's line")
        #expect(refusal.location == ((300...399).contains(status) ? "https://example.org/there" : nil))
        #expect(TransitionReason.connectFailed(error).isFatal == isFatal)
        #expect(error.description.contains("\(status)"))
    }

    @Test func textOfAServerIsTruncated() {
        let refusal = WebSocketRefusal(status: 500, reason: String(repeating: "x", count: 8000))
        #expect(refusal.reason == String(repeating: "x", count: 100) + "…")
    }

    private func handshake(
        to endpoint: String = "ws://example.org",
        configure: (inout WebSocketConfiguration) -> Void = { _ in }
    ) throws -> WebSocketClientHandshake {
        var configuration = WebSocketConfiguration()
        configure(&configuration)
        return WebSocketClientHandshake(
            try WebSocketRequest(to: Endpoint(endpoint), configuration: configuration),
            nonce: Self.nonce,
            sha1: sha1
        )
    }
}

extension ConnectionError {
    fileprivate static func connectionRefused(status: Int) -> ConnectionError {
        .webSocketRefused(WebSocketRefusal(status: status, reason: ""))
    }
}

extension HTTPFields {
    fileprivate static func good(with others: HTTPFields = [:], without name: String? = nil) -> HTTPFields {
        let good: HTTPFields = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        ]
        var fields = HTTPFields()
        for field in good.fields where field.name != name { fields.append(field.value, named: field.name) }
        for field in others.fields { fields.append(field.value, named: field.name) }
        return fields
    }
}
