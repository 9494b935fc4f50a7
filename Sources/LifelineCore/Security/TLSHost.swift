/// The host that a server's certificate must be issued for: a DNS name or an IP address (a reference identity of RFC
/// 9525).
package struct TLSHost: Sendable {
    /// The host as it was given.
    package let text: String
    /// The name without the dot of an absolute name; nil for an address. The client sends it to the server (SNI).
    package let name: String?
    private let address: IPAddress?

    package init(_ text: String) {
        self.text = text
        // The text after a percent sign is this machine's name of the interface (RFC 4007).
        address = IPAddress(text.prefix { $0 != "%" })
        // A trailing dot is only for name servers; certificates and SNI have none (RFC 6066).
        name = address != nil ? nil : text.last == "." ? String(text.dropLast()) : text
    }

    /// Returns whether a certificate's DNS name matches this host (RFC 9525, section 6.3).
    ///
    /// Labels are compared without regard to case. An asterisk only matches the whole first label, and at least two
    /// labels must follow, because nobody owns all names of a top-level domain.
    package func matches(dnsName presented: String) -> Bool {
        guard let name else { return false }
        var (own, other) = (Self.labels(of: name), Self.labels(of: presented))
        guard own.count == other.count, own.allSatisfy(Self.isLabel) else { return false }
        if other[0].elementsEqual("*".utf8) {
            guard other.count >= 3 else { return false }
            own.removeFirst()
            other.removeFirst()
        }
        return zip(own, other).allSatisfy { $0.map(Self.lowercased) == $1.map(Self.lowercased) }
    }

    /// Returns whether a certificate's IP address, of 4 or 16 bytes, is that of this host (RFC 9525, section 6.4).
    package func matches(address presented: some Sequence<UInt8>) -> Bool {
        address?.bytes.elementsEqual(presented) ?? false
    }

    private static func labels(of name: String) -> [Substring.UTF8View] {
        Substring(name).utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    }

    /// Returns whether a label has only letters, digits, hyphens and underscores, as in names to connect to. An
    /// asterisk in particular would match a certificate's.
    private static func isLabel(_ label: Substring.UTF8View) -> Bool {
        !label.isEmpty
            && label.allSatisfy { byte in
                let character = Unicode.Scalar(byte)
                return character.isASCII && (character.properties.isAlphabetic || "0"..."9" ~= character)
                    || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
            }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }
}
