/// The settings of a WebSocket. Endpoints of other schemes ignore them.
public struct WebSocketConfiguration: Sendable {
    /// Header fields that a client sends in addition to those of the handshake. Default: none.
    public var headers = HTTPFields()

    /// Cookies that a client sends, by name. Default: none.
    public var cookies: [String: String] = [:]

    /// The client's credentials for basic authorization (RFC 7617), which does not encrypt them: use `wss`. Default:
    /// none.
    public var credentials: WebSocketCredentials?

    /// The origin that a client sends, as a browser does for its page: `https://example.org`. Default: none.
    public var origin: String?

    /// The subprotocols that a client offers, the best one first. Default: none.
    ///
    /// A server may choose one of them, or none: see `WebSocketOpening.subprotocol`.
    public var subprotocols: [String] = []

    /// The most bytes of frames that this side puts into one binary message. A larger frame is sent as its own message.
    /// Default: 64 KiB, which gateways and browsers' libraries accept.
    public var maximumMessageLength = 64 << 10

    /// The most bytes that a message of the peer may have; a larger one fails the connection before its bytes arrive.
    /// Default: nil, which means 64 KiB, or one frame of `ConnectionConfiguration.maximumFrameLength` if that is more.
    ///
    /// When frames are received, a peer may split them into fragments of an endless message, and only the length of
    /// each fragment counts. When `WebSocketMessage`s are received, `maximumFrameLength` is the upper bound.
    public var maximumReceivedMessageLength: Int?

    /// Makes a configuration with the default values.
    public init() {}
}

extension WebSocketConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The settings; of headers, cookies and credentials, only the names.
    public var description: String {
        "WebSocketConfiguration(headers: \(headers), cookies: \(cookies.keys.sorted()), "
            + "credentials: \(credentials.map { "\($0)" } ?? "none"), origin: \(origin ?? "none"), "
            + "subprotocols: \(subprotocols))"
    }
    /// The same text as `description`.
    public var debugDescription: String { description }
    /// A mirror with only the description.
    public var customMirror: Mirror { Mirror(self, children: ["configuration": description]) }
}

/// A user's name and password. Descriptions do not have the password.
public struct WebSocketCredentials: Sendable, Hashable {
    /// The name, which has no colon.
    public var user: String
    /// The password.
    public var password: String

    /// Makes credentials from a name and a password.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }
}

extension WebSocketCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name, without the password.
    public var description: String { "WebSocketCredentials(user: \(user.escaped(limit: 100)))" }
    /// The name, without the password.
    public var debugDescription: String { description }
    /// A mirror with only the name.
    public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// The result of opening a WebSocket.
public struct WebSocketOpening: Sendable, Hashable {
    /// The subprotocol that the server chose of those that the client offered; nil when it chose none.
    public let subprotocol: String?
    /// Path and query of the client's request, unchanged.
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
    /// The result of the opening, without possible secrets: the query, and the values of fields.
    public var description: String {
        "WebSocketOpening(subprotocol: \(subprotocol ?? "none"), path: \(String(target.withoutQuery).escaped()), "
            + "headers: \(headers))"
    }
    /// The same text as `description`.
    public var debugDescription: String { description }
    /// A mirror with only the description.
    public var customMirror: Mirror { Mirror(self, children: ["opening": description]) }
}

extension String {
    /// The text of a URL, or of path and query, without the query, which may have tokens.
    var withoutQuery: Substring { prefix { $0 != "?" } }
}
