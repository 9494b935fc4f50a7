/// How a WebSocket is opened and used. Endpoints of other schemes do not look at it.
public struct WebSocketConfiguration: Sendable {
    /// Header fields that a client sends in addition to those of the handshake. Default: none.
    public var headers = HTTPFields()

    /// Cookies that a client sends, by name. Default: none.
    public var cookies: [String: String] = [:]

    /// Who a client says it is, by basic authorization (RFC 7617), which hides nothing: use `wss`. Default: nobody.
    public var credentials: WebSocketCredentials?

    /// The origin that a client names, as a browser does for its page: `https://example.org`. Default: none.
    public var origin: String?

    /// The subprotocols that a client offers, the best one first. Default: none.
    ///
    /// A server may choose one of them, or none: see `WebSocketOpening.subprotocol`.
    public var subprotocols: [String] = []

    /// The most bytes that a binary message of ours carries. Frames go out together up to here; one that is larger is a
    /// message of its own. Default: 64 KiB, which gateways and browsers' libraries take.
    public var maximumMessageLength = 64 << 10

    /// The most bytes that a message of the peer's may have; a larger one fails the connection before its bytes have
    /// come. Default: nil, which is 64 KiB, or one frame of `ConnectionConfiguration.maximumFrameLength` where that is
    /// more.
    ///
    /// While frames are received, a peer may cut them into fragments of a message that never ends, and only a fragment
    /// counts. While `WebSocketMessage`s are received, `maximumFrameLength` is the upper bound.
    public var maximumReceivedMessageLength: Int?

    /// Makes a configuration with the default values.
    public init() {}
}

extension WebSocketConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What is configured; of headers, cookies and credentials, only the names.
    public var description: String {
        "WebSocketConfiguration(headers: \(headers), cookies: \(cookies.keys.sorted()), "
            + "credentials: \(credentials.map { "\($0)" } ?? "none"), origin: \(origin ?? "none"), "
            + "subprotocols: \(subprotocols))"
    }
    /// The same.
    public var debugDescription: String { description }
    /// The same.
    public var customMirror: Mirror { Mirror(self, children: ["configuration": description]) }
}

/// A user's name and password. Descriptions do not have the password.
public struct WebSocketCredentials: Sendable, Hashable {
    /// The name, which has no colon.
    public var user: String
    /// The password.
    public var password: String

    /// Takes a name and a password.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }
}

extension WebSocketCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name.
    public var description: String { "WebSocketCredentials(user: \(user.escaped(limit: 100)))" }
    /// The name.
    public var debugDescription: String { description }
    /// The name.
    public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// What both sides agreed on when a WebSocket was opened.
public struct WebSocketOpening: Sendable, Hashable {
    /// The subprotocol that the server chose of those that the client offered; nil when it chose none.
    public let subprotocol: String?
    /// Path and query that the client asked for, as they stood in its request.
    public let target: String
    /// The header fields of the peer: on a server those of the request, on a client those of the answer.
    public let headers: HTTPFields

    package init(subprotocol: String?, target: String, headers: HTTPFields) {
        self.subprotocol = subprotocol
        self.target = target
        self.headers = headers
    }
}

extension WebSocketOpening: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What was agreed on, without what may be a secret: the query, and the values of fields.
    public var description: String {
        "WebSocketOpening(subprotocol: \(subprotocol ?? "none"), path: \(String(target.withoutQuery).escaped()), "
            + "headers: \(headers))"
    }
    /// The same.
    public var debugDescription: String { description }
    /// The same.
    public var customMirror: Mirror { Mirror(self, children: ["opening": description]) }
}

extension String {
    /// A URL, or path and query, without the query, where tokens travel.
    var withoutQuery: Substring { prefix { $0 != "?" } }
}
