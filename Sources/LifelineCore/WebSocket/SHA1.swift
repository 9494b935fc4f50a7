/// SHA-1 (FIPS 180-4), which RFC 6455 asks for in `Sec-WebSocket-Accept`. It proves there that the peer has read the
/// request, and protects nothing.
enum SHA1 {
    /// The digest, 20 bytes.
    static func digest(of message: some Collection<UInt8>) -> [UInt8] {
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        let padded = padded(message)
        for start in stride(from: 0, to: padded.count, by: 64) {
            add(block: padded[start..<(start + 64)], to: &state)
        }
        return state.flatMap(bigEndianBytes)
    }

    /// The message, a bit, zeros, and the length in bits as 64 bits: a multiple of 64 bytes.
    private static func padded(_ message: some Collection<UInt8>) -> [UInt8] {
        var bytes = Array(message) + [0x80]
        bytes += [UInt8](repeating: 0, count: (120 - bytes.count % 64) % 64)
        let bitCount = UInt64(message.count) * 8
        return bytes + bigEndianBytes(UInt32(bitCount >> 32)) + bigEndianBytes(UInt32(truncatingIfNeeded: bitCount))
    }

    private static func add(block: ArraySlice<UInt8>, to state: inout [UInt32]) {
        var schedule = stride(from: block.startIndex, to: block.endIndex, by: 4).map { start in
            block[start..<(start + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<80 {
            let word = schedule[index - 3] ^ schedule[index - 8] ^ schedule[index - 14] ^ schedule[index - 16]
            schedule.append(rotated(word, by: 1))
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for (round, word) in schedule.enumerated() {
            let (mixed, constant): (UInt32, UInt32) =
                switch round {
                case ..<20: (b & c | ~b & d, 0x5A82_7999)
                case ..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                case ..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            let next = rotated(a, by: 5) &+ mixed &+ e &+ constant &+ word
            (a, b, c, d, e) = (next, a, rotated(b, by: 30), c, d)
        }
        for (index, value) in [a, b, c, d, e].enumerated() { state[index] &+= value }
    }

    private static func rotated(_ word: UInt32, by count: UInt32) -> UInt32 { word << count | word >> (32 - count) }

    private static func bigEndianBytes(_ word: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
    }
}
