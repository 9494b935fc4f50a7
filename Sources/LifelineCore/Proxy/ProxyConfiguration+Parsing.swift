extension ProxyConfiguration {
    /// Reads `http://[user[:password]@]host[:port]` or the same form with `socks5://` or `socks5h://`, which have the
    /// same meaning here.
    ///
    /// User and password are percent-decoded. Without a scheme it is an HTTP proxy; without a port, the port is 1080,
    /// as in curl. An IPv6 address is written in brackets.
    /// - Throws: `ConnectionError` `invalidConfiguration`. Its message has the reason, without user and password.
    public init(_ url: String) throws(ConnectionError) {
        let (scheme, rest) = ProxyConfiguration.splitScheme(url)
        let kind: ProxyServer.Kind
        switch scheme?.lowercased() {
        case nil, "http": kind = .http
        case "socks5", "socks5h": kind = .socks5
        case "https": throw .invalidProxy(url, "TLS to the proxy itself is not supported. Write http://host:port")
        case "socks", "socks4", "socks4a":
            throw .invalidProxy(url, "of SOCKS only version 5 is supported. Write socks5://host:port")
        default: throw .invalidProxy(url, "the scheme is unknown. Write \(ProxyConfiguration.forms)")
        }
        // Searched before the slash, because a password with a slash would otherwise be taken for a host.
        let at = rest.lastIndex(of: "@")
        let credentials = try at.map { at throws(ConnectionError) in
            try ProxyConfiguration.parseCredentials(rest[..<at], of: url)
        }
        var authority = at.map { rest[rest.index(after: $0)...] } ?? rest
        if authority.last == "/" { authority.removeLast() }
        let (host, port) = try ProxyConfiguration.parseAuthority(authority, of: url)
        let server = ProxyServer(kind: kind, host: host, port: port, credentials: credentials)
        try server.check()
        self.init(source: .server(server))
    }

    static let forms = "http://user:password@host:port or socks5://user:password@host:port"

    /// A text without a scheme, from an environment variable or the user, is a host.
    private static func splitScheme(_ url: String) -> (scheme: Substring?, rest: Substring) {
        guard let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") else { return (nil, url[...]) }
        return (url[..<colon], url[colon...].dropFirst(3))
    }

    private static func parseCredentials(_ text: Substring, of url: String) throws(ConnectionError) -> Credentials {
        let colon = text.firstIndex(of: ":") ?? text.endIndex
        let parts = [text[..<colon], text[colon...].dropFirst()].map { $0.percentDecoded() }
        guard let user = parts[0], let password = parts[1] else {
            throw .invalidProxy(url, "user or password has a % that is not followed by two digits of UTF-8's bytes")
        }
        return Credentials(user: user, password: password)
    }

    private static func parseAuthority(
        _ authority: Substring,
        of url: String
    ) throws(ConnectionError) -> (host: String, port: UInt16) {
        do throws(Authority.Problem) {
            let parts = try Authority(authority)
            if parts.portText == nil { return (String(parts.host), 1080) }
            if let port = parts.port { return (String(parts.host), port) }
        } catch {
            switch error {
            case .addressWithoutBrackets: throw .invalidProxy(url, "an IPv6 address needs brackets")
            case .unclosedBracket: throw .invalidProxy(url, "the bracket of the IPv6 address is not closed")
            case .unexpectedAfterBracket: break
            }
        }
        // The port's text is not repeated, because in a wrongly encoded URL it may be a part of the password.
        throw .invalidProxy(
            url,
            "after the host comes neither the end nor a colon and a port from 1 to 65535. In user and password, "
                + "percent-encode what has a meaning in URLs, such as / as %2F"
        )
    }
}

extension ProxyServer {
    /// Checks that the proxy's address and credentials can be used.
    ///
    /// - Throws: `ConnectionError` `invalidConfiguration`.
    func check() throws(ConnectionError) {
        if host.isEmpty { throw .invalidProxy("\(self)", "the host is missing. Write \(ProxyConfiguration.forms)") }
        // "%" begins the zone of an IPv6 address.
        guard host.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"/\\?#@[]\"<>".utf8.contains($0) }) else {
            throw .invalidProxy("\(kind.rawValue)://…", "the host has a character that no host has")
        }
        if port == 0 { throw .invalidProxy("\(self)", "the port is 0. Write one from 1 to 65535") }
        guard let credentials else { return }
        switch kind {
        case .http:
            // RFC 7617, section 2.
            if credentials.user.utf8.contains(UInt8(ascii: ":")) {
                throw .invalidProxy("\(self)", "the user's name has a colon, which the Basic scheme does not allow")
            }
            guard (credentials.user + credentials.password).unicodeScalars.allSatisfy({ !$0.isControl }) else {
                throw .invalidProxy("\(self)", "user or password has a control character")
            }
        case .socks5:
            // RFC 1929 requires at least one byte of password. Servers accept none, too, and a URL without a password
            // means that.
            guard (1...255).contains(credentials.user.utf8.count), credentials.password.utf8.count <= 255 else {
                throw .invalidProxy(
                    "\(self)",
                    "SOCKS5 allows 1 to 255 bytes for the user's name, and 255 for a password"
                )
            }
        }
    }
}

extension Unicode.Scalar {
    private static let firstPrintable: UInt32 = 0x20

    fileprivate var isControl: Bool { value < Self.firstPrintable || (0x7F...0x9F).contains(value) }
}

extension ConnectionError {
    /// - Parameter url: the URL, which is printed without parts that may be user and password.
    static func invalidProxy(_ url: String, _ reason: String) -> ConnectionError {
        ConnectionError(code: .invalidConfiguration, message: "\"\(PrintableURL(url))\" is no proxy: \(reason).")
    }
}
