internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix

/// A server of grpc-swift-2 with a method of each kind that is measured.
func runGRPCServer(_ mode: ServerMode) async throws {
    let server = GRPCServer(
        transport: .http2NIOPosix(address: .ipv4(host: "127.0.0.1", port: 0), transportSecurity: .plaintext),
        services: [AnsweringService(mode: mode)]
    )
    try await withThrowingTaskGroup { group in
        group.addTask { try await server.serve() }
        say("port \(try await server.listeningAddress?.ipv4?.port ?? 0)")
        try await group.waitForAll()
    }
}

extension MethodDescriptor {
    static let stream = MethodDescriptor(fullyQualifiedService: "benchmark.Echo", method: "Stream")
    static let unary = MethodDescriptor(fullyQualifiedService: "benchmark.Echo", method: "Unary")
}

private struct AnsweringService: RegistrableRPCService {
    let mode: ServerMode

    func registerMethods<Transport: ServerTransport>(with router: inout RPCRouter<Transport>) {
        let echoes = mode == .echo
        router.registerHandler(
            forMethod: .stream,
            deserializer: RawBytes(),
            serializer: RawBytes()
        ) { request, _ in
            StreamingServerResponse { writer in
                for try await message in request.messages where echoes || message.isEmpty {
                    try await writer.write(message)
                }
                return [:]
            }
        }
        router.registerHandler(
            forMethod: .unary,
            deserializer: RawBytes(),
            serializer: RawBytes()
        ) { request, _ in
            let message = try await ServerRequest(stream: request).message
            return StreamingServerResponse(single: ServerResponse(message: message))
        }
    }
}

/// Messages stay as they are: no protobuf is measured here.
struct RawBytes: MessageSerializer, MessageDeserializer {
    func serialize<Bytes: GRPCContiguousBytes>(_ message: [UInt8]) -> Bytes { Bytes(message) }

    func deserialize<Bytes: GRPCContiguousBytes>(_ serializedMessageBytes: Bytes) -> [UInt8] {
        serializedMessageBytes.withUnsafeBytes { [UInt8]($0) }
    }
}
