/// The host that a server's certificate must be made out to: a DNS name or an IP address (a reference identity of RFC
/// 9525).
package struct TLSHost: Sendable {
    /// The host as it was given.
    package let text: String
    /// The name without the dot of an absolute name; nil for an address. It is what a client asks the server for (SNI).
    package let name: String?
    private let address: IPAddress?

    package init(_ text: String) {
        self.text = text
        // What stands behind a percent sign is this machine's name of the interface (RFC 4007).
        address = IPAddress(text.prefix { $0 != "%" })
        // A dot at the end is for the name service; certificates and the request for one have none (RFC 6066).
        name = address != nil ? nil : text.last == "." ? String(text.dropLast()) : text
    }

    /// Whether a certificate's DNS name stands for this host (RFC 9525, section 6.3).
    ///
    /// Labels are compared without regard to case. An asterisk stands for one label, the first, and only where it is
    /// all of that label and two labels at least follow: nobody owns every name of a top-level domain.
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

    /// Whether a certificate's IP address, of 4 or 16 bytes, is this host's (RFC 9525, section 6.4).
    package func matches(address presented: some Sequence<UInt8>) -> Bool {
        address?.bytes.elementsEqual(presented) ?? false
    }

    private static func labels(of name: String) -> [Substring.UTF8View] {
        Substring(name).utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    }

    /// Letters, digits, hyphens and underscores. No other character is in a name that this side connects to; an
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
