internal import LifelineMessages

/// The messages of connections: plain bytes, or decoded messages.
protocol BenchmarkMessage: DelimitedMessage, Equatable {
    /// Reads a field if there are fields.
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
    /// For sessions, which decode chat messages, and pass everything else unchanged.
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

/// The way in which messages are taken from a connection.
enum Taking {
    /// All messages of a read at once, sent together.
    case batches
    /// One after the other, each sent separately.
    case messages
}
