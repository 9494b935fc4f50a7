internal import LifelineMessages

/// What the connections carry: bytes as they are, or decoded messages.
protocol BenchmarkMessage: DelimitedMessage, Equatable {
    /// Reads a field where there are some.
    var isEmpty: Bool { get }
}

extension BenchmarkMessage {
    init(payload: [UInt8]) throws {
        self = try payload.withUnsafeBytes {
            try Self(serializedBytes: $0, partial: false, options: DecodingOptions())
        }
    }
}

extension RawMessage: BenchmarkMessage {
    var isEmpty: Bool { byteCount == 0 }
}

extension Benchmark_ChatMessage: BenchmarkMessage {
    var isEmpty: Bool { nonce == 0 }
}

/// How messages are taken from a connection.
enum Taking {
    /// All of a read at once, and sent on together.
    case batches
    /// One after the other, and each sent by itself.
    case messages
}
