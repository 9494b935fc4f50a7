public import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport

extension Client {
    /// Sends a message: at once while connected, and otherwise as the policy says.
    ///
    /// While connected, the call waits, with every policy, as long as the bytes that the peer has not made room for are
    /// over the high-water mark. Without a connection, the message waits in a queue. The queue goes out first in, first
    /// out, before any later message. When the client gives up, the message still waits, because the network's return
    /// or `reconnect()` starts the client again. The policy's timeout ends the waiting. Timeouts count from `run()` on.
    ///
    /// The messages of one task go out in the order of its calls. A send that waits for room when its connection is
    /// lost goes on waiting under its policy, at the end of the queue.
    ///
    /// - Returns: whether a connection accepted the message, or its policy dropped it. Each send ends once.
    /// - Throws: `ConnectionError` `notConnected`, `sendTimedOut` or `sendQueueFull` as the policy and the
    ///   configuration ask for; `messageRefused` when it cannot be encoded or is over the limit; `closedLocally` when
    ///   the client is closed. `CancellationError` when the task is cancelled. In each case no connection has accepted
    ///   the message.
    @discardableResult
    public nonisolated(nonsending) func send(
        _ message: Sent,
        policy: SendPolicy = .wait()
    ) async throws -> SendOutcome {
        try await sendReturningConnection(message, policy: policy).outcome
    }

    /// Sends as `send(_:policy:)` does, and also returns the connection that accepted the message.
    package nonisolated(nonsending) func sendReturningConnection(
        _ message: Sent,
        policy: SendPolicy
    ) async throws -> SendResult {
        try Task.checkCancellation()
        var waitingSince: MonotonicTime?
        while true {
            switch try offer(message) {
            case .accepted(let id):
                return SendResult(outcome: .accepted, connection: id)
            case .pending(let pending, let path):
                waitingSince = waitingSince ?? keeper.clock.now
                if try await isAccepted(pending, on: path) {
                    return SendResult(outcome: .accepted, connection: path.id)
                }
            case .refused(let frame):
                let start = waitingSince ?? keeper.clock.now
                waitingSince = start
                if let end = try await sends.wait(frame, policy: policy, since: start, keeper) { return end }
            }
        }
    }

    private enum Offer {
        case accepted(ClientMachine.ConnectionID)
        /// The message waits for room on the connection.
        case pending(PendingSend, ConnectionKeeper.DirectPath)
        /// No connection takes the message now. Holds its frame.
        case refused([UInt8])
    }

    private func offer(_ message: Sent) throws -> Offer {
        do {
            return try message.withDelimitedBytes(partial: false) { frame in
                try encoder.checkFrame(frame)
                guard let path = keeper.directPath else { return .refused(Array(frame)) }
                do throws(ConnectionError) {
                    guard let pending = try path.connection.offer(frame) else { return .accepted(path.id) }
                    return .pending(pending, path)
                } catch {
                    keeper.change { machine, _ in machine.sendFailed(on: path.id) }
                    return .refused(Array(frame))
                }
            }
        } catch {
            throw ConnectionError(
                code: .messageRefused,
                message: "The \(Sent.self) was not sent; the client goes on.",
                cause: error
            )
        }
    }

    /// False when the connection failed before it had room.
    private nonisolated(nonsending) func isAccepted(
        _ pending: PendingSend,
        on path: ConnectionKeeper.DirectPath
    ) async throws -> Bool {
        do {
            try await path.connection.wait(for: pending)
            return true
        } catch is ConnectionError {
            keeper.change { machine, _ in machine.sendFailed(on: path.id) }
            return false
        }
    }
}
