/// The proxy that connections go through: an HTTP proxy, which is asked by CONNECT, or a SOCKS5 one.
///
/// The proxy gets the endpoint's host as it stands, so that it looks names up and this machine does not. Every scheme
/// is tunnelled, `ws` too. Unix sockets never go through a proxy.
///
/// Many proxies know no half-close: when one side ends, they end the other as well. What was sent before then arrives,
/// but what the peer still has to say after `finishSending()` may not.
public struct ProxyConfiguration: Sendable, Hashable {
    /// What a proxy asks its users for.
    ///
    /// An HTTP proxy gets them by the Basic scheme, a SOCKS5 one by RFC 1929: neither hides them on the way to the
    /// proxy.
    public struct Credentials: Sendable, Hashable {
        /// The user's name.
        public var user: String
        /// The password. Nothing prints it.
        public var password: String

        /// Makes credentials.
        public init(user: String, password: String) {
            self.user = user
            self.password = password
        }
    }

    enum Source: Sendable, Hashable {
        case server(ProxyServer)
        case environment
    }

    let source: Source

    /// An HTTP proxy, over plain TCP.
    ///
    /// - Parameter host: a name, an IPv4 address, or an IPv6 address without brackets.
    public static func http(host: String, port: UInt16, credentials: Credentials? = nil) -> ProxyConfiguration {
        ProxyConfiguration(
            source: .server(ProxyServer(kind: .http, host: host, port: port, credentials: credentials))
        )
    }

    /// A SOCKS5 proxy (RFC 1928).
    ///
    /// - Parameter host: a name, an IPv4 address, or an IPv6 address without brackets.
    public static func socks5(host: String, port: UInt16, credentials: Credentials? = nil) -> ProxyConfiguration {
        ProxyConfiguration(
            source: .server(ProxyServer(kind: .socks5, host: host, port: port, credentials: credentials))
        )
    }

    /// What the process's environment says, by curl's rules, when a connection or a client is made. No variable, no
    /// proxy.
    ///
    /// - Which proxy: the first of these that is set and not empty; it holds a URL as `init(_:)` reads it.
    ///   - `wss` and `tls`: `wss_proxy` or `tls_proxy`, then `https_proxy`, then `all_proxy`
    ///   - `ws`: `ws_proxy`, then `http_proxy`, then `all_proxy`
    ///   - `tcp`: `tcp_proxy`, then `all_proxy`
    ///
    ///   Each is looked up in small letters and then in capitals, except for `http_proxy`: a web server sets `HTTP_PROXY`
    ///   from what a client sends (CVE-2016-5385).
    /// - For which hosts none: `no_proxy`, else `NO_PROXY`, is a list of names, addresses and networks, with commas or
    ///   blanks between. `example.org`, `.example.org` and `*.example.org` stand for that name and all below it,
    ///   `10.0.0.0/8` and `fd00::/8` for networks, `*` for everything. A port restricts an entry: `example.org:7000`,
    ///   `[::1]:7000`. As curl does it, loopback is no exception unless it is listed.
    public static let environment = ProxyConfiguration(source: .environment)
}

extension ProxyConfiguration: CustomStringConvertible {
    /// The proxy's URL without credentials, or "environment".
    public var description: String {
        switch source {
        case .server(let server): "\(server)"
        case .environment: "environment"
        }
    }
}

extension ProxyConfiguration.Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The user's name.
    public var description: String { "\(user), password hidden" }
    /// The user's name.
    public var debugDescription: String { description }
    /// Without the password, which `dump` would print.
    public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// A proxy that stands at some address.
package struct ProxyServer: Sendable, Hashable, CustomStringConvertible {
    package enum Kind: String, Sendable {
        case http, socks5
    }

    package let kind: Kind
    package let host: String
    package let port: UInt16
    package let credentials: ProxyConfiguration.Credentials?

    package init(kind: Kind, host: String, port: UInt16, credentials: ProxyConfiguration.Credentials? = nil) {
        self.kind = kind
        self.host = host
        self.port = port
        self.credentials = credentials
    }

    package var address: Endpoint.Address { .tcp(host: host, port: Int(port)) }

    /// Without credentials.
    package var description: String { "\(kind.rawValue)://\(address.authority)" }
}
