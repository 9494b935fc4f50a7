internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix

/// A grpc-swift-2 server with a method of each measured kind.
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
        router.registerHandler(
            forMethod: .serverStream,
            deserializer: RawBytes(),
            serializer: RawBytes()
        ) { request, _ in
            let order = try SendOrder(bytes: try await ServerRequest(stream: request).message)
            return StreamingServerResponse { writer in
                _ = try await writer.write(order.payload.bytes, until: order.limit)
                return [:]
            }
        }
        router.registerHandler(
            forMethod: .clientStream,
            deserializer: RawBytes(),
            serializer: RawBytes()
        ) { request, _ in
            var count = 0
            for try await _ in request.messages { count += 1 }
            return StreamingServerResponse(single: ServerResponse(message: count.told))
        }
    }
}
