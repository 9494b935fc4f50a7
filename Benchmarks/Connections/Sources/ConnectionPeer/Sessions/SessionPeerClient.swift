internal import Lifeline
internal import LifelineMessages

/// A client with one session. It runs on the loop of the session's connection by default.
protocol SessionPeerClient: PeerClient {
    var session: HeldSession { get }
}

extension SessionPeerClient {
    var executor: (any TaskExecutor)? { try? session.client.executor }

    func open(port: Int, connectionCount: Int) async throws {
        try await session.open(port: port, connectionCount: connectionCount)
    }

    func close() async throws { try await session.close() }
}

/// A session, from opening to closing it.
final class HeldSession {
    private var held: Held<SessionClient>?

    var client: SessionClient {
        get throws {
            guard let held else { throw ConnectionEnded() }
            return held.value
        }
    }

    func open(port: Int, connectionCount: Int) async throws {
        guard connectionCount == 1 else { throw Unsupported() }
        let endpoint = try Endpoint("tcp://127.0.0.1:\(port)")
        held = try await Held { hold in
            try await withSessionClient(to: endpoint) { await hold($0) }
        }
    }

    func close() async throws {
        try await held?.release()
        held = nil
    }
}

extension Taking {
    /// Counts messages until their end. Some are compared with the sent one.
    @inline(__always)  // A separate function for the sequences of each caller.
    func count<Message: BenchmarkMessage, Messages: AsyncSequence, Batches: AsyncSequence>(
        _ messages: Messages,
        _ batches: Batches,
        of message: Message
    ) async throws -> Int where Messages.Element == Message, Batches.Element == [Message] {
        var count = 0
        var check = EchoCheck()
        switch self {
        case .messages:
            for try await received in messages {
                try check.received { received == message }
                count += 1
            }
        case .batches:
            for try await batch in batches {
                try check.received(batch.count) { batch.first == message }
                count += batch.count
            }
        }
        return count
    }
}
