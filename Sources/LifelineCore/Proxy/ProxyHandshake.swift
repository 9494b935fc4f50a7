/// The dialogue of this side of a connection with a proxy, until the proxy has connected to the endpoint.
///
/// It takes one byte at a time, so that the split of the proxy's bytes does not matter, and the bytes after the last
/// one remain for the endpoint. A handshake usually has some hundred bytes, and at most 8 KiB.
package protocol ProxyHandshake: Sendable {
    /// The first bytes to send.
    var greeting: [UInt8] { get }

    /// Receives the next byte. Must not be called after it has returned `established` or has thrown.
    ///
    /// - Throws: `ConnectionError` when the proxy refuses, cannot connect, or is not a proxy.
    mutating func receive(_ byte: UInt8) throws(ConnectionError) -> ProxyHandshakeAction
}

/// The step after a byte from the proxy.
package enum ProxyHandshakeAction: Sendable, Equatable {
    /// Wait for the next byte.
    case none
    /// Send this, then wait.
    case send([UInt8])
    /// The proxy has connected: the next bytes come from the endpoint.
    case established
}

/// A proxy, and the endpoint that it is asked for.
package struct ProxyRoute: Sendable, Hashable {
    package let proxy: ProxyServer
    package let endpoint: Endpoint

    package init(proxy: ProxyServer, endpoint: Endpoint) {
        self.proxy = proxy
        self.endpoint = endpoint
    }

    /// - Throws: `ConnectionError` `invalidEndpoint` when a proxy cannot be asked for the endpoint.
    package func makeHandshake() throws(ConnectionError) -> any ProxyHandshake {
        switch proxy.kind {
        case .http: try HTTPConnectHandshake(route: self)
        case .socks5: try SOCKS5Handshake(route: self)
        }
    }

    enum Host: Hashable {
        case address(IPAddress)
        case name(String)
    }

    /// Returns the endpoint's host and port for requests. They are checked, so that they cannot inject other bytes.
    func target() throws(ConnectionError) -> (host: Host, port: UInt16) {
        guard case .tcp(let host, let port) = endpoint.address, let port = UInt16(exactly: port), port > 0 else {
            throw invalidEndpoint("It has no port to connect to.")
        }
        if let address = IPAddress(host) { return (.address(address), port) }
        if host.contains(":") {
            throw invalidEndpoint("It is on this machine's own link, which no proxy can reach. Set no proxy for it.")
        }
        // RFC 1928, section 4, has one byte for the length.
        guard (1...255).contains(host.utf8.count) else { throw invalidEndpoint("The host's name is too long.") }
        guard host.utf8.allSatisfy(ProxyRoute.isHostNameByte) else {
            throw invalidEndpoint(
                "The host's name has a character that no proxy accepts. Write international names in ASCII (xn--…)."
            )
        }
        return (.name(host), port)
    }

    private static func isHostNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
    }
}

/// The answer of a proxy that did not connect.
public struct ProxyAnswer: Error, Sendable, Hashable, CustomStringConvertible {
    /// The protocols of proxies.
    public enum ProxyProtocol: String, Sendable, Hashable {
        /// HTTP CONNECT (RFC 9110, section 9.3.6).
        case http = "HTTP"
        /// SOCKS5 (RFC 1928).
        case socks5 = "SOCKS5"
    }

    /// The protocol of the proxy.
    public let proxyProtocol: ProxyProtocol
    /// HTTP's status code, or SOCKS5's reply code.
    public let code: Int
    /// HTTP's reason phrase, at most 200 bytes, with control characters and the like escaped; for SOCKS5, the meaning
    /// that RFC 1928 gives the code.
    public let words: String

    /// The protocol and the code.
    public var description: String { "\(proxyProtocol.rawValue) \(code)" }
}

// MARK: Errors

extension ProxyRoute {
    private func invalidEndpoint(_ reason: String) -> ConnectionError {
        ConnectionError(
            code: .invalidEndpoint,
            message: "\(endpoint) cannot be asked for at the proxy \(proxy). \(reason)"
        )
    }

    /// Returns the error for a proxy that refused to connect, or failed.
    func notConnected(_ answer: ProxyAnswer, isTransient: Bool) -> ConnectionError {
        let words = answer.words.isEmpty ? "without a reason" : "\"\(answer.words)\""
        if isTransient {
            return ConnectionError(
                code: .proxyConnectFailed,
                message: "The proxy \(proxy) could not connect to \(endpoint): it answered \(answer), \(words).",
                cause: answer
            )
        }
        return ConnectionError(
            code: .proxyRefused,
            message: "The proxy \(proxy) refused to connect to \(endpoint): it answered \(answer), \(words). Ask its "
                + "operator to allow it, or set no proxy for this host.",
            cause: answer
        )
    }

    /// - Parameter detail: the proxy's reason, as a clause.
    func authenticationRequired(_ detail: String, cause: ProxyAnswer? = nil) -> ConnectionError {
        let advice =
            proxy.credentials == nil
            ? "Set the proxy's credentials, as in \(proxy.kind.rawValue)://user:password@host:port."
            : "Check user and password of the proxy."
        return ConnectionError(
            code: .proxyAuthenticationRequired,
            message: "The proxy \(proxy) \(detail). \(advice)",
            cause: cause
        )
    }

    /// - Parameter detail: the violation, as a clause.
    func violation(_ detail: String) -> ConnectionError {
        ConnectionError(
            code: .proxyProtocolViolation,
            message:
                "What listens at the proxy's address \(proxy.address.authority) \(detail). Check that it is a proxy "
                + "of the kind that \(proxy) says."
        )
    }

    /// Returns the error for a connection that ended or failed before the proxy had answered.
    package func cut(_ cause: (any Error)? = nil) -> ConnectionError {
        ConnectionError(
            code: .proxyConnectFailed,
            message:
                "The proxy \(proxy) closed the connection before it had connected to \(endpoint). Check that it may "
                + "be used from here, and that the endpoint can be reached.",
            cause: cause
        )
    }
}
