/// The proxy for connections: an HTTP proxy with CONNECT, or a SOCKS5 proxy.
///
/// The proxy gets the endpoint's host unchanged, so the proxy looks up names, not this machine. Every scheme is
/// tunnelled, `ws` too. Unix sockets never go through a proxy.
///
/// Many proxies do not support half-close: when one side ends, they end the other as well. Then messages sent before
/// arrive, but messages of the peer after `finishSending()` may not.
public struct ProxyConfiguration: Sendable, Hashable {
    /// A user's credentials for a proxy.
    ///
    /// An HTTP proxy gets them with the Basic scheme, a SOCKS5 proxy as in RFC 1929. Neither encrypts them on the way
    /// to the proxy.
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

    /// The proxy of the process's environment, by curl's rules, at the time when a connection or a client is made.
    /// Without a variable there is no proxy.
    ///
    /// - The proxy is the first of these variables that is set and not empty. It has a URL in the form of `init(_:)`.
    ///   - `wss` and `tls`: `wss_proxy` or `tls_proxy`, then `https_proxy`, then `all_proxy`
    ///   - `ws`: `ws_proxy`, then `http_proxy`, then `all_proxy`
    ///   - `tcp`: `tcp_proxy`, then `all_proxy`
    ///
    ///   Each is looked up in lower case and then in upper case, except `http_proxy`, because a web server sets
    ///   `HTTP_PROXY` from a client's header (CVE-2016-5385).
    /// - The hosts without a proxy are in `no_proxy`, or else `NO_PROXY`: a list of names, addresses and networks,
    ///   separated by commas or spaces. `example.org`, `.example.org` and `*.example.org` mean that name and all below
    ///   it, `10.0.0.0/8` and `fd00::/8` mean networks, `*` means everything. A port restricts an entry:
    ///   `example.org:7000`, `[::1]:7000`. As in curl, loopback is an exception only if it is listed.
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
    /// The user's name, without the password.
    public var description: String { "\(user), password hidden" }
    /// The user's name, without the password.
    public var debugDescription: String { description }
    /// A mirror without the password, which `dump` would print.
    public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// A proxy at an address.
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

    /// The proxy's URL, without credentials.
    package var description: String { "\(kind.rawValue)://\(address.authority)" }
}
