internal import LifelineMessages

/// What the connections carry: bytes as they are, or decoded messages.
protocol BenchmarkMessage: DelimitedMessage, Equatable {
    /// Reads a field where there are some.
    var isEmpty: Bool { get }
    /// The session service with methods of such messages.
    static var service: String { get }
}

extension BenchmarkMessage {
    init(payload: [UInt8]) throws {
        self = try payload.withUnsafeBytes {
            try Self(serializedBytes: $0, partial: false, options: DecodingOptions())
        }
    }
}

extension Payload {
    /// For sessions, which have chat messages decoded, and all else as it is.
    var message: any BenchmarkMessage {
        get throws {
            if isChat { return try Benchmark_ChatMessage(payload: bytes) }
            return RawMessage(bytes: bytes)
        }
    }
}

extension RawMessage: BenchmarkMessage {
    var isEmpty: Bool { byteCount == 0 }
    static var service: String { "benchmark.Raw" }
}

extension Benchmark_ChatMessage: BenchmarkMessage {
    var isEmpty: Bool { nonce == 0 }
    static var service: String { "benchmark.Chat" }
}

/// How messages are taken from a connection.
enum Taking {
    /// All of a read at once, and sent on together.
    case batches
    /// One after the other, and each sent by itself.
    case messages
}
