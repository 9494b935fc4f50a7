internal import Lifeline
internal import LifelineMessages

/// Sends and receives messages by calls with streams.
struct SessionStreamClient: SessionPeerClient {
    let session = HeldSession()
    let takes: Taking

    func oneWay(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        try await send(payload.message, limit)
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    private func send<Message: BenchmarkMessage>(_ message: Message, _ limit: SendLimit) async throws -> Outcome {
        let begin = now()
        let count: RawMessage = try await session.client.clientStream(Message.clientStream) { stream in
            var counter = SendCounter(limit)
            while counter.next() { try await stream.send(message) }
        }
        return Outcome(messages: try Int(told: count.bytes), nanoseconds: now() - begin)
    }

    func fromServer(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        try await receive(payload.message, SendOrder(payload: payload, limit: limit))
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    private func receive<Message: BenchmarkMessage>(_ message: Message, _ order: SendOrder) async throws -> Outcome {
        let begin = now()
        let order = RawMessage(bytes: order.bytes)
        let stream = try session.client.stream(Message.serverStream, order, of: Message.self)
        let received = try await takes.count(stream, stream.batches, of: message)
        return Outcome(messages: received, nanoseconds: now() - begin)
    }

    func bothWays(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        try await echo(payload.message, limit)
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    private func echo<Message: BenchmarkMessage>(_ message: Message, _ limit: SendLimit) async throws -> Outcome {
        let begin = now()
        let received = try await session.client.bothWays(Message.bothWays) { stream in
            var counter = SendCounter(limit)
            while counter.next() { try await stream.send(message) }
        } receive: { echoes in
            try await takes.count(echoes, echoes.batches, of: message)
        }
        return Outcome(messages: received, nanoseconds: now() - begin)
    }
}
