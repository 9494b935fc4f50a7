internal import Lifeline
internal import LifelineMessages

/// Pushes messages to the server, and makes it push messages.
struct SessionPushClient: SessionPeerClient {
    let session = HeldSession()
    let handler: SessionHandler
    let takes: Taking

    func oneWay(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        try await push(payload.message, limit)
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    private func push<Message: BenchmarkMessage>(_ message: Message, _ limit: SendLimit) async throws -> Outcome {
        let session = try session.client
        let method = Message.push(handler)
        let begin = now()
        var counter = SendCounter(limit)
        while counter.next() { try await session.push(method, message) }
        // Pushes of one method are processed in order.
        try await session.push(method, message, until: .processed)
        return Outcome(messages: counter.count + 1, nanoseconds: now() - begin)
    }

    func fromServer(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        try await receive(payload.message, SendOrder(payload: payload, limit: limit))
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    private func receive<Message: BenchmarkMessage>(_ message: Message, _ order: SendOrder) async throws -> Outcome {
        let (session, takes) = (try session.client, takes)
        let pushes = session.pushes(Message.orderedPushes, of: Message.self)
        let begin = now()
        async let received = takes.count(pushes, pushes.batches, of: message)
        let sent: RawMessage = try await session.call(Message.sendPushes, RawMessage(bytes: order.bytes))
        let nanoseconds = now() - begin
        // All are processed by now.
        pushes.stop()
        guard try await received == Int(told: sent.bytes) else { throw WrongCount() }
        return Outcome(messages: try await received, nanoseconds: nanoseconds)
    }
}
