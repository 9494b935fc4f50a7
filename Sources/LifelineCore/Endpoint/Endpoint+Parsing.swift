extension Endpoint {
    /// Reads `tcp://host:port`, `tls://host:port`, `unix:///absolute/path`, `ws://host[:port][/path][?query]` or
    /// `wss://…`. An IPv6 address is written in brackets. Without a port, `ws` means 80 and `wss` 443 (RFC 6455,
    /// section 3).
    ///
    /// A Unix path is used unchanged, without percent-encoding. A WebSocket's path and query are used unchanged, too,
    /// and must be percent-encoded where a URL requires it.
    /// - Throws: `ConnectionError` `invalidEndpoint`. Its message has the reason, without user and password.
    public init(_ text: String) throws(ConnectionError) {
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else {
            throw Endpoint.invalid(text, "it has no scheme. Write \(Endpoint.forms)")
        }
        let rest = text[colon...].dropFirst(3)
        switch text[..<colon].lowercased() {
        case "tcp": self.init(address: try Endpoint.parseTCP(rest, scheme: "tcp", of: text))
        case "tls": self.init(address: try Endpoint.parseTCP(rest, scheme: "tls", of: text), isEncrypted: true)
        case "unix": self.init(address: try Endpoint.parseUnix(rest, of: text))
        case "ws": try self.init(webSocket: rest, defaultPort: 80, isEncrypted: false, of: text)
        case "wss": try self.init(webSocket: rest, defaultPort: 443, isEncrypted: true, of: text)
        default:
            // In a text with a user and a password, the scheme may be one of them, put into the wrong place.
            let scheme = text.contains("@") ? "" : " \"\(String(text[..<colon]).escaped(limit: 20))\""
            throw ConnectionError(
                code: .invalidEndpoint,
                message: "unknown scheme\(scheme). Use tcp, tls, ws, wss or unix."
            )
        }
    }

    private static let forms =
        "tcp://host:port, tls://host:port, ws://host:port/path, wss://host:port/path or unix:///path"

    private init(
        webSocket rest: Substring,
        defaultPort: UInt16,
        isEncrypted: Bool,
        of text: String
    ) throws(ConnectionError) {
        let authorityEnd = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
        let target = rest[authorityEnd...]
        try Endpoint.checkTarget(target.first == "/" ? target : "/\(target)", of: text)
        self.init(
            address: try Endpoint.parseTCP(
                rest[..<authorityEnd],
                scheme: isEncrypted ? "wss" : "ws",
                defaultPort: defaultPort,
                of: text
            ),
            isEncrypted: isEncrypted,
            webSocketTarget: target.first == "/" ? String(target) : "/\(target)"
        )
    }

    private static func parseTCP(
        _ authority: Substring,
        scheme: String,
        defaultPort: UInt16? = nil,
        of text: String
    ) throws(ConnectionError) -> Address {
        if authority.contains("@") { throw invalid(text, "it names a user. Credentials belong in the configuration") }
        let parts: Authority
        do throws(Authority.Problem) {
            parts = try Authority(authority)
        } catch {
            throw invalid(text, reason(for: error, scheme: scheme))
        }
        if parts.portText == nil, defaultPort == nil {
            throw invalid(text, "the port is missing. Write \(scheme)://host:port")
        }
        let host = parts.host
        if host.isEmpty { throw invalid(text, "the host is missing. Write \(scheme)://host:port") }
        if host.contains(where: { $0 == "/" || $0.isWhitespace || $0 == "\0" }) {
            throw invalid(text, "the host has a character that no host has")
        }
        guard let port = parts.portText == nil ? defaultPort : parts.port else {
            // The text is not repeated, because it may be a password in a URL without a host.
            throw invalid(text, "the port is no number from 0 to 65535")
        }
        return .tcp(host: String(host), port: Int(port))
    }

    private static func reason(for problem: Authority.Problem, scheme: String) -> String {
        switch problem {
        case .addressWithoutBrackets: "an IPv6 address needs brackets. Write \(scheme)://[address]:port"
        case .unclosedBracket: "the bracket of the IPv6 address is not closed"
        case .unexpectedAfterBracket: "after the bracket comes no port. Write \(scheme)://[address]:port"
        }
    }

    private static func parseUnix(_ path: Substring, of text: String) throws(ConnectionError) -> Address {
        guard path.first == "/" else {
            throw invalid(text, "the path is not absolute. Write unix:///path, with three slashes")
        }
        if path.last == "/" { throw invalid(text, "the path names a directory") }
        if path.utf8.contains(0) { throw invalid(text, "the path contains a NUL byte") }
        return .unix(path: String(path))
    }

    static func checkTarget(_ target: Substring, of text: String) throws(ConnectionError) {
        guard target.first == "/" else { throw invalid(text, "the path does not begin with a slash") }
        if target.contains("#") { throw invalid(text, "a WebSocket's URL has no fragment (\"#\")") }
        guard target.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw invalid(text, "the path has a character that must be percent-encoded")
        }
    }

    private static func invalid(_ text: String, _ reason: String) -> ConnectionError {
        ConnectionError(code: .invalidEndpoint, message: "\"\(PrintableURL(text))\" is no endpoint: \(reason).")
    }
}
