internal import LifelineCore

extension RedisConfiguration {
    private static let defaultPort: UInt16 = 6379
    private static let form = "redis://user:password@host:port/database"

    /// Reads `redis://[user:password@]host[:port][/database]`, or the same with `rediss://` for TLS.
    ///
    /// A password alone is written `redis://:password@host`. User and password are percent-decoded. The default port is
    /// 6379. An IPv6 address is written in brackets.
    ///
    /// - Throws: `RedisError` `invalidURL`. Its message has the reason, without user and password.
    public init(url: String) throws(RedisError) {
        guard let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") else {
            throw .invalidURL(url, "it has no scheme. Write \(Self.form)")
        }
        let isEncrypted: Bool
        switch url[..<colon].lowercased() {
        case "redis": isEncrypted = false
        case "rediss": isEncrypted = true
        default: throw .invalidURL(url, "the scheme is neither redis nor rediss. Write \(Self.form)")
        }
        let rest = url[colon...].dropFirst(3)
        // Searched before the slash, because a password with a slash would otherwise be taken for a host.
        let at = rest.lastIndex(of: "@")
        let place = at.map { rest[$0...].dropFirst() } ?? rest
        let slash = place.firstIndex(of: "/") ?? place.endIndex
        let (host, port) = try Self.parseAuthority(place[..<slash], of: url)
        self.init(endpoint: isEncrypted ? .tls(host: host, port: port) : .tcp(host: host, port: port))
        database = try Self.parseDatabase(place[slash...].dropFirst(), of: url)
        credentials = try at.map { at throws(RedisError) in try Self.parseCredentials(rest[..<at], of: url) }
    }

    private static func parseCredentials(_ text: Substring, of url: String) throws(RedisError) -> RedisCredentials {
        // Other programs take a single word for the user, or for the password, which the server's log would then show.
        guard let colon = text.firstIndex(of: ":") else {
            throw .invalidURL(
                url,
                "before the @ stands one word. Write redis://user:password@host, or redis://:password@host without a "
                    + "user"
            )
        }
        guard let user = text[..<colon].percentDecoded(), let password = text[colon...].dropFirst().percentDecoded()
        else {
            throw .invalidURL(url, "user or password has a % that is not followed by two digits of UTF-8's bytes")
        }
        return RedisCredentials(user: user.isEmpty ? nil : user, password: password)
    }

    private static func parseAuthority(
        _ text: Substring,
        of url: String
    ) throws(RedisError) -> (host: String, port: UInt16) {
        let authority: Authority
        do throws(Authority.Problem) {
            authority = try Authority(text)
        } catch {
            switch error {
            case .addressWithoutBrackets: throw .invalidURL(url, "an IPv6 address needs brackets")
            case .unclosedBracket: throw .invalidURL(url, "the bracket of the IPv6 address is not closed")
            case .unexpectedAfterBracket: throw .invalidURL(url, "after the bracket comes no port")
            }
        }
        if authority.host.isEmpty { throw .invalidURL(url, "the host is missing. Write \(form)") }
        // "%" begins the zone of an IPv6 address.
        guard authority.host.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"/\\?#@[]\"<>".utf8.contains($0) }) else {
            throw .invalidURL(url, "the host has a character that no host has")
        }
        let port = authority.portText == nil ? defaultPort : authority.port
        // The text is not repeated, because it may be a part of a password.
        guard let port, port > 0 else {
            throw .invalidURL(
                url,
                "the port is no number from 1 to 65535. In user and password, percent-encode what has a meaning in "
                    + "URLs, such as / as %2F"
            )
        }
        return (String(authority.host), port)
    }

    private static func parseDatabase(_ text: Substring, of url: String) throws(RedisError) -> Int {
        if text.isEmpty { return 0 }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let database = Int(text) else {
            throw .invalidURL(url, "behind the slash stands no number of a database. Write \(form)")
        }
        return database
    }
}

extension RedisError {
    fileprivate static func invalidURL(_ url: String, _ reason: String) -> RedisError {
        RedisError(code: .invalidURL, message: "\"\(PrintableURL(url))\" is no URL of Redis: \(reason).")
    }
}
