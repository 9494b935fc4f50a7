import Lifeline
import LifelineProtos
import Synchronization

/// The connections that stand, and their end in order.
///
/// This side is ended first, and what the client has sent until it ends its own is still read: so nothing is lost. A server
/// that shuts down drops what comes then.
final class OpenConnections: Sendable {
    typealias Connection = Lifeline.Connection<Sample_Chat_V1_ChatMessage, Sample_Chat_V1_ChatMessage>

    private struct State {
        var connections: [UInt64: Connection] = [:]
        var lastID: UInt64 = 0
        var ending: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// Runs `body` with a connection that counts as open meanwhile.
    func with(_ connection: Connection, _ body: () async throws -> Void) async rethrows {
        let id = state.withLock { state in
            state.lastID += 1
            state.connections[state.lastID] = connection
            return state.lastID
        }
        defer {
            let ending = state.withLock { state in
                state.connections[id] = nil
                return state.connections.isEmpty ? state.ending.take() : nil
            }
            ending?.resume()
        }
        try await body()
    }

    /// Ends this side of all, and waits until their clients have ended theirs.
    func end() async {
        // One that fails is about to be closed.
        for connection in state.withLock({ Array($0.connections.values) }) { try? await connection.finishSending() }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.connections.isEmpty { state.ending = continuation }
                return state.connections.isEmpty
            }
            if isOver { continuation.resume() }
        }
    }
}
