internal import Glibc

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

    /// Reads an address in its usual text form, such as `192.0.2.1` or `2001:db8::1`, without brackets or zone; nil when
    /// it is none.
    public init?(_ text: String) {
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            self.init(version: .v4, high: 0, low: UInt64(UInt32(bigEndian: v4.s_addr)))
        } else if inet_pton(AF_INET6, text, &v6) == 1 {
            self = withUnsafeBytes(of: v6) { IPAddress(v6: $0.bytes, at: 0) }
        } else {
            return nil
        }
    }

    private init(version: Version, high: UInt64, low: UInt64) {
        (self.version, self.high, self.low) = (version, high, low)
    }

    private init(v6 bytes: RawSpan, at offset: Int) {
        let high = bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
        let low = bytes.unsafeLoadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
        self.init(version: .v6, high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
    }

    /// The address that consists of `bytes`, in the network's order; nil when their number is not that of the version.
    package init?(version: Version, bytes: RawSpan) {
        guard bytes.byteCount == version.byteCount else { return nil }
        switch version {
        case .v4:
            let low = bytes.unsafeLoadUnaligned(as: UInt32.self)
            self.init(version: .v4, high: 0, low: UInt64(UInt32(bigEndian: low)))
        case .v6:
            self.init(v6: bytes, at: 0)
        }
    }

    /// The address's bytes in the network's order: 4 or 16.
    package var bytes: [UInt8] {
        let all = [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } }
        return Array(all.suffix(version.byteCount))
    }
}

extension IPAddress.Version {
    package var byteCount: Int { self == .v4 ? 4 : 16 }
}

extension IPAddress {
    /// Of this machine itself: 127.0.0.0/8 or ::1.
    package var isLoopback: Bool {
        switch version {
        case .v4: low >> 24 == 127
        case .v6: high == 0 && low == 1
        }
    }

    /// 0.0.0.0 or ::, which as a destination stand for this machine itself.
    package var isUnspecified: Bool { high == 0 && low == 0 }

    /// Valid on one link only: 169.254.0.0/16 or fe80::/10.
    package var isLinkLocal: Bool {
        switch version {
        case .v4: low >> 16 == 0xA9FE
        case .v6: high >> 54 == 0xFE80 >> 6
        }
    }

    /// For a group of hosts: 224.0.0.0/4 or ff00::/8.
    package var isMulticast: Bool {
        switch version {
        case .v4: low >> 28 == 0xE
        case .v6: high >> 56 == 0xFF
        }
    }

    /// For an IPv6 address that stands for an IPv4 one (::ffff:192.0.2.1), that one; otherwise the address itself.
    package var unmapped: IPAddress {
        guard version == .v6, high == 0, low >> 32 == 0xFFFF else { return self }
        return IPAddress(version: .v4, high: 0, low: low & 0xFFFF_FFFF)
    }
}

extension IPAddress: Comparable {
    /// IPv4 before IPv6, then by value.
    public static func < (first: IPAddress, second: IPAddress) -> Bool {
        guard first.version == second.version else { return first.version == .v4 }
        return (first.high, first.low) < (second.high, second.low)
    }
}

extension IPAddress: CustomStringConvertible {
    /// The usual text form; of IPv6 the shortest (RFC 5952).
    public var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        // It fails only for an unknown family or too small a buffer.
        _ = inet_ntop(version == .v4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
