internal import Lifeline
internal import LifelineTesting

/// The payload of a message of a scenario: a number, and bytes that follow from the number.
struct SessionNote: Equatable {
    private static let headerByteCount = 9

    /// Ascending over everything that is sent in a scenario. A response has that of its request.
    let number: Int
    /// Of a part: the number of its request; of a response: how many parts before it have to come.
    var extra = 0
    /// Of a part: whether it has to come.
    var isReliable = false
    var fillerCount = 0

    init(_ number: Int, extra: Int = 0, isReliable: Bool = false, fillerCount: Int = 0) {
        (self.number, self.extra, self.isReliable, self.fillerCount) = (number, extra, isReliable, fillerCount)
    }

    var payload: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.headerByteCount + fillerCount)
        for shift in [0, 8, 16, 24] { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
        for shift in [0, 8, 16, 24] { bytes.append(UInt8(truncatingIfNeeded: extra >> shift)) }
        bytes.append(isReliable ? 1 : 0)
        for index in 0..<fillerCount { bytes.append(UInt8(truncatingIfNeeded: number &+ index)) }
        return bytes
    }

    /// The number of a note, without a look at the rest; nil when the bytes are too few.
    static func number(_ bytes: UnsafeRawBufferPointer) -> Int? {
        bytes.count < headerByteCount ? nil : (0..<4).reduce(0) { $0 | Int(bytes[$1]) << (8 * $1) }
    }

    /// Nil when the bytes are not those of a note.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headerByteCount else { return nil }
        func read(_ start: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[start + $1]) << (8 * $1) } }
        self.init(
            read(0),
            extra: read(4),
            isReliable: bytes[8] == 1,
            fillerCount: bytes.count - Self.headerByteCount
        )
        for index in 0..<fillerCount
        where bytes[Self.headerByteCount + index] != UInt8(truncatingIfNeeded: number &+ index) {
            return nil
        }
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
