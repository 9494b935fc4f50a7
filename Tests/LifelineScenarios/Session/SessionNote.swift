/// The payload of a message of a story: a number, and bytes that follow from the number.
struct SessionNote {
    private static let headerByteCount = 4

    /// Ascending over everything that is sent in a story. A response has that of its request.
    let number: Int
    private let fillerCount: Int

    init(_ number: Int, fillerCount: Int = 0) { (self.number, self.fillerCount) = (number, fillerCount) }

    var payload: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.headerByteCount + fillerCount)
        for shift in [0, 8, 16, 24] { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
        for index in 0..<fillerCount { bytes.append(UInt8(truncatingIfNeeded: number &+ index)) }
        return bytes
    }

    /// Nil when the bytes are not those of a note.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let number = Self.number(bytes) else { return nil }
        self.init(number, fillerCount: bytes.count - Self.headerByteCount)
        for index in 0..<fillerCount
        where bytes[Self.headerByteCount + index] != UInt8(truncatingIfNeeded: number &+ index) {
            return nil
        }
    }

    /// The number of a note, without a look at the rest; nil when the bytes are too few.
    static func number(_ bytes: UnsafeRawBufferPointer) -> Int? {
        bytes.count < headerByteCount ? nil : (0..<4).reduce(0) { $0 | Int(bytes[$1]) << (8 * $1) }
    }
}

/// The four kinds of calls.
enum SessionCallKind: String, CaseIterable {
    case unary, serverStream, clientStream, bothWays

    private static let prefix = "test.Calls/"

    var method: String { Self.prefix + rawValue }
    var hasRequestParts: Bool { self == .clientStream || self == .bothWays }
    var hasResponseParts: Bool { self == .serverStream || self == .bothWays }

    init?(method: String) {
        guard method.hasPrefix(Self.prefix) else { return nil }
        self.init(rawValue: String(method.dropFirst(Self.prefix.count)))
    }
}
