/// An IPv4 or IPv6 address, read without the operating system.
struct NumericAddress: Sendable, Hashable {
    /// 4 or 16, in the network's order.
    let bytes: [UInt8]

    /// Reads what `inet_pton` does: `192.0.2.1` without further zeros, `2001:db8::1` without brackets or zone; nil when it
    /// is neither.
    init?(_ text: some StringProtocol) {
        let text = Substring(text).utf8
        guard let bytes = NumericAddress.parseV4(text) ?? NumericAddress.parseV6(text) else { return nil }
        self.bytes = bytes
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// For an IPv6 address that stands for an IPv4 one (::ffff:192.0.2.1), that one; otherwise the address itself.
    var unmapped: NumericAddress {
        guard bytes.count == 16, bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF else {
            return self
        }
        return NumericAddress(bytes: Array(bytes[12...]))
    }

    /// Whether both are of one version and their first `bitCount` bits are the same.
    func sharesPrefix(of bitCount: Int, with other: NumericAddress) -> Bool {
        guard bytes.count == other.bytes.count else { return false }
        let whole = bitCount / 8
        guard bytes[..<whole] == other.bytes[..<whole] else { return false }
        guard whole < bytes.count else { return true }
        return (bytes[whole] ^ other.bytes[whole]) & ~(0xFF >> (bitCount % 8)) == 0
    }

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
        // Before which byte "::" stands.
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
