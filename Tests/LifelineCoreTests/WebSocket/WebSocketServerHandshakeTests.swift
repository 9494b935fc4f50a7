import LifelineTestSupport
import Testing

@testable import LifelineCore

@Suite struct WebSocketServerHandshakeTests {
    // MARK: Taken

    @Test func theRequestOfTheStandardIsTaken() throws {
        let decision = try decide(.good())
        guard case .open(let opening, let answer, nil) = decision else {
            Issue.record("\(decision)")
            return
        }
        #expect(answer.status == 101)
        #expect(answer.fields["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "RFC 6455, section 1.3")
        #expect(answer.fields["Upgrade"] == "websocket" && answer.fields["Connection"] == "Upgrade")
        #expect(answer.fields.names.count == 3, "no extension and no subprotocol")
        #expect(opening == WebSocketOpening(subprotocol: nil, target: "/", headers: .good()))
    }

    @Test(
        arguments: [
            .good(["Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"]),
            .good(["Upgrade": "h2c, WebSocket"]), .good(["Connection": "keep-alive,UPGRADE"]),
            .good(["Sec-WebSocket-Protocol": "unknown"]), .good(["Content-Length": "0"]),
            .good(["Origin": "http://example.org"]),
            .good(["Origin": "HTTPS://EXAMPLE.ORG:80", "Host": "example.org:80"]),
            .good(["Origin": "https://example.org:443"]), .good(["Origin": "http://[::1]:7000", "Host": "[::1]:7000"]),
        ] as [HTTPFields]
    )
    func otherRequestsThatAreTaken(fields: HTTPFields) throws {
        #expect(try decide(fields).status == 101)
    }

    @Test(arguments: ["http://example.org/", "HTTP://example.org", "ws://example.org/", "/?query=1"])
    func targets(target: String) throws {
        #expect(try decide(.good(), target: target).status == 101)
    }

    /// RFC 9112, section 3.2.2.
    @Test(
        arguments: [
            ("http://h/x?y", "/x?y"), ("http://h?y=/z", "/?y=/z"), ("http://h:80", "/"), ("wss://[::1]:1/", "/"),
            ("http://h?y?z", "/?y?z"), ("/x?http://h/", "/x?http://h/"),
        ] as [(String, String)]
    )
    func pathsOfWholeURLs(target: String, path: String) throws {
        let decision = try decide(.good(), target: target) { $0.paths = .any }
        guard case .open(let opening, _, _) = decision else {
            Issue.record("\(decision)")
            return
        }
        #expect(opening.target == path)
    }

    @Test(arguments: ["http:///x", "http://?x", "http://user@h/", "http://h#f", "/x#f", "h/x", ""])
    func targetsThatAreNone(target: String) throws {
        #expect(try decide(.good(), target: target) { $0.paths = .any }.status == 400)
    }

    @Test func theHostOfAWholeURLReplacesTheField() throws {
        let fields = HTTPFields.good(["Origin": "http://other.org:7000"])
        #expect(try decide(fields, target: "http://other.org:7000/").status == 101)
        #expect(try decide(fields, target: "/").status == 403)
        #expect(try decide(.good(["Origin": "http://example.org"]), target: "http://other.org/").status == 403)
    }

