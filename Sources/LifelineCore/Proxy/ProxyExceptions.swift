/// The hosts without a proxy, from `no_proxy`. `ProxyConfiguration.environment` describes the format.
///
/// An entry that cannot be read is ignored, as in other programs.
struct ProxyExceptions {
    fileprivate struct Entry {
        enum Hosts {
            case all
            /// A name in lower case, without leading and trailing dots.
            case domain(String)
            case network(IPAddress, prefixLength: Int)
        }
        let hosts: Hosts
        /// Nil for every port.
        let port: Int?
    }

    private let entries: [Entry]

    init(_ text: String) {
        entries = text.split { $0 == "," || $0.isWhitespace }.compactMap { Entry($0) }
    }

    func contain(host: String, port: Int) -> Bool {
        let address = IPAddress(host.withoutZone)?.unmapped
        let name = host.lowercased().withoutTrailingDot
        return entries.contains { entry in
            if let only = entry.port, only != port { return false }
            return switch (entry.hosts, address) {
            case (.all, _): true
            case (.domain(let domain), nil): name == domain || name.hasSuffix("." + domain)
            case (.network(let network, let length), let address?): address.sharesPrefix(of: length, with: network)
            case (.domain, _?), (.network, nil): false
            }
        }
    }
}

extension ProxyExceptions.Entry {
    fileprivate init?(_ text: Substring) {
        var hosts = text
        var port: Substring?
        if text.first == "[", let bracket = text.firstIndex(of: "]") {
            hosts = text[..<bracket].dropFirst()
            let rest = text[bracket...].dropFirst()
            if rest.first == ":" {
                port = rest.dropFirst()
            } else if rest.first == "/" {
                hosts = hosts + rest
            } else if !rest.isEmpty {
                return nil
            }
        } else if let colon = text.firstIndex(of: ":"), !text[colon...].dropFirst().contains(":") {
            hosts = text[..<colon]
            port = text[colon...].dropFirst()
        }
        if let port {
            guard let number = UInt16(port) else { return nil }
            self.port = Int(number)
        } else {
            self.port = nil
        }
        guard let read = Hosts(hosts) else { return nil }
        self.hosts = read
    }
}

extension ProxyExceptions.Entry.Hosts {
    fileprivate init?(_ text: Substring) {
        let slash = text.firstIndex(of: "/")
        if text == "*" {
            self = .all
        } else if let address = IPAddress(text[..<(slash ?? text.endIndex)].withoutZone) {
            var length = address.version.byteCount * 8
            if let slash {
                guard let number = UInt8(text[slash...].dropFirst()), number <= length else { return nil }
                length = Int(number)
            }
            // A network larger than that of the mapped addresses stays unchanged.
            if address.unmapped != address, length >= 96 {
                self = .network(address.unmapped, prefixLength: length - 96)
            } else {
                self = .network(address, prefixLength: length)
            }
        } else {
            var domain = text.lowercased().withoutTrailingDot[...]
            if domain.hasPrefix("*.") { domain = domain.dropFirst() }
            if domain.first == "." { domain = domain.dropFirst() }
            if domain.isEmpty || slash != nil { return nil }
            self = .domain(String(domain))
        }
    }
}

extension StringProtocol {
    /// The text after a percent sign is this machine's name of an interface (RFC 4007, section 11), not a part of the
    /// address.
    fileprivate var withoutZone: SubSequence { prefix { $0 != "%" } }
}

extension String {
    /// A name with a trailing dot is the same name in absolute form.
    fileprivate var withoutTrailingDot: String { last == "." ? String(dropLast()) : self }
}
