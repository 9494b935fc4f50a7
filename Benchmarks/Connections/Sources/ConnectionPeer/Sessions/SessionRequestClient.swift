internal import Lifeline
internal import LifelineMessages

/// Echoes messages by requests, each in its own task: on Swift's threads for tasks, or on the loop of the connection.
struct SessionRequestClient: SessionPeerClient {
    let session = HeldSession()
    let handler: SessionHandler
    let isOnLoop: Bool

    var executor: (any TaskExecutor)? { isOnLoop ? try? session.client.executor : nil }

    func echo(_ payload: Payload, inFlight: Int, _ limit: SendLimit) async throws -> Outcome {
        let session = try session.client
        let method = RawMessage.request(handler)
        let message = RawMessage(bytes: payload.bytes)
        return try await concurrentCalls(inFlight: inFlight, limit) {
            let echo: RawMessage = try await session.call(method, message)
            guard echo == message else { throw WrongEcho() }
        }
    }
}
