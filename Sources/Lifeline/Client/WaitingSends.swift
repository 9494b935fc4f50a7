internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// The messages that wait for a connection, and the tasks that sent them. The keeper's machine decides about them.
final class WaitingSends: Sendable {
    /// A message in the queue, and the task that waits for its end: nil to try the connection again.
    private struct WaitingSend {
        let frame: [UInt8]
        let continuation: CheckedContinuation<SendResult?, any Error>
    }

    /// A send that is offered to a connection.
    private struct HandOver {
        let id: SendQueue.ID
        let frame: [UInt8]
        /// Opens when its sender gives it up.
        let withdrawal = Latch<Void>()
    }

    private struct State {
        var waiting: [SendQueue.ID: WaitingSend] = [:]
        /// The one that is to be offered.
        var nextHandOver: HandOver?
        var inHand: HandOver?
    }

    /// Taken within the keeper's lock or without, and never around it.
    private let state = NIOLockedValueBox(State())

    /// Queues a message until a connection takes it. Nil: the connection can be tried again.
    ///
    /// - Parameter start: since when it waits, which counts for the policy's timeout.
    /// - Throws: `ConnectionError`, `CancellationError`.
    nonisolated(nonsending) func wait(
        _ frame: [UInt8],
        policy: SendPolicy,
        since start: MonotonicTime,
        _ keeper: ConnectionKeeper
    ) async throws -> SendResult? {
        let id = NIOLockedValueBox<SendQueue.ID?>(nil)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let end = keeper.offerSend { (machine, now) -> Result<SendResult?, any Error>? in
                    // A cancellation before this line ran its handler in vain; one after it finds the send.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    switch machine.offered(byteCount: frame.count, policy: policy, since: start, now: now) {
                    case .sendNow:
                        return .success(nil)
                    case .fail(let code):
                        return .failure(machine.error(for: code))
                    case .wait(let number):
                        id.withLockedValue { $0 = number }
                        let send = WaitingSend(frame: frame, continuation: continuation)
                        state.withLockedValue { $0.waiting[number] = send }
                        return nil
                    }
                }
                if let end { continuation.resume(with: end) }
            }
        } onCancel: {
            keeper.change { machine, _ in id.withLockedValue { $0 }.map { machine.sendCancelled($0) } ?? [] }
        }
    }

    // MARK: The machine's actions

    /// The machine wants this send to be offered to the connection.
    func willHandOver(_ id: SendQueue.ID) {
        state.withLockedValue { state in
            state.nextHandOver = state.waiting[id].map { HandOver(id: id, frame: $0.frame) }
        }
    }

    func withdraw(_ id: SendQueue.ID) {
        let withdrawal = state.withLockedValue { state in
            [state.inHand, state.nextHandOver].compactMap { $0 }.first { $0.id == id }?.withdrawal
        }
        withdrawal?.open(with: ())
    }

    /// A send has ended.
    ///
    /// - Parameter connection: the connection that accepted it, if one has.
    func end(
        _ ended: SendQueue.Ended,
        by connection: ClientMachine.ConnectionID?,
        error: (ConnectionError.Code) -> ConnectionError
    ) {
        guard let send = state.withLockedValue({ $0.waiting.removeValue(forKey: ended.id) }) else { return }
        switch ended.outcome {
        case .sent: send.continuation.resume(returning: SendResult(outcome: .accepted, connection: connection))
        case .dropped: send.continuation.resume(returning: SendResult(outcome: .dropped, connection: nil))
        case .cancelled: send.continuation.resume(throwing: CancellationError())
        case .failed(let code): send.continuation.resume(throwing: error(code))
        }
    }

    // MARK: Handing over

    /// Offers sends to a connection, one after the other, as long as the machine wants it.
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

    private func takeNext() -> HandOver? {
        state.withLockedValue { state in
            state.inHand = state.nextHandOver.take()
            return state.inHand
        }
    }

    /// Whether the connection accepted the frame. If not, it never will.
    private func offer(_ send: HandOver, to connection: any TransportConnection) async -> Bool {
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
                // Whichever ends first ends the other; what counts is how the connection's wait ended.
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
