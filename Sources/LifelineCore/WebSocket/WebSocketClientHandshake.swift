/// The request that opens a WebSocket (RFC 6455, section 4.1), without the parts that differ between attempts.
package struct WebSocketRequest: Sendable {
    package let target: String
    let subprotocols: [String]
    let fields: HTTPFields

    /// - Throws: `ConnectionError` `invalidConfiguration`.
    package init(to endpoint: Endpoint, configuration: WebSocketConfiguration) throws(ConnectionError) {
        target = endpoint.webSocketTarget ?? "/"
        subprotocols = configuration.subprotocols
        var fields: HTTPFields = ["Host": endpoint.hostField, "Upgrade": "websocket", "Connection": "Upgrade"]
        fields.append("13", named: "Sec-WebSocket-Version")
        if !subprotocols.isEmpty {
            try WebSocketRequest.checkTokens(subprotocols, "subprotocol")
            fields.append(subprotocols.joined(separator: ", "), named: "Sec-WebSocket-Protocol")
        }
        if let origin = configuration.origin { fields.append(origin, named: "Origin") }
        if let credentials = configuration.credentials {
            if credentials.user.contains(":") { throw .invalidConfiguration("a user's name must not have a colon") }
            let pair = Base64.encode("\(credentials.user):\(credentials.password)".utf8)
            fields.append("Basic \(pair)", named: "Authorization")
        }
        if !configuration.cookies.isEmpty {
            fields.append(try WebSocketRequest.cookieField(configuration.cookies), named: "Cookie")
        }
        for field in configuration.headers.fields {
            let isOurs =
                HTTPFields.isEqual(field.name.prefix(14), "Sec-WebSocket-")
                || ["Content-Length", "Transfer-Encoding"].contains { HTTPFields.isEqual($0, field.name) }
            if isOurs || fields[field.name] != nil {
                throw .invalidConfiguration("the WebSocket handshake sets the header field \(field.name) itself")
            }
            try WebSocketRequest.checkTokens([field.name], "header field's name")
        }
        for field in configuration.headers.fields { fields.append(field.value, named: field.name) }
        for field in fields.fields where !HTTPFields.isValue(field.value) {
            throw .invalidConfiguration(
                "the value of the header field \(field.name) has a character that is not allowed"
            )
        }
        self.fields = fields
    }

    static func checkTokens(_ tokens: [String], _ what: String) throws(ConnectionError) {
        for token in tokens where !HTTPFields.isToken(token) {
            throw .invalidConfiguration(
                "\"\(token.escaped(limit: 100))\" is no \(what) (RFC 9110, section 5.6.2)"
            )
        }
        if Set(tokens).count < tokens.count { throw .invalidConfiguration("a \(what) stands there twice") }
    }

    /// RFC 6265, section 4.2.
    private static func cookieField(_ cookies: [String: String]) throws(ConnectionError) -> String {
        try checkTokens(cookies.keys.sorted(), "cookie's name")
        for (name, value) in cookies {
            let isAllowed = value.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"\",;\\".utf8.contains($0) }
            if !isAllowed { throw .invalidConfiguration("the value of the cookie \(name) must be encoded") }
        }
        return cookies.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "; ")
    }
}

/// One attempt to open a WebSocket.
package struct WebSocketClientHandshake: Sendable {
    private let request: WebSocketRequest
    private let key: String
    private let sha1: WebSocketAcceptance.SHA1

    /// - Parameter nonce: 16 random bytes.
    package init(_ request: WebSocketRequest, nonce: [UInt8], sha1: @escaping WebSocketAcceptance.SHA1) {
        self.request = request
        self.sha1 = sha1
        key = Base64.encode(nonce)
    }

    package var target: String { request.target }

    /// The request's header fields.
    package var fields: HTTPFields {
        var fields = request.fields
        fields.append(key, named: "Sec-WebSocket-Key")
        return fields
    }

    /// Checks the head of the server's answer.
    ///
    /// - Throws: `webSocketRefused` when it does not open a WebSocket, `protocolViolation` when it does not answer this
    ///   request.
    package func opening(
        status: Int,
        reason: String,
        fields: HTTPFields
    ) throws(ConnectionError) -> WebSocketOpening {
        guard status == 101 else {
            let location = (300...399).contains(status) ? fields["Location"] : nil
            throw .webSocketRefused(WebSocketRefusal(status: status, reason: reason, location: location))
        }
        // One protocol: RFC 6455, section 4.1.
        let protocols = fields.elements(of: "Upgrade")
        guard
            protocols.count == 1,
            fields.hasElement("websocket", in: "Upgrade"),
            fields.hasElement("upgrade", in: "Connection")
        else {
            throw .badWebSocketAnswer("switches to another protocol")
        }
        let accept = fields.values(of: "Sec-WebSocket-Accept")
        guard accept.count == 1, HTTPFields.trimmed(accept[0][...]) == WebSocketAcceptance.text(for: key, sha1: sha1)
        else {
            throw .badWebSocketAnswer("does not prove that it read the request (Sec-WebSocket-Accept)")
        }
        // permessage-deflate would be offered in the request, and checked here.
        if !fields.elements(of: "Sec-WebSocket-Extensions").isEmpty {
            throw .badWebSocketAnswer("names an extension that was not offered")
        }
        let chosen = fields.values(of: "Sec-WebSocket-Protocol")
        guard chosen.count <= 1, chosen.allSatisfy(request.subprotocols.contains) else {
            throw .badWebSocketAnswer("names a subprotocol that was not offered")
        }
        return WebSocketOpening(subprotocol: chosen.first, target: request.target, headers: fields)
    }
}

/// The value of `Sec-WebSocket-Accept`, which proves that a server has read the request (RFC 6455, section 4.2.2).
package enum WebSocketAcceptance {
    /// Returns a text's SHA-1 digest. It is not used for security here. The transport has a library for it.
    package typealias SHA1 = @Sendable (_ text: String) -> [UInt8]

    /// Returns the value for the request's key.
    static func text(for key: String, sha1: SHA1) -> String {
        Base64.encode(sha1(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
    }
}

extension Endpoint {
    /// The endpoint's host in the form of the `Host` field, without the scheme's default port.
    fileprivate var hostField: String {
        guard case .tcp(let host, let port) = address else { return "localhost" }
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isEncrypted ? 443 : 80) ? name : "\(name):\(port)"
    }
}