    @Test func descriptionsHaveNoSecrets() throws {
        let decision = try decide(.good(["Cookie": "a=secret"]), target: "/?token=secret")
        guard case .open(let opening, _, _) = decision else {
            Issue.record("\(decision)")
            return
        }
        let texts = ["\(opening)", String(reflecting: opening), "\(Mirror(reflecting: opening).children.map(\.value))"]
        for text in texts { #expect(!text.contains("secret") && text.contains("Cookie") && text.contains("path: /")) }
    }

    @Test(
        arguments: [
            (["a", "b"], ["b, a"], "a"), (["b", "a"], ["a", "b"], "b"), (["a"], ["A"], nil), ([], ["a"], nil),
            (["a"], [], nil), (["c"], ["a,b ,\tc"], "c"),
        ] as [([String], [String], String?)]
    )
    func theServersOrderDecidesOverSubprotocols(spoken: [String], offered: [String], chosen: String?) throws {
        var fields = HTTPFields.good()
        for value in offered { fields.append(value, named: "Sec-WebSocket-Protocol") }
        let decision = try decide(fields) { $0.subprotocols = spoken }
        guard case .open(let opening, let answer, _) = decision else {
            Issue.record("\(decision)")
            return
        }
        #expect(opening.subprotocol == chosen)
        #expect(answer.fields["Sec-WebSocket-Protocol"] == chosen)
    }

    // MARK: Refused

    @Test(
        arguments: [
            (.good(["Sec-WebSocket-Version": "8"]), 426), (.good(without: "Sec-WebSocket-Version"), 426),
            (.good(without: "Upgrade"), 426), (.good(["Upgrade": "h2c"]), 426), (.good(["Connection": "close"]), 426),
            (.good(without: "Host"), 400), (.good(["Host": ""]), 400), (.good(without: "Sec-WebSocket-Key"), 400),
            (.good(["Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ"]), 400),
            (.good(["Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25j"]), 400), (.good(["Content-Length": "1"]), 400),
            (.good(["Transfer-Encoding": "chunked"]), 400), (.good(["Origin": "https://evil.org"]), 403),
            (.good(["Origin": "null"]), 403), (.good(["Origin": "https://example.org.evil.org"]), 403),
            (.good(["Origin": "https://example.org:8443"]), 403), (.good(["Origin": "ftp://example.org"]), 403),
        ] as [(HTTPFields, Int)]
    )
    func refusals(fields: HTTPFields, status: Int) throws {
        let answer = try #require(decide(fields).refusal)
        #expect(answer.status == status)
        #expect(answer.fields["Content-Length"] == "0")
        #expect(answer.fields.hasElement("close", in: "Connection"))
        #expect(!answer.complaint.isEmpty)
        if status == 426 { #expect(answer.fields["Upgrade"] == "websocket") }
    }

    @Test func anotherVersionIsToldTheRightOne() throws {
        #expect(try decide(.good(["Sec-WebSocket-Version": "8"])).refusal?.fields["Sec-WebSocket-Version"] == "13")
    }

    @Test func fieldsThatMustStandOnce() throws {
        for name in ["Host", "Sec-WebSocket-Key", "Sec-WebSocket-Version"] {
            var fields = HTTPFields.good()
            fields.append(try #require(fields[name]), named: name)
            #expect(try decide(fields).refusal != nil)
        }
    }

    @Test func otherMethodsAndVersions() throws {
        let post = try #require(decide(.good(), method: "POST").refusal)
        #expect(post.status == 405 && post.fields["Allow"] == "GET")
        #expect(try decide(.good(), isAtLeastHTTP11: false).status == 400)
        #expect(try decide(.good(), target: "*").status == 400)
    }

    @Test(
        arguments: [
            (.endpoint, "/chat", true), (.endpoint, "/chat?x=/", true), (.endpoint, "/", false),
            (.endpoint, "/chat/", false), (.endpoint, "http://h/chat", true), (.any, "/x", true),
            (.only(["/a", "/b"]), "/b?c", true), (.only(["/a"]), "/chat", false),
        ] as [(WebSocketServerConfiguration.Paths, String, Bool)]
    )
    func paths(paths: WebSocketServerConfiguration.Paths, target: String, isTaken: Bool) throws {
        let decision = try decide(.good(), target: target, on: "ws://0.0.0.0:80/chat?x") { $0.paths = paths }
        #expect(decision.status == (isTaken ? 101 : 404))
    }

    @Test(
        arguments: [
            (.any, "null", true), (.any, nil, true), (.sameHost, nil, true), (.only(["https://a.org"]), nil, true),
            (.only(["https://a.org"]), "HTTPS://A.org", true), (.only(["https://a.org"]), "https://b.org", false),
            (.only(["https://a.org"]), "http://example.org", false),
        ] as [(WebSocketServerConfiguration.Origins, String?, Bool)]
    )
    func origins(origins: WebSocketServerConfiguration.Origins, origin: String?, isTaken: Bool) throws {
        let decision = try decide(.good(origin.map { ["Origin": $0] } ?? [:])) { $0.origins = origins }
        #expect(decision.status == (isTaken ? 101 : 403))
    }

    // MARK: Authorization

    @Test func authorizationIsAskedForAndRead() async throws {
        let handshake = try WebSocketServerHandshake(on: Endpoint("ws://h"), configuration: .authorizing)
        let without = try #require(handshake.decide(.init(.good()), sha1: sha1).refusal)
        #expect(without.status == 401)
        #expect(without.fields["WWW-Authenticate"] == "Basic realm=\"Lifeline\", charset=\"UTF-8\"")
        for (value, status) in [("Bearer x", 401), ("Basic", 401), ("Basic !", 400), ("Basic QWxhZGRpbg==", 400)] {
            #expect(handshake.decide(.init(.good(["Authorization": value])), sha1: sha1).status == status, "\(value)")
        }
        let good = handshake.decide(.init(.good(["Authorization": "basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="])), sha1: sha1)
        guard case .open(_, _, let credentials?) = good else {
            Issue.record("\(good)")
            return
        }
        #expect(credentials == WebSocketCredentials(user: "Aladdin", password: "open sesame"))
        #expect(await handshake.refusal(of: credentials) == nil)
        let bad = await handshake.refusal(of: WebSocketCredentials(user: "Aladdin", password: "x"))
        #expect(bad?.status == 401)
    }

    @Test func credentialsAreNotLookedAtWhereNobodyAsks() throws {
        guard case .open(_, _, nil) = try decide(.good(["Authorization": "Basic !"])) else {
            Issue.record("nobody asks")
            return
        }
    }

    @Test func misuseIsRefused() {
        for configure in [{ $0.realm = "\"" }, { $0.subprotocols = ["a b"] }]
            as [(inout WebSocketServerConfiguration) -> Void]
        {
            let error = #expect(throws: ConnectionError.self) { try decide(.good(), configure: configure) }
            #expect(error?.code == .invalidConfiguration)
        }
    }

    private func decide(
        _ fields: HTTPFields,
        method: String = "GET",
        isAtLeastHTTP11: Bool = true,
        target: String = "/",
        on endpoint: String = "ws://0.0.0.0:80",
        configure: (inout WebSocketServerConfiguration) -> Void = { _ in }
    ) throws -> WebSocketServerHandshake.Decision {
        var configuration = WebSocketServerConfiguration()
        configure(&configuration)
        return try WebSocketServerHandshake(on: Endpoint(endpoint), configuration: configuration).decide(
            .init(method: method, isAtLeastHTTP11: isAtLeastHTTP11, target: target, fields: fields),
            sha1: sha1
        )
    }
}

extension WebSocketServerHandshake.Request {
    fileprivate init(_ fields: HTTPFields) {
        self.init(method: "GET", isAtLeastHTTP11: true, target: "/", fields: fields)
    }
}

extension WebSocketServerHandshake.Decision {
    fileprivate var refusal: WebSocketServerHandshake.Answer? {
        if case .refuse(let answer) = self { answer } else { nil }
    }

    fileprivate var status: Int {
        switch self {
        case .open(_, let answer, _), .refuse(let answer): answer.status
        }
    }
}

extension WebSocketServerConfiguration {
    fileprivate static var authorizing: WebSocketServerConfiguration {
        var configuration = WebSocketServerConfiguration()
        configuration.authorize = { $0 == WebSocketCredentials(user: "Aladdin", password: "open sesame") }
        return configuration
    }
}

extension HTTPFields {
    fileprivate static func good(_ changes: HTTPFields = [:], without name: String? = nil) -> HTTPFields {
        let good: HTTPFields = [
            "Host": "example.org", "Upgrade": "websocket", "Connection": "Upgrade",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13",
        ]
        var fields = HTTPFields()
        for field in good.fields where field.name != name && changes[field.name] == nil {
            fields.append(field.value, named: field.name)
        }
        for field in changes.fields { fields.append(field.value, named: field.name) }
        return fields
    }
}
