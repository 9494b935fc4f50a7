internal import Lifeline

/// A client with the public API.
final class LifelineClient<Message: BenchmarkMessage>: PeerClient {
    private let takes: Taking
    private var held: [Held<Connection<Message, Message>>] = []

    init(takes: Taking) { self.takes = takes }

    var executor: (any TaskExecutor)? { held.first?.value.executor }

    func open(port: Int, connectionCount: Int) async throws {
        let endpoint = try Endpoint("tcp://127.0.0.1:\(port)")
        for _ in 0..<connectionCount {
            held.append(
                try await Held { hold in
                    try await withConnection(to: endpoint, receiving: Message.self, sending: Message.self) {
                        await hold($0)
                    }
                }
            )
        }
    }

    func close() async throws {
        for connection in held { try await connection.release() }
        held = []
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    func oneWay(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        let connection = try first()
        let message = try Message(payload: payload.bytes)
        var outcome = Outcome()
        let begin = now()
        switch takes {
        case .batches:
            // The number of messages in a batch.
            let chunk = Array(repeating: message, count: 512)
            while !limit.isReached(since: begin, sent: outcome.messages) {
                try await connection.send(contentsOf: chunk)
                outcome.messages += chunk.count
            }
        case .messages:
            var counter = SendCounter(limit)
            while counter.next() { try await connection.send(message) }
            outcome.messages = counter.count
        }
        try await connection.send(Message(payload: []))
        try await receiveOne(on: connection) { $0.isEmpty }
        outcome.nanoseconds = now() - begin
        return outcome
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    func echo(_ payload: Payload, inFlight: Int, _ limit: SendLimit) async throws -> Outcome {
        let connection = try first()
        let message = try Message(payload: payload.bytes)
        if inFlight * payload.bytes.count > safelyHeldByteCount {
            return try await echoSendingBesides(message, inFlight: inFlight, limit, on: connection)
        }
        switch takes {
        case .batches: return try await echoBatches(message, inFlight: inFlight, limit, on: connection)
        case .messages: return try await echoMessages(message, inFlight: inFlight, limit, on: connection)
        }
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    private func echoSendingBesides(
        _ message: Message,
        inFlight: Int,
        _ limit: SendLimit,
        on connection: Connection<Message, Message>
    ) async throws -> Outcome {
        switch takes {
        case .batches:
            var batches = connection.messages.batches.makeAsyncIterator()
            return try await ConnectionPeer.echoSendingBesides(inFlight: inFlight, limit) {
                try await connection.send(contentsOf: repeatElement(message, count: $0))
            } receive: { check in
                guard let batch = try await batches.next() else { return 0 }
                try check.received(batch.count) { batch.first == message }
                return batch.count
            }
        case .messages:
            var messages = connection.messages.makeAsyncIterator()
            return try await ConnectionPeer.echoSendingBesides(inFlight: inFlight, limit) {
                for _ in 0..<$0 { try await connection.send(message) }
            } receive: { check in
                guard let echo = try await messages.next() else { return 0 }
                try check.received { echo == message }
                return 1
            }
        }
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    private func echoBatches(
        _ message: Message,
        inFlight: Int,
        _ limit: SendLimit,
        on connection: Connection<Message, Message>
    ) async throws -> Outcome {
        var outcome = Outcome()
        let begin = now()
        var trips = RoundTrips(inFlight: inFlight, begin: begin)
        var check = EchoCheck()
        var sent = inFlight
        try await connection.send(contentsOf: repeatElement(message, count: inFlight))
        for try await batch in connection.messages.batches {
            trips?.end()
            try check.received(batch.count) { batch.first == message }
            outcome.messages += batch.count
            if !limit.isReached(since: begin, sent: sent) {
                sent += batch.count
                try await connection.send(contentsOf: repeatElement(message, count: batch.count))
            }
            if outcome.messages == sent { break }
        }
        return try end(outcome, begin, sent, trips)
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    private func echoMessages(
        _ message: Message,
        inFlight: Int,
        _ limit: SendLimit,
        on connection: Connection<Message, Message>
    ) async throws -> Outcome {
        var outcome = Outcome()
        let begin = now()
        var trips = RoundTrips(inFlight: inFlight, begin: begin)
        var check = EchoCheck()
        var sent = inFlight
        var isSending = true
        for _ in 0..<inFlight { try await connection.send(message) }
        for try await echo in connection.messages {
            trips?.end()
            try check.received { echo == message }
            outcome.messages += 1
            // The clock is not read for every message.
            if isSending, sent % 64 == 0 || trips != nil { isSending = !limit.isReached(since: begin, sent: sent) }
            if isSending {
                sent += 1
                try await connection.send(message)
            }
            if outcome.messages == sent { break }
        }
        return try end(outcome, begin, sent, trips)
    }

    private func end(_ outcome: Outcome, _ begin: UInt64, _ sent: Int, _ trips: RoundTrips?) throws -> Outcome {
        guard outcome.messages == sent else { throw ConnectionEnded() }
        var outcome = outcome
        outcome.nanoseconds = now() - begin
        trips?.complete(&outcome)
        return outcome
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    func each(_ payload: Payload) async throws -> Outcome {
        let message = try Message(payload: payload.bytes)
        let begin = now()
        for connection in held {
            try await connection.value.send(message)
            try await receiveOne(on: connection.value) { $0 == message }
        }
        return Outcome(messages: held.count, nanoseconds: now() - begin)
    }

    @specialized(where Message == RawMessage)
    @specialized(where Message == Benchmark_ChatMessage)
    private func receiveOne(
        on connection: Connection<Message, Message>,
        isExpected: (Message) -> Bool
    ) async throws {
        var messages = connection.messages.makeAsyncIterator()
        guard let message = try await messages.next() else { throw ConnectionEnded() }
        guard isExpected(message) else { throw WrongEcho() }
    }

    private func first() throws -> Connection<Message, Message> {
        guard let connection = held.first else { throw ConnectionEnded() }
        return connection.value
    }
}
