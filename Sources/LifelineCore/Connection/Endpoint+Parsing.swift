extension Endpoint {
    /// Reads `tcp://host:port`, `tcp://[IPv6 address]:port` or `unix:///absolute/path`.
    ///
    /// The path is taken as it stands; there is no percent-encoding.
    /// - Throws: `ConnectionError` `invalidEndpoint`, whose message says what is wrong.
    public init(_ text: String) throws(ConnectionError) {
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else {
            throw Endpoint.invalid(text, "it has no scheme. Write tcp://host:port or unix:///path")
        }
        let rest = text[colon...].dropFirst(3)
        switch text[..<colon].lowercased() {
        case "tcp": self.init(address: try Endpoint.parseTCP(rest, of: text))
        case "unix": self.init(address: try Endpoint.parseUnix(rest, of: text))
        case let scheme: throw Endpoint.invalid(text, "the scheme \"\(scheme)\" is neither tcp nor unix")
        }
    }

    private static func parseTCP(_ authority: Substring, of text: String) throws(ConnectionError) -> Address {
        let host: Substring
        let portText: Substring
        if authority.first == "[" {
            guard let bracket = authority.firstIndex(of: "]") else {
                throw invalid(text, "the bracket of the IPv6 address is not closed")
            }
            host = authority[authority.index(after: authority.startIndex)..<bracket]
            let afterHost = authority[authority.index(after: bracket)...]
            guard afterHost.first == ":" else { throw invalid(text, "the port is missing. Write tcp://[address]:port") }
            portText = afterHost.dropFirst()
        } else {
            guard let colon = authority.lastIndex(of: ":") else {
                throw invalid(text, "the port is missing. Write tcp://host:port")
            }
            host = authority[..<colon]
            portText = authority[authority.index(after: colon)...]
            if host.contains(":") { throw invalid(text, "an IPv6 address needs brackets. Write tcp://[address]:port") }
        }
        if host.isEmpty { throw invalid(text, "the host is missing. Write tcp://host:port") }
        if host.contains(where: { $0 == "/" || $0 == "@" || $0.isWhitespace || $0 == "\0" }) {
            throw invalid(text, "the host has a character that no host has")
        }
        guard portText.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(portText) else {
            throw invalid(text, "the port \"\(portText)\" is no number from 0 to 65535")
        }
        return .tcp(host: String(host), port: Int(port))
    }

    private static func parseUnix(_ path: Substring, of text: String) throws(ConnectionError) -> Address {
        guard path.first == "/" else {
            throw invalid(text, "the path is not absolute. Write unix:///path, with three slashes")
        }
        if path.last == "/" { throw invalid(text, "the path names a directory") }
        if path.utf8.contains(0) { throw invalid(text, "the path contains a NUL byte") }
        return .unix(path: String(path))
    }

    private static func invalid(_ text: String, _ reason: String) -> ConnectionError {
        ConnectionError(code: .invalidEndpoint, message: "\"\(text)\" is no endpoint: \(reason).")
    }
}
