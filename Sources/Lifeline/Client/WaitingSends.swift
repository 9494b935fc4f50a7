internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// The messages that wait for a connection, and the tasks that sent them. The keeper's machine decides about them.
final class WaitingSends: Sendable {
    /// A message in the queue.
    private struct Send {
        let id: SendQueue.ID
        let frame: [UInt8]
        /// Opens with the result for its sender; nil asks the sender to try the connection again.
        let end = Latch<Result<SendResult?, any Error>>()
        /// Opens when its sender withdraws it.
        let withdrawal = Latch<Void>()
    }

    private struct State {
        var waiting: [SendQueue.ID: Send] = [:]
        /// The send to offer to a connection next.
        var nextHandOver: Send?
        var inHand: Send?
    }

    /// Taken inside the keeper's lock or without it, never around it.
    private let state = NIOLockedValueBox(State())

    /// Queues a message until a connection takes it. Returns nil when the connection can be tried again.
    ///
    /// - Parameter start: the time since which the message waits, for the policy's timeout.
    /// - Throws: `ConnectionError`, `CancellationError`.
    nonisolated(nonsending) func wait(
        _ frame: [UInt8],
        policy: SendPolicy,
        since start: MonotonicTime,
        _ keeper: ConnectionKeeper
    ) async throws -> SendResult? {
        let offered = keeper.offerSend { (machine, now) -> Result<Send?, any Error> in
            switch machine.offered(byteCount: frame.count, policy: policy, since: start, now: now) {
            case .sendNow: return .success(nil)
            case .fail(let code): return .failure(machine.error(for: code))
            case .wait(let id):
                let send = Send(id: id, frame: frame)
                state.withLockedValue { $0.waiting[id] = send }
                return .success(send)
            }
        }
        guard let send = try offered.get() else { return nil }
        if let end = try? await send.end.wait() { return try end.get() }
        // The task was cancelled. The machine decides how the send ends; a connection may have accepted it already.
        keeper.change { machine, _ in machine.sendCancelled(send.id) }
        return try await send.end.waitUninterrupted().get()
    }

    // MARK: The machine's actions

    /// Notes that the machine asks to offer this send to the connection.
    func willHandOver(_ id: SendQueue.ID) {
        state.withLockedValue { $0.nextHandOver = $0.waiting[id] }
    }

    func withdraw(_ id: SendQueue.ID) {
        let withdrawal = state.withLockedValue { state in
            [state.inHand, state.nextHandOver].compactMap { $0 }.first { $0.id == id }?.withdrawal
        }
        withdrawal?.open(with: ())
    }

    /// Ends a send.
    ///
    /// - Parameter connection: the connection that accepted it, if one has.
    func end(
        _ ended: SendQueue.Ended,
        by connection: ClientMachine.ConnectionID?,
        error: (ConnectionError.Code) -> ConnectionError
    ) {
        guard let send = state.withLockedValue({ $0.waiting.removeValue(forKey: ended.id) }) else { return }
        switch ended.outcome {
        case .sent: send.end.open(with: .success(SendResult(outcome: .accepted, connection: connection)))
        case .dropped: send.end.open(with: .success(SendResult(outcome: .dropped, connection: nil)))
        case .cancelled: send.end.open(with: .failure(CancellationError()))
        case .failed(let code): send.end.open(with: .failure(error(code)))
        }
    }

    // MARK: Handing over

    /// Offers sends to a connection, one after the other, as long as the machine asks for it.
    func handOver(
        to connection: any TransportConnection,
        as id: ClientMachine.ConnectionID,
        _ keeper: ConnectionKeeper
    ) async {
        while let next = takeNext() {
            let isAccepted = await offer(next, to: connection)
            keeper.change { $0.handOverEnded(next.id, on: id, isAccepted: isAccepted, now: $1) }
        }
    }

    private func takeNext() -> Send? {
        state.withLockedValue { state in
            state.inHand = state.nextHandOver.take()
            return state.inHand
        }
    }

    /// Returns whether the connection accepted the frame. If not, it never will.
    private func offer(_ send: Send, to connection: any TransportConnection) async -> Bool {
        do {
            guard let pending = try send.frame.withUnsafeBytes({ try connection.offer($0) }) else { return true }
            return await withTaskGroup(of: Bool?.self) { group in
                group.addTask {
                    do {
                        try await connection.wait(for: pending)
                        return true
                    } catch {
                        return false
                    }
                }
                group.addTask {
                    _ = try? await send.withdrawal.wait()
                    return nil
                }
                var isAccepted = false
                // The first task to end cancels the other. The result of the connection's wait counts.
                for await result in group {
                    if let result { isAccepted = result }
                    group.cancelAll()
                }
                return isAccepted
            }
        } catch {
            return false
        }
    }
}
