internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix

// The parts that clients and the server share.

typealias HTTP2Client = GRPCClient<HTTP2ClientTransport.Posix>

func holdClient(port: Int, connectionCount: Int) async throws -> Held<HTTP2Client> {
    guard connectionCount == 1 else { throw Unsupported() }
    return try await Held { hold in
        try await withGRPCClient(
            transport: .http2NIOPosix(target: .ipv4(address: "127.0.0.1", port: port), transportSecurity: .plaintext)
        ) { await hold($0) }
    }
}

extension MethodDescriptor {
    static let unary = MethodDescriptor(fullyQualifiedService: "benchmark.Echo", method: "Unary")
    static let serverStream = MethodDescriptor(fullyQualifiedService: "benchmark.Echo", method: "ServerStream")
    static let clientStream = MethodDescriptor(fullyQualifiedService: "benchmark.Echo", method: "ClientStream")
    /// Both ways.
    static let stream = MethodDescriptor(fullyQualifiedService: "benchmark.Echo", method: "Stream")
}

/// Messages are passed unchanged: protobuf is not measured here.
struct RawBytes: MessageSerializer, MessageDeserializer {
    func serialize<Bytes: GRPCContiguousBytes>(_ message: [UInt8]) -> Bytes { Bytes(message) }

    func deserialize<Bytes: GRPCContiguousBytes>(_ serializedMessageBytes: Bytes) -> [UInt8] {
        serializedMessageBytes.withUnsafeBytes { [UInt8]($0) }
    }
}

extension RPCWriter<[UInt8]> {
    /// Writes 64 messages at a time until the limit is reached. Returns the count.
    func write(_ payload: [UInt8], until limit: SendLimit) async throws -> Int {
        let chunk = Array(repeating: payload, count: 64)
        let begin = now()
        var count = 0
        while !limit.isReached(since: begin, sent: count) {
            try await write(contentsOf: chunk)
            count += chunk.count
        }
        return count
    }
}
