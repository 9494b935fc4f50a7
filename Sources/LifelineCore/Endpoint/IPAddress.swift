/// An IPv4 or IPv6 address.
public struct IPAddress: Hashable, Sendable {
    /// The version of the Internet Protocol.
    public enum Version: Hashable, Sendable {
        /// IPv4: 32 bits.
        case v4
        /// IPv6: 128 bits.
        case v6
    }

    /// Whether this is an IPv4 or an IPv6 address.
    public let version: Version
    // In the order of the text: an IPv4 address is the lowest 32 bits of `low`.
    private let high: UInt64
    private let low: UInt64

    /// Reads an address in its usual text form, such as `192.0.2.1` or `2001:db8::1`, without brackets or zone; nil for
    /// other texts.
    public init?(_ text: some StringProtocol) {
        let text = Substring(text).utf8
        if let bytes = IPAddress.parseV4(text) {
            self.init(version: .v4, bytes: bytes.span.bytes)
        } else if let bytes = IPAddress.parseV6(text) {
            self.init(version: .v6, bytes: bytes.span.bytes)
        } else {
            return nil
        }
    }

    private init(version: Version, high: UInt64, low: UInt64) {
        (self.version, self.high, self.low) = (version, high, low)
    }

    /// Makes an address from `bytes` in network order; nil if their number does not fit the version.
    package init?(version: Version, bytes: RawSpan) {
        guard bytes.byteCount == version.byteCount else { return nil }
        switch version {
        case .v4:
            let low = bytes.unsafeLoadUnaligned(as: UInt32.self)
            self.init(version: .v4, high: 0, low: UInt64(UInt32(bigEndian: low)))
        case .v6:
            let high = bytes.unsafeLoadUnaligned(as: UInt64.self)
            let low = bytes.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt64.self)
            self.init(version: .v6, high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
        }
    }

    /// The address's bytes in network order: 4 or 16.
    package var bytes: [UInt8] {
        let all = [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } }
        return Array(all.suffix(version.byteCount))
    }
}

extension IPAddress.Version {
    package var byteCount: Int { self == .v4 ? 4 : 16 }
}

extension IPAddress {
    /// Whether this is an address of this machine itself: 127.0.0.0/8 or ::1.
    package var isLoopback: Bool {
        switch version {
        case .v4: low >> 24 == 127
        case .v6: high == 0 && low == 1
        }
    }

    /// Whether this is 0.0.0.0 or ::, which as a destination mean this machine itself.
    package var isUnspecified: Bool { high == 0 && low == 0 }

    /// Whether the address is valid on one link only: 169.254.0.0/16 or fe80::/10.
    package var isLinkLocal: Bool {
        switch version {
        case .v4: low >> 16 == 0xA9FE
        case .v6: high >> 54 == 0xFE80 >> 6
        }
    }

    /// Whether the address is that of a group of hosts: 224.0.0.0/4 or ff00::/8.
    package var isMulticast: Bool {
        switch version {
        case .v4: low >> 28 == 0xE
        case .v6: high >> 56 == 0xFF
        }
    }

    /// Whether both addresses are of one version and begin with the same `bitCount` bits.
    package func sharesPrefix(of bitCount: Int, with other: IPAddress) -> Bool {
        guard version == other.version else { return false }
        let (highDifference, lowDifference) = (high ^ other.high, low ^ other.low)
        return switch version {
        case .v4: lowDifference >> (32 - bitCount) == 0
        case .v6 where bitCount <= 64: highDifference >> (64 - bitCount) == 0
        case .v6: highDifference == 0 && lowDifference >> (128 - bitCount) == 0
        }
    }

    /// The IPv4 address that an IPv6 address stands for (::ffff:192.0.2.1); otherwise the address itself.
    package var unmapped: IPAddress {
        guard version == .v6, high == 0, low >> 32 == 0xFFFF else { return self }
        return IPAddress(version: .v4, high: 0, low: low & 0xFFFF_FFFF)
    }
}

extension IPAddress: Comparable {
    /// Orders IPv4 before IPv6, then by value.
    public static func < (first: IPAddress, second: IPAddress) -> Bool {
        guard first.version == second.version else { return first.version == .v4 }
        return (first.high, first.low) < (second.high, second.low)
    }
}

extension IPAddress: CustomStringConvertible {
    /// The usual text form; for IPv6 the shortest one (RFC 5952).
    public var description: String {
        if version == .v4 { return bytes.map { "\($0)" }.joined(separator: ".") }
        if unmapped != self { return "::ffff:\(unmapped)" }
        let groups = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        // The first of the longest runs of two or more zeros.
        var gap = 0..<0
        for start in groups.indices {
            let length = groups[start...].prefix { $0 == 0 }.count
            if length > max(gap.count, 1) { gap = start..<(start + length) }
        }
        func text(_ groups: ArraySlice<UInt16>) -> String {
            groups.map { String($0, radix: 16) }.joined(separator: ":")
        }
        if gap.isEmpty { return text(groups[...]) }
        return "\(text(groups[..<gap.lowerBound]))::\(text(groups[gap.upperBound...]))"
    }
}

// MARK: Reading

extension IPAddress {
    private static func parseV4(_ text: Substring.UTF8View) -> [UInt8]? {
        let parts = text.split(separator: UInt8(ascii: "."), maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            let isNumber = part.allSatisfy { (0x30...0x39).contains($0) }
            guard isNumber, part.count == 1 || part.first != UInt8(ascii: "0"), part.count <= 3 else { return nil }
            guard let byte = UInt8(Substring(part)) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    private static func parseV6(_ text: Substring.UTF8View) -> [UInt8]? {
        let colon = UInt8(ascii: ":")
        var bytes: [UInt8] = []
        // The index of the byte after "::".
        var gap: Int?
        var rest = text
        if rest.starts(with: "::".utf8) {
            gap = 0
            rest = rest.dropFirst(2)
        }
        while !rest.isEmpty {
            let end = rest.firstIndex(of: colon) ?? rest.endIndex
            if end == rest.endIndex, let tail = parseV4(rest) {
                bytes += tail
                break
            }
            guard let group = parseGroup(rest[..<end]), bytes.count < 16 else { return nil }
            bytes += group
            rest = rest[end...]
            guard rest.popFirst() != nil else { break }
            if rest.first == colon {
                guard gap == nil else { return nil }
                gap = bytes.count
                rest = rest.dropFirst()
            } else if rest.isEmpty {
                return nil
            }
        }
        guard let gap else { return bytes.count == 16 ? bytes : nil }
        guard bytes.count < 16 else { return nil }
        bytes.insert(contentsOf: [UInt8](repeating: 0, count: 16 - bytes.count), at: gap)
        return bytes
    }

    private static func parseGroup(_ text: Substring.UTF8View) -> [UInt8]? {
        let digits = text.prefix(5).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == text.count, (1...4).contains(digits.count) else { return nil }
        let value = digits.reduce(0) { $0 << 4 | $1 }
        return [UInt8(value >> 8), UInt8(value & 0xFF)]
    }
}
