/// A URL that was given and cannot be used, fit for an error's message: without what may be a user's name and a
/// password, and without a query, in which tokens travel.
///
/// Nothing is known of it but that something in it is wrong, and so what is shown is what cannot be a part of
/// credentials.
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
            // One that nobody knows may be a user's name.
            let isKnown = PrintableURL.schemes.contains(url[..<colon].lowercased())
            scheme = isKnown ? "\(url[..<colon])://" : "…://"
        }
        if scheme.lowercased() == "unix://" {
            description = url
        } else if let at = rest.lastIndex(of: "@") {
            // One in a query is not the end of a user.
            let host =
                rest[..<at].contains { "?#".contains($0) } ? nil : PrintableURL.hostAndPath(rest[at...].dropFirst())
            description = "\(scheme)…\(host.map { "@\($0)" } ?? "")"
        } else {
            description = "\(scheme)\(PrintableURL.hostAndPath(rest) ?? "…")"
        }
    }

    /// Nil for `user:password`, of which a URL with a forgotten or an encoded "@" can have all.
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
