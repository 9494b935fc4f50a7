internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix

/// Makes a call of the kind in the command.
final class GRPCCallClient: PeerClient {
    private var held: Held<HTTP2Client>?

    func open(port: Int, connectionCount: Int) async throws {
        held = try await holdClient(port: port, connectionCount: connectionCount)
    }

    func close() async throws { try await held?.release() }

    /// By unary calls, each in its own task.
    func echo(_ payload: Payload, inFlight: Int, _ limit: SendLimit) async throws -> Outcome {
        let client = try client
        let payload = payload.bytes
        return try await concurrentCalls(inFlight: inFlight, limit) {
            let echo = try await client.unary(
                request: ClientRequest(message: payload),
                descriptor: .unary,
                serializer: RawBytes(),
                deserializer: RawBytes(),
                options: .defaults
            ) { try $0.message }
            guard echo == payload else { throw WrongEcho() }
        }
    }

    func oneWay(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        let begin = now()
        let count = try await client.clientStreaming(
            request: sending(payload, limit),
            descriptor: .clientStream,
            serializer: RawBytes(),
            deserializer: RawBytes(),
            options: .defaults
        ) { try Int(told: $0.message) }
        return Outcome(messages: count, nanoseconds: now() - begin)
    }

    func fromServer(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        let begin = now()
        let count = try await client.serverStreaming(
            request: ClientRequest(message: SendOrder(payload: payload, limit: limit).bytes),
            descriptor: .serverStream,
            serializer: RawBytes(),
            deserializer: RawBytes(),
            options: .defaults
        ) { try await $0.count(of: payload) }
        return Outcome(messages: count, nanoseconds: now() - begin)
    }

    func bothWays(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        let begin = now()
        let count = try await client.bidirectionalStreaming(
            request: sending(payload, limit),
            descriptor: .stream,
            serializer: RawBytes(),
            deserializer: RawBytes(),
            options: .defaults
        ) { try await $0.count(of: payload) }
        return Outcome(messages: count, nanoseconds: now() - begin)
    }

    private var client: HTTP2Client {
        get throws {
            guard let held else { throw Unsupported() }
            return held.value
        }
    }

    private func sending(_ payload: Payload, _ limit: SendLimit) -> StreamingClientRequest<[UInt8]> {
        StreamingClientRequest { _ = try await $0.write(payload.bytes, until: limit) }
    }
}

extension StreamingClientResponse<[UInt8]> {
    /// Counts messages until their end. Some are compared with the sent ones.
    fileprivate func count(of payload: Payload) async throws -> Int {
        var count = 0
        var check = EchoCheck()
        for try await message in messages {
            try check.received { message == payload.bytes }
            count += 1
        }
        return count
    }
}
