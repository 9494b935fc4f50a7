/// Validates a text that is received in pieces, and detects as early as possible that it is not UTF-8 (Unicode 15,
/// table 3-7).
struct UTF8Validator {
    /// The number of bytes that the present character still needs.
    private var missing = 0
    /// The range of the next byte. The first byte after some lead bytes has a narrower range.
    private var allowed: ClosedRange<UInt8> = 0x80...0xBF

    /// Whether a text may end here.
    var isAtBoundary: Bool { missing == 0 }

    /// Receives the next piece. Returns false when the text so far cannot begin a UTF-8 text.
    mutating func accepts(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < bytes.count {
            if missing == 0 {
                index = UTF8Validator.endOfASCII(in: bytes, from: index)
                if index == bytes.count { return true }
                guard begin(with: bytes[index]) else { return false }
            } else {
                guard allowed.contains(bytes[index]) else { return false }
                missing -= 1
                allowed = 0x80...0xBF
            }
            index += 1
        }
        return true
    }

    private mutating func begin(with lead: UInt8) -> Bool {
        switch lead {
        case 0xC2...0xDF: missing = 1
        case 0xE0...0xEF: missing = 2
        case 0xF0...0xF4: missing = 3
        default: return false
        }
        allowed =
            switch lead {
            case 0xE0: 0xA0...0xBF
            case 0xED: 0x80...0x9F
            case 0xF0: 0x90...0xBF
            case 0xF4: 0x80...0x8F
            default: 0x80...0xBF
            }
        return true
    }

    /// Checks eight bytes at a time, because most text is ASCII.
    private static func endOfASCII(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index + 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            if word & 0x8080_8080_8080_8080 != 0 { break }
            index += 8
        }
        while index < bytes.count, bytes[index] < 0x80 { index += 1 }
        return index
    }
}
