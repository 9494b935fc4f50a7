/// An address to connect to or to listen on, with its protocol: `tcp://host:port`, `tls://host:port`, `unix:///path`,
/// `ws://host:port/path` or `wss://host:port/path`.
public struct Endpoint: Sendable, Hashable {
    package enum Address: Sendable, Hashable {
        case tcp(host: String, port: Int)
        case unix(path: String)
    }

    package let address: Address
    /// Whether TLS runs on the socket.
    public let isEncrypted: Bool
    /// Path and query of a WebSocket's URL; nil when frames go over the socket directly.
    package let webSocketTarget: String?

    package init(address: Address, isEncrypted: Bool = false, webSocketTarget: String? = nil) {
        self.address = address
        self.isEncrypted = isEncrypted
        self.webSocketTarget = webSocketTarget
    }

    /// Makes an endpoint for a TCP port of a host, which is a name, an IPv4 address, or an IPv6 address without
    /// brackets.
    ///
    /// Port 0 is for listening only: the system chooses a free one.
    public static func tcp(host: String, port: UInt16) -> Endpoint {
        Endpoint(address: .tcp(host: host, port: Int(port)))
    }

    /// Makes an endpoint for a TCP port with TLS. The server's certificate must be issued for the host.
    public static func tls(host: String, port: UInt16) -> Endpoint {
        Endpoint(address: .tcp(host: host, port: Int(port)), isEncrypted: true)
    }

    /// Makes an endpoint for a Unix-domain stream socket in the file system.
    public static func unix(path: String) -> Endpoint {
        Endpoint(address: .unix(path: path))
    }

    /// Makes an endpoint for a WebSocket, `wss` when it is encrypted and `ws` otherwise.
    ///
    /// - Parameter target: path and query in the form of the request, percent-encoded where needed.
    /// - Throws: `ConnectionError` `invalidEndpoint` when the target does not begin with a slash or has characters that
    ///   are not allowed in a request line (RFC 9112, section 3.2).
    public static func webSocket(
        host: String,
        port: UInt16,
        target: String = "/",
        isEncrypted: Bool
    ) throws(ConnectionError) -> Endpoint {
        try checkTarget(target[...], of: target)
        return Endpoint(
            address: .tcp(host: host, port: Int(port)),
            isEncrypted: isEncrypted,
            webSocketTarget: target
        )
    }

    /// Returns an endpoint with the same protocol at another address.
    package func at(_ address: Address) -> Endpoint {
        Endpoint(address: address, isEncrypted: isEncrypted, webSocketTarget: webSocketTarget)
    }

    /// Whether WebSocket messages carry the frames.
    public var isWebSocket: Bool { webSocketTarget != nil }

    /// The TCP port, nil for a Unix socket.
    public var port: Int? {
        if case .tcp(_, let port) = address { port } else { nil }
    }
}

extension Endpoint: CustomStringConvertible {
    /// The endpoint in the form that `init(_:)` reads, without the query of a WebSocket's URL, which may be a secret.
    public var description: String {
        switch address {
        case .tcp:
            return "\(scheme)://\(address.authority)\(webSocketTarget?.withoutQuery ?? "")"
        case .unix(let path):
            // A peer may have bound its socket to any path.
            return "unix://\(path.escaped())"
        }
    }

    /// The scheme of an endpoint with host and port.
    package var scheme: String {
        if isWebSocket { isEncrypted ? "wss" : "ws" } else { isEncrypted ? "tls" : "tcp" }
    }
}

extension Endpoint.Address {
    /// Host and port as in a URL, with an IPv6 address in brackets; or the path of a Unix socket.
    package var authority: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): path
        }
    }
}
