/// Decides about requests to open a WebSocket (RFC 6455, section 4.2).
package struct WebSocketServerHandshake: Sendable {
    private let configuration: WebSocketServerConfiguration
    private let endpointPath: Substring

    /// - Throws: `ConnectionError` `invalidConfiguration`.
    package init(on endpoint: Endpoint, configuration: WebSocketServerConfiguration) throws(ConnectionError) {
        try WebSocketRequest.checkTokens(configuration.subprotocols, "subprotocol")
        let isQuotable = configuration.realm.utf8.allSatisfy { (0x20...0x7E).contains($0) && !"\"\\".utf8.contains($0) }
        if !isQuotable { throw .invalidConfiguration("the realm has a character that cannot be quoted") }
        self.configuration = configuration
        self.endpointPath = WebSocketServerHandshake.path(of: endpoint.webSocketTarget ?? "/")
    }

    /// The head of a request.
    package struct Request: Sendable {
        package let method: String
        package let isAtLeastHTTP11: Bool
        package let target: String
        package let fields: HTTPFields

        package init(method: String, isAtLeastHTTP11: Bool, target: String, fields: HTTPFields) {
            self.method = method
            self.isAtLeastHTTP11 = isAtLeastHTTP11
            self.target = target
            self.fields = fields
        }
    }

    /// The head of an answer.
    package struct Answer: Sendable, Equatable {
        package let status: Int
        package var fields: HTTPFields
        /// The problem with the request, for the log.
        package var complaint = ""
    }

    package enum Decision: Sendable, Equatable {
        /// Open it with this answer, unless the credentials are refused.
        case open(WebSocketOpening, Answer, WebSocketCredentials?)
        /// Answer, and close.
        case refuse(Answer)
    }

    /// Decides about a request.
    package func decide(_ request: Request, sha1: WebSocketAcceptance.SHA1) -> Decision {
        do throws(Refusal) {
            let target = try checkForm(of: request)
            let key = try checkUpgrade(request.fields)
            try checkPath(of: target.pathAndQuery)
            try checkOrigin(request.fields, host: target.host)
            let credentials = try credentials(in: request.fields)
            let offered = request.fields.elements(of: "Sec-WebSocket-Protocol")
            let subprotocol = configuration.subprotocols.first { offered.contains($0[...]) }
            var fields: HTTPFields = ["Upgrade": "websocket", "Connection": "Upgrade"]
            fields.append(WebSocketAcceptance.text(for: key, sha1: sha1), named: "Sec-WebSocket-Accept")
            if let subprotocol { fields.append(subprotocol, named: "Sec-WebSocket-Protocol") }
            // Extensions, as permessage-deflate, are declined by naming none (section 9.1).
            return .open(
                WebSocketOpening(subprotocol: subprotocol, target: target.pathAndQuery, headers: request.fields),
                Answer(status: 101, fields: fields),
                credentials
            )
        } catch {
            return .refuse(error.answer)
        }
    }

    /// Returns the answer for a user who may not come in; nil if the user may.
    package func refusal(of credentials: WebSocketCredentials) async -> Answer? {
        guard let authorize = configuration.authorize, await !authorize(credentials) else { return nil }
        return unauthorized("the name or the password is wrong").answer
    }

    /// Returns the answer to a malformed or too long request.
    package static func refusal(tooLong: Bool) -> Answer {
        Refusal(tooLong ? 431 : 400, tooLong ? "the request's head is too long" : "not an HTTP request").answer
    }

    // MARK: -

    private struct Refusal: Error {
        let answer: Answer

        init(_ status: Int, _ complaint: String, _ fields: HTTPFields = [:]) {
            var fields = fields
            fields.append("0", named: "Content-Length")
            if fields["Connection"] == nil { fields.append("close", named: "Connection") }
            answer = Answer(status: status, fields: fields, complaint: complaint)
        }
    }

    /// The target of a request.
    private struct Target {
        let pathAndQuery: String
        let host: String
    }

    private func checkForm(of request: Request) throws(Refusal) -> Target {
        guard request.isAtLeastHTTP11 else { throw Refusal(400, "the request is not HTTP/1.1") }
        guard request.method == "GET" else {
            throw Refusal(405, "the method is \(request.method.escaped(limit: 100))", ["Allow": "GET"])
        }
        let hosts = request.fields.values(of: "Host")
        guard hosts.count == 1, !hosts[0].isEmpty else { throw Refusal(400, "the request does not name one host") }
        if request.fields["Transfer-Encoding"] != nil || request.fields["Content-Length"] ?? "0" != "0" {
            throw Refusal(400, "the request has a body")
        }
        return try target(request.target, host: hosts[0])
    }

    /// Parses the target. A server must also accept a whole URL, whose host replaces the `Host` field (RFC 9112,
    /// section 3.2.2).
    private func target(_ text: String, host: String) throws(Refusal) -> Target {
        if text.utf8.contains(UInt8(ascii: "#")) { throw Refusal(400, "the request's target has a fragment") }
        if text.first == "/" { return Target(pathAndQuery: text, host: host) }
        for scheme in ["http://", "https://", "ws://", "wss://"]
        where HTTPFields.isEqual(text.prefix(scheme.count), scheme) {
            let rest = text.dropFirst(scheme.count)
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            // A user's name in it may be there to deceive (RFC 9110, section 4.2.4).
            if authority.isEmpty || authority.contains("@") { throw Refusal(400, "the request's target has no host") }
            let pathAndQuery = rest[authority.endIndex...]
            return Target(
                pathAndQuery: pathAndQuery.first == "/" ? String(pathAndQuery) : "/\(pathAndQuery)",
                host: String(authority)
            )
        }
        throw Refusal(400, "the request has no path")
    }

    /// Checks the upgrade, and returns its key.
    private func checkUpgrade(_ fields: HTTPFields) throws(Refusal) -> String {
        guard fields.hasElement("websocket", in: "Upgrade"), fields.hasElement("upgrade", in: "Connection") else {
            throw Refusal(
                426,
                "the request does not ask for a WebSocket",
                ["Upgrade": "websocket", "Connection": "Upgrade, close"]
            )
        }
        guard fields["Sec-WebSocket-Version"].map({ HTTPFields.trimmed($0[...]) }) == "13" else {
            throw Refusal(
                426,
                "the request asks for another version of the WebSocket protocol",
                ["Upgrade": "websocket", "Connection": "Upgrade, close", "Sec-WebSocket-Version": "13"]
            )
        }
        let keys = fields.values(of: "Sec-WebSocket-Key").map { String(HTTPFields.trimmed($0[...])) }
        guard keys.count == 1, Base64.decode(keys[0])?.count == 16 else {
            throw Refusal(400, "the request has no Sec-WebSocket-Key of 16 bytes")
        }
        return keys[0]
    }

    private func checkPath(of target: String) throws(Refusal) {
        let path = WebSocketServerHandshake.path(of: target)
        let isTaken =
            switch configuration.paths {
            case .endpoint: path == endpointPath
            case .any: true
            case .only(let paths): paths.contains(String(path))
            }
        if !isTaken { throw Refusal(404, "nothing is at this path") }
    }

    private static func path(of target: String) -> Substring { target.prefix { $0 != "?" } }

    private func checkOrigin(_ fields: HTTPFields, host: String) throws(Refusal) {
        guard let origin = fields["Origin"] else { return }
        let isTaken =
            switch configuration.origins {
            case .any: true
            case .only(let origins): origins.contains { HTTPFields.isEqual($0, origin) }
            case .sameHost: isSameHost(origin, host)
            }
        if !isTaken { throw Refusal(403, "scripts of the page \(origin.escaped(limit: 100)) may not connect") }
    }

    /// A proxy may terminate TLS in front of this server, so both schemes count as the same host; the port is that of
    /// the page.
    private func isSameHost(_ origin: String, _ host: String) -> Bool {
        ["http": "80", "https": "443"].contains { scheme, port in
            guard HTTPFields.isEqual(origin.prefix(scheme.count + 3), scheme + "://") else { return false }
            let authority = origin.dropFirst(scheme.count + 3)
            let withPort = { (text: Substring) in
                text.hasSuffix("]") || !text.contains(":") ? "\(text):\(port)" : "\(text)"
            }
            return HTTPFields.isEqual(withPort(authority), withPort(host[...]))
        }
    }

    /// Returns nil when clients are not asked for credentials.
    private func credentials(in fields: HTTPFields) throws(Refusal) -> WebSocketCredentials? {
        guard configuration.authorize != nil else { return nil }
        let values = fields.values(of: "Authorization")
        guard values.count == 1, HTTPFields.isEqual(values[0].prefix(6), "Basic ") else {
            throw unauthorized("the request has no name and password")
        }
        let encoded = HTTPFields.trimmed(values[0].dropFirst(6))
        guard let bytes = Base64.decode(String(encoded)), let pair = String(validating: bytes, as: UTF8.self),
            let colon = pair.firstIndex(of: ":")
        else { throw Refusal(400, "the request's name and password cannot be read") }
        return WebSocketCredentials(
            user: String(pair[..<colon]),
            password: String(pair[pair.index(after: colon)...])
        )
    }

    private func unauthorized(_ complaint: String) -> Refusal {
        let challenge = "Basic realm=\"\(configuration.realm)\", charset=\"UTF-8\""
        return Refusal(401, complaint, ["WWW-Authenticate": challenge])
    }
}
