import FaultSupport
import Lifeline
import LifelineProtos
import Synchronization

/// A connection that is made anew whenever it has failed. It has no heartbeat and does not look at the network.
final class ReconnectingConnection: Sendable {
    typealias Message = Sample_Chat_V1_ChatMessage

    private struct State {
        var connection: Connection<Message, Message>?
        var isClosed = false
    }

    private let endpoint: Endpoint
    private let configuration: ConnectionConfiguration
    private let delay: Duration
    private let state = Mutex(State())

    init(to endpoint: Endpoint, connectTimeout: Duration, delay: Duration) {
        self.endpoint = endpoint
        var configuration = ConnectionConfiguration()
        configuration.connectTimeout = connectTimeout
        self.configuration = configuration
        self.delay = delay
    }

    func run() async throws {
        var from = "idle"
        while !state.withLock({ $0.isClosed }) {
            FaultEvent.transition(from: from, to: "connecting", reason: from == "idle" ? "started" : "retryDue").print()
            from = await connectOnce()
            if from == "backingOff" { try await Task.sleep(for: delay) }
        }
        FaultEvent.transition(from: from, to: "closed", reason: "closedByUser").print()
    }

    func send(_ message: Message) async throws {
        guard let connection = state.withLock({ $0.connection }) else {
            throw ConnectionError(code: .connectFailed, message: "There is no connection.")
        }
        try await connection.send(message)
    }

    func close() {
        let connection = state.withLock { state in
            state.isClosed = true
            return state.connection
        }
        _ = connection.map { connection in Task { try await connection.finishSending() } }
    }

    /// Connects and waits until the connection has ended; the state that this leads to.
    private func connectOnce() async -> String {
        do {
            try await withConnection(
                to: endpoint,
                configuration: configuration,
                receiving: Message.self,
                sending: Message.self
            ) { connection in
                let isClosed = state.withLock { state in
                    state.connection = connection
                    return state.isClosed
                }
                defer { state.withLock { $0.connection = nil } }
                // Closed while it was being made.
                if isClosed { try await connection.finishSending() }
                FaultEvent.transition(from: "connecting", to: "ready", reason: "connected").print()
                for try await _ in connection.messages {}
            }
            if state.withLock({ $0.isClosed }) { return "draining" }
            FaultEvent.transition(from: "ready", to: "backingOff", reason: "closedByPeer").print()
        } catch {
            let code = (error as? ConnectionError)?.code
            let isConnecting = code == .connectFailed || code == .connectTimeout
            FaultEvent.transition(
                from: isConnecting ? "connecting" : "ready",
                to: "backingOff",
                reason: isConnecting ? "connectFailed" : code.map { "\($0)" } ?? "\(error)"
            ).print()
        }
        return "backingOff"
    }
}
