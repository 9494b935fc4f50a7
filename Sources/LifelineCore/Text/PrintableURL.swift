/// An invalid URL in a form for an error message: without parts that may be a user's name and a password, and without
/// the query, which may have tokens.
///
/// Nothing is known about the URL except that it is invalid. So only parts are shown that cannot belong to credentials.
package struct PrintableURL: CustomStringConvertible {
    private static let schemes = [
        "tcp", "tls", "ws", "wss", "unix", "http", "https", "socks", "socks4", "socks4a", "socks5", "socks5h",
        "redis", "rediss",
    ]

    package let description: String

    package init(_ text: String) {
        let url = text.escaped()
        var (scheme, rest) = ("", url[...])
        if let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") {
            rest = url[colon...].dropFirst(3)
            // An unknown scheme may be a user's name.
            let isKnown = PrintableURL.schemes.contains(url[..<colon].lowercased())
            scheme = isKnown ? "\(url[..<colon])://" : "…://"
        }
        if scheme.lowercased() == "unix://" {
            description = url
        } else if let at = rest.lastIndex(of: "@") {
            // An "@" in a query does not end a user.
            let host =
                rest[..<at].contains { "?#".contains($0) } ? nil : PrintableURL.hostAndPath(rest[at...].dropFirst())
            description = "\(scheme)…\(host.map { "@\($0)" } ?? "")"
        } else {
            description = "\(scheme)\(PrintableURL.hostAndPath(rest) ?? "…")"
        }
    }

    /// Returns nil for `user:password`, which may remain of a URL with a forgotten or encoded "@".
    private static func hostAndPath(_ text: Substring) -> String? {
        if text.contains("%40") { return nil }
        let authority = text.prefix { !"/?#".contains($0) }
        let isAddress = authority.first == "["
        let port = isAddress ? authority.drop { $0 != "]" }.drop { $0 != ":" } : authority.drop { $0 != ":" }
        return port.utf8.allSatisfy { (0x30...0x3A).contains($0) } ? withoutQuery(text) : nil
    }

    private static func withoutQuery(_ text: Substring) -> String {
        let path = text.prefix { !"?#".contains($0) }
        return path.endIndex == text.endIndex ? String(path) : "\(path)\(text[path.endIndex])…"
    }
}
