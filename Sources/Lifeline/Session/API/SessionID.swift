/// 128 bits that name a session.
package struct SessionID: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    /// Makes an id from two random numbers.
    package init(_ high: UInt64, _ low: UInt64) {
        (self.high, self.low) = (high, low)
    }

    /// Reads an id in its wire form; nil if it does not have 16 bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        func number(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        self.init(number(bytes.prefix(8)), number(bytes.dropFirst(8)))
    }

    /// The wire form: 16 bytes, the most significant first.
    package var bytes: [UInt8] {
        [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
    }

    /// Whether both are the same. Takes the same time wherever they differ.
    package static func == (first: SessionID, second: SessionID) -> Bool {
        (first.high ^ second.high) | (first.low ^ second.low) == 0
    }
}

extension SessionID: CustomStringConvertible {
    /// 32 hexadecimal digits.
    package var description: String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// The secret that proves the ownership of a session: 128 random bits, which no description shows.
package struct SessionToken: Sendable, Equatable {
    private let bits: SessionID

    /// Makes a token from two random numbers that nobody can guess.
    package init(_ high: UInt64, _ low: UInt64) {
        bits = SessionID(high, low)
    }

    /// Reads a token in its wire form; nil if it does not have 16 bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard let bits = SessionID(bytes) else { return nil }
        self.bits = bits
    }

    /// The wire form: 16 bytes.
    package var bytes: [UInt8] { bits.bytes }
}

extension SessionToken: CustomStringConvertible, CustomReflectable {
    /// A fixed text that hides the secret.
    package var description: String { "(secret)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The id of a session, and the secret that proves its ownership.
package struct SessionCredentials: Sendable, Equatable {
    package let id: SessionID
    package let token: SessionToken

    package init(id: SessionID, token: SessionToken) {
        self.id = id
        self.token = token
    }
}
